//! Access with kubespark's properties file. The mounted service account provides what the file leaves out.

use std::path::{Path, PathBuf};

use super::{Given, PropertiesAccess, Reading, SERVICE_ACCOUNT};
use crate::address::Address;
use crate::connect_error::ConnectError;
use crate::files::Files;
use crate::identity::{self, ClientIdentity};

pub(super) fn read(access: &PropertiesAccess) -> Result<Reading, ConnectError> {
    let address = Address::parse(&access.url.value, &access.url.setting)?;
    let account = access.account.as_ref();
    let mut files = Files::default();
    let roots = match access.credentials.roots(&mut files)? {
        Some(roots) => Some(roots),
        None => roots_of_account(account, &mut files)?,
    };
    let certificate = access.credentials.certificate(&mut files)?;
    // A client certificate is a credential of its own, so the service account's token is not sent beside it.
    let account = account.filter(|_| certificate.is_none());
    let token = match access.credentials.token(&mut files)? {
        Some(token) => Some(token),
        None => account.map(|account| token_of_account(access, account, &mut files)).transpose()?,
    };
    let mut identity = ClientIdentity { certificate, ..ClientIdentity::default() };
    if let Some((token, setting)) = token {
        identity.auth.token = Some(token.into());
        identity.secret = Some(setting);
    }
    Reading::new(&address, roots, identity, None, files)
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
