//! `cloakroom ls`.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;

use cloakroom::client::Selection;
use cloakroom::protocol::admin::{
    ClusterStatus, NAMESPACE_GONE, OTHER_CLUSTER, READY, ServerStatus, StagedResource, UnreadableResource,
    WITHOUT_UID, WatchStatus,
};
use cloakroom::spark::format_size;
use cloakroom::text::harmless;

use super::table::{Table, terminal_width};
use super::{age, connect, print, print_json, resources, words};
use crate::cli::{ListOutput, LsArgs, SortKey};

/// What `-o json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    now: Timestamp,
    resources: Vec<StagedResource>,
    server: ServerStatus,
}

/// Lists. What is not a row of the table goes to stderr.
pub async fn run(args: LsArgs) -> anyhow::Result<ExitCode> {
    let client = connect(&args.admin)?;
    let server = client.status().await?;
    let page = client.list(&Selection::from(args.selection)).await?;
    let (now, mut rows) = (page.now, page.resources);
    sort(&mut rows, args.sort);
    if args.output == ListOutput::Json {
        print_json(&Listing { now, resources: rows, server })?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = if args.output == ListOutput::Wide { None } else { terminal_width() };
    if !rows.is_empty() {
        print(&table(&rows, now, width))?;
    }
    eprintln!("{}", totals(&rows, &server));
    for warning in warnings(&server) {
        eprintln!("{}", harmless(&warning));
    }
    // Where a namespace is gone, nothing is in it: that is known.
    let blind = |watch: &&WatchStatus| watch.state != READY && watch.state != NAMESPACE_GONE;
    for watch in server.watches.iter().filter(blind) {
        eprintln!("{}", harmless(&hint(watch, server.now)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Equal ones are in the order of their ids.
fn sort(rows: &mut [StagedResource], by: SortKey) {
    match by {
        SortKey::Age => rows.sort_by_key(|row| row.created_at),
        SortKey::Size => rows.sort_by_key(|row| Reverse(row.size_bytes)),
        // What goes with the next sweep, what goes by time, and what does not go by itself.
        SortKey::Goes => rows.sort_by_key(|row| {
            let at = row.expires_at.unwrap_or(Timestamp::MAX);
            if row.due_because.is_some() { Timestamp::MIN } else { at }
        }),
    }
}

/// The table of a list, fitted to `width` if there is one.
pub(super) fn table(rows: &[StagedResource], now: Timestamp, width: Option<usize>) -> String {
    const OWNER: usize = 2;
    let mut table = Table::new(["ID", "NAMESPACE", "OWNER", "SIZE", "AGE", "USED", "KEPT", "GOES"]);
    for row in rows {
        table.push([
            row.resource_id.clone(),
            row.owner.namespace.clone(),
            words::owner(&row.owner),
            format_size(row.size_bytes).replace(' ', ""),
            age::between(row.created_at, now),
            row.last_used_at.map_or_else(|| "never".to_owned(), |at| age::between(at, now)),
            row.kept_because.clone().unwrap_or_else(|| "-".to_owned()),
            words::goes(row, now),
        ]);
    }
    table.render(width, OWNER)
}

fn totals(rows: &[StagedResource], server: &ServerStatus) -> String {
    let bytes = rows.iter().map(|row| row.size_bytes).sum();
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

/// What else an admin must know.
fn warnings(server: &ServerStatus) -> Vec<String> {
    let cluster = server.cluster.as_ref().and_then(about_cluster);
    let unreadable = Some(server.unreadable_resources).filter(|count| *count > 0).map(|count| {
        let more = usize::try_from(count).unwrap_or(usize::MAX).saturating_sub(server.unreadable.len());
        let more = (more > 0).then(|| format!("{more} more"));
        let named = server.unreadable.iter().map(about_unreadable);
        let which: Vec<String> = named.chain(more).collect();
        format!(
            "warning: this version of the server cannot read what its ledger has of some resources, and keeps them until they \
             are removed (cloakroom rm ID): {}",
            which.join(", ")
        )
    });
    cluster.into_iter().chain(unreadable).collect()
}

/// Its name and its column, and whose it is as far as that is known.
fn about_unreadable(row: &UnreadableResource) -> String {
    let UnreadableResource { resource_id, column, namespace, size_bytes } = row;
    let namespace = namespace.as_ref().map(|namespace| format!("namespace {namespace}"));
    let known = [Some(column.clone()), namespace, size_bytes.map(format_size)];
    format!("{resource_id} ({})", known.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// Why nothing goes for lack of an owner, whatever is known of owners, and what to do.
fn about_cluster(cluster: &ClusterStatus) -> Option<String> {
    let ClusterStatus { state, known, seen, failure, unanswered } = cluster;
    let known = known.as_deref().unwrap_or_default();
    let failure = failure.as_deref();
    match (state.as_str(), seen, failure) {
        // What answered before cannot be accepted now.
        (OTHER_CLUSTER, seen, failure) if *unanswered => {
            let before = match seen {
                Some(seen) => format!("cluster {seen} answered"),
                None => "the one that answered did not show its uid".to_owned(),
            };
            Some(format!(
                "warning: owners were seen in cluster {known}, then {before}, and now the API server cannot be asked which \
                 cluster it is: {}; nothing goes for lack of an owner; wait until it answers, or mend the API server or the \
                 way to it",
                failure.unwrap_or("it does not answer")
            ))
        }
        (OTHER_CLUSTER, Some(seen), _) => Some(format!(
            "warning: cluster {seen} answers, and owners were seen in cluster {known}: nothing goes for lack of an owner; if \
             this is meant: cloakroom clean --accept-cluster {seen}"
        )),
        (OTHER_CLUSTER, None, failure) => Some(format!(
            "warning: owners were seen in cluster {known}, and the one that answers does not show that it is the same: {}; \
             nothing goes for lack of an owner; mend that, or go on without this check: cloakroom clean --accept-cluster \
             {WITHOUT_UID}",
            failure.unwrap_or("it has no uid")
        )),
        ("same" | "not-asked", _, Some(failure)) => Some(format!(
            "warning: it is not known which cluster answers, so nothing goes for lack of an owner: {failure}"
        )),
        _ => None,
    }
}

/// Why owners of a kind are not known, in one line.
fn hint(watch: &WatchStatus, now: Timestamp) -> String {
    let WatchStatus { kind, state, since, .. } = watch;
    let of =
        watch.namespace.as_ref().map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default();
    let unfinished = if watch.unfinished_only { "unfinished " } else { "" };
    let failure = watch.last_failure.as_ref().map(|failure| format!(": {failure}")).unwrap_or_default();
    let time = age::between(*since, now);
    format!(
        "warning: the watch of {unfinished}owners of kind {kind}{of} is {state} for {time}, so what is staged for them \
         stays{failure}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, age: i64, size_bytes: u64, expires: Option<i64>, due: bool) -> StagedResource {
        let at = |second| Timestamp::from_second(second).unwrap();
        StagedResource {
            resource_id: id.to_owned(),
            owner: cloakroom::protocol::v1::OwnerMetadata {
                kind: "Pod".to_owned(),
                namespace: "demo".to_owned(),
                labels: [("app".to_owned(), "x".to_owned())].into(),
                name: None,
            },
            size_bytes,
            created_at: at(100_000 - age),
            last_used_at: (size_bytes > 1).then(|| at(99_990)),
            kept_because: (!due).then(|| "not-used-yet".to_owned()),
            expires_at: expires.map(at),
            due_because: due.then(|| "unused".to_owned()),
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
    fn every_cell_but_the_last_is_one_word() {
        let rows = [row("a", 200, 3 << 20, Some(101_380), false), row("b", 5, 1, None, true)];
        let text = table(&rows, Timestamp::from_second(100_000).unwrap(), None);
        let expected = "ID  NAMESPACE  OWNER      SIZE  AGE  USED   KEPT          GOES\n\
                        a   demo       Pod/app=x  3MiB  3m   10s    not-used-yet  in 23m\n\
                        b   demo       Pod/app=x  1B    5s   never  -             next sweep\n";
        assert_eq!(text, expected);
    }

    fn told(state: &str, seen: Option<&str>, failure: Option<&str>, unanswered: bool) -> Option<String> {
        let known = (state != "unchecked").then(|| "a".to_owned());
        let [seen, failure] = [seen, failure].map(|text| text.map(str::to_owned));
        about_cluster(&ClusterStatus { state: state.to_owned(), known, seen, failure, unanswered })
    }

    fn about(state: &str, seen: Option<&str>, failure: Option<&str>) -> Option<String> {
        told(state, seen, failure, false)
    }

    #[test]
    fn while_no_cluster_answers_there_is_no_command_that_accepts_one() {
        for (seen, before) in
            [(Some("b"), "then cluster b answered,"), (None, "the one that answered did not show its uid,")]
        {
            let text = told("other", seen, Some("etcd is away (500)"), true).unwrap();
            assert!(text.contains(before) && text.contains("etcd is away (500); nothing goes"), "{text}");
            assert!(!text.contains("--accept-cluster") && text.contains("wait until it answers"), "{text}");
        }
    }

    #[test]
    fn a_cluster_that_is_not_the_known_one_is_told_with_the_command_that_accepts_it() {
        let other = about("other", Some("b"), None).unwrap();
        assert!(other.contains("cluster b answers") && other.ends_with("--accept-cluster b"), "{other}");
        let hidden = about("other", None, Some("403")).unwrap();
        assert!(
            hidden.contains("the same: 403;") && hidden.ends_with("--accept-cluster without-uid"),
            "{hidden}"
        );
        assert!(about("same", Some("a"), Some("no route")).unwrap().ends_with(": no route"));
        assert!(about("not-asked", None, Some("no route")).unwrap().ends_with(": no route"));
        assert_eq!(about("same", Some("a"), None), None);
        assert_eq!(about("unchecked", None, Some("403")), None, "that is as ever");
    }

    #[test]
    fn a_watch_that_is_not_ready_is_told_with_what_that_means() {
        let watch = WatchStatus {
            kind: "Pod".to_owned(),
            namespace: Some("team-a".to_owned()),
            unfinished_only: false,
            state: "forbidden".to_owned(),
            since: Timestamp::from_second(0).unwrap(),
            last_failure: Some("no, says the API server".to_owned()),
        };
        assert_eq!(
            hint(&watch, Timestamp::from_second(180).unwrap()),
            "warning: the watch of owners of kind Pod in namespace team-a is forbidden for 3m, so what is staged for them \
             stays: no, says the API server"
        );
    }
}
