//! Packs a bundle while it is being sent. A thread packs into a bounded channel, whose output is the body of the
//! request. Memory does not grow with the bundle.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, Stream};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::failure::Failure;
use super::http::Timeouts;
use super::stage::StageObserver;
use crate::bundle::{PackError, PackPlan, Sources, pack};

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

/// The size and digest of what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packed {
    pub size_bytes: u64,
    pub sha256: [u8; 32],
}

/// A running packing thread. Dropping this stops the thread, and breaks the request with its body.
pub(super) struct Packing {
    gauge: Arc<Gauge>,
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
    /// Starts packing, and returns the body of the request, of `length` bytes if that is known. Nothing is packed before a
    /// connection asks for it.
    pub(super) fn start(
        plan: Arc<PackPlan>,
        sources: Arc<dyn Sources>,
        observer: Arc<dyn StageObserver>,
        start: Start,
        length: Option<u64>,
    ) -> (Self, reqwest::Body) {
        let (sender, receiver) = mpsc::channel(CHUNKS_IN_FLIGHT);
        let (gauge, stop) = (Arc::new(Gauge { length, ..Gauge::default() }), CancellationToken::new());
        let (asked, stopped) = (gauge.is_asked.clone(), stop.clone());
        let outcome = tokio::task::spawn_blocking(move || {
            wait_until(&asked, &stopped, &sender)?;
            let writer =
                ChannelWriter { sender, chunk: BytesMut::new(), sha256: Sha256::new(), size_bytes: 0 };
            let writer = pack(&plan, &*sources, writer, &mut |read_bytes| observer.packed(read_bytes))?;
            writer.finish().map_err(PackError::Write)
        });
        let body = reqwest::Body::wrap_stream(pieces(receiver, Arc::clone(&gauge), stop.clone(), start));
        (Self { gauge, outcome, stop: stop.drop_guard() }, body)
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
        let tick = (timeouts.stall / 8).clamp(Duration::from_millis(1), Duration::from_secs(1));
        let begin = Instant::now();
        let (mut seen, mut since) = (0, begin);
        while !self.is_complete() {
            tokio::time::sleep(tick).await;
            if self.sent_bytes() != seen || self.gauge.is_hungry.load(Ordering::Relaxed) {
                (seen, since) = (self.sent_bytes(), Instant::now());
            } else if since.elapsed() >= timeouts.stall && !self.is_complete() {
                return Failure::Stalled { after: timeouts.stall };
            }
        }
        let after = timeouts.answer_to(self.sent_bytes(), begin.elapsed());
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

    /// Stops packing. Returns the packing error, if that is the cause of the failure.
    pub(super) async fn abort(self) -> Option<PackError> {
        drop(self.stop);
        match joined(self.outcome.await) {
            // The connection took no more bytes. This is a consequence of the failure, not its cause.
            Ok(_) | Err(PackError::Write(_)) => None,
            Err(cause) => Some(cause),
        }
    }
}

/// How many bytes the bundle will have. For that it is packed, and nothing is kept.
pub(super) async fn measure(plan: Arc<PackPlan>, sources: Arc<dyn Sources>) -> Result<u64, PackError> {
    let packed = tokio::task::spawn_blocking(move || {
        let count = pack(&plan, &*sources, Count(0), &mut |_| ())?;
        Ok(count.0)
    });
    packed.await.unwrap_or_else(|error| Err(PackError::Write(io::Error::other(error))))
}

struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
    sha256: Sha256,
    size_bytes: u64,
}

impl ChannelWriter {
    fn finish(mut self) -> io::Result<Packed> {
        self.send_chunk()?;
        // Where the length is known, the connection may have closed the body by now.
        let _ = self.send(Piece::End);
        Ok(Packed { size_bytes: self.size_bytes, sha256: self.sha256.finalize().into() })
    }

    fn send_chunk(&mut self) -> io::Result<()> {
        let chunk = self.chunk.split().freeze();
        if chunk.is_empty() {
            return Ok(());
        }
        self.sha256.update(&chunk);
        self.size_bytes += chunk.len() as u64;
        self.send(Piece::Bytes(chunk))
    }

    fn send(&self, piece: Piece) -> io::Result<()> {
        self.sender.blocking_send(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for ChannelWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.chunk.is_empty() {
            self.chunk.reserve(CHUNK_BYTES);
        }
        let room = CHUNK_BYTES - self.chunk.len();
        let taken = &bytes[..bytes.len().min(room)];
        self.chunk.extend_from_slice(taken);
        if self.chunk.len() == CHUNK_BYTES {
            self.send_chunk()?;
        }
        Ok(taken.len())
    }

    /// Does nothing, because small pieces would be slower. `finish` sends the last piece.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
        let (packing, body) =
            Packing::start(plan, Arc::new(Disk), Arc::clone(&reads) as _, Start::Swift, None);
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
        let length = measure(Arc::clone(&plan), Arc::new(Disk)).await.unwrap();
        let reads = Arc::new(Reads::default());
        let (packing, mut body) = Packing::start(plan, Arc::new(Disk), reads, Start::Swift, Some(length));
        let bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!((bytes.len() as u64, packing.is_complete()), (length, true));
        // A connection asks for nothing more.
        drop(body);
        assert_eq!(packing.finish().await.unwrap().size_bytes, length);
    }

    #[test]
    fn a_body_that_is_closed_after_its_last_byte_is_packed_all_the_same() {
        let (sender, receiver) = mpsc::channel(1);
        let mut writer =
            ChannelWriter { sender, chunk: BytesMut::new(), sha256: Sha256::new(), size_bytes: 0 };
        writer.write_all(&vec![0; CHUNK_BYTES]).unwrap();
        drop(receiver);
        assert_eq!(writer.finish().unwrap().size_bytes, CHUNK_BYTES as u64);
    }
}
