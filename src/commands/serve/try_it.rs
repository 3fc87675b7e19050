//! The next commands for a user who tries the server on one machine.

use std::path::Path;

use super::settings::ServeSettings;
use super::sockets::Addresses;
use crate::cli::ServeArgs;
use crate::telemetry::LogFormat;
use cloakroom_core::text::shell_word;

/// The default of `cloakroom stage --server`.
const DEFAULT_URL: &str = "http://127.0.0.1:10000";

/// Commands that stage a file, fetch it and list what is staged, ready to paste into another terminal. `None` if other
/// machines reach the server, or if programs read its output.
pub fn commands(args: &ServeArgs, settings: &ServeSettings, addresses: &Addresses) -> Option<String> {
    if !addresses.are_local() || args.log.log_format == LogFormat::Json || args.properties_file.is_some() {
        return None;
    }
    let url = addresses.staging_url(settings);
    let mut flags = if url == DEFAULT_URL { String::new() } else { format!(" --server {url}") };
    let ca =
        args.network.tls_cert.as_deref().map(|cert| format!(" --ca-file {}", shell_word(&absolute(cert))));
    flags.extend(ca.clone());
    let token = args.access.upload_token_file.as_deref();
    let token =
        token.map(|file| format!(" --token-file {}", shell_word(&absolute(file)))).unwrap_or_default();
    let program = shell_word(&program());
    let admin = match &args.access.admin_token_file {
        None => format!(" --data-dir {}", shell_word(&absolute(&args.storage.data_dir))),
        Some(file) => format!(
            " --admin-url {} --admin-token-file {}",
            addresses.admin_url(settings),
            shell_word(&absolute(file))
        ),
    };
    let ca = ca.unwrap_or_default();
    // The ticket names the public address, which may be another machine's.
    let server = args.network.public_url.as_ref().map(|_| format!(" --server {url}")).unwrap_or_default();
    Some(format!(
        "\nTry it in another terminal:\n\n    \
         echo hello > hello.txt\n    \
         {program} stage{flags}{token} --namespace demo --label app=demo hello.txt > ticket.json\n    \
         {program} fetch --ticket ticket.json{server}{ca} --to fetched\n    \
         {program} ls{admin}{ca}\n\n"
    ))
}

/// The name that started this program. A path is made absolute, so that it works in other folders too.
fn program() -> String {
    let started_as = std::env::args_os().next().unwrap_or_default();
    let started_as = Path::new(&started_as);
    if started_as.components().count() > 1 { absolute(started_as) } else { started_as.display().to_string() }
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
