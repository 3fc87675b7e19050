//! The admin token of a server that was given none. The server makes a token for its run, and writes it with its address
//! on this machine to a file in the data directory. `cloakroom ls` and the other admin commands read the file there.
//!
//! A request from this machine is not enough: only a user who can read the file is an admin. Neither side trusts a file
//! that another user could have put there.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

use super::serve::Pod;
use cloakroom_core::resource::ResourceSecret;
use cloakroom_server::http::{TokenFile, TokenUse};
use cloakroom_transfer::client::{AdminToken, ServerAddress};

/// Two lines: the token, and the address that it is for.
pub const FILE: &str = "admin-token";

/// Opens without following a link or waiting for a pipe.
const PLAINLY: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();

/// The content of the file.
#[derive(Debug)]
pub struct LocalAdmin {
    /// Where the server serves `/admin`. The token is for this address alone.
    pub url: ServerAddress,
    /// The token that the server accepts.
    pub token: AdminToken,
}

impl LocalAdmin {
    /// Reads the file in a data directory; `None` if there is none.
    pub fn left_in(data_dir: &Path) -> anyhow::Result<Option<Self>> {
        let path = data_dir.join(FILE);
        let file = match OpenOptions::new().read(true).custom_flags(PLAINLY).open(&path) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => {
                return Err(error).with_context(|| {
                    format!(
                        "cannot read {}: only the user who started the server may read it",
                        path.display()
                    )
                });
            }
        };
        if !is_ours_alone(&file).with_context(|| format!("cannot look at {}", path.display()))? {
            bail!(
                "{} is not used, because it belongs to another user, or other users may read it: start the server \
                 again as your own user",
                path.display()
            );
        }
        let mut text = String::new();
        file.take(1024)
            .read_to_string(&mut text)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let mut lines = text.lines();
        let (Some(token), Some(url)) = (lines.next(), lines.next()) else {
            bail!("{} is incomplete: start the server again", path.display());
        };
        let url = ServerAddress::parse(url)?;
        if !url.is_loopback() {
            bail!("{} names {url}, which is not an address of this machine", path.display());
        }
        Ok(Some(Self { url, token: AdminToken::from_text(token) }))
    }
}

fn is_ours_alone(file: &File) -> std::io::Result<bool> {
    let found = file.metadata()?;
    Ok(found.is_file()
        && found.uid() == geteuid().as_raw()
        && !Mode::from_raw_mode(found.mode()).intersects(Mode::RWXG | Mode::RWXO))
}

/// The token of this run, in its file. The file is removed when this is dropped.
#[derive(Debug)]
pub struct TokenOfThisRun {
    /// The token that the server accepts.
    pub tokens: TokenFile,
    /// Where the file is.
    pub path: PathBuf,
    file: File,
}

impl Drop for TokenOfThisRun {
    fn drop(&mut self) {
        let id = |found: fs::Metadata| (found.dev(), found.ino());
        // Another server may have left its token in a data directory that took the place of this one.
        let found = fs::symlink_metadata(&self.path).map(id);
        if found.is_ok_and(|found| self.file.metadata().map(id).is_ok_and(|own| own == found)) {
            // An error does no harm: the next server removes the file too.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether no other user could replace the file. A data directory that is not there yet will be the server's own.
pub fn may_leave_in(data_dir: &Path) -> bool {
    // The kubelet gives a volume to a group. All users that reach it there have the server's rights.
    Pod::from_environment().is_some() || !is_writable_for_others(data_dir)
}

fn is_writable_for_others(data_dir: &Path) -> bool {
    let is_shared = |folder: fs::Metadata| folder.uid() != geteuid().as_raw() || folder.mode() & 0o022 != 0;
    fs::metadata(data_dir).is_ok_and(is_shared)
}

/// Makes a token for this run, and writes it with its address to the data directory.
pub fn leave(data_dir: &Path, url: &str) -> anyhow::Result<TokenOfThisRun> {
    clear(data_dir)?;
    let token = ResourceSecret::generate(&mut rand::rng());
    let path = data_dir.join(FILE);
    let failed = format!("cannot write {}", path.display());
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let file = opened.with_context(|| failed.clone())?;
    // Made before the file is written, so that a file that cannot be written is removed.
    let left = TokenOfThisRun { tokens: TokenFile::made(&token, TokenUse::Admin), path, file };
    write!(&left.file, "{}\n{url}\n", token.expose()).context(failed)?;
    Ok(left)
}

/// Removes the file of an earlier server, whose token is no longer valid.
pub fn clear(data_dir: &Path) -> anyhow::Result<()> {
    let path = data_dir.join(FILE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).with_context(|| {
            format!(
                "cannot remove {}, where a server leaves its admin token: remove it by hand",
                path.display()
            )
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn data_dir() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        folder
    }

    #[test]
    fn a_new_token_is_left_for_its_user_alone_and_found_with_its_address() {
        let folder = data_dir();
        assert!(LocalAdmin::left_in(folder.path()).unwrap().is_none());
        assert!(LocalAdmin::left_in(&folder.path().join("missing")).unwrap().is_none());
        let mut tokens = Vec::new();
        for _ in 0..2 {
            let left = leave(folder.path(), "http://127.0.0.1:10000").unwrap();
            assert_eq!(fs::metadata(&left.path).unwrap().permissions().mode() & 0o777, 0o600);
            let found = LocalAdmin::left_in(folder.path()).unwrap().unwrap();
            assert_eq!(found.url.to_string(), "http://127.0.0.1:10000");
            tokens.push(found.token.expose().to_owned());
        }
        assert_ne!(tokens[0], tokens[1], "each run has a token of its own");
        assert!(LocalAdmin::left_in(folder.path()).unwrap().is_none(), "the file stayed after its server");
    }

    #[test]
    fn the_token_of_a_server_in_a_new_folder_at_the_same_path_stays() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("data");
        fs::create_dir(&path).unwrap();
        let first = leave(&path, "http://127.0.0.1:10000").unwrap();
        fs::remove_dir_all(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let second = leave(&path, "http://127.0.0.1:10001").unwrap();
        drop(first);
        assert!(LocalAdmin::left_in(&path).unwrap().is_some(), "the token of the other server was removed");
        drop(second);
        assert!(LocalAdmin::left_in(&path).unwrap().is_none());
    }

    #[test]
    fn the_file_of_a_server_that_was_killed_is_removed() {
        let folder = data_dir();
        std::mem::forget(leave(folder.path(), "http://127.0.0.1:10000").unwrap());
        clear(folder.path()).unwrap();
        assert!(LocalAdmin::left_in(folder.path()).unwrap().is_none());
        clear(folder.path()).unwrap();
    }

    #[test]
    fn a_folder_where_others_may_write_is_told() {
        let folder = data_dir();
        assert!(!is_writable_for_others(folder.path()));
        for mode in [0o777, 0o770, 0o702] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert!(is_writable_for_others(folder.path()), "{mode:o}");
        }
    }

    #[test]
    fn a_file_that_another_user_could_have_put_there_is_not_used() {
        let folder = data_dir();
        let left = leave(folder.path(), "http://127.0.0.1:10000").unwrap();
        let path = &left.path;
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
        let refusal = LocalAdmin::left_in(folder.path()).unwrap_err().to_string();
        assert!(refusal.contains("is not used, because it belongs to another user"), "{refusal}");
        let elsewhere = data_dir();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(path, elsewhere.path().join(FILE)).unwrap();
        assert!(LocalAdmin::left_in(elsewhere.path()).is_err(), "a link was followed");
        let _left = leave(folder.path(), "https://example.org").unwrap();
        let refusal = LocalAdmin::left_in(folder.path()).unwrap_err().to_string();
        assert!(refusal.contains("is not an address of this machine"), "{refusal}");
    }
}
