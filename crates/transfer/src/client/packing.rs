//! Packs a bundle while it is being sent. A thread packs into a bounded channel, whose output is the body of the
//! request. Memory does not grow with the bundle.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cloakroom_core::protocol::recipe::RecipePart;
use futures_util::stream::{self, Stream};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::failure::Failure;
use super::http::Timeouts;
use super::reuse::SplicePlan;
use super::stage::StageObserver;
use crate::bundle::{BundleOutput, PackError, PackPlan, Segment, Segments, Sources, pack_in_segments};

const CHUNK_BYTES: usize = 512 * 1024;
const CHUNKS_IN_FLIGHT: usize = 3;

/// How long a stopped upload that is complete still waits for its answer: with the ticket, the caller can release the
/// resource.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// After this time without an answer, the user is told that the upload is complete.
const SILENCE: Duration = Duration::from_secs(5);

/// How long a cautious attempt waits after its first chunk.
const CAUTION: Duration = Duration::from_secs(1);

/// How sending begins. A server that refuses an upload answers at once, reads a little of the body and closes. If the
/// client is then in a large write, it may see a broken pipe and never the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// At full speed.
    Swift,
    /// With a pause after the first chunk, in which a refusal can arrive.
    Cautious,
}

/// What was packed, whether all of it was sent or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packed {
    pub size_bytes: u64,
    pub sha256: [u8; 32],
    pub segments: Vec<Segment>,
}

/// What the body of an upload has.
#[derive(Debug)]
pub(super) enum Contents {
    /// The whole bundle, of this length if it was measured.
    Whole(Option<u64>),
    /// A recipe, and what it does not copy.
    Splice(SplicePlan),
}

impl Contents {
    /// How many bytes the body has, if that is known.
    pub(super) fn length(&self) -> Option<u64> {
        match self {
            Self::Whole(length) => *length,
            Self::Splice(splice) => Some(splice.body_bytes()),
        }
    }

    /// How many bytes the server must write that it does not get.
    fn copied_bytes(&self) -> u64 {
        self.splice().map_or(0, SplicePlan::copied_bytes)
    }

    /// The digest that the recipe names.
    pub(super) fn sha256(&self) -> Option<[u8; 32]> {
        self.splice().map(|splice| splice.sha256)
    }

    /// The secret in the recipe.
    pub(super) fn secret(&self) -> Option<&str> {
        self.splice().map(|splice| splice.secret.as_str())
    }

    pub(super) fn splice(&self) -> Option<&SplicePlan> {
        match self {
            Self::Whole(_) => None,
            Self::Splice(splice) => Some(splice),
        }
    }
}

/// A running packing thread. Dropping this stops the thread, and breaks the request with its body.
pub(super) struct Packing {
    gauge: Arc<Gauge>,
    /// How many bytes the server must write that it does not get.
    copied_bytes: u64,
    outcome: JoinHandle<Result<Packed, PackError>>,
    stop: DropGuard,
}

/// The state of sending, shared with the body.
#[derive(Debug, Default)]
struct Gauge {
    /// How many bytes the connection was told to expect. It then asks for no end of the body.
    length: Option<u64>,
    sent_bytes: AtomicU64,
    /// Whether the connection has sent everything and waits for the packer.
    is_hungry: AtomicBool,
    is_complete: AtomicBool,
    /// Cancelled when a connection asks for the first bytes.
    is_asked: CancellationToken,
}

enum Piece {
    Bytes(Bytes),
    End,
}

impl Packing {
    /// Starts packing, and returns the body of the request. Nothing is packed before a connection asks for it.
    pub(super) fn start(
        plan: Arc<PackPlan>,
        sources: Arc<dyn Sources>,
        observer: Arc<dyn StageObserver>,
        start: Start,
        contents: &Contents,
    ) -> (Self, reqwest::Body) {
        let (sender, receiver) = mpsc::channel(CHUNKS_IN_FLIGHT);
        let (length, copied_bytes) = (contents.length(), contents.copied_bytes());
        let (gauge, stop) = (Arc::new(Gauge { length, ..Gauge::default() }), CancellationToken::new());
        let mut writer = ChannelWriter::new(sender.clone(), contents, stop.clone());
        let (asked, stopped) = (gauge.is_asked.clone(), stop.clone());
        let outcome = tokio::task::spawn_blocking(move || {
            wait_until(&asked, &stopped, &sender)?;
            drop(sender);
            writer.begin().map_err(PackError::Write)?;
            let on_progress = &mut |read_bytes| observer.packed(read_bytes);
            let writer = pack_in_segments(&plan, &*sources, writer, on_progress)?;
            writer.finish().map_err(PackError::Write)
        });
        let body = reqwest::Body::wrap_stream(pieces(receiver, Arc::clone(&gauge), stop.clone(), start));
        (Self { gauge, copied_bytes, outcome, stop: stop.drop_guard() }, body)
    }

    /// How many bytes the connection has taken.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.gauge.sent_bytes.load(Ordering::Relaxed)
    }

    /// Whether the connection has taken the whole bundle, so that the server may have it.
    pub(super) fn is_complete(&self) -> bool {
        self.gauge.is_complete.load(Ordering::Relaxed)
    }

    /// Returns when the upload should end after `stop`: at once if the bundle is incomplete, because the server then
    /// keeps nothing.
    pub(super) async fn stopped(&self, stop: &CancellationToken) {
        stop.cancelled().await;
        if self.is_complete() {
            tokio::time::sleep(LAST_WAIT).await;
        }
    }

    /// Returns when the server has taken nothing for too long, or has not answered the complete upload in time.
    pub(super) async fn stalled(&self, timeouts: Timeouts, observer: &dyn StageObserver) -> Failure {
        // While the server copies, it takes nothing.
        let stall = match self.copied_bytes {
            0 => timeouts.stall,
            copied => timeouts.stall.max(timeouts.answer_to(copied, Duration::ZERO)),
        };
        let tick = (timeouts.stall / 8).clamp(Duration::from_millis(1), Duration::from_secs(1));
        let begin = Instant::now();
        let (mut seen, mut since) = (0, begin);
        while !self.is_complete() {
            tokio::time::sleep(tick).await;
            if self.sent_bytes() != seen || self.gauge.is_hungry.load(Ordering::Relaxed) {
                (seen, since) = (self.sent_bytes(), Instant::now());
            } else if since.elapsed() >= stall && !self.is_complete() {
                return Failure::Stalled { after: stall };
            }
        }
        let after = timeouts.answer_to(self.sent_bytes() + self.copied_bytes, begin.elapsed());
        let silence = SILENCE.min(after);
        tokio::time::sleep(silence).await;
        observer.awaiting_answer();
        tokio::time::sleep(after.saturating_sub(silence)).await;
        Failure::NoAnswer { after }
    }

    /// Waits for the end of packing. The request must have ended before.
    pub(super) async fn finish(self) -> Result<Packed, PackError> {
        joined(self.outcome.await)
    }

    /// Stops packing. Returns what was packed, if that came to its end, or the packing error, if that is the cause of the failure.
    pub(super) async fn abort(self) -> Result<Option<Packed>, PackError> {
        drop(self.stop);
        match joined(self.outcome.await) {
            // The connection took no more bytes. This is a consequence of the failure, not its cause.
            Err(PackError::Write(_)) => Ok(None),
            packed => packed.map(Some),
        }
    }
}

/// Packs a bundle, and keeps nothing of it. Dropping this stops it soon.
pub(super) async fn measure(plan: Arc<PackPlan>, sources: Arc<dyn Sources>) -> Result<Packed, PackError> {
    let stop = CancellationToken::new();
    let measure = Measure { stopped: stop.clone(), ..Measure::default() };
    let _stop = stop.drop_guard();
    let packed = tokio::task::spawn_blocking(move || {
        Ok(pack_in_segments(&plan, &*sources, measure, &mut |_| ())?.finish())
    });
    joined(packed.await)
}

/// Counts and hashes the bytes of a bundle.
#[derive(Debug, Default)]
struct Measure {
    sha256: Sha256,
    size_bytes: u64,
    segments: Segments,
    stopped: CancellationToken,
}

impl Measure {
    fn finish(self) -> Packed {
        let Self { sha256, size_bytes, segments, .. } = self;
        Packed { size_bytes, sha256: sha256.finalize().into(), segments: segments.finish() }
    }
}

impl Write for Measure {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stopped.is_cancelled() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.sha256.update(bytes);
        self.size_bytes += bytes.len() as u64;
        self.segments.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BundleOutput for Measure {
    fn file_begins(&mut self, at: u64) {
        self.segments.file_begins(at);
    }

    fn file_ends(&mut self, at: u64, crc: u32) {
        self.segments.file_ends(at, crc);
    }

    fn group_ends(&mut self, at: u64) {
        self.segments.group_ends(at);
    }
}

/// Waits until a connection asks for the bundle. Fails if none will.
fn wait_until(
    asked: &CancellationToken,
    stopped: &CancellationToken,
    sender: &mpsc::Sender<Piece>,
) -> Result<(), PackError> {
    Handle::current().block_on(async {
        tokio::select! {
            biased;
            () = asked.cancelled() => Ok(()),
            () = stopped.cancelled() => Err(PackError::Write(io::ErrorKind::BrokenPipe.into())),
            () = sender.closed() => Err(PackError::Write(io::ErrorKind::BrokenPipe.into())),
        }
    })
}

fn joined(outcome: Result<Result<Packed, PackError>, tokio::task::JoinError>) -> Result<Packed, PackError> {
    outcome.unwrap_or_else(|error| Err(PackError::Write(io::Error::other(error))))
}

/// The body: the packer's pieces. If packing stops before its end, an error breaks the request.
fn pieces(
    receiver: mpsc::Receiver<Piece>,
    gauge: Arc<Gauge>,
    stop: CancellationToken,
    start: Start,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::unfold(Some((receiver, gauge, stop)), move |state| async move {
        let (mut receiver, gauge, stop) = state?;
        gauge.is_asked.cancel();
        gauge.is_hungry.store(true, Ordering::Relaxed);
        let sent_bytes = gauge.sent_bytes.load(Ordering::Relaxed);
        let next = async {
            breathe(start, sent_bytes).await;
            receiver.recv().await
        };
        let piece = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            piece = next => piece,
        };
        gauge.is_hungry.store(false, Ordering::Relaxed);
        match piece {
            Some(Piece::Bytes(bytes)) => {
                let added = bytes.len() as u64;
                let sent = gauge.sent_bytes.fetch_add(added, Ordering::Relaxed) + added;
                if gauge.length == Some(sent) {
                    gauge.is_complete.store(true, Ordering::Relaxed);
                }
                Some((Ok(bytes), Some((receiver, gauge, stop))))
            }
            Some(Piece::End) => {
                gauge.is_complete.store(true, Ordering::Relaxed);
                None
            }
            None => Some((Err(io::Error::other("packing was stopped")), None)),
        }
    })
}

/// Lets the runtime check the socket between two chunks. It then reads an answer before the next write, which could
/// fail because the server has closed.
async fn breathe(start: Start, sent_bytes: u64) {
    if start == Start::Cautious && (1..=CHUNK_BYTES as u64).contains(&sent_bytes) {
        tokio::time::sleep(CAUTION).await;
    } else {
        tokio::task::yield_now().await;
    }
}

/// The packer's end of the channel. Counts and hashes the bytes, and blocks while the network is slower.
struct ChannelWriter {
    sender: mpsc::Sender<Piece>,
    chunk: BytesMut,
    measure: Measure,
    /// What comes before the bundle.
    recipe: Bytes,
    /// The parts that were not packed yet.
    parts: VecDeque<Part>,
}

/// Bytes of the bundle that are all sent, or not.
struct Part {
    is_sent: bool,
    left: u64,
}

impl ChannelWriter {
    /// With `stopped` it ends, also while it sends nothing.
    fn new(sender: mpsc::Sender<Piece>, contents: &Contents, stopped: CancellationToken) -> Self {
        let part = |part: &RecipePart| Part { is_sent: part.copied().is_none(), left: part.length() };
        let (recipe, parts) = match contents {
            Contents::Whole(_) => (Bytes::new(), [Part { is_sent: true, left: u64::MAX }].into()),
            Contents::Splice(splice) => (splice.recipe.clone(), splice.parts.iter().map(part).collect()),
        };
        let measure = Measure { stopped, ..Measure::default() };
        Self { sender, chunk: BytesMut::new(), measure, recipe, parts }
    }

    fn begin(&mut self) -> io::Result<()> {
        let recipe = mem::take(&mut self.recipe);
        if recipe.is_empty() { Ok(()) } else { self.send(Piece::Bytes(recipe)) }
    }

    fn finish(mut self) -> io::Result<Packed> {
        self.send_chunk()?;
        // Where the length is known, the connection may have closed the body by now.
        let _ = self.send(Piece::End);
        Ok(self.measure.finish())
    }

    fn send_chunk(&mut self) -> io::Result<()> {
        let chunk = self.chunk.split().freeze();
        if chunk.is_empty() { Ok(()) } else { self.send(Piece::Bytes(chunk)) }
    }

    fn send(&self, piece: Piece) -> io::Result<()> {
        self.sender.blocking_send(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for ChannelWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Files that were changed since they were measured may make more bytes. Their digest is another one then.
        let mut part = self.parts.pop_front().unwrap_or(Part { is_sent: false, left: u64::MAX });
        let mut length = usize::try_from(part.left).unwrap_or(usize::MAX).min(bytes.len());
        if part.is_sent {
            if self.chunk.is_empty() {
                self.chunk.reserve(CHUNK_BYTES);
            }
            length = length.min(CHUNK_BYTES - self.chunk.len());
            self.chunk.extend_from_slice(&bytes[..length]);
        }
        part.left -= length as u64;
        if part.left > 0 {
            self.parts.push_front(part);
        }
        if self.chunk.len() == CHUNK_BYTES {
            self.send_chunk()?;
        }
        self.measure.write(&bytes[..length])
    }

    /// Does nothing, because small pieces would be slower. `finish` sends the last piece.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BundleOutput for ChannelWriter {
    fn file_begins(&mut self, at: u64) {
        self.measure.file_begins(at);
    }

    fn file_ends(&mut self, at: u64, crc: u32) {
        self.measure.file_ends(at, crc);
    }

    fn group_ends(&mut self, at: u64) {
        self.measure.group_ends(at);
    }
}

#[cfg(test)]
mod tests {
    use super::super::retry::RetryNotice;
    use super::*;
    use crate::bundle::Disk;
    use http_body_util::BodyExt as _;

    #[derive(Default)]
    struct Reads(AtomicU64);

    impl StageObserver for Reads {
        fn packed(&self, _: u64) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        fn retrying(&self, _: Option<&RetryNotice>) {}
    }

    #[tokio::test]
    async fn nothing_is_read_for_a_server_that_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("app.jar");
        std::fs::write(&file, "a jar").unwrap();
        let (plan, reads) = (Arc::new(PackPlan::new(&[file]).unwrap()), Arc::new(Reads::default()));
        let (packing, body) = Packing::start(
            plan,
            Arc::new(Disk),
            Arc::clone(&reads) as _,
            Start::Swift,
            &Contents::Whole(None),
        );
        // The connection was refused, so the body is never read.
        drop(body);
        assert!(joined(packing.outcome.await).is_err());
        assert_eq!(reads.0.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_bundle_of_known_length_is_complete_after_its_last_byte() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("app.jar");
        std::fs::write(&file, "a jar").unwrap();
        let plan = Arc::new(PackPlan::new(&[file]).unwrap());
        let length = measure(Arc::clone(&plan), Arc::new(Disk)).await.unwrap().size_bytes;
        let reads = Arc::new(Reads::default());
        let (packing, mut body) =
            Packing::start(plan, Arc::new(Disk), reads, Start::Swift, &Contents::Whole(Some(length)));
        let bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!((bytes.len() as u64, packing.is_complete()), (length, true));
        // A connection asks for nothing more.
        drop(body);
        assert_eq!(packing.finish().await.unwrap().size_bytes, length);
    }

    #[test]
    fn a_body_that_is_closed_after_its_last_byte_is_packed_all_the_same() {
        let (sender, receiver) = mpsc::channel(1);
        let mut writer = ChannelWriter::new(sender, &Contents::Whole(None), CancellationToken::new());
        writer.write_all(&vec![0; CHUNK_BYTES]).unwrap();
        drop(receiver);
        assert_eq!(writer.finish().unwrap().size_bytes, CHUNK_BYTES as u64);
    }
}
