//! `cloakroom ls`.

use std::fmt::Write as _;
use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;

use cloakroom_core::protocol::admin::{ServerStatus, StagedResource};
use cloakroom_core::size::format_size;
use cloakroom_core::text::harmless;
use cloakroom_transfer::client::Selection;

use super::table::terminal_width;
use super::warnings::warnings;
use super::{columns, connect, print, print_json, resources, sums};
use crate::cli::{LsArgs, Output};
use crate::commands::tell;

/// What `-o json` prints.
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
    rows.sort_by_key(|row| row.created_at);
    if args.output == Output::Json {
        let printed = if args.by_namespace {
            print_json(&sums::report(now, sums::of(&rows)))
        } else {
            print_json(&Listing { now, resources: rows, server })
        };
        return printed.map(|()| ExitCode::SUCCESS);
    }
    let width = terminal_width();
    if args.by_namespace {
        print(&sums::table(&sums::of(&rows), now).render(width))?;
    } else if args.deleted && !rows.is_empty() {
        print(&columns::deleted(&rows, now).render(width))?;
    } else if !rows.is_empty() {
        print(&columns::staged(&rows, now).render(width))?;
    }
    tell(&totals(&rows, &server, args.deleted));
    if rows.is_empty() && is_filtered {
        let which = if args.deleted { "resource deleted in the last seven days" } else { "staged resource" };
        tell(&format!("no {which} matches these filters"));
    }
    for warning in warnings(&server) {
        tell(&harmless(&warning));
    }
    Ok(ExitCode::SUCCESS)
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
