//! A server ends, stands still or gets an error at each request that a piece of work makes to the bucket. Two servers start after
//! that, each with an empty folder: what was acknowledged is there. The requests are counted, not listed.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use cloakroom_core::lock::lock;
use cloakroom_core::resource::{ResourceId, State};
use cloakroom_storage::ledger::{Condition, Finish, Ledger};
use cloakroom_storage::log::{
    LogError, LogStore, Position, Timing, WriterState, keep_copy, remove_earlier_epochs,
};
use cloakroom_suites::ledger::rows::{at, completion, deletion, is_used, new_id, pending};
use cloakroom_suites::ledgers::{Opened, took_over};
use cloakroom_testing::wait::BOUND;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::timeout;

use crate::requests::{Bucket, Kind, Point, Process, Request, Requests};

/// How long a server waits for the stamp of one that stands still. None of them beats by itself.
const PATIENCE: Duration = Duration::from_millis(2);

/// How many points are tried at once. After an error a server waits for a second.
const AT_ONCE: usize = 8;

/// The copy that a restore puts back, and the last group of the ledger before that.
const WANTED: Position = Position { epoch: 1, number: 1 };
const LAST: Position = Position { epoch: 1, number: 3 };

/// The work in which a process halts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// A resource is staged, used and deleted, and the server stops.
    Life,
    /// A copy takes the place of groups, and of older copies, between two changes.
    Copy,
    TakeoverFromStopped,
    /// The other server has sent a group, which arrives when it goes on.
    TakeoverFromStanding,
    Removal,
    Restore,
}

/// How far a resource has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Absent,
    Begun,
    Ready,
    Used,
    Deleting,
    Deleted,
}

impl Stage {
    const ALL: [Self; 5] = [Self::Begun, Self::Ready, Self::Used, Self::Deleting, Self::Deleted];

    /// Whether the answer says that it lasts.
    fn is_acknowledged(self) -> bool {
        matches!(self, Self::Ready | Self::Used | Self::Deleting)
    }
}

/// For each resource what was acknowledged, and what was asked for.
type Book = BTreeMap<ResourceId, RangeInclusive<Stage>>;

/// The resources that a server has found, and the range of its requests from its claim to the end of its start.
type Found = (BTreeMap<ResourceId, Stage>, Range<usize>);

/// What all processes of a scene share.
#[derive(Clone, Default)]
struct Scene {
    bucket: Arc<Bucket>,
    book: Arc<Mutex<Book>>,
    /// The flag of all servers from now on.
    restore: Option<Position>,
    /// What an admin gets back who undoes the restore.
    undone: Arc<Mutex<Book>>,
}

/// A process with a runtime of its own. It stands still while that does not run, and what is in it ends with it.
struct Running {
    runtime: Runtime,
    tasks: LocalSet,
    requests: Arc<Requests>,
    work: JoinHandle<Option<()>>,
}

impl Running {
    fn begin<W: Future<Output = Option<()>> + 'static>(
        requests: Arc<Requests>,
        work: impl FnOnce(Arc<Requests>) -> W,
    ) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let tasks = LocalSet::new();
        let work = tasks.spawn_local(work(Arc::clone(&requests)));
        Self { runtime, tasks, requests, work }
    }

    /// Runs until the work is over, or the process halts. Returns whether it is over.
    fn run(&mut self) -> bool {
        let Self { runtime, tasks, requests, work } = self;
        tasks.block_on(runtime, async {
            let run = async {
                tokio::select! {
                    done = work => { done.unwrap(); true }
                    () = requests.halted() => false
                }
            };
            timeout(BOUND, run).await.unwrap()
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Connections that are dropped look for their runtime.
        let _context = self.runtime.enter();
        drop(std::mem::take(&mut self.tasks));
    }
}

impl Scene {
    /// Another scene that goes on from here.
    fn copied(&self) -> Self {
        let copied = |book: &Mutex<Book>| Arc::new(Mutex::new(lock(book).clone()));
        Self {
            bucket: Arc::new(self.bucket.copied()),
            book: copied(&self.book),
            restore: self.restore,
            undone: copied(&self.undone),
        }
    }

    async fn started(&self, requests: Arc<Requests>) -> Result<Opened, LogError> {
        let timing = Timing { patience: PATIENCE, look: PATIENCE, beat: BOUND * 2 };
        took_over(requests as Arc<dyn LogStore>, timing, self.restore).await
    }

    fn tries(&self, id: ResourceId, stage: Stage) {
        let mut book = lock(&self.book);
        let known = book.entry(id).or_insert(Stage::Absent..=stage);
        *known = *known.start()..=stage;
    }

    fn acknowledged(&self, id: ResourceId, stage: Stage) {
        lock(&self.book).insert(id, stage..=stage);
    }

    /// Brings a resource from one stage to another one. Returns `None` after an error.
    async fn brings(&self, server: &Opened, id: ResourceId, to: RangeInclusive<Stage>) -> Option<()> {
        let ledger = &*server.ledger;
        for stage in Stage::ALL.into_iter().filter(|stage| to.contains(stage)) {
            self.tries(id, stage);
            let is_done = match stage {
                // Where each begins.
                Stage::Absent => continue,
                Stage::Begun => ledger.begin(pending(id)).await.map(|()| true),
                Stage::Ready => ledger.complete(completion(id)).await.map(|()| true),
                Stage::Used => ledger.mark_used(id, at(20)).await,
                Stage::Deleting => ledger.mark_deleting(deletion(id, Condition::Always)).await,
                Stage::Deleted => ledger.finish(id, Finish::Deleted).await,
            };
            assert!(is_done.ok()?, "{stage:?}");
            if stage.is_acknowledged() {
                self.acknowledged(id, stage);
            }
        }
        Some(())
    }

    async fn stages(&self, server: &Opened, to: Stage) -> Option<ResourceId> {
        let id = new_id();
        self.brings(server, id, Stage::Begun..=to).await.map(|()| id)
    }

    /// The server before the one that works.
    fn earlier(&mut self, work: Work) -> Running {
        let stands = Point { at: 0, process: Process::StandsStill, request: Request::Late };
        let (scene, requests) = (self.clone(), Requests::new(&self.bucket, Some(stands), None));
        let mut server = Running::begin(requests, |requests| scene.works_before(work, requests));
        server.run();
        if work == Work::Restore {
            self.restore = Some(WANTED);
        }
        server
    }

    async fn works_before(self, work: Work, requests: Arc<Requests>) -> Option<()> {
        let server = self.started(Arc::clone(&requests)).await.unwrap();
        let id = self.stages(&server, Stage::Ready).await?;
        match work {
            Work::Life => {}
            Work::Copy | Work::Removal => {
                let mut objects = self.bucket.log.objects();
                let copy = objects.copies[&Position::start(1)].clone();
                objects.copies.extend((1..=8).map(|number| (Position { epoch: 0, number }, copy.clone())));
            }
            Work::TakeoverFromStopped => {
                let heartbeat = &server.started.heartbeat.0;
                heartbeat.say(WriterState::Stopped);
                heartbeat.beat().await.unwrap();
            }
            Work::TakeoverFromStanding => {
                requests.count();
                self.brings(&server, id, Stage::Used..=Stage::Used).await?;
            }
            Work::Restore => {
                assert_eq!(server.progress.last(), WANTED);
                self.copies(&server, &*requests).await.unwrap();
                let mut copied = lock(&self.book).clone();
                self.brings(&server, id, Stage::Used..=Stage::Used).await.unwrap();
                copied
                    .insert(self.stages(&server, Stage::Ready).await.unwrap(), Stage::Absent..=Stage::Absent);
                assert_eq!(server.progress.last(), LAST);
                *lock(&self.undone) = std::mem::replace(&mut *lock(&self.book), copied);
            }
        }
        Some(())
    }

    /// All of the work, in one process.
    async fn works(self, work: Work, requests: Arc<Requests>) -> Option<()> {
        let is_start = matches!(work, Work::TakeoverFromStopped | Work::TakeoverFromStanding | Work::Restore);
        if is_start {
            requests.count();
        }
        let server = self.started(Arc::clone(&requests)).await.ok()?;
        if !is_start {
            requests.count();
        }
        let heartbeat = &server.started.heartbeat.0;
        match work {
            Work::Life => {
                let id = self.stages(&server, Stage::Deleted).await?;
                server.ledger.close().await;
                if heartbeat.ended().is_none() {
                    self.acknowledged(id, Stage::Deleted);
                }
                heartbeat.say(WriterState::Stopped);
            }
            Work::Copy => {
                let id = self.stages(&server, Stage::Ready).await?;
                let (folder, last) = (tempfile::tempdir().unwrap(), server.progress.last());
                let copy = folder.path().join("copy");
                server.ledger.copy_to(&copy).await.unwrap();
                // The log has a group that the copy has not.
                self.brings(&server, id, Stage::Used..=Stage::Used).await?;
                while keep_copy(&*requests, heartbeat, last, &copy).await.is_err() {}
                self.brings(&server, id, Stage::Deleting..=Stage::Deleting).await?;
            }
            Work::Removal => {
                drop(remove_earlier_epochs(&*requests, heartbeat).await);
                self.stages(&server, Stage::Ready).await?;
            }
            Work::TakeoverFromStopped | Work::TakeoverFromStanding | Work::Restore => {
                self.stages(&server, Stage::Ready).await?;
            }
        }
        heartbeat.beat().await.ok()
    }

    async fn copies(&self, server: &Opened, store: &dyn LogStore) -> Result<bool, LogError> {
        let folder = tempfile::tempdir().unwrap();
        let (path, last) = (folder.path().join("copy"), server.progress.last());
        server.ledger.copy_to(&path).await.unwrap();
        keep_copy(store, &server.started.heartbeat.0, last, &path).await
    }

    /// Another server starts, and finds what was acknowledged. It does not stop, and its last change is one that was acknowledged.
    fn next_server(&self, arrival: Option<usize>, what: &str) -> Found {
        let requests = Requests::new(&self.bucket, None, arrival);
        requests.count();
        let found: Arc<Mutex<Found>> = Arc::default();
        let (scene, what, finds) = (self.clone(), what.to_owned(), Arc::clone(&found));
        let mut server = Running::begin(Arc::clone(&requests), |requests| async move {
            let server =
                scene.started(Arc::clone(&requests)).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            let counted = requests.counted();
            let claim = counted.iter().position(|kind| *kind == Kind::Writes).unwrap();
            lock(&finds).1 = claim + 1..counted.len();
            let is_removed = remove_earlier_epochs(&*requests, &server.started.heartbeat.0).await;
            assert!(is_removed.unwrap(), "{what}");
            let book = lock(&scene.book).clone();
            for (id, expected) in book {
                let stage = stage(&*server.ledger, id).await;
                assert!(expected.contains(&stage), "{what}: {stage:?} and not {expected:?}");
                lock(&finds).0.insert(id, stage);
            }
            scene.stages(&server, Stage::Ready).await.map(drop)
        });
        assert!(server.run());
        lock(&found).clone()
    }
}

async fn stage(ledger: &dyn Ledger, id: ResourceId) -> Stage {
    let Some(row) = ledger.find(id).await.unwrap() else { return Stage::Absent };
    match row.state() {
        State::Pending => Stage::Begun,
        State::Ready if !is_used(&row) => Stage::Ready,
        State::Ready => Stage::Used,
        State::Deleting => Stage::Deleting,
        State::Deleted => Stage::Deleted,
    }
}

/// Does the work up to a point. Then looks at what the next servers find. Returns the requests of the work, and those of the next
/// start between its claim and its end.
fn check(
    before: &Scene,
    work: Work,
    point: Option<Point>,
    arrival: Option<usize>,
) -> (Vec<Kind>, Range<usize>) {
    let what = format!("{work:?}, {point:?}, late before {arrival:?}");
    let mut scene = before.copied();
    let earlier = (work == Work::TakeoverFromStanding).then(|| scene.earlier(work));
    let kept: Vec<_> = scene.bucket.log.objects().copies.keys().copied().collect();
    let requests = Requests::new(&scene.bucket, point, None);
    let mut server = Running::begin(Arc::clone(&requests), |requests| scene.clone().works(work, requests));
    let is_over = server.run();
    let stands = point.is_some_and(|point| point.process == Process::StandsStill);
    // In the other cases it ends with this.
    let standing = (!is_over && stands).then_some(server);
    let (found, starts) = scene.next_server(arrival, &what);
    scene.bucket.late_ones_arrive();
    for mut standing in standing.into_iter().chain(earlier) {
        standing.requests.go_on();
        assert!(standing.run(), "{what}");
    }
    let (found_again, _) = scene.next_server(None, &what);
    for (id, stage) in found {
        assert_eq!(found_again[&id], stage, "{what}");
    }
    scene.bucket.assert_numbers(&what);
    if work == Work::Restore {
        let copies: Vec<_> = scene.bucket.log.objects().copies.keys().copied().collect();
        assert!(kept.iter().chain([&LAST]).all(|copy| copies.contains(copy)), "{what}: {copies:?}");
        scene.restore = Some(LAST);
        scene.book = Arc::clone(&scene.undone);
        scene.next_server(None, &what);
    }
    (requests.counted(), starts)
}

/// Tries all points of a piece of work.
fn every_point(work: Work) {
    let mut before = Scene::default();
    if work != Work::TakeoverFromStanding {
        before.earlier(work);
    }
    let (requests, _) = check(&before, work, None, None);
    let points = requests.iter().enumerate().flat_map(|(at, kind)| Point::all(at, *kind));
    let (points, tried) = (Mutex::new(points), Mutex::new(0));
    let try_all = || {
        while let Some(point) = { lock(&points).next() } {
            let (_, starts) = check(&before, work, Some(point), None);
            // What a server that has ended has written arrives at any time.
            let is_late = (point.process, point.request) == (Process::Ends, Request::Late);
            let arrivals = starts.filter(|_| is_late && requests[point.at] == Kind::Writes);
            let arrived = arrivals.map(|arrival| check(&before, work, Some(point), Some(arrival)));
            *lock(&tried) += 1 + arrived.count();
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(try_all);
        }
    });
    let tried = *lock(&tried);
    println!("{work:?}: {} requests, {tried} points", requests.len());
    assert!(tried >= 50, "{work:?}: {tried} points are too few");
}

#[test]
fn a_life_may_halt_at_any_request() {
    every_point(Work::Life);
}

#[test]
fn a_copy_may_halt_at_any_request() {
    every_point(Work::Copy);
}

#[test]
fn a_takeover_from_a_server_that_has_stopped_may_halt_at_any_request() {
    every_point(Work::TakeoverFromStopped);
}

#[test]
fn a_takeover_from_one_that_stands_still_may_halt_at_any_request() {
    every_point(Work::TakeoverFromStanding);
}

#[test]
fn a_removal_of_earlier_epochs_may_halt_at_any_request() {
    every_point(Work::Removal);
}

#[test]
fn a_restore_may_halt_at_any_request() {
    every_point(Work::Restore);
}
