//! Access with kubespark's properties file. The mounted service account provides what the file leaves out.

use std::path::Path;

use kube::Config;

use super::{Reading, SERVICE_ACCOUNT};
use crate::kubernetes::address::Address;
use crate::kubernetes::connect_error::ConnectError;
use crate::kubernetes::files::{self, Content, Files};
use crate::kubernetes::identity;
use crate::spark::{ApiServerProperties, keys};

pub(super) fn read(
    url: &str,
    properties: &ApiServerProperties,
    folder: &Path,
) -> Result<Reading, ConnectError> {
    let address = Address::parse(url, &quoted(&keys::API_SERVER_URL))?;
    let account = properties.use_service_account_credentials.then_some(folder);
    let mut files = Files::default();
    let mut config = Config::new(address.uri());
    config.root_cert = roots(properties, account, &mut files)?;
    let certificate = certificate(properties, &mut files)?;
    if let Some((certificate, key)) = &certificate {
        identity::present(&mut config.auth_info, certificate, key)?;
    }
    // A client certificate is a credential of its own, so the service account's token is not sent beside it.
    let account = account.filter(|_| certificate.is_none());
    let token = token(properties, account, &mut files)?;
    let secret = token.as_ref().map(|(_, setting)| setting.clone());
    config.auth_info.token = token.map(|(token, _)| token.into());
    Reading::new(&address, config, files, secret.as_deref())
}

fn roots(
    properties: &ApiServerProperties,
    account: Option<&Path>,
    files: &mut Files,
) -> Result<Option<Vec<Vec<u8>>>, ConnectError> {
    let of_account = || account.map(|folder| folder.join("ca.crt")).filter(|path| path.exists());
    let content = match &properties.ca_cert_file {
        Some(path) => files.read(path, &quoted(&keys::AUTHENTICATE_CA_CERT_FILE))?,
        None => match of_account() {
            Some(path) => files.read(&path, SERVICE_ACCOUNT)?,
            None => return Ok(None),
        },
    };
    identity::roots(&content).map(Some)
}

fn certificate(
    properties: &ApiServerProperties,
    files: &mut Files,
) -> Result<Option<(Content, Content)>, ConnectError> {
    let paths = properties.client_cert_file.as_deref().zip(properties.client_key_file.as_deref());
    let Some((certificate, key)) = paths else { return Ok(None) };
    let certificate = files.read(certificate, &quoted(&keys::AUTHENTICATE_CLIENT_CERT_FILE))?;
    let key = files.read(key, &quoted(&keys::AUTHENTICATE_CLIENT_KEY_FILE))?;
    Ok(Some((certificate, key)))
}

/// The token, with the setting that it comes from.
fn token(
    properties: &ApiServerProperties,
    account: Option<&Path>,
    files: &mut Files,
) -> Result<Option<(String, String)>, ConnectError> {
    if let Some(given) = &properties.oauth_token {
        let setting = quoted(&keys::AUTHENTICATE_OAUTH_TOKEN);
        let content = Content { place: setting.clone(), bytes: given.expose().as_bytes().to_vec() };
        return Ok(Some((files::token(&content)?, setting)));
    }
    if let Some(path) = &properties.oauth_token_file {
        let setting = quoted(&keys::AUTHENTICATE_OAUTH_TOKEN_FILE);
        return Ok(Some((files.token(path, &setting)?, setting)));
    }
    let Some(path) = account.map(|folder| folder.join("token")) else { return Ok(None) };
    if !path.exists() {
        return Err(ConnectError::NothingToShow { path });
    }
    Ok(Some((files.token(&path, SERVICE_ACCOUNT)?, SERVICE_ACCOUNT.to_owned())))
}

fn quoted(key: &str) -> String {
    format!("`{key}`")
}
