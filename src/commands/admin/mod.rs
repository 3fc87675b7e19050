//! `cloakroom ls`, `show`, `rm` and `clean`: what they print goes to stdout, all remarks to stderr.

mod age;
mod clean;
mod ls;
mod rm;
mod show;
mod table;
mod words;

use std::io::Write as _;

use anyhow::Context as _;
use serde::Serialize;

use cloakroom::client::{AdminClient, AdminToken, HttpClient, Timeouts};

use crate::cli::AdminArgs;
use crate::commands::UsageError;

pub use clean::run as clean;
pub use ls::run as ls;
pub use rm::run as rm;
pub use show::run as show;

const TOKEN_FLAG: &str = "--admin-token-file";

/// All that can be refused without the server is refused here.
fn connect(args: &AdminArgs) -> anyhow::Result<AdminClient> {
    let Some(path) = &args.admin_token_file else {
        return Err(UsageError::new(
            "--admin-token-file is missing (in the environment CLOAKROOM_ADMIN_TOKEN_FILE): give a file with one of the \
             tokens in the server's own --admin-token-file",
        )
        .into());
    };
    let token = AdminToken::read(path, TOKEN_FLAG)?;
    let http = HttpClient::new(&args.ca_files, Timeouts::default())?;
    Ok(AdminClient::new(http, args.admin_url.clone(), token)?)
}

/// Prints `text`, which ends its own lines. Whoever reads it may have seen enough, as `head` has.
fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot print on stdout"),
    }
}

fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value).context("cannot be written as JSON")?;
    text.push('\n');
    print(&text)
}

/// `1 resource`, `2 resources`.
fn resources(count: usize) -> String {
    if count == 1 { "1 resource".to_owned() } else { format!("{count} resources") }
}
