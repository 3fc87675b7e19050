//! A watch: it sends the changes since a version, and then each new change until its timeout.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::Inside;
use super::answers::{Form, Refusal};
use super::selectors::Selectors;
use crate::cluster::Kind;

/// The objects that a client watches.
#[derive(Debug, Clone)]
pub struct Subject {
    pub kind: Kind,
    pub namespace: Option<String>,
    pub selectors: Selectors,
    pub form: Form,
    /// The version to begin after; `None` to begin with the existing objects.
    pub since: Option<u64>,
    pub wants_bookmarks: bool,
    /// The initial objects end with a bookmark that says so (`sendInitialEvents`).
    pub marks_initial_events: bool,
    pub timeout: Duration,
}

/// Orders for open watches. Watches have growing numbers, and an order is for all below a number.
#[derive(Debug, Default)]
pub struct Orders {
    pub opened: u64,
    /// Watches below this number end, as at their timeout.
    pub end: u64,
    /// Watches below this number break in the middle of a line.
    pub cut: u64,
    /// Watches below this number fall silent, and do not end.
    pub silence: u64,
}

/// The next step of a watch.
enum Turn {
    Lines(String),
    Nothing,
    End,
    Cut,
    Silence,
}

type Sender = mpsc::Sender<Result<Bytes, std::io::Error>>;

struct Open {
    number: u64,
    subject: Subject,
    position: u64,
    inside: Arc<Mutex<Inside>>,
    sender: Sender,
}

/// Opens a watch and returns the body of its answer.
pub fn open(inside: &Arc<Mutex<Inside>>, changed: watch::Receiver<u64>, subject: Subject) -> Body {
    let (sender, mut receiver) = mpsc::channel(16);
    let number = {
        let mut inside = inside.lock().unwrap();
        inside.orders.opened += 1;
        inside.orders.opened
    };
    let position = subject.since.unwrap_or_default();
    let watch = Open { number, subject, position, inside: Arc::clone(inside), sender };
    tokio::spawn(watch.run(changed));
    Body::from_stream(futures_util::stream::poll_fn(move |context| receiver.poll_recv(context)))
}

/// A body that breaks in the middle of a line.
pub fn cut() -> Body {
    let pieces = [Ok(Bytes::from_static(br#"{"type":"ADDED","object":{"kind":"P"#)), Err(broken())];
    Body::from_stream(paced(pieces))
}

/// A body that never sends anything.
pub fn silent() -> Body {
    Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>())
}

/// A body whose pieces reach the wire one by one.
fn paced<const N: usize>(
    pieces: [Result<Bytes, std::io::Error>; N],
) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> {
    futures_util::stream::unfold(pieces.into_iter(), async |mut pieces| {
        tokio::time::sleep(Duration::from_millis(20)).await;
        pieces.next().map(|piece| (piece, pieces))
    })
}

fn broken() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::ConnectionReset, "cut by the test")
}

/// An ERROR event.
pub fn error_line(refusal: &Refusal) -> String {
    line("ERROR", &refusal.status())
}

fn line(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

impl Open {
    async fn run(mut self, mut changed: watch::Receiver<u64>) {
        let end = Instant::now() + self.subject.timeout;
        let every = self.inside.lock().unwrap().bookmark_interval;
        let mut bookmark = Instant::now() + every;
        if self.subject.since.is_none() {
            let lines = self.initial();
            if !self.send(lines).await {
                return;
            }
        }
        loop {
            changed.mark_unchanged();
            match self.turn() {
                Turn::Lines(lines) => {
                    if !self.send(lines).await {
                        return;
                    }
                }
                Turn::Nothing => {}
                Turn::End => return,
                Turn::Cut => return self.cut().await,
                Turn::Silence => return self.sender.closed().await,
            }
            tokio::select! {
                _ = changed.changed() => {}
                () = sleep_until(end) => return,
                () = sleep_until(bookmark), if self.subject.wants_bookmarks => {
                    bookmark += every;
                    if !self.bookmark().await {
                        return;
                    }
                }
                () = self.sender.closed() => return,
            }
        }
    }

    /// All existing objects, as ADDED events.
    fn initial(&mut self) -> String {
        let inside = self.inside.lock().unwrap();
        let Subject { kind, namespace, selectors, form, .. } = &self.subject;
        self.position = inside.world.version;
        let found = inside.world.select(kind, namespace.as_deref(), selectors);
        let mut lines: String = found.iter().map(|object| line("ADDED", &form.object(object))).collect();
        if self.subject.marks_initial_events {
            lines += &line("BOOKMARK", &form.bookmark(kind, self.position, true));
        }
        lines
    }

    fn turn(&mut self) -> Turn {
        let inside = self.inside.lock().unwrap();
        let orders = &inside.orders;
        if self.number <= orders.silence {
            return Turn::Silence;
        }
        if self.number <= orders.cut {
            return Turn::Cut;
        }
        if self.number <= orders.end {
            return Turn::End;
        }
        let Subject { kind, namespace, selectors, form, .. } = &self.subject;
        let lines: String = inside
            .world
            .changes_after(kind, self.position)
            .iter()
            .filter(|change| namespace.as_ref().is_none_or(|only| *only == change.namespace))
            .filter_map(|change| change.event(selectors))
            .map(|(event, object)| line(event, &form.object(&object)))
            .collect();
        self.position = self.position.max(inside.world.version);
        if lines.is_empty() { Turn::Nothing } else { Turn::Lines(lines) }
    }

    async fn bookmark(&self) -> bool {
        let Subject { kind, form, .. } = &self.subject;
        self.send(line("BOOKMARK", &form.bookmark(kind, self.position, false))).await
    }

    async fn send(&self, lines: String) -> bool {
        lines.is_empty() || self.sender.send(Ok(Bytes::from(lines))).await.is_ok()
    }

    async fn cut(&self) {
        self.send(r#"{"type":"MODIFIED","object":{"kind":"P"#.to_owned()).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        let _ = self.sender.send(Err(broken())).await;
    }
}
