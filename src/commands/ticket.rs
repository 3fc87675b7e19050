//! The file of `--ticket`: the one line of JSON that `cloakroom stage` or the server has answered.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;

use super::refuse;

use cloakroom_core::resource::ResourceId;
use cloakroom_core::text::without_mark;
use cloakroom_transfer::fetch::resource_id_of_ticket;

/// Reads the file, or stdin if the path is `-`.
pub fn read(path: &Path) -> anyhow::Result<String> {
    // A ticket has less than 1 KiB.
    const LONGEST: u64 = 64 << 10;
    let mut bytes = Vec::new();
    // The error must not show the ticket: it holds the secret.
    if path.to_string_lossy().trim_start().starts_with('{') {
        refuse!("--ticket takes the file that holds the ticket, or - for stdin, and not the ticket itself");
    }
    let read = if path == Path::new("-") {
        std::io::stdin().take(LONGEST).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes))
    };
    let cannot_be_read = || format!("--ticket names {}, which cannot be read", path.display());
    read.with_context(cannot_be_read)?;
    String::from_utf8(without_mark(bytes)).map_err(|error| error.utf8_error()).with_context(cannot_be_read)
}

/// The id in the file of a ticket. The ticket's secret and address have no effect.
pub fn resource_id(path: &Path) -> anyhow::Result<ResourceId> {
    Ok(resource_id_of_ticket(&read(path)?, &path.display().to_string())?)
}
