//! `cloakroom show`.

use std::fmt::Write as _;
use std::process::ExitCode;

use jiff::Timestamp;

use cloakroom::protocol::admin::ResourceDetails;
use cloakroom::spark::format_size;
use cloakroom::text::harmless;

use super::{age, connect, print, print_as, resolve, words};
use crate::cli::ShowArgs;

/// Shows one.
pub async fn run(args: ShowArgs) -> anyhow::Result<ExitCode> {
    let client = connect(&args.admin)?;
    let names = resolve(&client, std::slice::from_ref(&args.id)).await?;
    for name in &names {
        let details = client.show(name).await?;
        match args.output.structured() {
            Some(format) => print_as(format, &details)?,
            None => print(&text(&details))?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn size(bytes: u64) -> String {
    let unit = if bytes == 1 { "byte" } else { "bytes" };
    format!("{} ({bytes} {unit})", format_size(bytes))
}

/// A line for everything that is known.
fn text(details: &ResourceDetails) -> String {
    let resource = &details.resource;
    let ago = |at: Timestamp| format!("{at} ({} ago)", age::between(at, details.now));
    let since = |at: Option<Timestamp>| at.map(ago);
    let owner = format!("{} in namespace {}", words::owner(&resource.owner), resource.owner.namespace);
    let staged = match &resource.uploaded_by {
        Some(by) => format!("{} by {by}", ago(resource.created_at)),
        None => ago(resource.created_at),
    };
    let terms = match &details.ttl {
        Some(ttl) => format!("{} unused, {ttl} in all", details.unused_timeout),
        None => format!("{} unused", details.unused_timeout),
    };
    let is_kept = resource.kept_because.as_ref();
    let is_ready = is_kept.is_some() || resource.due_because.is_some();
    let deleted = resource.deleted_at.map(|at| {
        let reason = resource.deletion_reason.as_deref().unwrap_or("no reason known");
        format!("{} ({reason})", ago(at))
    });
    let lines = [
        ("resource", Some(resource.resource_id.clone())),
        ("state", Some(details.state.clone())),
        ("owner", Some(owner)),
        ("size", Some(size(resource.size_bytes))),
        ("sha256", details.sha256.clone()),
        ("file name", details.file_name.clone()),
        ("staged", Some(staged)),
        ("may stay", Some(terms)),
        ("first used", Some(since(details.first_used_at).unwrap_or_else(|| "never".to_owned()))),
        ("last used", since(resource.last_used_at)),
        ("owner seen", since(details.owner_seen_at)),
        ("owner gone", since(details.owner_absent_since)),
        ("owner done", since(details.owner_finished_since)),
        ("kept", is_kept.map(|why| format!("because {} ({why})", words::because(details)))),
        ("goes", is_ready.then(|| words::end(details))),
        ("deleted", deleted),
    ];
    lines.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).fold(
        String::new(),
        |mut text, (name, value)| {
            // Writing to a String does not fail.
            let _ = writeln!(text, "{name:<12}{}", harmless(&value));
            text
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_is_not_several() {
        assert_eq!([0, 1, 2].map(size), ["0 B (0 bytes)", "1 B (1 byte)", "2 B (2 bytes)"]);
    }
}
