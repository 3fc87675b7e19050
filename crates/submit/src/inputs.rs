//! The source of a submission's files. The plan says what it needs, and nothing else is read.

mod globs;
mod local;

use std::sync::Arc;

use async_trait::async_trait;

use super::plan::{Facts, Needs, Uncollected};
use cloakroom_transfer::bundle::Sources;

pub use local::Local;
#[cfg(test)]
pub(crate) use local::read as read_here;

/// A source of files for a submission.
#[async_trait]
pub trait Inputs: Send + Sync {
    /// Collects everything that is needed. A failed read is a fact as well. It is an error only if the work itself
    /// fails.
    async fn collect(&self, needs: &Needs) -> Result<Facts, Uncollected>;

    /// Opens the files that travel, for packing and copying.
    fn sources(&self) -> Arc<dyn Sources>;
}
