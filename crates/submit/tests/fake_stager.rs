//! A stager that keeps bundles in memory, without HTTP, and can be told to go wrong.

use std::collections::BTreeSet;
use std::sync::Mutex;

use async_trait::async_trait;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::ResourceId;
use cloakroom_submit::inputs::Inputs;
use cloakroom_submit::plan::{Answer, PlanError, Question};
use cloakroom_submit::stage::{StagedBundles, Stager, StagingError};
use cloakroom_submit::{Left, Log, StagePlan};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

pub const IMAGE: &str = "repo.example/cloakroom:1";

#[derive(Default)]
pub struct FakeStager {
    /// Stages until it is to stop.
    pub is_slow: bool,
    /// Cancelled when the first upload begins.
    pub begun: CancellationToken,
    /// Releases nothing.
    pub keeps: bool,
    /// What is there, and what was.
    bundles: Mutex<(BTreeSet<String>, usize)>,
}

impl FakeStager {
    /// The ids of what is there.
    pub fn bundles(&self) -> Vec<String> {
        self.bundles.lock().unwrap().0.iter().cloned().collect()
    }

    /// How many bundles were ever staged.
    pub fn ever_staged(&self) -> usize {
        self.bundles.lock().unwrap().1
    }
}

#[async_trait]
impl Stager for FakeStager {
    async fn ask(&self, _: &Question, _: &Log) -> Result<Answer, PlanError> {
        Ok(Answer { image: Some(IMAGE.to_owned()), upload_auth: None, found: None })
    }

    async fn stage(
        &self,
        plan: &StagePlan,
        _: &dyn Inputs,
        _: &Log,
        stop: &CancellationToken,
    ) -> Result<StagedBundles, StagingError> {
        self.begun.cancel();
        if self.is_slow {
            stop.cancelled().await;
            // As an upload does, it takes a moment to end.
            tokio::task::yield_now().await;
            return Err(StagingError::Stopped { left: Vec::new() });
        }
        let mut staged = StagedBundles::default();
        let (there, ever) = &mut *self.bundles.lock().unwrap();
        for (what, _) in plan.bundles() {
            *ever += 1;
            let id = format!("id-of-the-{what}");
            there.insert(id.clone());
            staged.add(what, ticket(id));
        }
        Ok(staged)
    }

    async fn release(&self, plan: &StagePlan, staged: &StagedBundles) -> Vec<Left> {
        let (there, _) = &mut *self.bundles.lock().unwrap();
        let mut left = Vec::new();
        for (what, ticket) in staged.tickets() {
            let (resource_id, server) = (ticket.resource_id.clone(), plan.server.to_string());
            if self.keeps {
                left.push(Left::Staged { what, resource_id, server, why: "it is kept".to_owned() });
            } else {
                assert!(there.remove(&resource_id), "{resource_id} is released twice");
            }
        }
        left
    }

    fn gone<'a>(&'a self, _: &'a StagePlan, _: Vec<Vec<(ResourceId, String)>>) -> BoxStream<'a, usize> {
        stream::empty().boxed()
    }
}

fn ticket(resource_id: String) -> Ticket {
    Ticket {
        resource_secret: format!("secret-of-{resource_id}"),
        url: format!("https://staging.example/{resource_id}"),
        resource_id,
        size_bytes: 7,
        sha256: "0".repeat(64),
        created_at: Timestamp::UNIX_EPOCH,
        expires_at: Timestamp::UNIX_EPOCH,
    }
}
