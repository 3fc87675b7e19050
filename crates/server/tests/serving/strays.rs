//! Bundles whose ledger was lost: they wait for it, and count meanwhile.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::clock::ManualClock;

use crate::support::app::{Directory, Options, TestApp, installation};

const STRAY_AGE: Duration = Duration::from_hours(7 * 24);
const BUNDLE: &str = "jars that must not get lost";
const LEDGER: [&str; 3] = ["ledger.db", "ledger.db-wal", "ledger.db-shm"];

/// A server that has lost its ledger, and the ledger in a folder beside it.
struct Lost {
    directory: Directory,
    clock: Arc<ManualClock>,
    aside: tempfile::TempDir,
    tickets: Vec<Ticket>,
}

impl Lost {
    async fn new(bundles: usize) -> Self {
        let app = TestApp::start().await;
        let mut tickets = Vec::new();
        for _ in 0..bundles {
            tickets.push(app.stage(BUNDLE).await);
        }
        let (directory, clock) = app.end().await;
        let lost = Self { directory, clock, aside: tempfile::tempdir().unwrap(), tickets };
        move_ledger(lost.data(), lost.aside.path());
        lost
    }

    fn data(&self) -> &Path {
        self.directory.path()
    }

    fn file(&self, ticket: &Ticket) -> PathBuf {
        self.data().join("bundles").join(&ticket.resource_id[..2]).join(&ticket.resource_id)
    }

    /// The time that the file system has for a bundle, as the server's clock would have set it.
    fn date(&self, ticket: &Ticket, ago: Duration) {
        let now = SystemTime::from(cloakroom_core::clock::Clock::now(&*self.clock));
        fs::File::options().write(true).open(self.file(ticket)).unwrap().set_modified(now - ago).unwrap();
    }

    async fn start(&self) -> TestApp {
        self.start_with(Options::default()).await
    }

    async fn start_with(&self, options: Options) -> TestApp {
        let options = Options { adopt: Some(installation(self.data())), ..options };
        TestApp::start_on(Arc::clone(&self.directory), Arc::clone(&self.clock), options).await
    }
}

fn move_ledger(from: &Path, to: &Path) {
    for name in LEDGER {
        if from.join(name).exists() {
            fs::rename(from.join(name), to.join(name)).unwrap();
        }
    }
}

async fn sweeps(app: &TestApp) {
    // Every hundredth looks for bytes without a row.
    for _ in 0..101 {
        app.sweep().await;
    }
}

// Invariant: bundles of a lost ledger stay for `--stray-age`, and count.
#[tokio::test]
async fn bundles_stay_for_the_stray_age_and_are_served_if_their_ledger_returns() {
    let lost = Lost::new(5).await;
    let app = lost.start().await;
    lost.clock.advance(STRAY_AGE - Duration::from_secs(1));
    sweeps(&app).await;
    assert_eq!((app.files().len(), app.metric("strays").await), (5, "5".to_owned()));
    assert_eq!(app.metric("stray_bytes").await, (5 * BUNDLE.len()).to_string());
    app.end().await;
    move_ledger(lost.data(), tempfile::tempdir().unwrap().path());
    move_ledger(lost.aside.path(), lost.data());
    // The unused bundles of the old ledger would be due by now.
    lost.clock.set_wall("2026-01-01T12:00:00Z");
    let app = lost.start().await;
    for ticket in &lost.tickets {
        assert_eq!(app.download(ticket).send().await.unwrap().text().await.unwrap(), BUNDLE);
    }
    assert_eq!(
        (app.metric("strays").await, app.metric("ledger_behind").await),
        ("0".to_owned(), "1".to_owned())
    );
}

#[tokio::test]
async fn a_stray_goes_once_the_ledger_has_known_it_long_and_its_file_is_old() {
    let lost = Lost::new(2).await;
    let [old, young] = [&lost.tickets[0], &lost.tickets[1]];
    lost.date(old, Duration::ZERO);
    let app = lost.start().await;
    lost.clock.advance(STRAY_AGE - Duration::from_secs(1));
    lost.date(young, Duration::ZERO);
    app.sweep().await;
    assert_eq!(app.files().len(), 2);
    // A restart does not begin the time anew, and another ledger does.
    let app = app.crash_and_restart().await;
    lost.clock.advance(Duration::from_secs(1));
    assert_eq!(app.sweep().await.recovered.strays, 1);
    assert!(!lost.file(old).exists() && lost.file(young).exists());
    app.end().await;
    move_ledger(lost.data(), tempfile::tempdir().unwrap().path());
    let app = lost.start().await;
    lost.clock.advance(STRAY_AGE - Duration::from_secs(1));
    app.sweep().await;
    assert!(lost.file(young).exists(), "another ledger found it a moment ago");
    lost.clock.advance(Duration::from_secs(1));
    assert_eq!(app.sweep().await.recovered.strays, 1);
    app.assert_nothing_kept().await;
}

#[tokio::test]
async fn strays_count_in_the_total_size_until_an_admin_removes_them() {
    let lost = Lost::new(3).await;
    let mut options = Options::default();
    options.limits.capacity.max_total_size = Some(4 * BUNDLE.len() as u64);
    let app = lost.start_with(options).await;
    let ticket = app.stage(BUNDLE).await;
    assert_eq!(app.put("", BUNDLE).send().await.unwrap().status(), 507);
    assert_eq!(app.clean_strays().await, 3);
    assert_eq!((app.files().len(), app.metric("strays").await), (1, "0".to_owned()));
    app.stage(BUNDLE).await;
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_wall_clock_that_is_set_forward_removes_no_stray_early() {
    let lost = Lost::new(1).await;
    lost.date(&lost.tickets[0], Duration::ZERO);
    let app = lost.start().await;
    lost.clock.set_wall("2030-01-01T00:00:00Z");
    sweeps(&app).await;
    assert_eq!(app.files().len(), 1);
}

// Invariant: after a stop, `ledger.db` alone is the whole ledger.
#[tokio::test]
async fn a_stop_leaves_everything_in_the_database_itself() {
    let app = TestApp::start().await;
    let mut tickets = Vec::new();
    for _ in 0..50 {
        tickets.push(app.stage(BUNDLE).await);
    }
    let (directory, clock) = app.end().await;
    assert!(!directory.path().join("ledger.db-wal").exists(), "the log was left");
    let copy = Arc::new(tempfile::tempdir().unwrap());
    fs::copy(directory.path().join("ledger.db"), copy.path().join("ledger.db")).unwrap();
    fs::rename(directory.path().join("bundles"), copy.path().join("bundles")).unwrap();
    let app = TestApp::start_on(copy, clock, Options::default()).await;
    for ticket in &tickets {
        assert_eq!(app.download(ticket).send().await.unwrap().text().await.unwrap(), BUNDLE);
    }
}
