//! Reads `multipart/form-data` (RFC 7578, RFC 2046) as it arrives, with bounded memory, without I/O and without copies
//! of content.
//!
//! Push each chunk of the request body into a [`Parser`]. Then take [`BodyEvent`]s out until there is none. Call
//! [`Parser::finish`] when the body has ended.

mod boundary;
mod error;
mod headers;
mod limits;
mod parameters;
mod parser;
mod scanner;
#[cfg(test)]
mod tests;

pub use boundary::{Boundary, boundary_of};
pub use error::MultipartError;
pub use headers::PartHeaders;
pub use limits::BodyLimits;
pub use parser::{BodyEvent, Parser};
