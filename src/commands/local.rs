//! A server that only its own machine reaches makes its admin token itself, and leaves it with its address in the data
//! directory, where `cloakroom ls` and the others find both. Being on this machine is not enough: only who may read the file
//! is an admin.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use cloakroom::client::{AdminToken, ServerAddress};
use cloakroom::resource::ResourceSecret;
use cloakroom::server::{TokenFile, TokenUse};

const TOKEN: &str = "admin-token";
const URL: &str = "admin-url";

/// What a server on this machine has left for its user.
#[derive(Debug)]
pub struct LocalAdmin {
    /// Where it serves its admin.
    pub url: ServerAddress,
    /// What it takes.
    pub token: AdminToken,
}

impl LocalAdmin {
    /// Looks into a data directory; `None` if no server has left anything there.
    pub fn left_in(data_dir: &Path) -> anyhow::Result<Option<Self>> {
        let (token, url) = (data_dir.join(TOKEN), data_dir.join(URL));
        let text = match fs::read_to_string(&url) {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => {
                return Err(error).with_context(|| {
                    format!("cannot read {}: it is for the user who started the server", url.display())
                });
            }
        };
        let address = ServerAddress::parse(&text)?;
        // What is written there must not make a token travel.
        if !address.is_loopback() {
            bail!("{} names {address}, which is not an address of this machine", url.display());
        }
        Ok(Some(Self { url: address, token: AdminToken::read(&token, "--data-dir")? }))
    }
}

/// Makes a token for this run and leaves it in the data directory, with the address. Returns who it lets in, and the token's
/// file.
pub fn leave(data_dir: &Path, url: &str) -> anyhow::Result<(TokenFile, PathBuf)> {
    let token = data_dir.join(TOKEN);
    write(&token, ResourceSecret::generate(&mut rand::rng()).expose())?;
    write(&data_dir.join(URL), url)?;
    Ok((TokenFile::open(&token, TokenUse::Admin)?, token))
}

/// Takes away what an earlier server has left: its token is good for nothing any more.
pub fn clear(data_dir: &Path) -> anyhow::Result<()> {
    for path in [data_dir.join(TOKEN), data_dir.join(URL)] {
        remove(&path)?;
    }
    Ok(())
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error)
            .with_context(|| format!("cannot remove {}, which an earlier server has left", path.display())),
        _ => Ok(()),
    }
}

/// A new file, so that its mode is this one, whatever was there before.
fn write(path: &Path, line: &str) -> anyhow::Result<()> {
    remove(path)?;
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    opened
        .and_then(|mut file| writeln!(file, "{line}"))
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_new_token_is_left_for_its_user_alone_and_found_with_its_address() {
        let folder = tempfile::tempdir().unwrap();
        assert!(LocalAdmin::left_in(folder.path()).unwrap().is_none());
        assert!(LocalAdmin::left_in(&folder.path().join("missing")).unwrap().is_none());
        let mut tokens = Vec::new();
        for _ in 0..2 {
            let (_, path) = leave(folder.path(), "http://127.0.0.1:10000").unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            let found = LocalAdmin::left_in(folder.path()).unwrap().unwrap();
            assert_eq!(found.url.to_string(), "http://127.0.0.1:10000");
            tokens.push(found.token.expose().to_owned());
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        }
        assert_ne!(tokens[0], tokens[1], "each run has a token of its own");
        clear(folder.path()).unwrap();
        clear(folder.path()).unwrap();
        assert!(LocalAdmin::left_in(folder.path()).unwrap().is_none());
    }

    #[test]
    fn an_address_of_another_machine_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        leave(folder.path(), "https://example.org").unwrap();
        let refusal = LocalAdmin::left_in(folder.path()).unwrap_err().to_string();
        assert!(refusal.contains("is not an address of this machine"), "{refusal}");
    }
}
