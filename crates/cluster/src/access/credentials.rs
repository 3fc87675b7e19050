//! Credentials that settings give, each with the setting that messages name.

use std::path::PathBuf;

use crate::connect_error::ConnectError;
use crate::files::{self, Content, Files};
use crate::identity::{self, ClientCertificate, ClientIdentity};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_core::text::SecretText;

/// A value, with the setting that gives it as messages name it: `--kubeconfig`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given<T> {
    pub value: T,
    pub setting: String,
}

impl<T> Given<T> {
    /// Joins a value and its setting.
    pub fn new(value: T, setting: impl Into<String>) -> Self {
        Self { value, setting: setting.into() }
    }
}

/// Where a token, a certificate or a key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentSource {
    /// The setting has the content itself. A certificate or a key is PEM text, or its base64 form.
    Inline(SecretText),
    /// The setting names a file with the content.
    File(PathBuf),
}

/// A user name and a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basic {
    pub user: String,
    pub password: SecretText,
}

/// The user that the API server is asked to take the submitter for. The credentials must have the right `impersonate`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impersonation {
    pub user: String,
    pub groups: Vec<String>,
}

/// What settings give to show to the API server, and to check who it is. No file was read yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The bearer token. It excludes `basic`.
    pub token: Option<Given<ContentSource>>,
    /// User name and password, which are sent with HTTP's scheme `Basic`.
    pub basic: Option<Given<Basic>>,
    /// The CA certificates to trust (PEM).
    pub ca_cert: Option<Given<ContentSource>>,
    /// The client certificate and its key (PEM).
    pub client_cert: Option<(Given<ContentSource>, Given<ContentSource>)>,
    /// Who is impersonated, whatever the credentials are.
    pub impersonation: Option<Given<Impersonation>>,
}

impl Credentials {
    /// Whether they say who asks.
    pub fn identify(&self) -> bool {
        self.token.is_some() || self.basic.is_some() || self.client_cert.is_some()
    }

    /// The CA certificates to trust.
    pub(super) fn roots(&self, files: &mut Files) -> Result<Option<Vec<Vec<u8>>>, ConnectError> {
        let content = self.ca_cert.as_ref().map(|given| pem(given, files)).transpose()?;
        content.map(|content| identity::roots(&content)).transpose()
    }

    /// The client certificate.
    pub(super) fn certificate(&self, files: &mut Files) -> Result<Option<ClientCertificate>, ConnectError> {
        let Some((certificate, key)) = &self.client_cert else { return Ok(None) };
        let certificate = pem(certificate, files)?;
        ClientCertificate::read(&certificate, &pem(key, files)?).map(Some)
    }

    /// The token, with the setting that gives it.
    pub(super) fn token(&self, files: &mut Files) -> Result<Option<(String, String)>, ConnectError> {
        let Some(Given { value, setting }) = &self.token else { return Ok(None) };
        let token = match value {
            ContentSource::Inline(text) => {
                let content = Content { place: setting.clone(), bytes: text.expose().as_bytes().to_vec() };
                files::token(&content)?
            }
            ContentSource::File(path) => files.token(path, setting)?,
        };
        Ok(Some((token, setting.clone())))
    }

    /// The identity of these credentials alone.
    pub(super) fn identity(&self, files: &mut Files) -> Result<ClientIdentity, ConnectError> {
        let mut identity =
            ClientIdentity { certificate: self.certificate(files)?, ..ClientIdentity::default() };
        if let Some(Given { value: Basic { user, password }, setting }) = &self.basic {
            identity.auth.username = Some(user.clone());
            identity.auth.password = Some(password.expose().to_owned().into());
            identity.secret = Some(setting.clone());
        } else if let Some((token, setting)) = self.token(files)? {
            identity.auth.token = Some(token.into());
            identity.secret = Some(setting);
        }
        Ok(identity)
    }

    /// Lets who is impersonated take the place of whom a kubeconfig names.
    pub(super) fn impersonate(&self, ClientIdentity { auth, .. }: &mut ClientIdentity) {
        let Some(Given { value, .. }) = &self.impersonation else { return };
        auth.impersonate = Some(value.user.clone());
        auth.impersonate_groups = Some(value.groups.clone());
        (auth.impersonate_uid, auth.impersonate_user_extra) = (None, None);
    }
}

/// The content as PEM text. Text in a setting that is not PEM is taken for base64.
fn pem(given: &Given<ContentSource>, files: &mut Files) -> Result<Content, ConnectError> {
    let Given { value, setting } = given;
    let text = match value {
        ContentSource::File(path) => return files.read(path, setting),
        ContentSource::Inline(text) => text.expose().trim(),
    };
    let mut content = Content { place: setting.clone(), bytes: text.as_bytes().to_vec() };
    if !text.starts_with("-----BEGIN") {
        content.bytes =
            STANDARD.decode(text).map_err(|_| content.refuse("is neither PEM nor the base64 form of PEM"))?;
    }
    Ok(content)
}
