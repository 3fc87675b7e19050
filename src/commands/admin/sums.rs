//! Sums for each namespace: `ls --by-namespace`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use cloakroom_core::protocol::admin::StagedResource;
use cloakroom_core::size::format_size;

use super::table::Table;
use super::time_between;

/// The sum of one namespace.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sum {
    namespace: String,
    resources: u64,
    size_bytes: u64,
    never_downloaded: u64,
    /// When the oldest was staged.
    oldest_created_at: Timestamp,
}

/// What `-o json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    now: Timestamp,
    namespaces: Vec<Sum>,
}

pub(super) fn report(now: Timestamp, namespaces: Vec<Sum>) -> Report {
    Report { now, namespaces }
}

/// By namespace, the one with most bytes first.
pub(super) fn of(rows: &[StagedResource]) -> Vec<Sum> {
    let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
    for row in rows {
        let namespace = row.owner.namespace.as_str();
        let sum = sums.entry(namespace).or_insert_with(|| Sum {
            namespace: namespace.to_owned(),
            resources: 0,
            size_bytes: 0,
            never_downloaded: 0,
            oldest_created_at: row.created_at,
        });
        sum.resources += 1;
        sum.size_bytes = sum.size_bytes.saturating_add(row.size_bytes);
        sum.never_downloaded += u64::from(row.last_used_at.is_none());
        sum.oldest_created_at = sum.oldest_created_at.min(row.created_at);
    }
    let mut sums: Vec<Sum> = sums.into_values().collect();
    sums.sort_by_key(|sum| Reverse(sum.size_bytes));
    sums
}

/// The table of `sums`.
pub(super) fn table(sums: &[Sum], now: Timestamp) -> Table<5> {
    let mut table = Table::new(["NAMESPACE", "RESOURCES", "SIZE", "UNUSED", "OLDEST"]);
    for sum in sums {
        table.push([
            sum.namespace.clone(),
            sum.resources.to_string(),
            format_size(sum.size_bytes).replace(' ', ""),
            sum.never_downloaded.to_string(),
            time_between(sum.oldest_created_at, now),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_summed_up_and_the_largest_comes_first() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let row = |namespace: &str, size_bytes, created, used: Option<i64>| StagedResource {
            resource_id: "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1".to_owned(),
            owner: cloakroom_core::protocol::v1::OwnerMetadata {
                kind: "Pod".to_owned(),
                namespace: namespace.to_owned(),
                labels: BTreeMap::new(),
                name: None,
            },
            size_bytes,
            created_at: at(created),
            last_used_at: used.map(at),
            kept_because: None,
            expires_at: None,
            due_because: None,
            uploaded_by: None,
            deleted_at: None,
            deletion_reason: None,
        };
        let rows = [row("a", 1024, 900, None), row("b", 2048, 940, Some(950)), row("a", 512, 700, Some(950))];
        let expected = "NAMESPACE  RESOURCES  SIZE    UNUSED  OLDEST\n\
                        b          1          2KiB    0       60s\n\
                        a          2          1.5KiB  1       5m\n";
        assert_eq!(table(&of(&rows), at(1000)).render(None), expected);
    }
}
