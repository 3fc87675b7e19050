//! A socket that gives up on a client that reads too slowly.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::pace::{Pace, PaceLimits};

/// A socket whose writes must keep a pace. The speed of a sending client is limited where request bodies are read,
/// because only there it is known whether the server waits for it.
pub(super) struct PacedSocket {
    socket: TcpStream,
    writing: Pace,
    reset: Reset,
}

/// Whether the connection ends with a reset. Without a reset, the bytes in its buffer delay its end. Then a client that
/// reads slowly never learns of it if the network disappears with the process, as a pod's does.
#[derive(Debug, Clone, Default)]
pub(super) struct Reset(Arc<AtomicBool>);

impl Reset {
    /// Makes the connection end with a reset, whenever it ends.
    pub(super) fn at_the_end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for PacedSocket {
    fn drop(&mut self) {
        if self.reset.0.load(Ordering::Relaxed) {
            // A socket that refuses the option is closed in the normal way.
            let _ = self.socket.set_zero_linger();
        }
    }
}

impl PacedSocket {
    pub(super) fn new(socket: TcpStream, limits: PaceLimits, reset: Reset) -> Self {
        Self { socket, writing: Pace::new(limits), reset }
    }

    fn judge(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let verdict = match written {
            Poll::Ready(Ok(bytes)) => match self.writing.moved(bytes) {
                Ok(()) => return Poll::Ready(Ok(bytes)),
                Err(too_slow) => too_slow,
            },
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => ready!(self.writing.poll_waiting(context)),
        };
        if verdict.is_after_standstill() {
            tracing::warn!(reason = %verdict, "closing a connection whose client does not read");
        } else {
            tracing::debug!(reason = %verdict, "closing a connection whose client does not read");
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, verdict)))
    }
}

impl AsyncRead for PacedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl AsyncWrite for PacedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.judge(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        self.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
