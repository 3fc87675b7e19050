//! Where the API server is, and which credentials it is shown. There are four ways; each reads all of its files at
//! once.

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
use super::identity::{self, ClientCertificate, ClientIdentity};
use super::plugin::Plugin;
use cloakroom_core::reload::Seen;
use cloakroom_outbound::proxies::{Proxies, Proxy};

pub use credentials::{Basic, ContentSource, Credentials, Given, Impersonation};
pub use kubeconfig::KubeconfigContext;
pub use submission::SubmissionAccess;

/// The folder in which Kubernetes mounts a pod's service account.
pub const SERVICE_ACCOUNT_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// How the API server is reached. The files are named here and not read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// In a pod: with the service account that is mounted in it.
    ServiceAccount {
        /// The cluster's own address, from the pod's environment.
        url: String,
        /// The folder with `token` and `ca.crt`; [`SERVICE_ACCOUNT_FOLDER`] outside of tests.
        folder: PathBuf,
    },
    /// With the settings in kubespark's properties file.
    Properties(Box<PropertiesAccess>),
    Kubeconfig {
        /// The kubeconfig's files, merged as kubectl merges them.
        paths: Vec<PathBuf>,
        /// The context to use; `None` is the current context.
        context: Option<String>,
        /// The flag or variable that names the files, for messages.
        setting: String,
        /// The proxies of the environment, for a cluster that names none.
        proxies: Proxies,
    },
    /// With the settings of a submission.
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
    /// Reads and checks all files of this way.
    pub(super) fn read(&self) -> Result<Reading, ConnectError> {
        match self {
            Self::ServiceAccount { url, folder } => service_account(url, folder),
            Self::Properties(access) => properties::read(access),
            Self::Kubeconfig { paths, context, setting, proxies } => {
                kubeconfig::read(paths, context.as_deref(), setting, proxies)
            }
            Self::Submission(access) => submission::read(access),
        }
    }
}

/// Names the source of the credentials, for people: `the pod's service account`.
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

/// The result of reading all files.
pub(super) struct Reading {
    /// The address, the roots to trust, and the headers to send.
    pub(super) config: Config,
    pub(super) certificate: Option<ClientCertificate>,
    /// The program to ask for a token or a certificate.
    pub(super) plugin: Option<Plugin>,
    pub(super) proxy: Option<Proxy>,
    /// The address without credentials, fit to be shown.
    pub(super) address: String,
    /// The namespace of the kubeconfig's context. Submissions do not follow it, as in Spark.
    pub(super) context_namespace: Option<String>,
    /// The files that were read, with the stamps that they had.
    pub(super) seen: Seen,
}

impl Reading {
    /// Refuses a secret if others could read it on the way. Without `roots` the system's are trusted.
    fn new(
        address: &Address,
        roots: Option<Vec<Vec<u8>>>,
        identity: ClientIdentity,
        proxy: Option<Proxy>,
        files: Files,
    ) -> Result<Self, ConnectError> {
        let ClientIdentity { auth, certificate, plugin, secret } = identity;
        let is_confidential = address.is_https() || address.is_loopback() && proxy.is_none();
        if let Some(setting) = secret.filter(|_| !is_confidential) {
            return Err(ConnectError::SecretInClear { setting, address: address.to_string() });
        }
        let mut config = Config::new(address.uri());
        config.auth_info = auth;
        // Without TLS no certificate is checked, and the system's roots may be missing.
        config.root_cert = if address.is_https() { roots } else { Some(Vec::new()) };
        let (address, seen) = (address.to_string(), files.into_seen());
        Ok(Self { config, certificate, plugin, proxy, address, context_namespace: None, seen })
    }
}

/// Stands in messages for the setting that names a file of the mounted service account.
const SERVICE_ACCOUNT: &str = "the mounted service account";

fn service_account(url: &str, folder: &Path) -> Result<Reading, ConnectError> {
    let address = Address::parse(url, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT")?;
    let mut files = Files::default();
    let token_file = folder.join("token");
    if !token_file.exists() {
        return Err(ConnectError::NoServiceAccount { path: token_file });
    }
    let mut identity =
        ClientIdentity { secret: Some(SERVICE_ACCOUNT.to_owned()), ..ClientIdentity::default() };
    identity.auth.token = Some(files.token(&token_file, SERVICE_ACCOUNT)?.into());
    let roots = identity::roots(&files.read(&folder.join("ca.crt"), SERVICE_ACCOUNT)?)?;
    Reading::new(&address, Some(roots), identity, None, files)
}
