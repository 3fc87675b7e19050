//! What both test binaries are made of.

#[path = "../it/support/submitter.rs"]
pub mod submitter;
