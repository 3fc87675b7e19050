//! The cluster's events about a pod that does not start.

use k8s_openapi::api::core::v1::Event;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::FollowIntervals;
use cloakroom_cluster::ApiFailure;
use cloakroom_cluster::calls::Calls;

/// Reads the events of one object at an interval, until this is dropped.
pub(super) struct Events {
    receiver: mpsc::Receiver<Vec<Event>>,
    _task: AbortOnDropHandle<()>,
}

impl Events {
    /// Starts the reading. The first one comes after one interval, because most pods start before.
    pub(super) fn start(calls: Calls, uid: String, intervals: FollowIntervals) -> Self {
        let (sender, receiver) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            loop {
                sleep(intervals.events).await;
                match calls.events_of(&uid).await {
                    Ok(events) => {
                        if sender.send(events).await.is_err() {
                            return;
                        }
                    }
                    // Events only help, and not every role may read them.
                    Err(ApiFailure::Forbidden { .. } | ApiFailure::Unauthorized { .. }) => return,
                    Err(failure) => tracing::debug!(error = %failure, "no events"),
                }
            }
        });
        Self { receiver, _task: AbortOnDropHandle::new(task) }
    }

    /// The events of the next reading. It never returns if `events` is `None` or its task has ended.
    pub(super) async fn next(events: &mut Option<Self>) -> Vec<Event> {
        if let Some(events) = events
            && let Some(list) = events.receiver.recv().await
        {
            return list;
        }
        std::future::pending().await
    }
}
