//! Limits for everything in a body except the content of its parts.

use super::error::MultipartError;

/// Limits of one body. The content of parts has no limit here, because the parser never keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyLimits {
    /// Bytes before the first boundary.
    pub preamble_bytes: usize,
    /// Bytes of one part's headers, from the line end of its boundary to the empty line. The blanks before that line
    /// end have the same limit.
    pub header_bytes: usize,
    /// Headers of one part.
    pub headers: usize,
    /// Parts.
    pub parts: usize,
    /// Bytes after the closing boundary.
    pub epilogue_bytes: usize,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self {
            preamble_bytes: 8 * 1024,
            header_bytes: 16 * 1024,
            headers: 32,
            parts: 16,
            epilogue_bytes: 8 * 1024,
        }
    }
}

/// Adds `more` to a count, and returns an error if the sum exceeds its limit. `what` completes "the multipart body
/// has".
pub(super) fn bounded(
    so_far: usize,
    more: usize,
    limit: usize,
    what: &'static str,
) -> Result<usize, MultipartError> {
    let sum = so_far.saturating_add(more);
    if sum > limit {
        return Err(MultipartError::TooMuch { what, limit });
    }
    Ok(sum)
}
