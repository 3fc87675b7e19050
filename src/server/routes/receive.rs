//! Bodies of uploads, frame by frame, in both protocols.

use std::error::Error;
use std::mem;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body_util::BodyExt as _;
use tokio::time::sleep;

use crate::protocol::problem::Code;
use crate::server::body::too_slow;
use crate::server::error::ApiError;
use crate::staging::Upload;
use crate::telemetry::chain;

/// A frame costs some five microseconds of the processor, however small it is. So many frames that are smaller than
/// [`TINY_FRAME`] on average are followed by a rest: then one upload takes less than a fiftieth of a processor for them.
const FRAMES: usize = 64;
const TINY_FRAME: usize = 256;
const REST: Duration = Duration::from_millis(20);

/// A body that is being received.
pub(super) struct Receiver {
    body: Body,
    /// Since the last rest was due.
    frames: usize,
    bytes: usize,
}

impl Receiver {
    pub(super) fn new(body: Body) -> Self {
        Self { body, frames: 0, bytes: 0 }
    }

    /// What comes next; `None` at the end. An error where the body breaks off, or the upload is ended.
    pub(super) async fn next(&mut self, mut upload: Option<&mut Upload>) -> Result<Option<Bytes>, ApiError> {
        let ended = async {
            match &mut upload {
                Some(upload) => upload.ended().await,
                None => std::future::pending().await,
            }
        };
        let frame = tokio::select! {
            biased;
            ended = ended => return Err(ended.into()),
            frame = self.body.frame() => frame,
        };
        let Some(frame) = frame else { return Ok(None) };
        let received = || upload.map_or(0, |upload| upload.received_bytes());
        let frame = frame.map_err(|error| receive_error(&error, received()))?;
        // Trailers say nothing here.
        let bytes = frame.into_data().unwrap_or_default();
        if self.is_rest_due(bytes.len()) {
            sleep(REST).await;
        }
        Ok(Some(bytes))
    }

    /// Whether enough frames were tiny, with the one of this length.
    fn is_rest_due(&mut self, length: usize) -> bool {
        (self.frames, self.bytes) = (self.frames + 1, self.bytes + length);
        if self.frames < FRAMES {
            return false;
        }
        let (frames, bytes) = (mem::take(&mut self.frames), mem::take(&mut self.bytes));
        bytes < frames * TINY_FRAME
    }
}

/// Why a body ended too early.
fn receive_error(error: &(dyn Error + 'static), received: u64) -> ApiError {
    if let Some(slow) = too_slow(error) {
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

    fn rests(frames: usize, size: usize) -> usize {
        let mut receiver = Receiver::new(Body::empty());
        (0..frames).filter(|_| receiver.is_rest_due(size)).count()
    }

    #[test]
    fn frames_that_only_keep_the_processor_busy_are_followed_by_rests() {
        assert_eq!(rests(10 * FRAMES, 1), 10);
        assert_eq!(rests(FRAMES - 1, 1), 0);
        assert_eq!(rests(10 * FRAMES, TINY_FRAME - 1), 10);
        assert_eq!(rests(10 * FRAMES, TINY_FRAME), 0);
    }
}
