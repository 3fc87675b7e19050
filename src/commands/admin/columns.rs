//! The columns of a list.

use jiff::Timestamp;

use cloakroom_core::protocol::admin::StagedResource;
use cloakroom_core::size::format_size;

use super::table::Table;
use super::{messages, time_between};

/// The columns of staged resources.
pub(super) fn staged(rows: &[StagedResource], now: Timestamp) -> Table<9> {
    let mut table = Table::new(["ID", "NAMESPACE", "OWNER", "SIZE", "AGE", "USED", "BY", "KEPT", "GOES"]);
    for row in rows {
        let by = row.uploaded_by.as_deref().unwrap_or("-");
        // Names of users may contain blanks, and columns may not.
        let by = by.split_whitespace().collect::<Vec<_>>().join("_");
        let kept = row.kept_because.as_deref().unwrap_or("-").to_owned();
        let [id, namespace, owner, size, age, used] = common(row, now);
        table.push([id, namespace, owner, size, age, used, by, kept, messages::ending(row, now)]);
    }
    table
}

/// The columns of deleted resources.
pub(super) fn deleted(rows: &[StagedResource], now: Timestamp) -> Table<8> {
    let mut table = Table::new(["ID", "NAMESPACE", "OWNER", "SIZE", "AGE", "USED", "DELETED", "BECAUSE"]);
    for row in rows {
        let at = row.deleted_at.map_or_else(|| "-".to_owned(), |at| time_between(at, now));
        let reason = row.deletion_reason.as_deref().unwrap_or("-").to_owned();
        let [id, namespace, owner, size, age, used] = common(row, now);
        table.push([id, namespace, owner, size, age, used, at, reason]);
    }
    table
}

fn common(row: &StagedResource, now: Timestamp) -> [String; 6] {
    [
        row.resource_id.clone(),
        row.owner.namespace.clone(),
        messages::owner(&row.owner),
        format_size(row.size_bytes).replace(' ', ""),
        time_between(row.created_at, now),
        row.last_used_at.map_or_else(|| "never".to_owned(), |at| time_between(at, now)),
    ]
}

#[cfg(test)]
mod tests {
    use cloakroom_core::resource::{DeletionReason, KeepReason};

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
        assert_eq!(staged(&rows(), now()).render(None), expected);
    }

    #[test]
    fn a_deleted_resource_is_shown_with_time_and_reason() {
        let mut row = row("4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1", None);
        row.owner.labels.clear();
        (row.deleted_at, row.deletion_reason) = (Some(now()), Some(DeletionReason::Orphaned.into()));
        let expected = "\
            ID                                    NAMESPACE  OWNER  SIZE  AGE  USED  DELETED  BECAUSE\n\
            4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1  demo       Pod    3MiB  3m   10s   0s       orphaned\n";
        assert_eq!(deleted(&[row], now()).render(None), expected);
    }
}
