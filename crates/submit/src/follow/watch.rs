//! Changes of pods: a watch that is resumed when it breaks, and a full read at an interval.

use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::core::WatchEvent;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::FollowIntervals;
use cloakroom_cluster::ApiFailure;
use cloakroom_cluster::calls::{Calls, Select, said};
use cloakroom_core::retry::{Failures, WITHOUT_JITTER};

/// A change, or the state of the watch. `T` is the part of a pod that the receiver needs.
#[derive(Debug)]
pub(super) enum PodChange<T> {
    /// All selected pods, from a full read.
    All(Vec<T>),
    /// A pod is new or has changed.
    Changed(T),
    /// A pod was deleted; this is its last state.
    Deleted(T),
    /// The API server cannot be reached for now. The text is the reason. It is sent once until `Back`.
    Away(String),
    /// The API server answers again.
    Back,
    /// The role does not allow a watch, so the pods are read at an interval. The text is the reason.
    Polling(String),
    /// The pods may not be read any more. This is the last message.
    Refused(ApiFailure),
}

/// A running watch. It ends when this is dropped.
pub(super) struct Watching<T> {
    receiver: mpsc::Receiver<PodChange<T>>,
    _task: AbortOnDropHandle<()>,
}

impl<T: From<Pod> + Send + 'static> Watching<T> {
    /// Watches the selected pods, and reads all of them every `look_every` as well.
    pub(super) fn start(
        calls: Calls,
        select: Select,
        look_every: Duration,
        intervals: FollowIntervals,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(16);
        let failures = Failures::default();
        let watch = Watch { calls, select, look_every, intervals, sender, refused: None, failures };
        // `Over` needs no handling: the receiver is gone, or it has `Seen::Refused`.
        let task = tokio::spawn(async move { drop(watch.run().await) });
        Self { receiver, _task: AbortOnDropHandle::new(task) }
    }
}

impl<T> Watching<T> {
    /// The next change. It never returns if `watching` is `None` or the watch has ended.
    pub(super) async fn next(watching: &mut Option<Self>) -> PodChange<T> {
        if let Some(watching) = watching
            && let Some(seen) = watching.receiver.recv().await
        {
            return seen;
        }
        std::future::pending().await
    }
}

struct Watch<T> {
    calls: Calls,
    select: Select,
    look_every: Duration,
    intervals: FollowIntervals,
    sender: mpsc::Sender<PodChange<T>>,
    /// The time since which the credentials are refused.
    refused: Option<Instant>,
    failures: Failures,
}

/// The end of the watch: the receiver is gone, or the pods may not be read any more.
struct Over;

type Events = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<Pod>>> + Send>>;

impl<T: From<Pod>> Watch<T> {
    async fn run(mut self) -> Result<(), Over> {
        let mut since: Option<String> = None;
        loop {
            match self.open(since.as_deref()).await {
                Ok(events) => {
                    if since.is_some() || self.look().await? {
                        self.is_back().await?;
                        since = self.consume(events, since).await?;
                    }
                    sleep(self.intervals.backoff.first).await;
                }
                Err(ApiFailure::Expired { .. }) if since.is_some() => since = None,
                Err(failure @ ApiFailure::Forbidden { .. }) => return self.poll(&failure).await,
                Err(failure) => {
                    // The API server may come back with an older state. So all pods are read anew.
                    since = None;
                    self.fail(failure).await?;
                }
            }
        }
    }

    async fn open(&self, since: Option<&str>) -> Result<Events, ApiFailure> {
        let request = self.calls.watch_pods(&self.select, since)?;
        let client = self.calls.server().client();
        let events = self.calls.server().call(client.request_events::<Pod>(request)).await?;
        Ok(Box::pin(events))
    }

    /// Passes events on until the watch ends. Returns the resource version at which to resume. It is `None` if the API
    /// server no longer has that point.
    async fn consume(
        &mut self,
        mut events: Events,
        mut since: Option<String>,
    ) -> Result<Option<String>, Over> {
        let mut looks = interval_at(Instant::now() + self.look_every, self.look_every);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                _ = looks.tick() => {
                    self.look().await?;
                    continue;
                }
            };
            let version = |pod: &Pod| pod.metadata.resource_version.clone();
            match event {
                Some(Ok(WatchEvent::Added(pod) | WatchEvent::Modified(pod))) => {
                    since = version(&pod).or(since);
                    self.send(PodChange::Changed(pod.into())).await?;
                }
                Some(Ok(WatchEvent::Deleted(pod))) => {
                    since = version(&pod).or(since);
                    self.send(PodChange::Deleted(pod.into())).await?;
                }
                Some(Ok(WatchEvent::Bookmark(bookmark))) => since = Some(bookmark.metadata.resource_version),
                // Mostly 410: the API server no longer has the point at which the watch began.
                Some(Ok(WatchEvent::Error(status))) => {
                    tracing::debug!(code = status.code, "the watch begins anew: {}", status.message);
                    return Ok(None);
                }
                // The watch ended or broke. Both are resumed at the same point.
                Some(Err(_)) | None => return Ok(since),
            }
        }
    }

    /// Reads all selected pods, and returns whether that was possible.
    async fn look(&mut self) -> Result<bool, Over> {
        let mut pods = Vec::new();
        let looked = match &self.select {
            Select::Name(name) => self.calls.pod_named(name).await.map(|pod| pods.extend(pod.map(T::from))),
            Select::Labels(_) => self.calls.list_pods(&self.select, |pod| pods.push(pod.into())).await,
        };
        match looked {
            Ok(()) => {
                self.send(PodChange::All(pods)).await?;
                Ok(true)
            }
            Err(failure) => {
                self.fail(failure).await?;
                Ok(false)
            }
        }
    }

    /// Reads the pods at an interval, because the role does not allow a watch.
    async fn poll(mut self, why: &ApiFailure) -> Result<(), Over> {
        self.send(PodChange::Polling(said(why))).await?;
        let pause = match self.select {
            Select::Name(_) => self.intervals.poll,
            Select::Labels(_) => self.look_every,
        };
        loop {
            if self.look().await? {
                self.is_back().await?;
                sleep(pause).await;
            }
        }
    }

    async fn is_back(&mut self) -> Result<(), Over> {
        self.refused = None;
        if self.failures.end() { self.send(PodChange::Back).await } else { Ok(()) }
    }

    /// Reports a failure once, and waits. The pause doubles each time.
    async fn fail(&mut self, failure: ApiFailure) -> Result<(), Over> {
        let is_final = match &failure {
            ApiFailure::Forbidden { .. } => true,
            // The token may be renewed in a moment.
            ApiFailure::Unauthorized { .. } => {
                self.refused.get_or_insert_with(Instant::now).elapsed() >= self.intervals.credentials
            }
            _ => false,
        };
        if is_final {
            self.send(PodChange::Refused(failure)).await?;
            return Err(Over);
        }
        if self.failures.is_news(()) {
            self.send(PodChange::Away(said(&failure))).await?;
        }
        sleep(self.failures.wait(&self.intervals.backoff, failure.retry_after(), WITHOUT_JITTER)).await;
        Ok(())
    }

    async fn send(&self, seen: PodChange<T>) -> Result<(), Over> {
        self.sender.send(seen).await.map_err(|_| Over)
    }
}
