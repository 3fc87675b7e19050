//! Credentials that settings give, each with the setting that messages name.

use std::path::{Path, PathBuf};

use cloakroom_core::oauth_token::OauthToken;
use kube::config::AuthInfo;

use crate::connect_error::ConnectError;
use crate::files::{self, Content, Files};
use crate::identity;

/// A value, with the setting that gives it as messages name it: `--kubeconfig`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given<T> {
    /// The value.
    pub value: T,
    /// What gives it.
    pub setting: String,
}

impl<T> Given<T> {
    /// Joins a value and its setting.
    pub fn new(value: T, setting: impl Into<String>) -> Self {
        Self { value, setting: setting.into() }
    }
}

/// Where a bearer token comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSource {
    /// The setting has the token itself.
    Text(OauthToken),
    /// The setting names the token's file.
    File(PathBuf),
}

/// What settings give to show to the API server, and to check who it is. No file was read yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The bearer token.
    pub token: Option<Given<TokenSource>>,
    /// PEM file of the CA certificates to trust.
    pub ca_cert_file: Option<Given<PathBuf>>,
    /// PEM files of the client certificate and of its key.
    pub client_cert_files: Option<(Given<PathBuf>, Given<PathBuf>)>,
}

impl Credentials {
    /// Whether they say who asks.
    pub(super) fn identify(&self) -> bool {
        self.token.is_some() || self.client_cert_files.is_some()
    }

    /// The CA certificates to trust.
    pub(super) fn roots(&self, files: &mut Files) -> Result<Option<Vec<Vec<u8>>>, ConnectError> {
        let content = self.ca_cert_file.as_ref().map(|given| read(given, files)).transpose()?;
        content.map(|content| identity::roots(&content)).transpose()
    }

    /// Gives the client certificate to `auth`, and says whether there is one.
    pub(super) fn present(&self, auth: &mut AuthInfo, files: &mut Files) -> Result<bool, ConnectError> {
        let Some((certificate, key)) = &self.client_cert_files else { return Ok(false) };
        let certificate = read(certificate, files)?;
        let key = read(key, files)?;
        identity::present(auth, &certificate, &key)?;
        Ok(true)
    }

    /// The token, with the setting that gives it.
    pub(super) fn token(&self, files: &mut Files) -> Result<Option<(String, String)>, ConnectError> {
        let Some(Given { value, setting }) = &self.token else { return Ok(None) };
        let token = match value {
            TokenSource::Text(text) => {
                let content = Content { place: setting.clone(), bytes: text.expose().as_bytes().to_vec() };
                files::token(&content)?
            }
            TokenSource::File(path) => files.token(path, setting)?,
        };
        Ok(Some((token, setting.clone())))
    }
}

fn read(given: &Given<PathBuf>, files: &mut Files) -> Result<Content, ConnectError> {
    files.read(Path::new(&given.value), &given.setting)
}
