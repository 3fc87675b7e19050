//! `multipart/form-data` (RFC 7578, RFC 2046) read as it arrives: no I/O, no copies of bodies, everything bounded.
//!
//! Push chunks of the request body into a [`Parser`], take [`Event`]s out of it until there is none, and call
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
pub use limits::Limits;
pub use parser::{Event, Parser};
