//! Warnings below the list.

use jiff::Timestamp;

use cloakroom_core::protocol::WireName;
use cloakroom_core::protocol::admin::{
    ClusterStatus, ServerStatus, UnreadableResource, WITHOUT_UID, WatchStatus,
};
use cloakroom_core::protocol::status::ClusterMatch;
use cloakroom_core::size::format_size;

use super::{clean, messages, time_between};

/// All warnings about the server's status.
pub(super) fn warnings(server: &ServerStatus) -> Vec<String> {
    let cluster = server.cluster.as_ref().and_then(about_cluster);
    let with_ids = server.unreadable_resources.saturating_sub(server.damaged_ids);
    let unreadable = (with_ids > 0).then(|| {
        let more = usize::try_from(with_ids).unwrap_or(usize::MAX).saturating_sub(server.unreadable.len());
        let more = (more > 0).then(|| format!("{more} more"));
        let named = server.unreadable.iter().map(about_unreadable);
        let which: Vec<String> = named.chain(more).collect();
        format!(
            "warning: this version of the server cannot read its ledger's rows of some resources, and keeps these \
             resources until you remove them (cloakroom rm ID): {}",
            which.join(", ")
        )
    });
    let damaged_ids = (server.damaged_ids > 0).then(|| {
        format!(
            "warning: the ids of {} in the server's ledger are damaged: no ticket finds them, and no stray is removed by \
             itself, because it may belong to one of them; put a copy of the ledger back, as docs/run.md says (a lost or \
             damaged ledger), or remove the strays with cloakroom clean --strays",
            super::resources(usize::try_from(server.damaged_ids).unwrap_or(usize::MAX))
        )
    });
    let strays = (server.strays > 0).then(|| {
        let stay = match (server.ledger_behind, server.damaged_ids) {
            (true, _) => "they stay as long as no sweep deletes anything; ",
            (false, 0) => "they stay for --stray-age; ",
            (false, _) => "",
        };
        let removed = if server.ledger_behind { "" } else { ", or remove them with cloakroom clean --strays" };
        format!(
            "warning: {}, {} in all, without a resource: the ledger may have been lost or replaced; {stay}put the ledger back{removed}",
            bundles(server.strays),
            format_size(server.stray_bytes)
        )
    });
    let held = server.last_sweep.as_ref().filter(|sweep| sweep.held > 0);
    let held = held.map(|sweep| format!("warning: held back {}", clean::held(sweep)));
    let blind = server.watches.iter().filter(|watch| messages::is_blind(&watch.state));
    let watches = blind.map(|watch| hint(watch, server.now));
    let behind = server.ledger_behind.then(|| {
        "warning: the server's ledger is an earlier copy, or its bundles were replaced, so no sweep deletes anything: put the \
         right ones back, as docs/run.md says (a lost or damaged ledger), or let the server go on with these by cloakroom \
         resume-deletions"
            .to_owned()
    });
    let of_ledger = behind.into_iter().chain(unreadable).chain(damaged_ids).chain(strays);
    cluster.into_iter().chain(of_ledger).chain(held).chain(watches).collect()
}

/// `1 bundle`, `2 bundles`.
fn bundles(count: u64) -> String {
    if count == 1 { "1 bundle".to_owned() } else { format!("{count} bundles") }
}

/// The id, the unreadable column, and namespace and size if they are known.
fn about_unreadable(row: &UnreadableResource) -> String {
    let UnreadableResource { resource_id, column, namespace, size_bytes } = row;
    let namespace = namespace.as_ref().map(|namespace| format!("namespace {namespace}"));
    let known = [Some(column.clone()), namespace, size_bytes.map(format_size)];
    format!("{resource_id} ({})", known.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// Why the server deletes nothing for lack of an owner, and what to do; `None` if the cluster is the known one.
fn about_cluster(cluster: &ClusterStatus) -> Option<String> {
    let ClusterStatus { state, known, seen, failure, unanswered } = cluster;
    let known = known.as_deref().unwrap_or_default();
    let failure = failure.as_deref();
    match state {
        // No cluster answers now, so none can be accepted.
        WireName::Known(ClusterMatch::Other) if *unanswered => {
            let before = match seen {
                Some(seen) => format!("cluster {seen} answered"),
                None => "the one that answered did not show its uid".to_owned(),
            };
            Some(format!(
                "warning: owners were seen in cluster {known}, then {before}, and now the API server does not say \
                 which cluster it is: {}; the server deletes nothing for lack of an owner; wait until the API server \
                 answers, or repair it or the connection to it",
                failure.unwrap_or("it does not answer")
            ))
        }
        WireName::Known(ClusterMatch::Other) => Some(match seen {
            Some(seen) => format!(
                "warning: cluster {seen} answers, but owners were seen in cluster {known}: the server deletes nothing \
                 for lack of an owner; if the new cluster is right: cloakroom clean --accept-cluster {seen}"
            ),
            None => format!(
                "warning: owners were seen in cluster {known}, and the one that answers does not show that it is the \
                 same: {}; the server deletes nothing for lack of an owner; repair that, or go on without this check: \
                 cloakroom clean --accept-cluster {WITHOUT_UID}",
                failure.unwrap_or("it has no uid")
            ),
        }),
        WireName::Known(ClusterMatch::Same | ClusterMatch::NotAsked) => failure.map(|failure| {
            format!(
                "warning: the server does not know which cluster answers, so it deletes nothing for lack of an owner: \
                 {failure}"
            )
        }),
        WireName::Known(ClusterMatch::Unchecked) | WireName::Other(_) => None,
    }
}

/// Why owners of a kind are not known, in one line.
fn hint(watch: &WatchStatus, now: Timestamp) -> String {
    let WatchStatus { kind, state, since, .. } = watch;
    let of =
        watch.namespace.as_ref().map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default();
    let unfinished = if watch.unfinished_only { "unfinished " } else { "" };
    let failure = watch.last_failure.as_ref().map(|failure| format!(": {failure}")).unwrap_or_default();
    let time = time_between(*since, now);
    format!(
        "warning: the watch of {unfinished}owners of kind {kind}{of} has been {state} for {time}, so their resources \
         stay{failure}"
    )
}

#[cfg(test)]
mod tests {
    use cloakroom_core::protocol::status::WatchState;

    use super::*;

    fn told(state: &str, seen: Option<&str>, failure: Option<&str>, unanswered: bool) -> Option<String> {
        let known = (state != "unchecked").then(|| "a".to_owned());
        let [seen, failure] = [seen, failure].map(|text| text.map(str::to_owned));
        about_cluster(&ClusterStatus {
            state: WireName::read(state.to_owned()),
            known,
            seen,
            failure,
            unanswered,
        })
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
            assert!(
                text.contains(before) && text.contains("etcd is away (500); the server deletes nothing"),
                "{text}"
            );
            assert!(
                !text.contains("--accept-cluster") && text.contains("wait until the API server answers"),
                "{text}"
            );
        }
    }

    #[test]
    fn another_cluster_is_warned_of_with_the_command_that_accepts_it() {
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
            state: WatchState::Forbidden.into(),
            since: Timestamp::from_second(0).unwrap(),
            last_failure: Some("no, says the API server".to_owned()),
        };
        assert_eq!(
            hint(&watch, Timestamp::from_second(180).unwrap()),
            "warning: the watch of owners of kind Pod in namespace team-a has been forbidden for 3m, so their \
             resources stay: no, says the API server"
        );
    }
}
