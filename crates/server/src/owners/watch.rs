//! One watch: its list, its events, and its recovery from failures.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use kube::Api;
use kube::api::{DynamicObject, ListParams, PartialObjectMeta, ResourceExt as _};
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::time::{Instant, sleep};

use super::WatchIntervals;
use super::WatchState;
use super::follower::{Follower, Scope};
use super::fresh::{UNFINISHED, is_namespace_gone};
use super::kinds::Unresolved;
use super::objects::Source;
use super::watch_status::state_after;
use cloakroom_cluster::{ApiFailure, within};
use cloakroom_core::lock::lock;
use cloakroom_core::retry::Failures;

/// Why a watch starts again with a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RestartCause {
    /// A new label key or a contradiction made it necessary.
    Asked,
    /// The API server no longer has the watch's resource version.
    Expired,
    /// The API server does not know the kind by this name.
    NoSuchKind,
    /// The API server was unreachable for a while.
    Away,
}

/// The causes as values of a metric's label, in the order of `RestartCause`.
pub const RESTART_CAUSES: [&str; 4] = ["asked", "expired", "no-such-kind", "away"];

type Object = PartialObjectMeta<DynamicObject>;

/// The state of one watch, owned by its task.
pub(super) struct Watch {
    follower: Arc<Follower>,
    scope: usize,
    source: Source,
    /// The number of lists begun so far.
    pass: u32,
    /// The version of the label keys with which the last list began.
    keys_version: u64,
    is_listing: bool,
    failures: Failures,
    /// Whether the log has a failure of this watch, and not yet its end.
    has_warned: bool,
}

/// Watches until the task is aborted.
pub(super) async fn run(follower: Arc<Follower>, scope: usize, source: Source) {
    let failures = Failures::default();
    let mut watch = Watch {
        follower,
        scope,
        source,
        pass: 0,
        keys_version: 0,
        is_listing: true,
        failures,
        has_warned: false,
    };
    loop {
        match watch.follower.resource().await {
            Ok(resource) => watch.once(&resource).await,
            Err(Unresolved::Failed(failure)) => watch.fail(&failure).await,
            Err(Unresolved::NoSuchKind | Unresolved::NotAnOwner) => {
                watch.enter(WatchState::NoSuchKind, None);
                watch.rest(None).await;
            }
        }
    }
}

impl Watch {
    fn intervals(&self) -> &WatchIntervals {
        &self.follower.settings.intervals
    }

    fn scope(&self) -> &Scope {
        &self.follower.scopes[self.scope]
    }

    /// Runs one stream of kube's watcher, from its list until the watch must start again.
    async fn once(&mut self, resource: &ApiResource) {
        let client = self.follower.client.clone();
        let api: Api<Object> = match &self.scope().namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        };
        let mut config = watcher::Config::default().timeout(self.follower.settings.watch_timeout_seconds);
        if self.source == Source::Unfinished {
            config = config.fields(UNFINISHED);
        }
        let began = Instant::now();
        let stream = pin!(watcher(api.clone(), config));
        let anew = self.consume(stream, &api).await;
        self.follower
            .metrics
            .owner_watch_restarted(self.follower.kind.as_str(), RESTART_CAUSES[anew as usize]);
        match anew {
            RestartCause::Asked => {
                sleep(self.intervals().between_lists.saturating_sub(began.elapsed())).await;
            }
            RestartCause::Expired | RestartCause::Away => {}
            RestartCause::NoSuchKind => {
                self.follower.forget_resource();
                self.rest(None).await;
            }
        }
    }

    async fn consume(
        &mut self,
        mut stream: impl Stream<Item = watcher::Result<Event<Object>>> + Unpin,
        api: &Api<Object>,
    ) -> RestartCause {
        let mut settling = false;
        self.is_listing = true;
        loop {
            let follower = Arc::clone(&self.follower);
            let asked = follower.scopes[self.scope].anew[self.source as usize].notified();
            let next = tokio::select! {
                next = stream.next() => next,
                // A list in progress is finished first. Otherwise a client that keeps adding label keys could prevent
                // any complete list.
                () = asked, if !self.is_listing => {
                    if self.is_outdated() {
                        return RestartCause::Asked;
                    }
                    continue;
                }
                () = sleep(self.intervals().settled), if settling => {
                    self.recovered();
                    settling = false;
                    continue;
                }
            };
            match next {
                Some(Ok(event)) => {
                    if settling && matches!(event, Event::Apply(_) | Event::Delete(_)) {
                        self.recovered();
                    }
                    // A list alone shows little: if every watch after it fails at once, lists with short pauses would
                    // burden the API server.
                    settling = matches!(event, Event::InitDone);
                    self.take(event);
                }
                Some(Err(error)) => match self.overcome(error, api).await {
                    Some(anew) => return anew,
                    None => settling = !self.is_listing,
                },
                None => return RestartCause::Expired,
            }
        }
    }

    /// Whether the list misses label keys, or a fresh read contradicted it.
    fn is_outdated(&self) -> bool {
        let contradicted = self.scope().take_contradiction(self.source);
        let has_new_keys =
            self.source == Source::All && lock(&self.follower.objects).wanted.version() > self.keys_version;
        contradicted || has_new_keys
    }

    fn take(&mut self, event: Event<Object>) {
        let follower = Arc::clone(&self.follower);
        let mut objects = lock(&follower.objects);
        match event {
            Event::Init => {
                self.pass += 1;
                self.is_listing = true;
                self.keys_version = objects.wanted.version();
            }
            Event::InitApply(object) | Event::Apply(object) => {
                let namespace = object.namespace().unwrap_or_default();
                let labels = object.labels().iter().map(|(key, value)| (key.as_str(), value.as_str()));
                objects.apply(self.source, self.pass, &namespace, &object.name_any(), labels);
            }
            Event::Delete(object) => {
                objects.remove(self.source, &object.namespace().unwrap_or_default(), &object.name_any());
            }
            Event::InitDone => {
                objects.finish_list(self.source, self.pass, self.scope().namespace.as_deref());
                drop(objects);
                self.listed();
            }
        }
    }

    fn listed(&mut self) {
        self.is_listing = false;
        let (version, follower) = (self.keys_version, Arc::clone(&self.follower));
        let changed = follower.set(self.scope(), self.source, |record| {
            record.listed_keys = Some(version);
            record.enter(WatchState::Ready, None, &*follower.clock)
        });
        if changed && self.source == Source::All {
            tracing::info!(kind = %self.follower.kind, namespace = self.scope().namespace, "owners are known");
        }
    }

    fn recovered(&mut self) {
        self.failures.end();
        if self.enter(WatchState::Ready, None) && std::mem::take(&mut self.has_warned) {
            tracing::info!(kind = %self.follower.kind, namespace = self.scope().namespace, "owners are known again");
        }
    }

    /// Waits until the API server answers again. Returns why the stream must be replaced, or `None` if it can go on.
    async fn overcome(&mut self, error: watcher::Error, api: &Api<Object>) -> Option<RestartCause> {
        let failure = failure_of(error);
        self.fail(&failure).await;
        match failure {
            ApiFailure::Expired { .. } => return Some(RestartCause::Expired),
            ApiFailure::NotFound { .. } => return Some(RestartCause::NoSuchKind),
            _ => {}
        }
        // kube's stream reports failures, and no success after them. A list of one object shows whether the API server
        // answers.
        let one = ListParams::default().limit(1);
        let mut was_away = matches!(
            failure,
            ApiFailure::Unreachable { .. }
                | ApiFailure::Untrusted { .. }
                | ApiFailure::Proxy(_)
                | ApiFailure::TimedOut { .. }
        );
        while let Err(failure) = within(self.follower.settings.call_timeout, api.list(&one)).await {
            was_away = true;
            self.fail(&failure).await;
        }
        // The API server may have come back with an older state, or as another cluster. A watch that continues from its
        // old resource version would not notice that.
        was_away.then_some(RestartCause::Away)
    }

    async fn fail(&mut self, failure: &ApiFailure) {
        let mut state = state_after(failure);
        let namespace = self.scope().namespace.clone();
        if let (WatchState::Forbidden, Some(namespace)) = (state, &namespace) {
            let patience = self.follower.settings.call_timeout;
            if is_namespace_gone(&self.follower.client, namespace, patience).await {
                state = WatchState::NamespaceGone;
            }
        }
        if matches!(failure, ApiFailure::Expired { .. }) {
            tracing::info!(kind = %self.follower.kind, namespace, error = %failure, "owners are listed anew");
            self.enter(WatchState::Starting, Some(failure));
        } else if self.enter(state, Some(failure)) && !self.is_told_by_the_other() {
            self.has_warned = true;
            tracing::warn!(
                kind = %self.follower.kind, namespace, error = %failure,
                "owners cannot be watched; resources that are staged for them stay"
            );
        }
        self.rest(failure.retry_after()).await;
    }

    fn enter(&self, state: WatchState, failure: Option<&ApiFailure>) -> bool {
        let follower = &self.follower;
        follower.set(self.scope(), self.source, |record| record.enter(state, failure, &*follower.clock))
    }

    /// Whether this is the second watch of pods, and the first one fails or starts as well and tells it.
    fn is_told_by_the_other(&self) -> bool {
        self.source == Source::Unfinished && self.scope().record(Source::All).state != WatchState::Ready
    }

    async fn rest(&mut self, asked: Option<Duration>) {
        let backoff = self.intervals().backoff;
        sleep(self.failures.wait(&backoff, asked, rand::random())).await;
    }
}

fn failure_of(error: watcher::Error) -> ApiFailure {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => error.into(),
        watcher::Error::WatchError(status) => ApiFailure::from_status(&status),
        watcher::Error::NoResourceVersion => {
            ApiFailure::Unreadable { why: "a list or an event without a resourceVersion".to_owned() }
        }
    }
}
