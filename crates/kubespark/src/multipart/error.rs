//! The errors of a multipart body, in words for the client that sent it.

use thiserror::Error;

/// A body or a `Content-Type` that is not acceptable `multipart/form-data`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MultipartError {
    /// The request has another `Content-Type`.
    #[error(
        "the request's Content-Type is `{found}`, and multipart/form-data is needed; \
         send the parts as a form, as `curl -F` does"
    )]
    NotMultipart {
        /// The media type that was sent, without its parameters.
        found: String,
    },
    /// The request's `Content-Type` cannot be read.
    #[error("the request's Content-Type cannot be read: its parameters {problem}")]
    MalformedContentType {
        /// What is wrong with the parameters.
        problem: &'static str,
    },
    /// The request's `Content-Type` names no boundary.
    #[error(
        "the request's Content-Type has no boundary parameter, so its parts cannot be told apart; \
         let the HTTP library write this header"
    )]
    NoBoundary,
    /// The boundary does not follow RFC 2046 §5.1.1.
    #[error(
        "the boundary in the request's Content-Type {problem}; \
         use 1 to 70 letters, digits and characters of '()+_,-./:=? (RFC 2046 section 5.1.1)"
    )]
    BadBoundary {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There is too much of something.
    #[error("the multipart body has {what}; at most {limit} are accepted")]
    TooMuch {
        /// What there is too much of, as in "has too many bytes before its first part".
        what: &'static str,
        /// The limit, in the unit that `what` names.
        limit: usize,
    },
    /// Something other than the end of the line follows a delimiter.
    #[error(
        "a boundary of the multipart body is not alone on its line; \
         end the line with CR LF, and choose a boundary that is nowhere in the content"
    )]
    MalformedDelimiter,
    /// The headers of a part cannot be read.
    #[error("the headers of part {part} of the multipart body cannot be read: {problem}")]
    MalformedHeaders {
        /// The part, counted from 1.
        part: usize,
        /// What is wrong with them.
        problem: &'static str,
    },
    /// The body ended too early: the connection broke, or the client failed.
    #[error(
        "the multipart body ended {place}, before its closing boundary; \
         the upload is incomplete, so send it again"
    )]
    Truncated {
        /// Where it ended, as in "inside the content of a part".
        place: &'static str,
    },
}
