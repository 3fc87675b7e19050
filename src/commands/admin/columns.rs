//! The columns of a list.

use std::collections::BTreeSet;

use jiff::Timestamp;

use cloakroom_core::protocol::admin::StagedResource;
use cloakroom_core::size::format_size;

use super::table::Table;
use super::{age, messages};

pub(super) use super::table::terminal_width;

/// A shortened id has at least this many characters.
const SHORTEST_ID: usize = 8;

/// The two sets of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    /// For staged resources.
    OfStaged,
    /// For deleted resources.
    OfDeleted,
}

impl Columns {
    /// The table of `rows`. If the terminal is too narrow, the table has fewer columns and shorter ids.
    pub(super) fn table(self, rows: &[StagedResource], now: Timestamp, width: Option<usize>) -> String {
        let whole = match self {
            Self::OfStaged => staged(rows, now),
            Self::OfDeleted => deleted(rows, now, usize::MAX),
        };
        match width.filter(|width| whole.width() > *width) {
            None => whole.render(),
            Some(width) => {
                let short = match self {
                    Self::OfStaged => narrow(rows, now),
                    Self::OfDeleted => deleted(rows, now, id_length(rows)),
                };
                short.render_within(width, &[NAMESPACE, OWNER, short.last()], self.expendable())
            }
        }
    }

    /// The columns that may be left out, the least important first. The last column always stays.
    fn expendable(self) -> &'static [usize] {
        match self {
            Self::OfStaged => &[USED, AGE, SIZE, KEPT, NAMESPACE, OWNER],
            // A tombstone has only the owner's kind.
            Self::OfDeleted => &[USED, AGE, OWNER, SIZE, NAMESPACE],
        }
    }
}

const NAMESPACE: usize = 1;
const OWNER: usize = 2;
const SIZE: usize = 3;
const AGE: usize = 4;
const USED: usize = 5;
/// In the narrow table, which has no column BY.
const KEPT: usize = 6;

fn staged(rows: &[StagedResource], now: Timestamp) -> Table {
    let mut table = Table::new(&["ID", "NAMESPACE", "OWNER", "SIZE", "AGE", "USED", "BY", "KEPT", "GOES"]);
    for row in rows {
        let by = row.uploaded_by.as_deref().unwrap_or("-");
        let [namespace, owner, size, age, used] = common(row, now);
        table.push(&[
            row.resource_id.clone(),
            namespace,
            owner,
            size,
            age,
            used,
            // Names of users may contain blanks, and columns may not.
            by.split_whitespace().collect::<Vec<_>>().join("_"),
            row.kept_because.as_deref().unwrap_or("-").to_owned(),
            messages::goes(row, now),
        ]);
    }
    table
}

fn narrow(rows: &[StagedResource], now: Timestamp) -> Table {
    let length = id_length(rows);
    let mut table = Table::new(&["ID", "NAMESPACE", "OWNER", "SIZE", "AGE", "USED", "KEPT", "GOES"]);
    for row in rows {
        let [namespace, owner, size, age, used] = common(row, now);
        let goes = messages::goes(row, now);
        // The latest time, which follows a comma, is only in the wide table.
        let goes = goes.split(',').next().unwrap_or_default().to_owned();
        let kept = row.kept_because.as_deref().unwrap_or("-").to_owned();
        table.push(&[beginning(&row.resource_id, length), namespace, owner, size, age, used, kept, goes]);
    }
    table
}

fn deleted(rows: &[StagedResource], now: Timestamp, id_length: usize) -> Table {
    let mut table = Table::new(&["ID", "NAMESPACE", "OWNER", "SIZE", "AGE", "USED", "DELETED", "BECAUSE"]);
    for row in rows {
        let [namespace, owner, size, age, used] = common(row, now);
        let at = row.deleted_at.map_or_else(|| "-".to_owned(), |at| age::between(at, now));
        let reason = row.deletion_reason.as_deref().unwrap_or("-").to_owned();
        table.push(&[beginning(&row.resource_id, id_length), namespace, owner, size, age, used, at, reason]);
    }
    table
}

fn common(row: &StagedResource, now: Timestamp) -> [String; 5] {
    [
        row.owner.namespace.clone(),
        messages::owner(&row.owner),
        format_size(row.size_bytes).replace(' ', ""),
        age::between(row.created_at, now),
        row.last_used_at.map_or_else(|| "never".to_owned(), |at| age::between(at, now)),
    ]
}

/// The length at which all shortened ids differ.
fn id_length(rows: &[StagedResource]) -> usize {
    let is_enough = |length: &usize| {
        let beginnings: BTreeSet<&str> =
            rows.iter().map(|row| row.resource_id.get(..*length).unwrap_or(&row.resource_id)).collect();
        beginnings.len() == rows.len()
    };
    (SHORTEST_ID..36).find(is_enough).unwrap_or(36)
}

fn beginning(id: &str, length: usize) -> String {
    id.get(..length).unwrap_or(id).to_owned()
}

#[cfg(test)]
mod tests {
    use cloakroom_core::resource::{DeletionReason, KeepReason, Unknown};

    use super::*;

    fn row(id: &str, expires: Option<i64>) -> StagedResource {
        let at = |second| Timestamp::from_second(second).unwrap();
        StagedResource {
            resource_id: id.to_owned(),
            owner: cloakroom_core::protocol::v1::OwnerMetadata {
                kind: "Pod".to_owned(),
                namespace: "demo".to_owned(),
                labels: [("spark-app-selector".to_owned(), "spark-1f6b".to_owned())].into(),
                name: None,
            },
            size_bytes: 3 << 20,
            created_at: at(99_800),
            last_used_at: expires.is_none().then(|| at(99_990)),
            kept_because: expires.map(|_| KeepReason::NotUsedYet.into()),
            expires_at: expires.map(at),
            due_because: expires.is_none().then(|| DeletionReason::Unused.into()),
            uploaded_by: Some("Jane Doe".to_owned()),
            deleted_at: None,
            deletion_reason: None,
        }
    }

    fn rows() -> [StagedResource; 2] {
        [
            row("4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1", Some(101_380)),
            row("4c1a3c44-60d9-4a1f-9a6e-0b6f6fd7e7b1", None),
        ]
    }

    fn now() -> Timestamp {
        Timestamp::from_second(100_000).unwrap()
    }

    #[test]
    fn every_cell_but_the_last_is_one_word() {
        let expected = "\
            ID                                    NAMESPACE  OWNER                              SIZE  AGE  USED   BY        KEPT          GOES\n\
            4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1  demo       Pod/spark-app-selector=spark-1f6b  3MiB  3m   never  Jane_Doe  not-used-yet  in 23m\n\
            4c1a3c44-60d9-4a1f-9a6e-0b6f6fd7e7b1  demo       Pod/spark-app-selector=spark-1f6b  3MiB  3m   10s    Jane_Doe  -             next sweep\n";
        assert_eq!(Columns::OfStaged.table(&rows(), now(), None), expected);
        assert_eq!(Columns::OfStaged.table(&rows(), now(), Some(150)), expected);
    }

    #[test]
    fn a_terminal_of_80_columns_shows_enough_of_each_id_to_name_it() {
        let expected = "\
            ID          NAMESPACE  OWNER          SIZE  AGE  USED   KEPT          GOES\n\
            4c1a3c44-5  demo       Pod/spark-ap…  3MiB  3m   never  not-used-yet  in 23m\n\
            4c1a3c44-6  demo       Pod/spark-ap…  3MiB  3m   10s    -             next sweep\n";
        let table = Columns::OfStaged.table(&rows(), now(), Some(80));
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
        assert_eq!(table, expected);
    }

    #[test]
    fn a_narrower_terminal_has_fewer_columns_and_no_line_is_longer_than_it() {
        let mut rows = rows();
        rows[0].owner.namespace = "n".repeat(63);
        rows[0].owner.labels = [("app".to_owned(), "x".repeat(63))].into();
        (rows[0].size_bytes, rows[0].deletion_reason) =
            (1234 << 20, Some(DeletionReason::MaxAgeReached.into()));
        rows[1].kept_because = Some(KeepReason::OwnerUnknown(Unknown::OtherCluster).into());
        for columns in [Columns::OfStaged, Columns::OfDeleted] {
            for width in 40..200 {
                let table = columns.table(&rows, now(), Some(width));
                let longest = table.lines().map(|line| line.chars().count()).max();
                assert!(longest <= Some(width), "{width}: {longest:?}\n{table}");
            }
        }
        let expected = "\
            ID          NAMESPA…  OWNER     GOES\n\
            4c1a3c44-5  nnnnnnn…  Pod/app…  in 23m\n\
            4c1a3c44-6  demo      Pod/spa…  when it…\n";
        assert_eq!(Columns::OfStaged.table(&rows, now(), Some(40)), expected);
        let expected = "\
            ID          NAMESPACE  OWNER     SIZE    AGE  USED   KEPT           GOES\n\
            4c1a3c44-5  nnnnnnnn…  Pod/app…  1.2GiB  3m   never  not-used-yet   in 23m\n\
            4c1a3c44-6  demo       Pod/spa…  3MiB    3m   10s    other-cluster  when it…\n";
        assert_eq!(Columns::OfStaged.table(&rows, now(), Some(76)), expected);
    }

    #[test]
    fn a_deleted_resource_is_shown_with_time_and_reason() {
        let mut row = row("4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1", None);
        row.owner.labels.clear();
        (row.deleted_at, row.deletion_reason) = (Some(now()), Some(DeletionReason::Orphaned.into()));
        let table = Columns::OfDeleted.table(&[row], now(), Some(80));
        let expected = "\
            ID        NAMESPACE  OWNER  SIZE  AGE  USED  DELETED  BECAUSE\n\
            4c1a3c44  demo       Pod    3MiB  3m   10s   0s       orphaned\n";
        assert_eq!(table, expected);
    }
}
