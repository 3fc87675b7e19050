//! `cloakroom rm`.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use serde::Serialize;

use cloakroom_core::protocol::WireName;
use cloakroom_core::protocol::admin::{Removal, ResourcePage, StagedResource};
use cloakroom_core::resource::{DeletionReason, ResourceId};
use cloakroom_core::size::format_size;
use cloakroom_core::text::{chain, harmless};
use cloakroom_transfer::client::{AdminClient, AdminError, Selection};

use super::table::terminal_width;
use super::{columns, connect, of_ticket, print_json, resolve, resources};
use crate::cli::{Output, RmArgs};
use crate::commands::{UsageError, tell};

const REMOVED: &str = "removed";

/// The outcome for one resource, as `-o json` prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Removed {
    resource_id: String,
    /// `removed`, `gone-already` or `failed`.
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    /// Why the resource was deleted before.
    #[serde(skip_serializing_if = "Option::is_none")]
    deletion_reason: Option<WireName<DeletionReason>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What `-o json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    resources: Vec<Removed>,
    freed_bytes: u64,
}

/// Removes resources. Asks for confirmation unless `--yes` is given.
pub async fn run(args: RmArgs) -> anyhow::Result<ExitCode> {
    let may_ask = std::io::stdin().is_terminal();
    if !args.yes && !may_ask {
        return Err(UsageError::new(
            "rm asks for confirmation, and stdin is not a terminal: give --yes to remove without confirmation",
        )
        .into());
    }
    let mut named = args.ids;
    named.extend(args.ticket.as_deref().map(of_ticket).transpose()?);
    let client = connect(&args.admin, "rm")?;
    let only_unused = args.selection.unused;
    let by_filter = named.is_empty();
    let ids = if by_filter {
        let mut page = client.list(&Selection::from(args.selection)).await?;
        // In the order of ls.
        page.resources.sort_by_key(|row| row.created_at);
        show(&page);
        page.resources.iter().map(|row| ResourceId::parse(&row.resource_id)).collect::<Result<Vec<_>, _>>()?
    } else {
        let ids = resolve(&client, &named).await.context("nothing was removed")?;
        if !args.yes {
            let page = found(&client, &ids).await?;
            if !page.resources.is_empty() {
                show(&page);
            }
        }
        ids
    };
    let count = ids.len();
    if count > 0 && !args.yes && !confirmed(count)? {
        eprintln!("nothing was removed");
        return Ok(ExitCode::FAILURE);
    }
    let outcomes = remove_all(&client, ids, only_unused, args.output).await;
    finish(outcomes, args.output)
}

/// Lists on stderr what will be removed.
fn show(page: &ResourcePage) {
    if page.resources.is_empty() {
        eprintln!("no staged resource matches these filters");
        return;
    }
    eprint!("{}", columns::staged(&page.resources, page.now).render(terminal_width()));
    let bytes = page.resources.iter().map(|row| row.size_bytes).sum();
    eprintln!("{}, {}", resources(page.resources.len()), format_size(bytes));
}

/// The resources that still exist and can be read. The removal itself reports the others.
async fn found(client: &AdminClient, ids: &[ResourceId]) -> Result<ResourcePage, AdminError> {
    let mut page = ResourcePage { now: jiff::Timestamp::now(), resources: Vec::new(), next: None };
    for id in ids {
        match client.show(*id).await {
            Ok(details) => {
                page.now = details.now;
                page.resources.extend(Some(details.resource).filter(is_there));
            }
            Err(error) if error.is_unknown_resource() => {}
            Err(error) if error.is_unreadable_resource() => eprintln!("{}", harmless(&chain(&error))),
            Err(error) => return Err(error),
        }
    }
    Ok(page)
}

fn is_there(resource: &StagedResource) -> bool {
    resource.kept_because.is_some() || resource.due_because.is_some()
}

fn confirmed(count: usize) -> anyhow::Result<bool> {
    eprint!("remove {}? [y/N] ", if count == 1 { "it".to_owned() } else { format!("these {count}") });
    std::io::stderr().flush().context("cannot ask on stderr")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Removes one resource after the other, and goes on after a failure.
async fn remove_all(
    client: &AdminClient,
    ids: Vec<ResourceId>,
    only_unused: bool,
    output: Output,
) -> Vec<Removed> {
    let mut outcomes = Vec::new();
    for id in ids {
        let outcome = outcome(id, client.remove(id, only_unused).await);
        if output == Output::Text {
            tell_of(&outcome);
        }
        outcomes.push(outcome);
    }
    outcomes
}

fn outcome(id: ResourceId, result: Result<Removal, AdminError>) -> Removed {
    let resource_id = id.to_string();
    match result {
        Ok(Removal { removed: true, size_bytes, .. }) => {
            Removed { resource_id, outcome: REMOVED, size_bytes, deletion_reason: None, error: None }
        }
        Ok(Removal { deletion_reason, .. }) => {
            Removed { resource_id, outcome: "gone-already", size_bytes: None, deletion_reason, error: None }
        }
        Err(error) => Removed {
            resource_id,
            outcome: "failed",
            size_bytes: None,
            deletion_reason: None,
            error: Some(chain(&error)),
        },
    }
}

/// Prints a removal on stdout and a failure on stderr.
fn tell_of(outcome: &Removed) {
    let id = &outcome.resource_id;
    if let Some(error) = &outcome.error {
        tell(&format!("error: {}", harmless(error)));
        return;
    }
    let line = match (outcome.size_bytes, outcome.deletion_reason.as_deref()) {
        (Some(bytes), _) => format!("{id} removed, {}", format_size(bytes)),
        (None, _) if outcome.outcome == REMOVED => format!("{id} removed"),
        (None, Some(reason)) => format!("{id} was gone already ({})", harmless(reason)),
        (None, None) => format!("{id} was gone already"),
    };
    // Errors are ignored: if stdout is closed, the rest must still be removed.
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn finish(outcomes: Vec<Removed>, output: Output) -> anyhow::Result<ExitCode> {
    let failed = outcomes.iter().filter(|outcome| outcome.error.is_some()).count();
    let freed_bytes = outcomes.iter().filter_map(|outcome| outcome.size_bytes).sum();
    let count = outcomes.len();
    if output == Output::Json {
        print_json(&Report { resources: outcomes, freed_bytes })?;
    } else if count > 1 {
        eprintln!("{} freed", format_size(freed_bytes));
    }
    if failed > 0 {
        tell(&format!("error: {failed} of {} could not be removed", resources(count)));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
