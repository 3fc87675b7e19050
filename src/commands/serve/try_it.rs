//! The next commands for a user who tries the server on one machine.

use std::path::Path;

use super::settings::ServeSettings;
use super::sockets::Addresses;
use crate::commands::local;
use cloakroom_core::text::shell_word;
use cloakroom_server::http::{TokenFile, UploadAuth};

/// The default of `cloakroom stage --server`.
const DEFAULT_URL: &str = "http://127.0.0.1:10000";

/// Commands that stage a file, fetch it and list what is staged, ready to paste into another terminal. `None` if other
/// machines reach the server, or if programs read its output.
pub fn commands(settings: &ServeSettings, addresses: &Addresses) -> Option<String> {
    if !addresses.are_local() || !settings.may_be_tried {
        return None;
    }
    let url = addresses.staging_url(settings);
    let mut flags = if url == DEFAULT_URL { String::new() } else { format!(" --server {url}") };
    let ca = settings.http.tls.as_ref().map(|tls| format!(" --ca-file {}", word(tls.certificate_file())));
    flags.extend(ca.clone());
    let token = match &settings.http.upload_auth {
        UploadAuth::Token(tokens) => tokens.path(),
        UploadAuth::None | UploadAuth::Kubernetes(_) => None,
    };
    let token = token.map(|file| format!(" --token-file {}", word(file))).unwrap_or_default();
    let program = shell_word(&program());
    let admin = match settings.admin_tokens.as_ref().and_then(TokenFile::path) {
        None => format!(" --data-dir {}", word(&settings.data_dir)),
        Some(file) => {
            format!(" --admin-url {} --admin-token-file {}", addresses.admin_url(settings), word(file))
        }
    };
    let ca = ca.unwrap_or_default();
    let has_admins = settings.admin_tokens.is_some() || local::may_leave_in(&settings.data_dir);
    let list = if has_admins { format!("    {program} ls{admin}{ca}\n") } else { String::new() };
    // The ticket names the public address, which may be another machine's.
    let server = settings.http.public_url.as_ref().map(|_| format!(" --server {url}")).unwrap_or_default();
    Some(format!(
        "\nTry it in another terminal:\n\n    \
         echo hello > hello.txt\n    \
         (umask 077; {program} stage{flags}{token} --namespace demo --label app=demo hello.txt > ticket.json)\n    \
         {program} fetch --ticket ticket.json{server}{ca} --to fetched\n{list}\n"
    ))
}

/// The name that started this program. A path is made absolute, so that it works in other folders too.
fn program() -> String {
    let started_as = std::env::args_os().next().unwrap_or_default();
    let started_as = Path::new(&started_as);
    if started_as.components().count() > 1 { absolute(started_as) } else { started_as.display().to_string() }
}

/// The absolute path, as a word for a shell.
fn word(path: &Path) -> String {
    shell_word(&absolute(path))
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
