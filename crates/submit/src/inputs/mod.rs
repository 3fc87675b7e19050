//! Where the files of a submission come from: the plan says what it needs, and nothing else is read.

mod globs;
mod local;

use std::sync::Arc;

use async_trait::async_trait;

use super::plan::{Facts, Needs, Uncollected};
use cloakroom_transfer::bundle::Sources;

pub use local::Local;
#[cfg(test)]
pub(crate) use local::read as read_here;

/// What brings a submission its files.
#[async_trait]
pub trait Inputs: Send + Sync {
    /// Looks up everything that is needed. What cannot be read is a fact as well.
    async fn collect(&self, needs: &Needs) -> Result<Facts, Uncollected>;

    /// Opens what was planned to travel.
    fn sources(&self) -> Arc<dyn Sources>;
}
