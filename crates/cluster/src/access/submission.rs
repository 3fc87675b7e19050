//! Access with the settings of a submission. The address is always the master's. The kubeconfig provides what the
//! settings leave out; without a kubeconfig the mounted service account does. This is the order of fabric8's client,
//! which Spark uses.

use std::fmt;
use std::path::PathBuf;

use super::kubeconfig::{self, Surroundings};
use super::{Credentials, Given, Reading, SERVICE_ACCOUNT, joined};
use crate::address::Address;
use crate::connect_error::ConnectError;
use crate::files::Files;
use crate::identity;
use cloakroom_outbound::proxies::Proxies;

/// How a submitter reaches the API server. The files are named here and not read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionAccess {
    /// The URL of the master, without `k8s://`.
    pub url: Given<String>,
    pub credentials: Credentials,
    /// What stands for all settings of credentials, for messages.
    pub credentials_setting: String,
    /// The setting that would name the CA's file, for messages.
    pub ca_setting: String,
    /// The setting that turns off the check of the API server's certificate, if there is one.
    pub trust_certificates: Option<String>,
    /// The kubeconfig's context, from `spark.kubernetes.context`; `None` is the current context.
    pub context: Option<String>,
    /// The kubeconfig's files, and the setting that names them; `None` if there is no kubeconfig.
    pub kubeconfig: Option<(Vec<PathBuf>, String)>,
    /// The service account's folder; [`SERVICE_ACCOUNT_FOLDER`](super::SERVICE_ACCOUNT_FOLDER) outside of tests. `None`
    /// if no service account is wanted.
    pub folder: Option<PathBuf>,
    /// The file of the service account's token, if a setting names one outside of the folder.
    pub account_token: Option<Given<PathBuf>>,
    /// The proxies of the environment, unless the kubeconfig names one.
    pub proxies: Proxies,
}

impl SubmissionAccess {
    /// The file of the service account's token; `None` if there is no service account.
    fn token_of_account(&self) -> Option<Given<PathBuf>> {
        let mounted = self.folder.as_ref()?.join("token");
        let found = mounted.exists().then(|| Given::new(mounted, SERVICE_ACCOUNT));
        self.account_token.clone().or(found)
    }
}

/// Names the source of the credentials, for people: `the current context of /home/me/.kube/config says`.
impl fmt::Display for SubmissionAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.kubeconfig, &self.context) {
            _ if self.credentials.identify() => write!(f, "{} says", self.credentials_setting),
            (Some((paths, _)), Some(context)) => {
                write!(f, "the context “{context}” of {} says", joined(paths))
            }
            (Some((paths, _)), None) => write!(f, "the current context of {} says", joined(paths)),
            (None, _) if self.account_token.is_none() && self.token_of_account().is_some() => {
                f.write_str(SERVICE_ACCOUNT)
            }
            (None, _) => match &self.account_token {
                Some(token) => write!(f, "{} says", token.setting),
                None => f.write_str(
                    "an anonymous user: there is neither a kubeconfig nor a setting with credentials",
                ),
            },
        }?;
        match &self.credentials.impersonation {
            Some(Given { value, setting }) => write!(f, ", on behalf of “{}” ({setting})", value.user),
            None => Ok(()),
        }
    }
}

pub(super) fn read(access: &SubmissionAccess) -> Result<Reading, ConnectError> {
    let address = Address::parse(&access.url.value, &access.url.setting)?;
    let mut files = Files::default();
    let found = overridden(surroundings(access, &mut files)?, &access.credentials, &mut files)?;
    if let Some(setting) = found.trusts_anybody.filter(|_| found.roots.is_none() && address.is_https()) {
        return Err(ConnectError::TrustsAnybody { setting, ca: access.ca_setting.clone() });
    }
    let proxy = match found.proxy {
        Some(proxy) => Some(proxy),
        None => address.proxy(&access.proxies)?,
    };
    let trusts_anybody = access.trust_certificates.as_ref().filter(|_| address.is_https());
    let stays_here = address.is_loopback() && proxy.is_none();
    if let Some(setting) = trusts_anybody.filter(|_| found.identity.secret.is_some() && !stays_here) {
        return Err(ConnectError::TrustsAnybody { setting: setting.clone(), ca: access.ca_setting.clone() });
    }
    let mut reading = Reading::new(&address, found.roots, found.identity, proxy, files)?;
    reading.config.accept_invalid_certs = trusts_anybody.is_some();
    reading.context_namespace = found.namespace;
    Ok(reading)
}

/// The credentials that this machine has for any submission: of its kubeconfig, or of its service account.
fn surroundings(access: &SubmissionAccess, files: &mut Files) -> Result<Surroundings, ConnectError> {
    if let Some((paths, setting)) = &access.kubeconfig {
        let found = kubeconfig::surroundings(paths, access.context.as_deref(), setting, files)?;
        return Ok(found.unwrap_or_default());
    }
    let mut found = Surroundings::default();
    let (Some(folder), Some(token)) = (&access.folder, access.token_of_account()) else {
        return Ok(found);
    };
    found.identity.auth.token = Some(files.token(&token.value, &token.setting)?.into());
    let ca = folder.join("ca.crt");
    if access.account_token.is_none() || ca.exists() {
        found.roots = Some(identity::roots(&files.read(&ca, SERVICE_ACCOUNT)?)?);
    }
    found.identity.secret = Some(token.setting);
    Ok(found)
}

/// Applies the submission's settings. Settings with credentials replace all credentials of the machine. A CA replaces
/// only the CA, and an impersonation only the kubeconfig's.
fn overridden(
    mut found: Surroundings,
    credentials: &Credentials,
    files: &mut Files,
) -> Result<Surroundings, ConnectError> {
    if let Some(roots) = credentials.roots(files)? {
        found.roots = Some(roots);
    }
    if credentials.identify() {
        found.identity = credentials.identity(files)?;
    }
    credentials.impersonate(&mut found.identity);
    Ok(found)
}
