//! Pods as they come and go: a watch that is resumed when it breaks, and a look from time to time.

use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::core::WatchEvent;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::FollowIntervals;
use crate::calls::{Calls, Select, said};
use cloakroom_cluster::ApiFailure;
use cloakroom_core::retry::{Failures, WITHOUT_JITTER};

/// What was seen. `T` is as much of a pod as is of use.
#[derive(Debug)]
pub(super) enum Seen<T> {
    /// All pods that there are now.
    All(Vec<T>),
    /// One is new, or another than before.
    Changed(T),
    /// One is gone, and this is how it was last.
    Deleted(T),
    /// Nothing can be seen for now, and why.
    Away(String),
    /// It can again.
    Back,
    /// It may not be watched, and why; it is looked at from time to time.
    Polling(String),
    /// It may not be seen any more.
    Refused(ApiFailure),
}

/// A watch, which ends with this.
pub(super) struct Watching<T> {
    receiver: mpsc::Receiver<Seen<T>>,
    _task: AbortOnDropHandle<()>,
}

impl<T: From<Pod> + Send + 'static> Watching<T> {
    /// Watches what is selected, and looks at it every `look_every` as well.
    pub(super) fn start(
        calls: Calls,
        select: Select,
        look_every: Duration,
        intervals: FollowIntervals,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(16);
        let failures = Failures::default();
        let watch = Watch { calls, select, look_every, intervals, sender, refused: None, failures };
        // An error says that nobody listens any more.
        let task = tokio::spawn(async move { drop(watch.run().await) });
        Self { receiver, _task: AbortOnDropHandle::new(task) }
    }
}

impl<T> Watching<T> {
    /// What is seen next; never returns where there is nothing to watch, or nothing any more.
    pub(super) async fn next(watching: &mut Option<Self>) -> Seen<T> {
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
    sender: mpsc::Sender<Seen<T>>,
    /// Since when the credentials are not accepted.
    refused: Option<Instant>,
    failures: Failures,
}

/// Nobody listens any more, or nothing may be seen any more.
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
                    // It may come back with an older state: everything is looked at anew.
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

    /// Hands on events until they end; says where to go on, or nothing where that is forgotten.
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
                    self.send(Seen::Changed(pod.into())).await?;
                }
                Some(Ok(WatchEvent::Deleted(pod))) => {
                    since = version(&pod).or(since);
                    self.send(Seen::Deleted(pod.into())).await?;
                }
                Some(Ok(WatchEvent::Bookmark(bookmark))) => since = Some(bookmark.metadata.resource_version),
                // 410 for the most part: the past is forgotten.
                Some(Ok(WatchEvent::Error(status))) => {
                    tracing::debug!(code = status.code, "the watch begins anew: {}", status.message);
                    return Ok(None);
                }
                // It ended, or it broke.
                Some(Err(_)) | None => return Ok(since),
            }
        }
    }

    /// Looks at all pods at once; says whether that was possible.
    async fn look(&mut self) -> Result<bool, Over> {
        let mut pods = Vec::new();
        let looked = match &self.select {
            Select::Name(name) => self.calls.pod_named(name).await.map(|pod| pods.extend(pod.map(T::from))),
            Select::Labels(_) => self.calls.list_pods(&self.select, |pod| pods.push(pod.into())).await,
        };
        match looked {
            Ok(()) => {
                self.send(Seen::All(pods)).await?;
                Ok(true)
            }
            Err(failure) => {
                self.fail(failure).await?;
                Ok(false)
            }
        }
    }

    /// Where no watch is allowed.
    async fn poll(mut self, why: &ApiFailure) -> Result<(), Over> {
        self.send(Seen::Polling(said(why))).await?;
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
        if self.failures.end() { self.send(Seen::Back).await } else { Ok(()) }
    }

    /// Tells of it once, and waits; longer each time.
    async fn fail(&mut self, failure: ApiFailure) -> Result<(), Over> {
        let is_final = match &failure {
            ApiFailure::Forbidden { .. } => true,
            // A token may just be on its way to be renewed.
            ApiFailure::Unauthorized { .. } => {
                self.refused.get_or_insert_with(Instant::now).elapsed() >= self.intervals.credentials
            }
            _ => false,
        };
        if is_final {
            self.send(Seen::Refused(failure)).await?;
            return Err(Over);
        }
        if self.failures.is_news(()) {
            self.send(Seen::Away(said(&failure))).await?;
        }
        sleep(self.failures.wait(&self.intervals.backoff, failure.retry_after(), WITHOUT_JITTER)).await;
        Ok(())
    }

    async fn send(&self, seen: Seen<T>) -> Result<(), Over> {
        self.sender.send(seen).await.map_err(|_| Over)
    }
}
