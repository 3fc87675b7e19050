//! The whole use case, from a request to the end of the application.

mod planned;

pub use planned::{handed_over, planned};
