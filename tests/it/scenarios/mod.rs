//! Scenarios that are written once and run on the fake API server and on a real control plane.

pub mod submissions;
