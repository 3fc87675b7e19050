//! What brings a submission's files to where pods fetch them, and takes them back.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::{StagePlan, StagedBundles, StagingError, advertised};
use crate::events::Log;
use crate::inputs::Inputs;
use crate::plan::{PlanError, Question};
use cloakroom_transfer::client::RetryNotice;

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

    /// Releases everything. What is left is said, one text each.
    async fn release(&self, staged: &StagedBundles) -> Vec<String>;
}

/// The staging server that the plan names.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamedServer;

#[async_trait]
impl Stager for NamedServer {
    async fn image(&self, question: &Question, log: &Log) -> Result<Option<String>, PlanError> {
        advertised(question, &|notice: &RetryNotice| log.waits(notice)).await
    }

    async fn stage(
        &self,
        plan: &StagePlan,
        inputs: &dyn Inputs,
        log: &Log,
        stop: &CancellationToken,
    ) -> Result<StagedBundles, StagingError> {
        let staged = plan.upload(inputs.sources(), log, stop).await?;
        match staged.check(log, stop).await {
            Ok(()) => Ok(staged),
            Err(error) => Err(error.with_left(staged.release().await)),
        }
    }

    async fn release(&self, staged: &StagedBundles) -> Vec<String> {
        staged.release().await
    }
}
