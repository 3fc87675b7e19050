//! The requests of one process to a bucket in memory. They are counted, and at one of them the process ends, stands still, or
//! gets an error. The request itself is carried out, or never, or late.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use cloakroom_core::lock::lock;
use cloakroom_storage::log::{KeptCopy, LogError, LogStore, Object, Position, WriterStamp};
use cloakroom_storage::store::StoreError;
use cloakroom_suites::memory_log::{MemoryLog, Objects};
use futures_util::FutureExt as _;
use tokio::sync::watch;

type Answer<T> = Result<T, LogError>;

type CarryOut = Box<dyn FnOnce(&Bucket) + Send>;

/// What becomes of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    Ends,
    /// It gets a temporary error.
    Fails,
    /// It goes on after another server has taken over.
    StandsStill,
}

/// What becomes of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    Never,
    Done,
    /// It arrives while another server takes over, or after that.
    Late,
}

/// What happens at one request; the first one has the number 0.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    pub at: usize,
    pub process: Process,
    pub request: Request,
}

/// What a request does to the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Reads,
    Writes,
    Removes,
}

impl Point {
    /// All that can happen at the request `at`. For one that only reads it makes no difference whether it was carried out.
    pub fn all(at: usize, kind: Kind) -> impl Iterator<Item = Self> {
        use Process::{Ends, Fails, StandsStill};
        use Request::{Done, Late, Never};
        let reads = [(Ends, Never), (Fails, Never), (StandsStill, Done)];
        let writes = [(Ends, Done), (Ends, Late), (Fails, Done), (Fails, Late), (StandsStill, Late)];
        let writes = writes.into_iter().filter(move |_| kind != Kind::Reads);
        reads.into_iter().chain(writes).map(move |(process, request)| Self { at, process, request })
    }
}

/// A bucket, and what was ever written there.
#[derive(Default)]
pub struct Bucket {
    pub log: MemoryLog,
    groups: Mutex<BTreeMap<Position, Bytes>>,
    wrong: Mutex<Vec<String>>,
    late: Mutex<Vec<CarryOut>>,
}

impl Bucket {
    /// Another bucket with the same objects.
    pub fn copied(&self) -> Self {
        let copied = Self { groups: lock(&self.groups).clone().into(), ..Self::default() };
        let objects = self.log.objects();
        *copied.log.objects() =
            Objects { groups: objects.groups.clone(), copies: objects.copies.clone(), ..*objects };
        copied
    }

    /// Carries out what is late.
    pub fn late_ones_arrive(&self) {
        let late = std::mem::take(&mut *lock(&self.late));
        for carry_out in late {
            carry_out(self);
        }
    }

    /// A number has one content for ever, and none is left out.
    pub fn assert_numbers(&self, what: impl Display) {
        assert_eq!(*lock(&self.wrong), Vec::<String>::new(), "{what}");
    }

    fn write_group(&self, at: Position, group: Bytes) {
        let mut groups = lock(&self.groups);
        if groups.get(&at).is_some_and(|written| *written != group) {
            lock(&self.wrong).push(format!("{at} has two contents"));
        }
        if at.number > 1 && !groups.contains_key(&Position { number: at.number - 1, ..at }) {
            lock(&self.wrong).push(format!("the number before {at} is left out"));
        }
        groups.insert(at, group.clone());
        now(self.log.write_group(at, group));
    }
}

/// The bucket in memory never waits, and never fails.
fn now<T>(answer: impl Future<Output = Answer<T>>) -> T {
    answer.now_or_never().unwrap().unwrap()
}

/// The requests of one process.
pub struct Requests {
    bucket: Arc<Bucket>,
    counted: Mutex<Option<Vec<Kind>>>,
    point: Option<Point>,
    /// Before this request, what is late arrives.
    arrival: Option<usize>,
    /// Whether the process has ended or stands still. Then none of its requests goes on.
    is_halted: watch::Sender<bool>,
}

impl Requests {
    pub fn new(bucket: &Arc<Bucket>, point: Option<Point>, arrival: Option<usize>) -> Arc<Self> {
        let is_halted = watch::Sender::new(false);
        Arc::new(Self { bucket: Arc::clone(bucket), counted: Mutex::new(None), point, arrival, is_halted })
    }

    /// Counts from now on.
    pub fn count(&self) {
        *lock(&self.counted) = Some(Vec::new());
    }

    pub fn counted(&self) -> Vec<Kind> {
        lock(&self.counted).clone().unwrap_or_default()
    }

    pub async fn halted(&self) {
        self.is_halted.subscribe().wait_for(|is_halted| *is_halted).await.unwrap();
    }

    /// A process that stood still goes on.
    pub fn go_on(&self) {
        self.is_halted.send_replace(false);
    }

    async fn until_not_halted(&self) {
        self.is_halted.subscribe().wait_for(|is_halted| !*is_halted).await.unwrap();
    }

    /// The point that the next request is.
    fn next(&self, kind: Kind) -> Option<Point> {
        let mut counted = lock(&self.counted);
        let counted = counted.as_mut()?;
        counted.push(kind);
        let number = counted.len() - 1;
        if self.arrival == Some(number) {
            self.bucket.late_ones_arrive();
        }
        self.point.filter(|point| point.at == number)
    }

    async fn make<T: Send + 'static>(
        &self,
        kind: Kind,
        carry_out: impl FnOnce(&Bucket) -> T + Send + 'static,
    ) -> Answer<T> {
        self.until_not_halted().await;
        let Some(Point { process, request, .. }) = self.next(kind) else {
            return Ok(carry_out(&self.bucket));
        };
        let mut waits = Some(carry_out);
        let mut answer = None;
        if request == Request::Done {
            answer = waits.take().map(|carry_out| carry_out(&self.bucket));
        }
        if request == Request::Late && process != Process::StandsStill {
            lock(&self.bucket.late).extend(
                waits.take().map(|carry_out| Box::new(|bucket: &Bucket| drop(carry_out(bucket))) as CarryOut),
            );
        }
        if process == Process::Fails {
            return Err(StoreError::Unavailable("a test says so".into()).into());
        }
        self.is_halted.send_replace(true);
        self.until_not_halted().await;
        Ok(answer.or_else(|| waits.map(|carry_out| carry_out(&self.bucket))).unwrap())
    }
}

#[async_trait]
impl LogStore for Requests {
    fn shown(&self, object: Object) -> String {
        self.bucket.log.shown(object)
    }

    async fn stamp(&self) -> Answer<Option<WriterStamp>> {
        self.make(Kind::Reads, |bucket| now(bucket.log.stamp())).await
    }

    async fn replace_stamp(&self, seen: Option<WriterStamp>, by: WriterStamp) -> Answer<bool> {
        self.make(Kind::Writes, move |bucket| now(bucket.log.replace_stamp(seen, by))).await
    }

    async fn write_group(&self, at: Position, group: Bytes) -> Answer<()> {
        self.make(Kind::Writes, move |bucket| bucket.write_group(at, group)).await
    }

    async fn group(&self, at: Position) -> Answer<Option<Bytes>> {
        self.make(Kind::Reads, move |bucket| now(bucket.log.group(at))).await
    }

    async fn groups(&self) -> Answer<Vec<Position>> {
        self.make(Kind::Reads, |bucket| now(bucket.log.groups())).await
    }

    async fn remove_groups(&self, last: Position) -> Answer<()> {
        self.make(Kind::Removes, move |bucket| now(bucket.log.remove_groups(last))).await
    }

    async fn copies(&self) -> Answer<Vec<KeptCopy>> {
        self.make(Kind::Reads, |bucket| now(bucket.log.copies())).await
    }

    async fn write_copy(&self, at: Position, path: &Path) -> Answer<()> {
        let copy = fs::read(path).unwrap();
        let write = move |bucket: &Bucket| {
            bucket.log.objects().copies.insert(at, copy);
        };
        self.make(Kind::Writes, write).await
    }

    async fn read_copy(&self, at: Position, path: &Path) -> Answer<()> {
        let copy = self.make(Kind::Reads, move |bucket| bucket.log.objects().copies[&at].clone()).await?;
        fs::write(path, copy).unwrap();
        Ok(())
    }

    async fn remove_copy(&self, at: Position) -> Answer<()> {
        self.make(Kind::Removes, move |bucket| now(bucket.log.remove_copy(at))).await
    }

    async fn keep_reserve(&self) -> Answer<()> {
        Ok(())
    }

    async fn make_room(&self) -> Answer<bool> {
        Ok(false)
    }
}
