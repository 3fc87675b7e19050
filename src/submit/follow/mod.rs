//! Waits for the driver's end, and tells what happens on the way.
