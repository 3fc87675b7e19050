//! What brings an application's files to where pods fetch them, and takes them back.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::{StagePlan, StagedBundles, StagingError};
use crate::events::Log;
use crate::inputs::Inputs;
use crate::left::Left;
use crate::plan::{PlanError, Question};

/// Stages and releases.
#[async_trait]
pub trait Stager: Send + Sync {
    /// Which image init-containers are to have; it may not know one.
    async fn image(&self, question: &Question, log: &Log) -> Result<Option<String>, PlanError>;

    /// Uploads everything, and asks for all of it once more, just before others are told of it. After a failure, or once
    /// `stop` is cancelled, nothing is left, or the error says what.
    async fn stage(
        &self,
        plan: &StagePlan,
        inputs: &dyn Inputs,
        log: &Log,
        stop: &CancellationToken,
    ) -> Result<StagedBundles, StagingError>;

    /// Releases what was staged by `plan`, and says what is left.
    async fn release(&self, plan: &StagePlan, staged: &StagedBundles) -> Vec<Left>;
}
