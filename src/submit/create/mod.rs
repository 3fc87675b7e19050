//! Sends the objects of a submission, and undoes what was done where that fails.
