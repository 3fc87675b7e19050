//! The interface of staging: a stager brings files to a place where pods can fetch them, and takes them back.

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use super::{StagePlan, StagedBundles, StagingError};
use crate::events::Log;
use crate::inputs::Inputs;
use crate::left::Left;
use crate::plan::{Answer, PlanError, Question};
use cloakroom_core::resource::ResourceId;

/// Stages and releases bundles. It owns the client, so other implementations need no HTTP.
#[async_trait]
pub trait Stager: Send + Sync {
    /// Asks the server.
    async fn ask(&self, question: &Question, log: &Log) -> Result<Answer, PlanError>;

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

    /// Asks the server of `plan` for the bundles of earlier runs. Each run is the ids of its tickets with their secrets.
    /// Yields the indices of those whose bundles it has deleted all.
    fn gone<'a>(&'a self, plan: &'a StagePlan, runs: Vec<Vec<(ResourceId, String)>>) -> BoxStream<'a, usize>;
}
