//! Access with kubespark's properties file. The mounted service account provides what the file leaves out.

use std::path::{Path, PathBuf};

use kube::Config;

use super::{Given, PropertiesAccess, Reading, SERVICE_ACCOUNT};
use crate::address::Address;
use crate::connect_error::ConnectError;
use crate::files::Files;
use crate::identity;

pub(super) fn read(access: &PropertiesAccess) -> Result<Reading, ConnectError> {
    let address = Address::parse(&access.url.value, &access.url.setting)?;
    let account = access.account.as_ref();
    let mut files = Files::default();
    let mut config = Config::new(address.uri());
    config.root_cert = match access.credentials.roots(&mut files)? {
        Some(roots) => Some(roots),
        None => roots_of_account(account, &mut files)?,
    };
    let has_certificate = access.credentials.present(&mut config.auth_info, &mut files)?;
    // A client certificate is a credential of its own, so the service account's token is not sent beside it.
    let account = account.filter(|_| !has_certificate);
    let token = match access.credentials.token(&mut files)? {
        Some(token) => Some(token),
        None => account.map(|account| token_of_account(access, account, &mut files)).transpose()?,
    };
    let secret = token.as_ref().map(|(_, setting)| setting.clone());
    config.auth_info.token = token.map(|(token, _)| token.into());
    Reading::new(&address, config, files, secret.as_deref())
}

fn roots_of_account(
    account: Option<&Given<PathBuf>>,
    files: &mut Files,
) -> Result<Option<Vec<Vec<u8>>>, ConnectError> {
    let path = account.map(|account| account.value.join("ca.crt")).filter(|path| path.exists());
    let Some(path) = path else { return Ok(None) };
    identity::roots(&files.read(Path::new(&path), SERVICE_ACCOUNT)?).map(Some)
}

fn token_of_account(
    access: &PropertiesAccess,
    account: &Given<PathBuf>,
    files: &mut Files,
) -> Result<(String, String), ConnectError> {
    let path = account.value.join("token");
    if !path.exists() {
        return Err(ConnectError::NothingToShow {
            path,
            account: account.setting.clone(),
            token_file: access.token_file_setting.clone(),
        });
    }
    Ok((files.token(&path, SERVICE_ACCOUNT)?, SERVICE_ACCOUNT.to_owned()))
}
