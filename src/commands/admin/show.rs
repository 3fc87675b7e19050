//! `cloakroom show`.

use std::fmt::Write as _;
use std::process::ExitCode;

use jiff::Timestamp;

use cloakroom_core::protocol::admin::ResourceDetails;
use cloakroom_core::resource::OwnerKind;
use cloakroom_core::size::format_size;
use cloakroom_core::text::harmless;

use super::{connect, messages, of_ticket, print, print_json, resolve, time_between};
use crate::cli::{Output, ShowArgs};

/// Shows one resource.
pub async fn run(args: ShowArgs) -> anyhow::Result<ExitCode> {
    let of_ticket = args.ticket.as_deref().map(of_ticket).transpose()?;
    let client = connect(&args.admin, "show")?;
    let ids = resolve(&client, args.id.or(of_ticket).as_slice()).await?;
    for id in ids {
        let details = client.show(id).await?;
        match args.output {
            Output::Json => print_json(&details)?,
            Output::Text => print(&text(&details))?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn size(bytes: u64) -> String {
    let unit = if bytes == 1 { "byte" } else { "bytes" };
    format!("{} ({bytes} {unit})", format_size(bytes))
}

fn ago(at: Timestamp, details: &ResourceDetails) -> String {
    format!("{at} ({} ago)", time_between(at, details.now))
}

/// The line about when the owner was seen. For an owner that was never seen, it says since when the server looks for
/// it.
fn owner_seen(details: &ResourceDetails) -> Option<String> {
    match (details.owner_seen_at, details.owner_absent_since) {
        (Some(at), _) => Some(ago(at, details)),
        (None, Some(since)) => Some(format!("never; the server looks for it since {}", ago(since, details))),
        (None, None) => None,
    }
}

/// One line for each known fact.
fn text(details: &ResourceDetails) -> String {
    let resource = &details.resource;
    let ago = |at: Timestamp| ago(at, details);
    let since = |at: Option<Timestamp>| at.map(ago);
    let owner = format!("{} in namespace {}", messages::owner(&resource.owner), resource.owner.namespace);
    let staged = match &resource.uploaded_by {
        Some(by) => format!("{} by {by}", ago(resource.created_at)),
        None => ago(resource.created_at),
    };
    let unused = &details.unused_timeout;
    let terms = match &details.ttl {
        Some(ttl) => format!("{unused} unused, {ttl} in all"),
        None if resource.owner.kind == OwnerKind::none().as_str() => {
            format!("{unused} after a read to its end")
        }
        None => format!("{unused} unused"),
    };
    let is_kept = resource.kept_because.as_ref();
    let is_ready = is_kept.is_some() || resource.due_because.is_some();
    let deleted = resource.deleted_at.map(|at| {
        let reason = resource.deletion_reason.as_deref().unwrap_or("no reason known");
        format!("{} ({reason})", ago(at))
    });
    let lines = [
        ("resource", Some(resource.resource_id.clone())),
        ("state", Some(details.state.to_string())),
        ("owner", Some(owner)),
        ("size", Some(size(resource.size_bytes))),
        ("sha256", details.sha256.clone()),
        ("file name", details.file_name.clone()),
        ("staged", Some(staged)),
        ("may stay", Some(terms)),
        ("first used", Some(since(details.first_used_at).unwrap_or_else(|| "never".to_owned()))),
        ("last used", since(resource.last_used_at)),
        ("owner seen", owner_seen(details)),
        ("owner gone", since(details.owner_absent_since.filter(|_| details.owner_seen_at.is_some()))),
        ("owner done", since(details.owner_finished_since)),
        ("kept", is_kept.map(|why| format!("because {} ({why})", messages::because(why, details)))),
        ("goes", is_ready.then(|| messages::end(details))),
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
    use crate::commands::admin::messages::tests::details;

    /// The lines about the owner, by when it was seen.
    fn owner_lines(seen_at: Option<&str>) -> Vec<String> {
        let mut details = details(Some("owner-not-seen-yet"), None);
        details.owner_seen_at = seen_at.map(|at| at.parse().unwrap());
        details.owner_finished_since = None;
        text(&details).lines().filter(|line| line.starts_with("owner ")).map(str::to_owned).collect()
    }

    #[test]
    fn an_owner_that_was_never_seen_is_not_said_to_be_gone() {
        let never = owner_lines(None);
        let looked_for = "owner seen  never; the server looks for it since 2026-01-01T11:59:20Z (40s ago)";
        assert_eq!(never[1..], [looked_for]);
        let once = owner_lines(Some("2026-01-01T11:58:00Z"));
        let lines =
            ["owner seen  2026-01-01T11:58:00Z (2m ago)", "owner gone  2026-01-01T11:59:20Z (40s ago)"];
        assert_eq!(once[1..], lines);
    }

    #[test]
    fn what_has_no_owner_waits_for_its_reader() {
        let may_stay = |kind: &str| {
            let mut details = details(None, None);
            kind.clone_into(&mut details.resource.owner.kind);
            text(&details).lines().find(|line| line.starts_with("may stay")).map(str::to_owned)
        };
        assert_eq!(may_stay("Pod").as_deref(), Some("may stay    30m unused"));
        assert_eq!(may_stay("none").as_deref(), Some("may stay    30m after a read to its end"));
    }

    #[test]
    fn one_byte_is_in_the_singular() {
        assert_eq!([0, 1, 2].map(size), ["0 B (0 bytes)", "1 B (1 byte)", "2 B (2 bytes)"]);
    }
}
