//! Counts the calls of ledger and store, and ends the process at one of them: from then on none of its calls returns.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;

/// The event at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// The process ends before it is done.
    Before,
    /// The process ends after it is done.
    After,
    /// It is done, and its answer is lost. The process goes on.
    Lost,
}

pub const POINTS: [Point; 3] = [Point::Before, Point::After, Point::Lost];

/// The calls of one process. Clones are the same process.
#[derive(Clone)]
pub struct Points(Arc<State>);

struct State {
    calls: AtomicUsize,
    at: Mutex<Option<(usize, Point)>>,
    is_over: AtomicBool,
    ended: Semaphore,
}

impl Default for Points {
    fn default() -> Self {
        let ended = Semaphore::new(0);
        let (calls, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self(Arc::new(State { calls, at: Mutex::new(None), is_over, ended }))
    }
}

impl Points {
    /// Counts from now on, and lets `point` happen at this call; the first one has the number 0.
    pub fn arm(&self, at: usize, point: Point) {
        *self.0.at.lock().unwrap() = Some((at, point));
        self.0.calls.store(0, Ordering::SeqCst);
    }

    /// How many calls there were.
    pub fn calls(&self) -> usize {
        self.0.calls.load(Ordering::SeqCst)
    }

    /// Waits until the process has ended at its point.
    pub async fn ended(&self) {
        self.0.ended.acquire().await.unwrap().forget();
    }

    /// The next call, and what happens at it.
    pub(super) async fn next(&self) -> Option<Point> {
        if self.0.is_over.load(Ordering::SeqCst) {
            pending::<()>().await;
        }
        let number = self.0.calls.fetch_add(1, Ordering::SeqCst);
        let point = self.0.at.lock().unwrap().filter(|(at, _)| *at == number).map(|(_, point)| point);
        if point == Some(Point::Before) {
            self.end().await;
        }
        point
    }

    /// Ends the process.
    pub(super) async fn end(&self) {
        self.0.is_over.store(true, Ordering::SeqCst);
        self.0.ended.add_permits(1);
        pending().await
    }
}
