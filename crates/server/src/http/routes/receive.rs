//! Receives the bodies of uploads, frame by frame, in v0 and v1.

use std::error::Error;
use std::mem;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::HeaderMap;
use http_body_util::BodyExt as _;
use tokio::time::sleep;

use crate::http::body::too_slow;
use crate::http::error::ApiError;
use crate::http::state::Settings;
use cloakroom_core::protocol::FORWARDED_URI;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::size::format_size;
use cloakroom_core::text::chain;

/// Each frame costs about five microseconds of the processor, however small it is. After [`FRAMES`] frames of less than
/// [`TINY`] bytes, the receiver rests, unless the body brought [`ENOUGH`] bytes meanwhile. So tiny frames of one upload
/// take less than a fiftieth of a processor.
const FRAMES: usize = 64;
const TINY: usize = 256;
const ENOUGH: usize = 1 << 20;
const REST: Duration = Duration::from_millis(20);

/// A body that is being received.
pub(super) struct Receiver {
    body: Body,
    /// How many bytes may still come.
    room: Option<ProxiedRoom>,
    /// Tiny frames, and bytes of all frames, since the last count of [`FRAMES`] tiny ones.
    tiny: usize,
    bytes: usize,
}

impl Receiver {
    /// Refuses a body that is announced as too large for its way. If it turns out to be too large, it is refused in the
    /// middle.
    pub(super) fn new(body: Body, headers: &HeaderMap, settings: &Settings) -> Result<Self, ApiError> {
        let room = ProxiedRoom::read(headers, settings);
        if let Some(room) = &room {
            room.check(body.size_hint().lower())?;
        }
        Ok(Self { body, room, tiny: 0, bytes: 0 })
    }

    /// The next bytes, after so many that the upload has `received`; `None` at the end. It is an error if the body breaks off.
    pub(super) async fn next(&mut self, received: u64) -> Result<Option<Bytes>, ApiError> {
        let Some(frame) = self.body.frame().await else { return Ok(None) };
        let frame = frame.map_err(|error| receive_error(&error, received))?;
        // Trailers have no meaning here, so a trailer counts as no bytes.
        let bytes = frame.into_data().unwrap_or_default();
        if let Some(room) = &mut self.room {
            room.take(bytes.len() as u64)?;
        }
        if self.is_rest_due(bytes.len()) {
            sleep(REST).await;
        }
        Ok(Some(bytes))
    }

    /// Counts a frame of this length, and returns whether too many frames were tiny.
    fn is_rest_due(&mut self, length: usize) -> bool {
        self.bytes += length;
        self.tiny += usize::from(length < TINY);
        if self.tiny < FRAMES {
            return false;
        }
        self.tiny = 0;
        mem::take(&mut self.bytes) < ENOUGH
    }
}

/// The room of a body that comes through Kubernetes' API server, whose other users should not notice it.
struct ProxiedRoom {
    most: u64,
    left: u64,
}

impl ProxiedRoom {
    /// `None` for a body that comes another way.
    fn read(headers: &HeaderMap, settings: &Settings) -> Option<Self> {
        is_proxied(headers)
            .then_some(Self { most: settings.max_proxied_size, left: settings.max_proxied_size })
    }

    fn check(&self, bytes: u64) -> Result<(), ApiError> {
        if bytes <= self.left {
            return Ok(());
        }
        let most = format_size(self.most);
        Err(ApiError::new(
            Code::TooLarge,
            format!(
                "a bundle that comes through the API server has at most {most} (--max-proxied-size): send it to an address of \
                 this server"
            ),
        ))
    }

    fn take(&mut self, bytes: u64) -> Result<(), ApiError> {
        self.check(bytes)?;
        self.left -= bytes;
        Ok(())
    }
}

/// Whether a request comes through Kubernetes' API server, which replaces this header if a client sends it, unless the client asks
/// for another protocol (`Connection: Upgrade`).
pub(super) fn is_proxied(headers: &HeaderMap) -> bool {
    let uri = headers.get(FORWARDED_URI).and_then(|uri| uri.to_str().ok());
    uri.is_some_and(|uri| uri.starts_with("/api/v1/namespaces/") && uri.contains("/proxy/"))
}

/// The error for a body that ended too early.
fn receive_error(error: &(dyn Error + 'static), received: u64) -> ApiError {
    if let Some(slow) = too_slow(error) {
        if slow.is_after_standstill() {
            tracing::warn!(received, reason = %slow, "an upload was too slow");
        } else {
            tracing::info!(received, reason = %slow, "an upload was too slow");
        }
        return ApiError::too_slow(format!("the upload was given up after {received} bytes: {slow}"));
    }
    tracing::info!(received, error = %chain(error), "an upload broke off");
    ApiError::new(
        Code::IncompleteBody,
        format!("the body broke off after {received} bytes: nothing was kept; send it again"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many rests there are in this number of frames, which have these lengths in turn.
    fn rests(frames: usize, lengths: &[usize]) -> usize {
        let mut receiver = Receiver { body: Body::empty(), room: None, tiny: 0, bytes: 0 };
        lengths.iter().cycle().take(frames).filter(|length| receiver.is_rest_due(**length)).count()
    }

    #[test]
    fn frames_that_only_keep_the_processor_busy_are_followed_by_rests() {
        assert_eq!(rests(10 * FRAMES, &[1]), 10);
        assert_eq!(rests(FRAMES - 1, &[1]), 0);
        assert_eq!(rests(10 * FRAMES, &[TINY - 1]), 10);
        assert_eq!(rests(10 * FRAMES, &[TINY]), 0);
    }

    #[test]
    fn tiny_frames_between_others_count_unless_they_are_a_small_part() {
        assert_eq!(rests(20 * FRAMES, &[1, 8 << 10]), 10);
        assert_eq!(rests(20 * FRAMES, &[1, 17 << 10]), 0);
    }
}
