//! Request bodies: limits how slowly they may come, and reads on for a while after a refusal.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::{CONNECTION, EXPECT};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};

use super::head_timer::Receiving;
use super::linger::{self, Remains};
use super::pace::{Pace, PaceLimits, TooSlow};
use cloakroom_storage::turns::Turn;

/// Wraps the body of every request in a [`GuardedBody`]. If the client was not told to send its body, and may do so, the
/// connection ends after the answer.
pub(super) async fn guard(State(limits): State<PaceLimits>, mut request: Request, next: Next) -> Response {
    let waits_for_continue = request.headers().contains_key(EXPECT);
    let connection = request.extensions_mut().remove::<OfConnection>().unwrap_or_default();
    let remains = connection.remains.clone();
    let guarded = |body| GuardedBody::new(body, limits, waits_for_continue, connection);
    let mut response = next.run(request.map(|body| Body::new(guarded(body)))).await;
    if remains.is_there() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// What a connection has to do with the body of its request.
#[derive(Clone, Default)]
pub(super) struct OfConnection {
    /// The client's turn, which ends when the handler first reads the body.
    pub(super) turn: Option<Arc<Turn>>,
    /// What is left of the body when the request has its answer.
    pub(super) remains: Remains,
    /// Held while the body is read.
    pub(super) _receiving: Option<Arc<Receiving>>,
}

/// A request body that ends with [`TooSlow`] if its client is too slow. If it is dropped before its end, it reads on
/// for a while.
struct GuardedBody {
    body: Option<Body>,
    pace: Pace,
    is_wanted: bool,
    waits_for_continue: bool,
    connection: OfConnection,
}

impl GuardedBody {
    fn new(body: Body, limits: PaceLimits, waits_for_continue: bool, connection: OfConnection) -> Self {
        let body = (!body.is_end_stream()).then_some(body);
        Self { body, pace: Pace::new(limits), is_wanted: false, waits_for_continue, connection }
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
        if let Some(turn) = self.connection.turn.take() {
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

/// Reads on for a while, so that clients that look for an answer only when they have sent everything, such as OkHttp, can
/// go on with this connection. A body that takes longer ends the connection: [`linger`].
impl Drop for GuardedBody {
    fn drop(&mut self) {
        let Some(body) = self.body.take() else { return };
        self.connection.turn = None;
        // hyper tells a client that waits to go on as soon as its body is read.
        if self.waits_for_continue && !self.is_wanted {
            self.connection.remains.may_come();
        } else if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(drain(body, std::mem::take(&mut self.connection)));
        }
    }
}

async fn drain(mut body: Body, connection: OfConnection) {
    if let Ok(false) | Err(_) = tokio::time::timeout(linger::SHORT_TIME, reach_end(&mut body)).await {
        // It is told before the body is dropped, because then the connection ends.
        connection.remains.goes_on();
    }
}

/// Reads a body of up to [`linger::SHORT_BYTES`]. Returns whether it has ended.
async fn reach_end(body: &mut Body) -> bool {
    let mut drained = 0;
    while let Some(Ok(frame)) = body.frame().await {
        drained += frame.data_ref().map_or(0, Bytes::len) as u64;
        if drained > linger::SHORT_BYTES {
            return false;
        }
    }
    true
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
    use std::time::Duration;

    use super::*;
    use cloakroom_core::client::Client;
    use cloakroom_storage::turns::Turns;

    #[tokio::test]
    async fn a_turn_is_over_when_the_body_is_asked_for() {
        let turns = Turns::new(1);
        let turn = Arc::new(turns.take(Client::Host(IpAddr::from([10, 0, 0, 1]).into())).await);
        let second = Duration::from_secs(1);
        let limits = PaceLimits { idle_timeout: second, min_rate: 0, rate_window: second };
        let mut body = GuardedBody::new(
            Body::from("jars"),
            limits,
            false,
            OfConnection { turn: Some(Arc::clone(&turn)), ..OfConnection::default() },
        );
        assert_eq!(turns.count(), 1);
        body.frame().await.unwrap().unwrap();
        assert_eq!(turns.count(), 0);
    }
}
