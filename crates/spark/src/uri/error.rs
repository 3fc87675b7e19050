//! The reasons why a text is not the URI of a dependency.

use cloakroom_core::text::escaped;
use thiserror::Error;

/// The text is not the URI of a dependency. Messages show URIs without user information, query and fragment.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UriError {
    /// The text is empty.
    #[error("a path or a URI is missing; write one, such as /opt/app.jar or https://host/app.jar")]
    Empty,
    /// The text is a path of Windows, such as `C:\\libs\\a.jar`.
    #[error("`{}` is a path of Windows, and this program runs on Linux: write where the file is here", escaped(.path))]
    OfWindows { path: String },
    /// The text is only a scheme.
    #[error("`{}` names no path; write one behind the scheme, such as {scheme}:///opt/app.jar", escaped(.uri))]
    NoPath { uri: String, scheme: String },
    /// The URI is like `local://opt/app.jar`, in which the two slashes make the first folder a host.
    #[error(
        "`{}` names the host `{host}`, and a path on another machine cannot be read; \
         write three slashes, {scheme}:///{host}…, if `{host}` is the first folder of the path",
        escaped(.uri), host = escaped(.host)
    )]
    HostInPath { uri: String, scheme: String, host: String },
    /// The URI is an `http:` URI without a host.
    #[error("`{}` names no host; write one, such as {scheme}://host/app.jar", escaped(.uri))]
    NoHost { uri: String, scheme: String },
    /// The path has a NUL, which no file name can have.
    #[error(
        "the path of `{}` has a NUL character in it, which no file name has; remove it or its %00",
        escaped(.uri)
    )]
    NulInPath { uri: String },
    /// The last segment of the URI cannot be a file name.
    #[error(
        "`{}` gives no usable file name: its last path segment {problem}; \
         use a URI that ends in the name of a file, such as https://host/app.jar",
        escaped(.uri)
    )]
    FileName { uri: String, problem: &'static str },
}
