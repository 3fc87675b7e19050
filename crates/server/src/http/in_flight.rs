//! Tracks which connections have a transfer in flight. A transfer begins when its request is let in, and ends when the
//! last byte of its answer was written to the socket. A server that stops waits for transfers, and not for other
//! connections.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::head_timer::{Answering, HeadTimer};
use cloakroom_core::lock::lock;

/// The transfer of one connection. A connection has one request at a time (HTTP/1), and clones belong to the same
/// connection.
#[derive(Clone, Default)]
pub(super) struct Activity(Arc<Mutex<Transfer>>);

#[derive(Default)]
struct Transfer {
    /// Present while the server must wait for this connection.
    token: Option<TaskTrackerToken>,
    /// The answer is complete, but a part of it may still be in the connection's buffer.
    is_answered: bool,
}

impl Activity {
    /// Tells that a request was let in.
    pub(super) fn begin(&self, token: TaskTrackerToken) -> Work {
        *lock(&self.0) = Transfer { token: Some(token), is_answered: false };
        Work(self.clone())
    }

    /// Whether the connection has a transfer in flight.
    pub(super) fn has_work(&self) -> bool {
        lock(&self.0).token.is_some()
    }

    /// Tells that everything that was written has gone to the socket.
    fn flushed(&self) {
        let mut transfer = lock(&self.0);
        if transfer.is_answered {
            transfer.token = None;
        }
    }
}

/// A request that was let in. Dropping it tells that its answer is complete or given up.
pub(super) struct Work(Activity);

impl Drop for Work {
    fn drop(&mut self) {
        lock(&self.0.0).is_answered = true;
    }
}

/// The body of an answer. Dropping it ends its [`Work`].
pub(super) struct AnswerBody {
    pub(super) body: Body,
    /// `None` for a request that was not let in.
    pub(super) _work: Option<Work>,
    pub(super) _answering: Answering,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream that tells when bytes have come, and when its writer has flushed it. hyper flushes whenever its own buffer is
/// empty.
pub(super) struct FlushedStream<S> {
    pub(super) stream: S,
    pub(super) activity: Activity,
    pub(super) timer: HeadTimer,
}

impl<S: AsyncRead + Unpin> AsyncRead for FlushedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.timer.received();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FlushedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.activity.flushed();
        self.timer.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use axum::http::Response;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_util::task::TaskTracker;

    use super::*;

    /// How many bytes the pipe between client and server holds. The rest of an answer stays in the server's buffer.
    const PIPE_BYTES: usize = 64;

    // Invariant: a server that stops waits for transfers in flight to their last byte, and for nothing else.
    #[tokio::test]
    async fn a_transfer_is_in_flight_until_its_last_byte_has_gone_to_the_socket() {
        let in_flight = TaskTracker::new();
        let (mut client, server) = tokio::io::duplex(PIPE_BYTES);
        let activity = Activity::default();
        let timer = HeadTimer::start(Duration::from_hours(1), Duration::from_hours(1));
        let stream = FlushedStream { stream: server, activity: activity.clone(), timer: timer.clone() };
        let service = service_fn(async |_| {
            let work = Some(activity.begin(in_flight.token()));
            let (answering, _) = timer.request();
            let body = AnswerBody { body: Body::from(vec![b'7'; 1000]), _work: work, _answering: answering };
            Ok::<_, Infallible>(Response::new(body))
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        let asking = async {
            client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(&[b'7'; 1000 - PIPE_BYTES - 1]) {
                answer.push(client.read_u8().await.unwrap());
                assert_eq!(in_flight.len(), 1, "not waited for after {} bytes", answer.len());
            }
            client.read_exact(&mut [0; PIPE_BYTES + 1]).await.unwrap();
            // The connection itself stays open.
            in_flight.close();
            in_flight.wait().await;
            assert!(!activity.has_work());
        };
        tokio::select! {
            ended = connection => panic!("the connection ended: {ended:?}"),
            () = asking => {}
        }
    }
}
