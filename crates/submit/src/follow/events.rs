//! What the cluster tells about a pod that does not start.

use k8s_openapi::api::core::v1::Event;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::FollowIntervals;
use crate::calls::Calls;
use cloakroom_cluster::ApiFailure;

/// Looks at the events of one object from time to time, until this is dropped.
pub(super) struct Events {
    receiver: mpsc::Receiver<Vec<Event>>,
    _task: AbortOnDropHandle<()>,
}

impl Events {
    /// Looks for the first time after a while: most pods start before.
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
                    // They are a help, and not every role has them.
                    Err(ApiFailure::Forbidden { .. } | ApiFailure::Unauthorized { .. }) => return,
                    Err(failure) => tracing::debug!(error = %failure, "no events"),
                }
            }
        });
        Self { receiver, _task: AbortOnDropHandle::new(task) }
    }

    /// All events that there are; never returns where nobody looks.
    pub(super) async fn next(events: &mut Option<Self>) -> Vec<Event> {
        if let Some(events) = events
            && let Some(list) = events.receiver.recv().await
        {
            return list;
        }
        std::future::pending().await
    }
}
