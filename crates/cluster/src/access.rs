//! Where the API server is, and who asks it: one of three ways, each read from files as a whole.

mod credentials;
mod kubeconfig;
mod properties;
mod submission;

use std::fmt;
use std::path::{Path, PathBuf};

use kube::Config;

use super::address::Address;
use super::connect_error::ConnectError;
use super::files::Files;
use super::identity;
use cloakroom_core::reload::Seen;

pub use credentials::{Credentials, Given, TokenSource};
pub use submission::SubmissionAccess;

/// Where Kubernetes mounts a pod's service account.
pub const SERVICE_ACCOUNT_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// How the API server is reached. Nothing in it was read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// From a pod, with the service account that is mounted in it.
    ServiceAccount {
        /// The cluster's own address, as the environment of a pod has it.
        url: String,
        /// The folder with `token` and `ca.crt`, [`SERVICE_ACCOUNT_FOLDER`] outside of tests.
        folder: PathBuf,
    },
    /// As the original's properties file says.
    Properties(Box<PropertiesAccess>),
    /// As a kubeconfig says.
    Kubeconfig {
        /// The files, merged as kubectl merges them.
        paths: Vec<PathBuf>,
        /// One of their contexts; without one the current context.
        context: Option<String>,
        /// What names the files, for messages.
        setting: String,
    },
    /// As a submission's settings say.
    Submission(Box<SubmissionAccess>),
}

/// How a server reaches the API server that a properties file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertiesAccess {
    /// The address that the file gives, or else the cluster's own.
    pub url: Given<String>,
    /// What the file gives.
    pub credentials: Credentials,
    /// The service account's folder, which fills in what the credentials leave out, if the setting says so.
    pub account: Option<Given<PathBuf>>,
    /// The setting that would name a token's file, for messages.
    pub token_file_setting: String,
}

impl Access {
    /// Reads and checks every file that it takes.
    pub(super) fn read(&self) -> Result<Reading, ConnectError> {
        match self {
            Self::ServiceAccount { url, folder } => service_account(url, folder),
            Self::Properties(access) => properties::read(access),
            Self::Kubeconfig { paths, context, setting } => {
                kubeconfig::read(paths, context.as_deref(), setting)
            }
            Self::Submission(access) => submission::read(access),
        }
    }
}

/// Who asks, for people: `the pod's service account`.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServiceAccount { .. } => f.write_str("the pod's service account"),
            Self::Properties(_) => f.write_str("the properties file says"),
            Self::Kubeconfig { paths, context: None, .. } => {
                write!(f, "the current context of {} says", joined(paths))
            }
            Self::Kubeconfig { paths, context: Some(context), .. } => {
                write!(f, "the context “{context}” of {} says", joined(paths))
            }
            Self::Submission(access) => access.fmt(f),
        }
    }
}

fn joined(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// What one reading of all files came to.
pub(super) struct Reading {
    /// For the client that is made of it.
    pub(super) config: Config,
    /// The address, as it may be shown.
    pub(super) address: String,
    /// The files that were read, and how they looked.
    pub(super) seen: Seen,
    /// The credential plugin that is run, if there is one.
    pub(super) plugin: Option<String>,
}

impl Reading {
    /// Checks that a secret travels where nobody can read it.
    fn new(
        address: &Address,
        mut config: Config,
        files: Files,
        secret: Option<&str>,
    ) -> Result<Self, ConnectError> {
        if let Some(setting) = secret.filter(|_| !address.is_confidential()) {
            return Err(ConnectError::SecretInClear {
                setting: setting.to_owned(),
                address: address.to_string(),
            });
        }
        if !address.is_https() {
            // No certificate will be checked: the system's roots, which may be missing, are not needed.
            config.root_cert = Some(Vec::new());
        }
        Ok(Self { config, address: address.to_string(), seen: files.into_seen(), plugin: None })
    }
}

/// What stands for the file's name in messages about the mounted service account.
const SERVICE_ACCOUNT: &str = "the mounted service account";

fn service_account(url: &str, folder: &Path) -> Result<Reading, ConnectError> {
    let address = Address::parse(url, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT")?;
    let mut files = Files::default();
    let token_file = folder.join("token");
    if !token_file.exists() {
        return Err(ConnectError::NoServiceAccount { path: token_file });
    }
    let token = files.token(&token_file, SERVICE_ACCOUNT)?;
    let roots = files.read(&folder.join("ca.crt"), SERVICE_ACCOUNT)?;
    let mut config = Config::new(address.uri());
    config.root_cert = Some(identity::roots(&roots)?);
    config.auth_info.token = Some(token.into());
    Reading::new(&address, config, files, Some(SERVICE_ACCOUNT))
}
