//! Random lives of bundles, pods, clock and API server, against the rules of the lifecycle written a second time: as
//! statements about everything that was ever observed, where the server remembers three times.

use std::collections::BTreeMap;
use std::time::Duration;

use cloakroom_core::clock::Clock as _;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::{Lifetime, Owner, ResourceSecret};
use cloakroom_server::cleaner::Policy;
use cloakroom_server::owners::{Owners as _, Presence, WatchState};
use cloakroom_storage::{AccessError, NewUpload, Terms};
use cloakroom_testing::api_server::{Fault, Verb};
use cloakroom_testing::wait::until_true;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use crate::support::WatchedApp;
use crate::support::owners::owner;
use crate::support::watched::{HOUR, MINUTE, SECOND, Watching};

const SEEDS: u64 = 18;
const STEPS: usize = 150;
const UNUSED_TIMEOUT: Duration = Duration::from_mins(30);
const LABELS: [&str; 2] = ["a", "b"];

/// What was observed of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    There,
    Finished,
    Missing,
    Nothing,
}

#[derive(Debug)]
struct Bundle {
    ticket: Ticket,
    label: &'static str,
    created: Duration,
    ttl: Option<Duration>,
    used: Option<Duration>,
    observed: Vec<(Duration, Seen)>,
}

impl Bundle {
    /// The longest row of observations up to now that are `what`, without a break, or with breaks of `but`.
    fn row_of(&self, what: Seen, but: Option<Seen>) -> Vec<Duration> {
        let back = self.observed.iter().rev();
        let row = back.take_while(|(_, seen)| *seen == what || Some(*seen) == but);
        row.filter(|(_, seen)| *seen == what).map(|(at, _)| *at).collect()
    }

    fn was_seen(&self) -> bool {
        self.observed.iter().any(|(_, seen)| [Seen::There, Seen::Finished].contains(seen))
    }

    /// Why its ticket has ended, whether a sweep has come or not.
    fn end_by_age(&self, policy: &Policy, now: Duration) -> Option<&'static str> {
        let is_over = |time: Duration| now - self.created >= time;
        if self.ttl.is_some_and(is_over) {
            return Some("ttl-reached");
        }
        policy.max_age.is_some_and(is_over).then_some("max-age-reached")
    }

    /// Why it must go now; `None` if it must stay. `known` is when the server last knew the owners of this kind, or
    /// started, if a server could ever read them.
    fn fate(&self, policy: &Policy, now: Duration, known: Option<Duration>) -> Option<&'static str> {
        let passed = |since: Duration, time: Duration| now - since >= time;
        if let Some(reason) = self.end_by_age(policy, now) {
            return Some(reason);
        }
        let unused_is_over = passed(self.created, UNUSED_TIMEOUT);
        let long_enough =
            |row: &[Duration], time: Duration| row.len() > 1 && passed(row[row.len() - 1], time);
        let since_use = |time| self.used.is_none_or(|used| passed(used, time));
        match self.observed.last().unwrap().1 {
            Seen::There => None,
            Seen::Nothing => {
                let since = known.map_or(self.created, |known| known.max(self.created));
                (self.used.is_none() && passed(since, policy.max_unused)).then_some("max-unused-reached")
            }
            Seen::Missing => {
                let (is_over, reason) = match (self.used, self.was_seen()) {
                    (None, _) => (unused_is_over, "unused"),
                    (Some(_), true) => (since_use(policy.orphan_grace), "orphaned"),
                    (Some(_), false) => (since_use(UNUSED_TIMEOUT), "owner-never-seen"),
                };
                let row = self.row_of(Seen::Missing, None);
                (is_over && long_enough(&row, policy.orphan_grace)).then_some(reason)
            }
            Seen::Finished => {
                let row = self.row_of(Seen::Finished, Some(Seen::Nothing));
                let retention = policy.finished_owner_retention?.max(policy.orphan_grace);
                let may_go = self.used.is_some() || unused_is_over;
                (may_go && long_enough(&row, retention) && since_use(policy.orphan_grace))
                    .then_some("owner-finished")
            }
        }
    }
}

/// What stock Spark has uploaded: it has no owner.
#[derive(Debug)]
struct File {
    secret: ResourceSecret,
    created: Duration,
    /// The end of its last read.
    read: Option<Duration>,
}

impl File {
    /// Why it must go now; `None` if it must stay.
    fn fate(&self, policy: &Policy, now: Duration, started: Duration) -> Option<&'static str> {
        let passed = |since: Duration, time: Duration| now - since >= time;
        if policy.max_age.is_some_and(|time| passed(self.created, time)) {
            return Some("max-age-reached");
        }
        match self.read {
            None => passed(self.created, policy.max_unused).then_some("max-unused-reached"),
            Some(read) => passed(read.max(started), UNUSED_TIMEOUT).then_some("not-read-again"),
        }
    }
}

struct Run {
    random: StdRng,
    policy: Policy,
    /// `None` only while it is restarted.
    watched: Option<WatchedApp>,
    bundles: Vec<Bundle>,
    files: Vec<File>,
    /// Pods by name; `true` if they are finished.
    pods: BTreeMap<String, (&'static str, bool)>,
    is_failing: bool,
    /// When this server started.
    started: Duration,
    /// When this server last knew all pods.
    known: Option<Duration>,
    /// Whether a sweep of any server knew all pods.
    was_ever_known: bool,
    created_pods: usize,
    deletions: BTreeMap<String, u64>,
    log: Vec<String>,
}

impl Run {
    async fn start(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let retentions = [Some(Duration::ZERO), Some(10 * MINUTE), Some(2 * HOUR), None];
        let policy = Policy {
            max_age: *[None, Some(100 * MINUTE)].choose(&mut random).unwrap(),
            max_unused: HOUR,
            orphan_grace: *[Duration::ZERO, MINUTE, 10 * MINUTE].choose(&mut random).unwrap(),
            finished_owner_retention: *retentions.choose(&mut random).unwrap(),
            ..Policy::default()
        };
        let mut watching = Watching { policy, ..Watching::default() };
        watching.settings.intervals.settled = Duration::from_millis(50);
        let watched = WatchedApp::start_with(watching).await;
        let mut run = Self {
            random,
            policy,
            watched: Some(watched),
            bundles: Vec::new(),
            files: Vec::new(),
            pods: BTreeMap::new(),
            is_failing: false,
            started: Duration::ZERO,
            known: None,
            was_ever_known: false,
            created_pods: 0,
            deletions: BTreeMap::new(),
            log: vec![format!("seed {seed}, {policy:?}")],
        };
        run.stage().await;
        run
    }

    fn server(&self) -> &WatchedApp {
        self.watched.as_ref().unwrap()
    }

    fn now(&self) -> Duration {
        self.server().app.clock.monotonic()
    }

    fn label(&mut self) -> &'static str {
        LABELS.choose(&mut self.random).unwrap()
    }

    async fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..7 => self.stage().await,
            7..20 => self.fetch().await,
            20..26 => self.create_pod(),
            26..34 => self.finish_pod(),
            34..41 => self.delete_pod(),
            41..45 => self.fail().await,
            45..52 => self.heal(),
            52..56 => self.restart().await,
            56..58 => self.pass_time(&[29 * MINUTE, HOUR]),
            58..61 => self.upload_file().await,
            61..65 => self.read_file().await,
            65..75 => self.pass_time(&[SECOND, 59 * SECOND, MINUTE, 5 * MINUTE, 10 * MINUTE]),
            _ => {
                self.pass_time(&[Duration::ZERO, SECOND, 30 * SECOND, MINUTE]);
                self.sweep().await;
            }
        }
    }

    async fn stage(&mut self) {
        let label = self.label();
        let ttl = *[None, None, Some(45 * MINUTE)].choose(&mut self.random).unwrap();
        let more = ttl.map(|ttl| format!("&ttl={}s", ttl.as_secs())).unwrap_or_default();
        let response = self.server().try_stage(&format!("namespace=demo&label=app%3D{label}{more}")).await;
        if self.known.is_none() && response.status() == 400 {
            // A server that was never allowed to look takes nothing in, until it tries again.
            return;
        }
        let ticket = self.server().app.ticket(response).await;
        self.log.push(format!("stage {} for {label}{more}", ticket.resource_id));
        let bundle = Bundle { ticket, label, created: self.now(), ttl, used: None, observed: Vec::new() };
        self.bundles.push(bundle);
    }

    async fn fetch(&mut self) {
        let now = self.now();
        if let Some(index) = (0..self.bundles.len()).collect::<Vec<_>>().choose(&mut self.random) {
            // Whom it is for is looked at as well, at least until somebody was seen.
            self.catch_up().await;
            let bundle = &self.bundles[*index];
            if let Some(reason) = bundle.end_by_age(&self.policy, now) {
                assert_eq!(self.server().fate(&bundle.ticket).await.as_deref(), Some(reason));
                return;
            }
            self.server().fetch(&bundle.ticket).await;
            let bundle = &self.bundles[*index];
            if self.seen(bundle.label) == Seen::There && !bundle.was_seen() {
                self.bundles[*index].observed.push((now, Seen::There));
            }
            self.bundles[*index].used = Some(now);
            self.log.push(format!("fetch {}", self.bundles[*index].ticket.resource_id));
        }
    }

    async fn upload_file(&mut self) {
        let staging = &self.server().app.staging;
        let secret = ResourceSecret::generate(&mut rand::rng());
        let new = NewUpload { secret: Some(secret.clone()), ..NewUpload::default() };
        let terms = Terms {
            owner: Owner::without_objects("demo").unwrap(),
            lifetime: Lifetime { unused_timeout: UNUSED_TIMEOUT, ttl: None },
            expected_sha256: None,
        };
        let upload = staging.begin_upload(new).await.unwrap();
        let staged = upload.finish(terms, staging.metrics().upload(), ()).await.unwrap();
        self.log.push(format!("file {}", staged.id));
        self.files.push(File { secret, created: self.now(), read: None });
    }

    async fn read_file(&mut self) {
        let now = self.now();
        let Some(index) = (0..self.files.len()).collect::<Vec<_>>().choose(&mut self.random).copied() else {
            return;
        };
        let staging = &self.server().app.staging;
        match staging.find_by_secret(&self.files[index].secret).await {
            Ok(resource) => {
                staging.mark_used(&resource).await.unwrap();
                self.log.push(format!("read {}", resource.id));
                self.files[index].read = Some(now);
            }
            // Its age has ended it, and no sweep has come yet.
            Err(error) => assert!(matches!(error, AccessError::NotFound), "{error}"),
        }
    }

    fn create_pod(&mut self) {
        let label = self.label();
        self.created_pods += 1;
        let name = format!("pod-{}", self.created_pods);
        self.server().api.create_pod("demo", &name, &[("app", label)]);
        self.log.push(format!("create {name} for {label}"));
        self.pods.insert(name, (label, false));
    }

    fn any_pod(&mut self) -> Option<String> {
        let names: Vec<&String> = self.pods.keys().collect();
        names.choose(&mut self.random).map(|name| (*name).clone())
    }

    fn finish_pod(&mut self) {
        let Some(name) = self.any_pod() else { return };
        self.server().api.finish_pod("demo", &name);
        self.log.push(format!("finish {name}"));
        self.pods.get_mut(&name).unwrap().1 = true;
    }

    fn delete_pod(&mut self) {
        let Some(name) = self.any_pod() else { return };
        self.server().api.delete_pod("demo", &name);
        self.log.push(format!("delete {name}"));
        self.pods.remove(&name);
    }

    async fn fail(&mut self) {
        let fault =
            *[Fault::Status(401), Fault::Status(403), Fault::Status(500)].choose(&mut self.random).unwrap();
        self.log.push(format!("fail {fault:?}"));
        // What is being read at this moment would become known after it has failed.
        self.catch_up().await;
        if !self.is_failing {
            self.known = Some(self.now());
        }
        self.is_failing = true;
        self.server().api.fail(Verb::Any, fault);
        self.server().api.end_watches();
        let nobody_knows =
            || self.server().owners.watches().iter().all(|watch| watch.state != WatchState::Ready);
        until_true("nothing is known", nobody_knows).await;
    }

    fn heal(&mut self) {
        self.log.push("heal".to_owned());
        self.is_failing = false;
        self.server().api.heal();
    }

    fn pass_time(&mut self, times: &[Duration]) {
        let time = *times.choose(&mut self.random).unwrap();
        self.log.push(format!("{time:?} pass"));
        self.server().app.clock.advance(time);
    }

    /// A server makes its first sweep as it starts: before it could read anything, or after.
    async fn restart(&mut self) {
        let is_blind = !self.is_failing && self.random.random();
        self.log
            .push(format!("restart{}", if is_blind { ", and the first sweep knows nothing" } else { "" }));
        if is_blind {
            self.server().api.fail(Verb::Any, Fault::Status(500));
            self.is_failing = true;
        }
        // Nobody looked for a moment.
        let now = self.now();
        (self.started, self.known) = (now, None);
        self.bundles.iter_mut().for_each(|bundle| bundle.observed.push((now, Seen::Nothing)));
        let expected = self.expect();
        let owners = LABELS.map(of);
        let truths = LABELS.map(|label| self.truth(label));
        let known: Vec<_> = if self.is_failing { Vec::new() } else { owners.iter().zip(truths).collect() };
        let watched = self.watched.take().unwrap().restart(&known).await;
        self.watched = Some(watched);
        self.compare(expected, None).await;
        if is_blind {
            self.heal();
        }
    }

    fn truth(&self, label: &str) -> Presence {
        let mut pods =
            self.pods.values().filter(|(of, _)| *of == label).map(|(_, finished)| *finished).peekable();
        match (pods.peek().is_some(), pods.all(|finished| finished)) {
            (false, _) => Presence::Absent,
            (true, true) => Presence::Finished,
            (true, false) => Presence::Present,
        }
    }

    /// Observes as a sweep does now, and says what must go.
    fn expect(&mut self) -> Vec<(usize, &'static str)> {
        let now = self.now();
        let since = self.was_ever_known.then_some(self.started).max(self.known);
        if !self.is_failing {
            (self.known, self.was_ever_known) = (Some(now), true);
        }
        let seen: BTreeMap<&str, Seen> = LABELS.iter().map(|label| (*label, self.seen(label))).collect();
        for bundle in &mut self.bundles {
            bundle.observed.push((now, seen[bundle.label]));
        }
        let fates = self.bundles.iter().enumerate();
        fates.filter_map(|(index, bundle)| Some((index, bundle.fate(&self.policy, now, since)?))).collect()
    }

    fn seen(&self, label: &str) -> Seen {
        match self.truth(label) {
            _ if self.is_failing => Seen::Nothing,
            Presence::Absent => Seen::Missing,
            Presence::Finished => Seen::Finished,
            _ => Seen::There,
        }
    }

    async fn sweep(&mut self) {
        self.catch_up().await;
        let expected = self.expect();
        let swept = self.server().sweep().await;
        self.log.push(format!("sweep: {:?}", swept.deleted));
        self.compare(expected, Some(swept.expired)).await;
    }

    async fn catch_up(&self) {
        if !self.is_failing {
            self.server().catch_up().await;
        }
    }

    async fn compare(&mut self, expected: Vec<(usize, &'static str)>, expired: Option<u64>) {
        let number = expected.len() as u64 + self.compare_files().await;
        assert!(expired.is_none_or(|expired| expired == number), "{expected:?}\n{}", self.log.join("\n"));
        let expected: BTreeMap<usize, &str> = expected.into_iter().collect();
        let mut kept = Vec::new();
        for (index, bundle) in std::mem::take(&mut self.bundles).into_iter().enumerate() {
            let fate = self.server().fate(&bundle.ticket).await;
            let reason = expected.get(&index).copied();
            assert_eq!(fate.as_deref(), reason, "{bundle:?}\n{}", self.log.join("\n"));
            match reason {
                Some(reason) => *self.deletions.entry(reason.to_owned()).or_default() += 1,
                None => kept.push(bundle),
            }
        }
        self.bundles = kept;
    }
}

/// They go without a tombstone, so only their absence tells.
impl Run {
    /// Returns how many are gone.
    async fn compare_files(&mut self) -> u64 {
        let (now, before) = (self.now(), self.files.len());
        let mut kept = Vec::new();
        for file in std::mem::take(&mut self.files) {
            let is_there = self.server().app.staging.find_by_secret(&file.secret).await.is_ok();
            let reason = file.fate(&self.policy, now, self.started);
            assert_eq!(is_there, reason.is_none(), "{file:?}\n{}", self.log.join("\n"));
            match reason {
                Some(reason) => *self.deletions.entry(reason.to_owned()).or_default() += 1,
                None => kept.push(file),
            }
        }
        self.files = kept;
        (before - self.files.len()) as u64
    }
}

fn of(label: &str) -> Owner {
    owner(&format!("app={label}"))
}

// Invariant: the rules agree with a plain model of them.
#[tokio::test]
async fn whatever_happens_what_is_kept_is_what_the_rules_keep() {
    let mut deletions: BTreeMap<String, u64> = BTreeMap::new();
    let runs = (0..SEEDS).map(async |seed| {
        let mut run = Run::start(seed).await;
        for _ in 0..STEPS {
            run.step().await;
        }
        run.deletions
    });
    for (reason, count) in futures_util::future::join_all(runs).await.into_iter().flatten() {
        *deletions.entry(reason).or_default() += count;
    }
    // Each rule was at work, or the test would test less than it says.
    for reason in [
        "ttl-reached",
        "max-age-reached",
        "unused",
        "max-unused-reached",
        "orphaned",
        "owner-never-seen",
        "owner-finished",
        "not-read-again",
    ] {
        assert!(deletions.contains_key(reason), "{reason} never came: {deletions:?}");
    }
}
