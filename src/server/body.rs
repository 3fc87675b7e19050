//! Request bodies: paced while they are read, and drained a little when they are not wanted.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::EXPECT;
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};

use super::pace::{Pace, PaceLimits, TooSlow};

/// So long the rest of a refused body is read, so that a client that is still sending sees the answer and not a
/// broken pipe: clients like OkHttp look for an answer only when they have sent everything.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// And so much of it: on a fast network two seconds are long.
const DRAIN_BYTES: usize = 256 << 20;

/// Wraps the body of every request.
pub(super) async fn guard(State(limits): State<PaceLimits>, request: Request, next: Next) -> Response {
    let waits_for_continue = request.headers().contains_key(EXPECT);
    next.run(request.map(|body| Body::new(GuardedBody::new(body, limits, waits_for_continue)))).await
}

/// A request body that ends with [`TooSlow`] when its client is, and that reads a little further after it is
/// dropped before its end.
struct GuardedBody {
    body: Option<Body>,
    pace: Pace,
    is_wanted: bool,
    waits_for_continue: bool,
}

impl GuardedBody {
    fn new(body: Body, limits: PaceLimits, waits_for_continue: bool) -> Self {
        let body = (!body.is_end_stream()).then_some(body);
        Self { body, pace: Pace::new(limits), is_wanted: false, waits_for_continue }
    }

    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        match Pin::new(body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                Poll::Ready(Some(self.pace.moved(bytes).map(|()| frame).map_err(axum::Error::new)))
            }
            Poll::Ready(end) => {
                self.body = None;
                Poll::Ready(end)
            }
            Poll::Pending => self.pace.poll_waiting(context).map(|slow| {
                if matches!(slow, TooSlow::Idle(_)) {
                    // It has stopped: there is nothing to drain.
                    self.body = None;
                }
                Some(Err(axum::Error::new(slow)))
            }),
        }
    }
}

impl HttpBody for GuardedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.is_wanted = true;
        self.poll_body(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for GuardedBody {
    fn drop(&mut self) {
        // A client that waits for `100 Continue` sends nothing once it has the answer.
        let is_coming = self.is_wanted || !self.waits_for_continue;
        if let Some(body) = self.body.take().filter(|_| is_coming)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(tokio::time::timeout(DRAIN_TIME, drain(body)));
        }
    }
}

async fn drain(mut body: Body) {
    let mut drained = 0;
    while let Some(Ok(frame)) = body.frame().await {
        drained += frame.data_ref().map_or(0, Bytes::len);
        if drained > DRAIN_BYTES {
            return;
        }
    }
}

/// Whether the client was too slow, somewhere in the causes of an error.
pub(super) fn too_slow(error: &(dyn Error + 'static)) -> Option<TooSlow> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(too_slow) = error.downcast_ref::<TooSlow>() {
            return Some(*too_slow);
        }
        cause = error.source();
    }
    None
}
