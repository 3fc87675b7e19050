//! Request bodies: limits how slowly they may come, and reads on for a while after a refusal.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
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
use super::turns::Turn;

/// How long the rest of a refused body is read. Clients like OkHttp look for an answer only when they have sent
/// everything. Without this they would get a broken pipe instead of the answer.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// How many bytes of a refused body are read at most: on a fast network, two seconds bring many bytes.
const DRAIN_BYTES: usize = 256 << 20;

/// Wraps the body of every request in a [`GuardedBody`].
pub(super) async fn guard(State(limits): State<PaceLimits>, mut request: Request, next: Next) -> Response {
    let waits_for_continue = request.headers().contains_key(EXPECT);
    let turn = request.extensions_mut().remove::<Arc<Turn>>();
    let guarded = |body| GuardedBody::new(body, limits, waits_for_continue, turn);
    next.run(request.map(|body| Body::new(guarded(body)))).await
}

/// A request body that ends with [`TooSlow`] if its client is too slow. If it is dropped before its end, it reads on
/// for a while.
struct GuardedBody {
    body: Option<Body>,
    pace: Pace,
    is_wanted: bool,
    waits_for_continue: bool,
    /// The client's turn, which ends when the handler first reads the body.
    turn: Option<Arc<Turn>>,
}

impl GuardedBody {
    fn new(body: Body, limits: PaceLimits, waits_for_continue: bool, turn: Option<Arc<Turn>>) -> Self {
        let body = (!body.is_end_stream()).then_some(body);
        Self { body, pace: Pace::new(limits), is_wanted: false, waits_for_continue, turn }
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
                if matches!(slow, TooSlow::Idle { .. }) {
                    // The client has stopped sending, so there is nothing to drain.
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
        if let Some(turn) = self.turn.take() {
            turn.end();
        }
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
        // A client that waits for `100 Continue` sends no body after it got the answer.
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

/// Finds a [`TooSlow`] among the causes of an error.
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

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::http::turns::Turns;

    #[tokio::test]
    async fn a_turn_is_over_when_the_body_is_asked_for() {
        let turns = Turns::default();
        let turn = Arc::new(turns.take(IpAddr::from([10, 0, 0, 1]).into()).await);
        let second = Duration::from_secs(1);
        let limits = PaceLimits { idle_timeout: second, min_rate: 0, rate_window: second };
        let mut body = GuardedBody::new(Body::from("jars"), limits, false, Some(Arc::clone(&turn)));
        assert_eq!(turns.count(), 1);
        body.frame().await.unwrap().unwrap();
        assert_eq!(turns.count(), 0);
    }
}
