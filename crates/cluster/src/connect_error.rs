//! Why the API server cannot be called. These errors are found in files, before anything is sent.

use std::path::PathBuf;

use cloakroom_outbound::proxies::ProxyError;

/// A configuration with which the API server cannot be called. Messages name the setting and the file, and never show
/// what the file contains.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The server runs in a pod and has no service account.
    #[error(
        "this runs in a pod that has no service account ({path} is missing): mount one \
         (automountServiceAccountToken: true), give a kubeconfig with --kubeconfig, or do without the owners in the \
         cluster with --no-kubernetes", path = .path.display()
    )]
    NoServiceAccount { path: PathBuf },
    /// The properties give no credential, and no service account provides one.
    #[error(
        "there are no credentials for the API server: {account} is true, as it is by default, and {path} is missing; \
         give {token_file} or a client certificate, or set it to false to connect without credentials",
        path = .path.display()
    )]
    NothingToShow { path: PathBuf, account: String, token_file: String },
    /// The text is not an address of an API server.
    #[error("{setting} is not the address of an API server: {why}; write https://HOST:PORT")]
    Address { setting: String, why: String },
    /// The text is not an address of a proxy.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// A credential plugin cannot be used, or gave no credential.
    #[error("{plugin} {problem}")]
    Plugin {
        plugin: String,
        /// The fault, as the end of a sentence that begins with the plugin. Of the plugin's output it shows stderr alone.
        problem: String,
    },
    /// A secret would travel unencrypted over the network.
    #[error(
        "{address} is neither https nor on this machine, so {setting} would travel in clear: use https, or leave the \
         credentials out"
    )]
    SecretInClear { address: String, setting: String },
    /// A secret would go to a server that proves no identity.
    #[error(
        "{setting} is true, and is not followed, because the credentials could go to another server in the API \
         server's place: name the API server's CA with {ca} instead"
    )]
    TrustsAnybody { setting: String, ca: String },
    /// A file cannot be read.
    #[error("cannot read {path} ({setting})", path = .path.display())]
    Unreadable {
        path: PathBuf,
        setting: String,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// A file, or data in a kubeconfig, has the wrong content.
    #[error("{place} {problem}")]
    Content {
        place: String,
        /// What is wrong, as the end of a sentence that begins with the place.
        problem: String,
    },
    /// A kubeconfig lacks something, or contains something that is not supported.
    #[error("the kubeconfig {path}: {problem}", path = .path.display())]
    Kubeconfig {
        /// The path of the file, or all paths in the form of `KUBECONFIG`.
        path: PathBuf,
        problem: String,
    },
    /// The address in the files changed while the server was running.
    #[error("they name another API server now, {new} in place of {old}: restart this server to use that one")]
    Moved { old: String, new: String },
    /// The HTTP client cannot be built from files that were read without error.
    #[error("cannot set up a client for the API server {address}: {why}")]
    Setup { address: String, why: String },
}
