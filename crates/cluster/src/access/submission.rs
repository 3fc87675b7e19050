//! Access as a submission's settings say. The address is always the master's; what the settings leave out, the
//! kubeconfig fills in, or the mounted service account where there is no kubeconfig (the order of fabric8's client,
//! which Spark uses).

use std::fmt;
use std::path::PathBuf;

use kube::Config;
use kube::config::AuthInfo;

use super::{Credentials, Given, Reading, SERVICE_ACCOUNT, joined, kubeconfig};
use crate::address::Address;
use crate::connect_error::ConnectError;
use crate::files::Files;
use crate::identity;

/// How a submitter reaches the API server. Nothing in it was read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionAccess {
    /// The master, without `k8s://`.
    pub url: Given<String>,
    /// What the settings give.
    pub credentials: Credentials,
    /// What stands for all settings of credentials, for messages.
    pub credentials_setting: String,
    /// The setting that would name the CA's file, for messages.
    pub ca_setting: String,
    /// The setting that asks to take any certificate of the API server, if there is one.
    pub trust_certificates: Option<String>,
    /// The kubeconfig's context; without one the current context.
    pub context: Option<String>,
    /// The kubeconfig's files, and what names them, if there are any.
    pub kubeconfig: Option<(Vec<PathBuf>, String)>,
    /// The service account's folder, [`SERVICE_ACCOUNT_FOLDER`](super::SERVICE_ACCOUNT_FOLDER) outside of tests.
    pub folder: PathBuf,
}

/// Who asks, and whom they trust.
#[derive(Default)]
struct Identity {
    auth: AuthInfo,
    roots: Option<Vec<Vec<u8>>>,
    /// What gives the secret that is sent along.
    secret: Option<String>,
    plugin: Option<String>,
    /// Which setting of the kubeconfig says that any certificate is to be taken.
    trusts_anybody: Option<String>,
}

/// Who asks, for people: `the current context of /home/me/.kube/config says`.
impl fmt::Display for SubmissionAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.kubeconfig, &self.context) {
            _ if self.credentials.identify() => write!(f, "{} says", self.credentials_setting),
            (Some((paths, _)), Some(context)) => {
                write!(f, "the context “{context}” of {} says", joined(paths))
            }
            (Some((paths, _)), None) => write!(f, "the current context of {} says", joined(paths)),
            (None, _) if self.folder.join("token").exists() => f.write_str(SERVICE_ACCOUNT),
            (None, _) => f.write_str("nobody: there is neither a kubeconfig nor a setting with credentials"),
        }
    }
}

pub(super) fn read(access: &SubmissionAccess) -> Result<Reading, ConnectError> {
    let address = Address::parse(&access.url.value, &access.url.setting)?;
    let mut files = Files::default();
    let surroundings = surroundings(access, &mut files)?;
    let identity = overridden(surroundings, &access.credentials, &mut files)?;
    if let Some(setting) = identity.trusts_anybody.filter(|_| identity.roots.is_none() && address.is_https())
    {
        return Err(ConnectError::TrustsAnybody { setting, ca: access.ca_setting.clone() });
    }
    let mut config = Config::new(address.uri());
    config.root_cert = identity.roots;
    config.auth_info = identity.auth;
    if let Some(setting) = access.trust_certificates.as_ref().filter(|_| address.is_https()) {
        if identity.secret.is_some() && !address.is_loopback() {
            return Err(ConnectError::TrustsAnybody {
                setting: setting.clone(),
                ca: access.ca_setting.clone(),
            });
        }
        config.accept_invalid_certs = true;
    }
    let reading = Reading::new(&address, config, files, identity.secret.as_deref())?;
    Ok(Reading { plugin: identity.plugin, ..reading })
}

/// What this machine has for any submission.
fn surroundings(access: &SubmissionAccess, files: &mut Files) -> Result<Identity, ConnectError> {
    if let Some((paths, setting)) = &access.kubeconfig {
        let found = kubeconfig::identity(paths, access.context.as_deref(), setting, files)?;
        return Ok(found.map_or_else(Identity::default, |found| Identity {
            plugin: found.auth.exec.as_ref().map(|_| format!("the credential plugin in {}", joined(paths))),
            auth: found.auth,
            roots: found.roots,
            secret: found.secret,
            trusts_anybody: found.trusts_anybody,
        }));
    }
    let token_file = access.folder.join("token");
    if !token_file.exists() {
        return Ok(Identity::default());
    }
    let mut identity = Identity::default();
    identity.auth.token = Some(files.token(&token_file, SERVICE_ACCOUNT)?.into());
    identity.secret = Some(SERVICE_ACCOUNT.to_owned());
    identity.roots = Some(identity::roots(&files.read(&access.folder.join("ca.crt"), SERVICE_ACCOUNT)?)?);
    Ok(identity)
}

/// Settings that say who asks replace the surroundings' credentials as a whole; a CA replaces a CA.
fn overridden(
    surroundings: Identity,
    credentials: &Credentials,
    files: &mut Files,
) -> Result<Identity, ConnectError> {
    let mut identity = surroundings;
    if let Some(roots) = credentials.roots(files)? {
        identity.roots = Some(roots);
    }
    if !credentials.identify() {
        return Ok(identity);
    }
    let mut auth = AuthInfo::default();
    credentials.present(&mut auth, files)?;
    let token = credentials.token(files)?;
    let secret = token.as_ref().map(|(_, setting)| setting.clone());
    auth.token = token.map(|(token, _)| token.into());
    Ok(Identity { auth, secret, plugin: None, ..identity })
}
