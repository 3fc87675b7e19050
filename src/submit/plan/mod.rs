//! From settings to the objects that Spark would send: everything is read and checked here, and nothing is sent.

mod submitter;

pub use submitter::Submitter;
