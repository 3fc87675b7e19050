//! The Kubernetes API server: how it is reached, and what its failures mean.

mod failure;

pub use failure::{ApiFailure, within};
