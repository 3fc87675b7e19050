//! Scenarios that are written once and run on the fake API server and on a real control plane.

pub mod kinds;
pub mod outages;
pub mod pods;
pub mod probes;
pub mod served;
