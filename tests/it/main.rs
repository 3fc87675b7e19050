//! Behaviour that a user sees, against real components.
#![expect(missing_docs, reason = "a test is named by the sentence that it checks")]
#![expect(clippy::pedantic, reason = "tests are read for what they check")]

mod smoke;
mod support;
