//! The interface of staging: a stager brings files to a place where pods can fetch them, and takes them back.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::{StagePlan, StagedBundles, StagingError};
use crate::events::Log;
use crate::inputs::Inputs;
use crate::left::Left;
use crate::plan::{PlanError, Question};

/// Stages and releases bundles. It owns the client, so other implementations need no HTTP.
#[async_trait]
pub trait Stager: Send + Sync {
    /// The image that the server advertises for init-containers. It is `None` if the server knows none.
    async fn image(&self, question: &Question, log: &Log) -> Result<Option<String>, PlanError>;

    /// Uploads the bundles, and then checks that the server still has all of them. After a failure, or once `stop` is
    /// cancelled, nothing is left, or the error says what.
    async fn stage(
        &self,
        plan: &StagePlan,
        inputs: &dyn Inputs,
        log: &Log,
        stop: &CancellationToken,
    ) -> Result<StagedBundles, StagingError>;

    /// Releases the bundles of `plan`, and returns what is left.
    async fn release(&self, plan: &StagePlan, staged: &StagedBundles) -> Vec<Left>;
}
