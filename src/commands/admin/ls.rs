//! `cloakroom ls`.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;

use cloakroom_core::protocol::admin::{ServerStatus, StagedResource};
use cloakroom_core::size::format_size;
use cloakroom_core::text::harmless;
use cloakroom_transfer::client::Selection;

use super::columns::{self, Columns};
use super::warnings::warnings;
use super::{connect, print, print_as, resources, sums};
use crate::cli::{ListOutput, LsArgs, SortKey};
use crate::commands::tell;

/// What `-o json` and `-o yaml` print.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    now: Timestamp,
    resources: Vec<StagedResource>,
    server: ServerStatus,
}

/// Lists resources. Everything but the list goes to stderr.
pub async fn run(args: LsArgs) -> anyhow::Result<ExitCode> {
    let client = connect(&args.admin, "ls")?;
    let server = client.status().await?;
    let is_filtered = args.selection.is_filter();
    let selection = Selection { deleted: args.deleted, ..Selection::from(args.selection) };
    let page = client.list(&selection).await?;
    let (now, mut rows) = (page.now, page.resources);
    sort(&mut rows, args.sort);
    let format = args.output.structured();
    let width = if args.output == ListOutput::Wide { None } else { columns::terminal_width() };
    if args.by_namespace {
        let sums = sums::of(&rows);
        match format {
            Some(format) => print_as(format, &sums::report(now, sums))?,
            None => print(&sums::table(&sums, now, width))?,
        }
    } else if let Some(format) = format {
        print_as(format, &Listing { now, resources: rows, server })?;
        return Ok(ExitCode::SUCCESS);
    } else if !rows.is_empty() {
        let columns = if args.deleted { Columns::OfDeleted } else { Columns::OfStaged };
        print(&columns.table(&rows, now, width))?;
    }
    if format.is_none() {
        tell(&totals(&rows, &server, args.deleted));
        if rows.is_empty() && is_filtered {
            let which =
                if args.deleted { "resource deleted in the last seven days" } else { "staged resource" };
            tell(&format!("no {which} matches these filters"));
        }
        for warning in warnings(&server) {
            tell(&harmless(&warning));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Sorts rows. Equal rows keep the order of the server's answer, which is by id.
pub(super) fn sort(rows: &mut [StagedResource], by: SortKey) {
    match by {
        SortKey::Age => rows.sort_by_key(|row| row.created_at),
        SortKey::Size => rows.sort_by_key(|row| Reverse(row.size_bytes)),
        // Deleted resources by time of deletion. Staged ones: first those that are due, then by time, last those
        // without a time.
        SortKey::Goes => rows.sort_by_key(|row| {
            let at = row.deleted_at.or(row.expires_at).unwrap_or(Timestamp::MAX);
            if row.due_because.is_some() { Timestamp::MIN } else { at }
        }),
    }
}

fn totals(rows: &[StagedResource], server: &ServerStatus, deleted: bool) -> String {
    let bytes = rows.iter().map(|row| row.size_bytes).sum();
    if deleted {
        return format!("{} deleted in the last seven days, {}", resources(rows.len()), format_size(bytes));
    }
    let unused = rows.iter().filter(|row| row.last_used_at.is_none()).count();
    let mut text = format!("{}, {}", resources(rows.len()), format_size(bytes));
    // Writing to a String does not fail.
    if unused > 0 {
        let _ = write!(text, ", {unused} never downloaded");
    }
    let _ = write!(text, "; {} stored in all", format_size(server.stored_bytes));
    if let Some(limit) = server.limits.max_total_size {
        let _ = write!(text, " of {}", format_size(limit));
    }
    if let Some(free) = server.free_bytes {
        let _ = write!(text, ", {} of the disk free", format_size(free));
    }
    if let Some(most) = server.limits.max_resources {
        let _ = write!(text, "; {most} resources at most");
    }
    if let Some(percent) = server.limits.share_percent {
        let _ = write!(text, "; {percent}% of everything for one namespace");
    }
    text
}

#[cfg(test)]
mod tests {
    use cloakroom_core::resource::{DeletionReason, KeepReason};

    use super::*;

    fn row(id: &str, age: i64, size_bytes: u64, expires: Option<i64>, due: bool) -> StagedResource {
        let at = |second| Timestamp::from_second(second).unwrap();
        StagedResource {
            resource_id: id.to_owned(),
            owner: cloakroom_core::protocol::v1::OwnerMetadata {
                kind: "Pod".to_owned(),
                namespace: "demo".to_owned(),
                labels: [("app".to_owned(), "x".to_owned())].into(),
                name: None,
            },
            size_bytes,
            created_at: at(100_000 - age),
            last_used_at: (size_bytes > 1).then(|| at(99_990)),
            kept_because: (!due).then(|| KeepReason::NotUsedYet.into()),
            expires_at: expires.map(at),
            due_because: due.then(|| DeletionReason::Unused.into()),
            uploaded_by: None,
            deleted_at: None,
            deletion_reason: None,
        }
    }

    fn sorted(by: SortKey) -> Vec<String> {
        let mut rows = vec![
            row("a", 10, 1, None, false),
            row("b", 30, 3 << 20, Some(200_000), false),
            row("c", 20, 2, Some(150_000), false),
            row("d", 5, 2, None, true),
        ];
        sort(&mut rows, by);
        rows.into_iter().map(|row| row.resource_id).collect()
    }

    #[test]
    fn lists_are_ordered_by_age_size_or_end() {
        assert_eq!(sorted(SortKey::Age), ["b", "c", "a", "d"]);
        assert_eq!(sorted(SortKey::Size), ["b", "c", "d", "a"]);
        assert_eq!(sorted(SortKey::Goes), ["d", "c", "b", "a"]);
    }

    #[test]
    fn deleted_resources_are_ordered_by_time_of_deletion() {
        let deleted = |id: &str, at: i64| {
            let mut row = row(id, 10, 1, None, false);
            (row.kept_because, row.deleted_at) = (None, Some(Timestamp::from_second(at).unwrap()));
            row
        };
        let mut rows = [deleted("a", 300), deleted("b", 100), deleted("c", 200)];
        sort(&mut rows, SortKey::Goes);
        assert_eq!(rows.map(|row| row.resource_id), ["b", "c", "a"]);
    }
}
