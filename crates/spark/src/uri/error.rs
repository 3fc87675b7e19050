//! What can be wrong with the URI of a dependency.

use cloakroom_core::text::escaped;
use thiserror::Error;

/// A text that is not the URI of a dependency. URIs are shown without user information, query and fragment.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UriError {
    /// Nothing there.
    #[error("the URI of a dependency is empty; write a path or a URI such as https://host/app.jar")]
    Empty,
    /// A scheme and nothing behind it.
    #[error("`{}` names no path; write one behind the scheme, such as {scheme}:///opt/app.jar", escaped(.uri))]
    NoPath {
        /// The URI.
        uri: String,
        /// Its scheme.
        scheme: String,
    },
    /// `local://opt/app.jar`, where two slashes make the first folder a host.
    #[error(
        "`{}` names the host `{host}`, and a path on another machine cannot be read; \
         write three slashes, {scheme}:///{host}…, if `{host}` is the first folder of the path",
        escaped(.uri), host = escaped(.host)
    )]
    HostInPath {
        /// The URI.
        uri: String,
        /// Its scheme.
        scheme: String,
        /// What stands where a host stands.
        host: String,
    },
    /// An `http:` URI that does not say where.
    #[error("`{}` names no host; write one, such as {scheme}://host/app.jar", escaped(.uri))]
    NoHost {
        /// The URI.
        uri: String,
        /// Its scheme.
        scheme: String,
    },
    /// A path with a NUL, which no file can have.
    #[error(
        "the path of `{}` has a NUL character in it, which no file name has; remove it or its %00",
        escaped(.uri)
    )]
    NulInPath {
        /// The URI.
        uri: String,
    },
    /// A URI whose last segment cannot be the name of a file.
    #[error(
        "`{}` gives no usable file name: its last path segment {problem}; \
         use a URI that ends in the name of a file, such as https://host/app.jar",
        escaped(.uri)
    )]
    FileName {
        /// The URI.
        uri: String,
        /// What is wrong with the last path segment.
        problem: &'static str,
    },
}
