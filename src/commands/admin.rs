//! `cloakroom ls`, `show`, `rm`, `clean` and `resume-deletions`: results go to stdout, remarks to stderr.

mod clean;
mod columns;
mod ls;
mod messages;
mod rm;
mod show;
mod sums;
mod table;
mod warnings;

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use serde::Serialize;

use cloakroom_core::resource::ResourceId;
use cloakroom_core::text::harmless_json;
use cloakroom_transfer::client::{AdminClient, AdminToken, HttpClient, Selection, ServerAddress, Timeouts};

use super::local::LocalAdmin;
use crate::cli::{ADMIN_TOKEN_FLAG as TOKEN_FLAG, AdminArgs, ResourceArg, admin_token_giver};
use crate::commands::{UsageError, fetch::ticket_id};

pub use clean::{resume_deletions, run as clean};
pub use ls::run as ls;
pub use rm::run as rm;
pub use show::run as show;

/// The shipped manifests' operational listener, seen from its own pod.
const ADMIN_URL: &str = "http://127.0.0.1:10001";

/// The client for these flags of `command`. Everything that can be refused without the server is refused here.
fn connect(args: &AdminArgs, command: &str) -> anyhow::Result<AdminClient> {
    let left = || LocalAdmin::left_in(&args.data_dir);
    let (server, token) = match (&args.admin_url, &args.admin_token_file) {
        (server, Some(path)) => {
            let server = server.clone().map_or_else(|| ServerAddress::parse(ADMIN_URL), Ok)?;
            (server, AdminToken::read(path, &admin_token_giver(path).to_string())?)
        }
        (server, None) => {
            let LocalAdmin { url, token } = left()?.ok_or_else(|| no_token(&args.data_dir, command))?;
            // The token is only for the server that made it.
            if let Some(server) = server.as_ref().filter(|server| **server != url) {
                return Err(UsageError::new(format!(
                    "the admin token in {} is for {url}, and --admin-url (in the environment CLOAKROOM_ADMIN_URL) \
                     names {server}: leave that out, or give the other server's token by {TOKEN_FLAG}",
                    args.data_dir.display()
                ))
                .into());
            }
            (url, token)
        }
    };
    let http = HttpClient::new(&args.ca_files, Timeouts::default())?;
    Ok(AdminClient::new(http, server, token)?)
}

fn no_token(data_dir: &Path, command: &str) -> UsageError {
    UsageError::new(format!(
        "no server has left an admin token in the data directory {}, and none is given. For the server in a cluster, this \
         needs nothing else: kubectl exec -n cloakroom deploy/cloakroom -- cloakroom {command}. For one on this machine, name \
         its --data-dir. For one with tokens of its own, give a file with one of the tokens in its own --admin-token-file by {TOKEN_FLAG} (in \
         the environment CLOAKROOM_ADMIN_TOKEN_FILE)",
        data_dir.display()
    ))
}

/// The resource that the ticket in the file names. Only the id counts: what may be done, the admin token decides.
fn of_ticket(path: &Path) -> anyhow::Result<ResourceArg> {
    Ok(ResourceArg::Whole(ticket_id(path)?))
}

/// The whole ids of `args`. Staged resources are searched before deleted ones.
async fn resolve(client: &AdminClient, args: &[ResourceArg]) -> anyhow::Result<Vec<ResourceId>> {
    let mut ids = Vec::new();
    for arg in args {
        ids.push(match arg {
            ResourceArg::Whole(id) => *id,
            ResourceArg::Beginning(beginning) => whole(client, beginning).await?,
        });
    }
    Ok(ids)
}

async fn whole(client: &AdminClient, beginning: &str) -> anyhow::Result<ResourceId> {
    const SHOWN: usize = 5;
    for deleted in [false, true] {
        let selection = Selection { id: Some(beginning.to_owned()), deleted, ..Selection::default() };
        let ids: Vec<String> =
            client.list(&selection).await?.resources.into_iter().map(|row| row.resource_id).collect();
        match ids.as_slice() {
            [] => {}
            [id] => return Ok(ResourceId::parse(id)?),
            [first, ..] => {
                let more = if ids.len() > SHOWN { ", …" } else { "" };
                let shown = ids.get(..SHOWN).unwrap_or(&ids).join(", ");
                bail!(
                    "{} resources have an id that begins with {beginning}: {shown}{more}; write more of it, such as {}",
                    ids.len(),
                    first.get(..(beginning.len() + 4).min(first.len())).unwrap_or(first)
                )
            }
        }
    }
    bail!(
        "no resource has an id that begins with {beginning}, and none that was deleted in the last seven days had one"
    )
}

/// Prints `text`, which has its own line ends. A reader that closes the pipe, as `head` does, is no failure.
fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot print on stdout"),
    }
}

/// Prints JSON. Characters that a terminal would obey are escaped.
fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value).context("cannot be written as JSON")?;
    print(&(harmless_json(&text) + "\n"))
}

/// `1 resource`, `2 resources`.
fn resources(count: usize) -> String {
    if count == 1 { "1 resource".to_owned() } else { format!("{count} resources") }
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The time between two moments, such as `45s`, `90m`, `47h` or `3d`. It is never negative, even if clocks differ.
fn time_between(earlier: Timestamp, later: Timestamp) -> String {
    let seconds = later.duration_since(earlier).as_secs().max(0);
    // At least two of a unit, so that rounding down hides little.
    match seconds {
        ..=119 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / MINUTE),
        7200..172_800 => format!("{}h", seconds / HOUR),
        _ => format!("{}d", seconds / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_one_unit_and_is_never_rounded_up() {
        let start = Timestamp::UNIX_EPOCH;
        for (seconds, expected) in [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (7199, "119m"),
            (7200, "2h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (400 * DAY, "400d"),
        ] {
            assert_eq!(time_between(start, Timestamp::from_second(seconds).unwrap()), expected);
        }
    }
}
