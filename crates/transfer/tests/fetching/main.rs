//! Fetching in this process, from servers that do what a test tells them to.
#![expect(clippy::pedantic, clippy::unwrap_used, reason = "tests are read for what they check")]

mod fetch;
mod pod;
mod resume;
mod targets;
