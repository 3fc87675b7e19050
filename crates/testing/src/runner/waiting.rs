//! The reason why a container does not start yet, in the kubelet's words.

/// A reason for tools, and a message for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub reason: &'static str,
    pub message: String,
}

impl Waiting {
    pub fn new(reason: &'static str, message: String) -> Self {
        Self { reason, message }
    }
}
