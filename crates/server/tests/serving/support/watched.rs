//! A server that watches owners on the fake API server.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_cluster::{Access, ApiServer, Proxies, Timeouts};
use cloakroom_core::metrics::Metrics;
use cloakroom_core::protocol::v1::{Metadata, Ticket};
use cloakroom_core::resource::{Owner, OwnerKinds};
use cloakroom_core::retry::Backoff;
use cloakroom_server::cleaner::{Policy, Swept};
use cloakroom_server::owners::{
    ClusterOwners, ClusterSettings, Owners as _, Presence, WatchIntervals, WatchState,
};
use cloakroom_testing::api_server::FakeApiServer;
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::cluster::{Account, Cluster as _};
use cloakroom_testing::wait::{until, until_true};
use reqwest::Response;

use super::TestApp;
use super::app::{Options, problem};
use super::owners::owner;

pub const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_mins(1);
pub const HOUR: Duration = Duration::from_hours(1);

/// What a test may want different.
#[derive(Clone)]
pub struct Watching {
    pub settings: ClusterSettings,
    pub timeouts: Timeouts,
    pub policy: Policy,
}

impl Default for Watching {
    /// Waits as a server does, but for the pauses after failures.
    fn default() -> Self {
        let intervals = WatchIntervals {
            backoff: Backoff {
                first: Duration::from_millis(5),
                longest: Duration::from_millis(40),
                ..WatchIntervals::default().backoff
            },
            settled: Duration::from_millis(200),
            between_lists: Duration::from_millis(5),
        };
        Self {
            settings: ClusterSettings { intervals, ..ClusterSettings::default() },
            timeouts: Timeouts::default(),
            policy: Policy::default(),
        }
    }
}

impl Watching {
    fn owners(&self, api: &FakeApiServer, clock: &Arc<ManualClock>) -> Arc<ClusterOwners> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, api.kubeconfig(Account::Cloakroom, api.address())).unwrap();
        let access = Access::Kubeconfig {
            paths: vec![path],
            context: None,
            setting: "--kubeconfig".to_owned(),
            proxies: Proxies::default(),
        };
        let server = ApiServer::connect_with(&access, self.timeouts).unwrap();
        let (settings, clock) = (self.settings.clone(), Arc::clone(clock) as _);
        Arc::new(ClusterOwners::new(server.client(), settings, Metrics::new(), clock))
    }

    fn options(&self, owners: &Arc<ClusterOwners>) -> Options {
        let mut options =
            Options { policy: self.policy, owners: Arc::clone(owners) as _, ..Options::default() };
        let kinds = format!("{},ConfigMap,Namespace,Nothing.example.com", OwnerKinds::DEFAULT);
        options.settings.namespaces.clone_from(&self.settings.namespaces);
        options.settings.owner_kinds = OwnerKinds::parse(&kinds).unwrap();
        options
    }
}

/// A server, what it knows of owners, and the API server that it asks.
pub struct WatchedApp {
    pub api: FakeApiServer,
    pub owners: Arc<ClusterOwners>,
    pub app: TestApp,
    watching: Watching,
}

impl WatchedApp {
    pub async fn start() -> Self {
        Self::start_with(Watching::default()).await
    }

    pub async fn start_with(watching: Watching) -> Self {
        Self::start_on(FakeApiServer::start(), watching).await
    }

    pub async fn start_on(api: FakeApiServer, watching: Watching) -> Self {
        let clock = Arc::new(ManualClock::new());
        let owners = watching.owners(&api, &clock);
        let directory = Arc::new(tempfile::tempdir().unwrap());
        let app = TestApp::start_on(directory, clock, watching.options(&owners)).await;
        Self { api, owners, app, watching }
    }

    /// Another server on the same data, that knows nothing of owners but what it reads. Before its first sweep it
    /// waits until `known` are as they are said to be.
    pub async fn restart(self, known: &[(&Owner, Presence)]) -> Self {
        let Self { api, app, watching, owners } = self;
        drop(owners);
        let owners = watching.owners(&api, &app.clock);
        for (owner, _) in known {
            owners.follow(owner);
        }
        for (owner, presence) in known {
            until_true("the owner is known", || owners.presence(owner) == *presence).await;
        }
        let app = app.crash_and_restart_with(watching.options(&owners)).await;
        Self { api, owners, app, watching }
    }

    /// Tries to stage a bundle for the owner that the query names.
    pub async fn try_stage(&self, query: &str) -> Response {
        let url = self.app.url(&format!("/api/v1/resources/deps.tgz?{query}"));
        self.app.client.put(url).body("jars").send().await.unwrap()
    }

    pub async fn stage(&self, query: &str) -> Ticket {
        self.app.ticket(self.try_stage(query).await).await
    }

    /// Stages for pods in the namespace `demo` with the label `app=demo`.
    pub async fn stage_demo(&self) -> Ticket {
        self.stage("namespace=demo&label=app%3Ddemo").await
    }

    /// Downloads, as the owner does.
    pub async fn fetch(&self, ticket: &Ticket) {
        let response = self.app.download(ticket).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.text().await.unwrap(), "jars");
        until("the download is over", async || self.app.staging.in_flight() == (0, 0)).await;
    }

    /// Waits until the watches know that.
    pub async fn until(&self, owner: &Owner, presence: Presence) {
        let is_so = || self.owners.presence(owner) == presence;
        until_true(&format!("the owner is {presence:?}: {:?}", self.owners.watches()), is_so).await;
    }

    /// Waits until all watches are so, and at least one is there.
    pub async fn until_watches(&self, state: WatchState) {
        let are_so = || {
            let watches = self.owners.watches();
            !watches.is_empty() && watches.iter().all(|watch| watch.state == state)
        };
        until_true(&format!("all watches are {}", state.as_str()), are_so).await;
    }

    /// Waits until all watches know everything that happened before.
    pub async fn catch_up(&self) {
        let mark = owner("app=mark");
        self.owners.follow(&mark);
        self.api.create_pod("demo", "mark", &[("app", "mark")]);
        // By the watch of unfinished pods; then, with the end of the pod, by both.
        self.until(&mark, Presence::Present).await;
        self.api.finish_pod("demo", "mark");
        self.until(&mark, Presence::Finished).await;
        self.api.delete_pod("demo", "mark");
        self.until(&mark, Presence::Absent).await;
    }

    pub async fn sweep(&self) -> Swept {
        self.app.sweep().await
    }

    /// Lets time pass, and sweeps.
    pub async fn sweep_after(&self, time: Duration) -> Swept {
        self.app.clock.advance(time);
        self.sweep().await
    }

    /// Sweeps every half minute, as a server does, for so long; nothing goes.
    pub async fn assert_nothing_goes_for(&self, time: Duration) {
        let mut passed = Duration::ZERO;
        while passed < time {
            let swept = self.sweep_after(30 * SECOND).await;
            assert_eq!(swept.deleted, [].into(), "after {passed:?}");
            passed += 30 * SECOND;
        }
    }

    /// Why it went; `None` if it is there.
    pub async fn fate(&self, ticket: &Ticket) -> Option<String> {
        let path = format!("/api/v1/resources/{}", ticket.resource_id);
        let head = self.app.client.head(self.app.url(&path)).bearer_auth(&ticket.resource_secret);
        match head.send().await.unwrap().status().as_u16() {
            200 => None,
            410 => {
                let problem = problem(self.app.download(ticket).send().await.unwrap()).await;
                problem.deletion_reason.map(|reason| reason.to_string())
            }
            status => panic!("{status}"),
        }
    }

    /// It is there.
    pub async fn assert_kept(&self, ticket: &Ticket, because: &str) {
        assert_eq!(self.fate(ticket).await, None);
        assert_eq!(self.metadata(ticket).await.kept_because.as_deref(), Some(because));
    }

    /// It is gone, for this reason.
    pub async fn assert_gone(&self, ticket: &Ticket, reason: &str) {
        assert_eq!(self.fate(ticket).await.as_deref(), Some(reason));
    }

    pub async fn metadata(&self, ticket: &Ticket) -> Metadata {
        let path = format!("/api/v1/resources/{}/metadata", ticket.resource_id);
        let response = self.app.get(&path).bearer_auth(&ticket.resource_secret).send().await.unwrap();
        assert_eq!(response.status(), 200);
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
    }
}
