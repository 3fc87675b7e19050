//! Why there is no way to ask the API server: found out from files, before anything is sent.

use std::path::PathBuf;

/// A configuration by which the API server cannot be asked. Messages name the setting and the file, and never show
/// what is in it.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// In a pod, without a service account.
    #[error(
        "this runs in a pod, and no service account is mounted in it ({path} is missing): let it be mounted \
         (automountServiceAccountToken: true), give a kubeconfig with --kubeconfig, or say with --no-kubernetes that \
         owners are not to be watched", path = .path.display()
    )]
    NoServiceAccount {
        /// Where its token should be.
        path: PathBuf,
    },
    /// Properties without a credential, and no service account to fill it in.
    #[error(
        "there is nothing to show to the API server: {account} is true, as it is by default, and {path} is missing; \
         give {token_file} or a client certificate, or set it to false to ask without credentials",
        path = .path.display()
    )]
    NothingToShow {
        /// Where the service account's token should be.
        path: PathBuf,
        /// The setting that asks for the service account.
        account: String,
        /// The setting that would name a token's file.
        token_file: String,
    },
    /// An address that is none.
    #[error("{setting} is not the address of an API server: {why}; write https://HOST:PORT")]
    Address {
        /// What gives it.
        setting: String,
        /// What is wrong with it.
        why: String,
    },
    /// A secret would be sent where others can read it.
    #[error(
        "{address} is neither https nor on this machine, so {setting} would travel in clear: use https, or leave the \
         credentials out"
    )]
    SecretInClear {
        /// The address.
        address: String,
        /// What gives the secret.
        setting: String,
    },
    /// A secret would be sent to whoever answers.
    #[error(
        "{setting} is true, so that the credentials would go to whoever answers in the API server's place, and is not \
         followed: name the API server's CA with {ca} instead"
    )]
    TrustsAnybody {
        /// What is true.
        setting: String,
        /// The setting to give in its place.
        ca: String,
    },
    /// A file that cannot be read.
    #[error("cannot read {path} ({setting})", path = .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What names it.
        setting: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file, or data in a kubeconfig, that is not what it should be.
    #[error("{place} {problem}")]
    Content {
        /// The file with what names it, or the setting that has the data itself.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// A kubeconfig that does not say what is needed.
    #[error("the kubeconfig {path}: {problem}", path = .path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The address changed under a running server.
    #[error(
        "they lead to another API server now, {new} in place of {old}: a restart is needed to follow them"
    )]
    Moved {
        /// The address so far.
        old: String,
        /// The address that was read.
        new: String,
    },
    /// The client cannot be built.
    #[error("cannot set up a client for the API server {address}: {why}")]
    Setup {
        /// The address.
        address: String,
        /// Why.
        why: String,
    },
}
