//! `cloakroom clean` and `cloakroom resume-deletions`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use cloakroom_core::protocol::WireName;
use cloakroom_core::protocol::admin::{AcceptedCluster, SweepReport};
use cloakroom_core::resource::Named;
use cloakroom_core::text::harmless;

use super::{connect, print, print_json};
use crate::cli::{CleanArgs, Output, ResumeDeletionsArgs};

/// Asks the server for a sweep, and prints its report.
pub async fn run(args: CleanArgs) -> anyhow::Result<ExitCode> {
    let client = connect(&args.admin, "clean")?;
    if let Some(uid) = &args.accept_cluster {
        eprintln!("{}", harmless(&accepted(&client.accept_cluster(uid).await?)));
    }
    let report = client.sweep(args.strays, args.release_held.as_deref()).await?;
    match args.output {
        Output::Json => print_json(&report)?,
        Output::Text => print(&text(&report))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn accepted(accepted: &AcceptedCluster) -> String {
    let AcceptedCluster { known, known_before } = accepted;
    match (known, known_before) {
        (Some(now), Some(before)) if now == before => {
            format!("cluster {now} was already the known one: nothing was changed")
        }
        (Some(now), Some(before)) => {
            format!("from now on the server looks for owners in cluster {now}, and no longer in {before}")
        }
        (Some(now), None) => format!("from now on the server looks for owners in cluster {now}"),
        (None, Some(before)) => {
            format!(
                "cluster {before} is forgotten: from now on the server does not check which cluster answers"
            )
        }
        (None, None) => "no cluster was known: nothing was changed".to_owned(),
    }
}

fn text(report: &SweepReport) -> String {
    if report.ledger_behind {
        return "deleted nothing, because the ledger is an earlier copy, or its bundles were replaced: put the right ones back, or \
                let the server go on with these (cloakroom resume-deletions)\n"
            .to_owned();
    }
    let mut lines = vec![counted("deleted", &report.deleted), counted("kept", &report.kept)];
    if report.held > 0 {
        lines.push(format!("held back {}", held(report)));
    }
    let others = [
        (report.interrupted_uploads, "interrupted upload", "cleared away"),
        (report.interrupted_deletions, "interrupted deletion", "finished"),
        (report.stray_files, "bundle", "without a resource removed"),
        (report.forgotten_tombstones, "old tombstone", "forgotten"),
        (
            report.dropped_tombstones,
            "tombstone",
            "dropped before seven days were over, because there were too many",
        ),
    ];
    let others = others.iter().filter(|(count, ..)| *count > 0);
    lines.extend(others.map(|(count, what, end)| {
        let plural = if *count == 1 { "" } else { "s" };
        format!("{count} {what}{plural} {end}")
    }));
    lines.push(String::new());
    lines.join("\n")
}

/// `120 (etl 100, ml 20): …`.
pub(super) fn held(report: &SweepReport) -> String {
    let each: Vec<String> = report.held_in.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let each = if each.is_empty() { String::new() } else { format!(" ({})", each.join(", ")) };
    format!(
        "{}{each}: that more than half of all owners vanish at once is more likely a mistake; if it is right: cloakroom \
         clean --release-held NAMESPACE, or all",
        report.held
    )
}

/// `deleted 3: 2 unused, 1 orphaned`.
fn counted<T: Named>(what: &str, counts: &BTreeMap<WireName<T>, u64>) -> String {
    let total: u64 = counts.values().sum();
    if total == 0 {
        return format!("{what} nothing");
    }
    let each: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    format!("{what} {total}: {}", each.join(", "))
}

/// Lets the server's sweeps delete again.
pub async fn resume_deletions(args: ResumeDeletionsArgs) -> anyhow::Result<ExitCode> {
    let resumed = connect(&args.admin, "resume-deletions")?.resume_deletions().await?;
    print(if resumed.was_behind {
        "sweeps delete again, by this ledger\n"
    } else {
        "ledger and bundles belong together: nothing was changed\n"
    })?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use cloakroom_core::resource::{DeletionReason, KeepReason};

    use super::*;

    #[test]
    fn an_accepted_cluster_is_told_with_what_it_changes() {
        for (known, known_before, expected) in [
            (
                Some("b"),
                Some("a"),
                "from now on the server looks for owners in cluster b, and no longer in a",
            ),
            (Some("b"), None, "from now on the server looks for owners in cluster b"),
            (Some("b"), Some("b"), "cluster b was already the known one: nothing was changed"),
            (
                None,
                Some("a"),
                "cluster a is forgotten: from now on the server does not check which cluster answers",
            ),
            (None, None, "no cluster was known: nothing was changed"),
        ] {
            let [known, known_before] = [known, known_before].map(|uid| uid.map(str::to_owned));
            assert_eq!(accepted(&AcceptedCluster { known, known_before }), expected);
        }
    }

    #[test]
    fn a_sweep_is_told_in_two_lines_and_what_is_unusual_in_more() {
        let mut report = SweepReport {
            kept: [(KeepReason::OwnerPresent.into(), 9), (WireName::Other("new-in-2030".to_owned()), 3)]
                .into(),
            ..SweepReport::default()
        };
        assert_eq!(text(&report), "deleted nothing\nkept 12: 3 new-in-2030, 9 owner-present\n");
        report.deleted.insert(DeletionReason::Unused.into(), 2);
        (report.held, report.stray_files) = (120, 1);
        report.held_in = [("etl".to_owned(), 100), ("ml".to_owned(), 20)].into();
        let told = text(&report);
        assert!(
            told.starts_with("deleted 2: 2 unused\n") && told.contains("\nheld back 120 (etl 100, ml 20): "),
            "{told}"
        );
        assert!(told.ends_with("\n1 bundle without a resource removed\n"), "{told}");
    }
}
