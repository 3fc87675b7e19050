//! The admin's requests to the running server: list what is staged, tell why it is kept, remove it, start a sweep.
//!
//! Nothing here holds a secret, or anything that helps to guess one.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::WireName;
use super::status::{ClusterMatch, WatchState};
use super::v1::OwnerMetadata;
use crate::resource::{DeletionReason, KeepReason, State};

/// The path of all staged resources.
pub const RESOURCES: &str = "/admin/v1/resources";
/// The path at which an admin asks for a sweep.
pub const SWEEPS: &str = "/admin/v1/sweeps";

/// Where an admin lets sweeps delete again.
pub const RESUME_DELETIONS: &str = "/admin/v1/resume-deletions";
/// The path of the server's status.
pub const STATUS: &str = "/admin/v1/status";

/// The path at which an admin accepts a cluster.
pub fn cluster_path(uid: impl fmt::Display) -> String {
    format!("/admin/v1/clusters/{uid}")
}

/// The path of one resource.
pub fn resource_path(id: impl fmt::Display) -> String {
    format!("{RESOURCES}/{id}")
}

/// The query parameters of a list, of a removal, and of a sweep.
pub mod query {
    /// Only resources whose ids come after this one: the `next` of the page before.
    pub const AFTER: &str = "after";
    /// The largest number of resources on a page.
    pub const LIMIT: &str = "limit";
    /// Only owners in this namespace.
    pub const NAMESPACE: &str = "namespace";
    /// Only owners of this kind.
    pub const KIND: &str = "kind";
    /// Only owners with this label, `KEY=VALUE`; repeatable.
    pub const LABEL: &str = "label";
    /// Only the owner of this name.
    pub const NAME: &str = "name";
    /// Only resources that are kept for this reason. Repeatable: one match is enough.
    pub const WHY: &str = "why";
    /// `true`: only resources that were never downloaded.
    pub const UNUSED: &str = "unused";
    /// Only resources that were staged at least this long ago.
    pub const OLDER_THAN: &str = "olderThan";
    /// Only resources whose ids begin with this text.
    pub const ID: &str = "id";
    /// `true`: deleted resources that are remembered, in place of staged ones.
    pub const DELETED: &str = "deleted";
    /// `true`: a sweep removes all bytes without a resource that the server has found, whatever their age.
    pub const STRAYS: &str = "strays";
    /// A sweep no longer holds back the deletions of this namespace, or of `all`.
    pub const RELEASE_HELD: &str = "releaseHeld";
    /// All parameters of a list.
    pub const OF_LIST: [&str; 11] =
        [AFTER, LIMIT, NAMESPACE, KIND, LABEL, NAME, WHY, UNUSED, OLDER_THAN, ID, DELETED];
}

/// The largest number of resources that one page may have.
pub const MAX_PAGE: usize = 1000;

/// The value of [`query::RELEASE_HELD`] for all namespaces. A namespace of that name is released with all others.
pub const EVERYWHERE: &str = "all";

/// The value of [`query::WHY`] that selects resources that the next sweep deletes.
pub const DUE: &str = "due";

/// One page of staged resources.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourcePage {
    /// The server's time, from which ages are counted.
    pub now: Timestamp,
    /// The resources of this page, in the order of their ids.
    pub resources: Vec<StagedResource>,
    /// The `after` of the next page; absent on the last one. A page may have fewer than its limit and still not be the
    /// last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A resource in a list.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StagedResource {
    /// Names the resource. Not a secret.
    pub resource_id: String,
    /// The objects that it lives for.
    pub owner: OwnerMetadata,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// When it was acknowledged.
    pub created_at: Timestamp,
    /// Its last download; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    /// Why it is kept, in one word such as `owner-present`. Absent if the next sweep deletes it, or if it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub kept_because: Option<WireName<KeepReason>>,
    /// When time alone will delete it, if nothing else changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Why the next sweep deletes it. The log and a later 410 have the same word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub due_because: Option<WireName<DeletionReason>>,
    /// Who uploaded it: the name of the upload token or of the cluster's user, otherwise the address of the peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploaded_by: Option<String>,
    /// When it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// Why it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub deletion_reason: Option<WireName<DeletionReason>>,
}

/// All that the server knows of one resource. Of the owner of a deleted one it knows only kind and namespace.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDetails {
    /// The server's time, from which ages are counted.
    pub now: Timestamp,
    /// The same fields as in a list.
    #[serde(flatten)]
    pub resource: StagedResource,
    /// `ready`, `deleting` or `deleted`.
    #[schema(value_type = String)]
    pub state: WireName<State>,
    /// SHA-256 of its bytes, in hexadecimal digits; a tombstone has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The name that it was uploaded under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
    /// How long it may stay without being downloaded, such as `30m`.
    pub unused_timeout: String,
    /// The upper bound on its life, such as `2h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
    /// Its first download.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_used_at: Option<Timestamp>,
    /// When its owner was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_seen_at: Option<Timestamp>,
    /// Since when its owner has been missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_absent_since: Option<Timestamp>,
    /// Since when all pods that own it have been finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_finished_since: Option<Timestamp>,
}

/// The answer to a removal.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Removal {
    /// Names the resource.
    pub resource_id: String,
    /// `true` if this request removed it, `false` if it was gone already.
    pub removed: bool,
    /// How many bytes it had; absent if the server cannot read its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Why it was gone already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub deletion_reason: Option<WireName<DeletionReason>>,
    /// Since when it was gone already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
}

/// What a sweep did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SweepReport {
    /// Whether it deleted nothing because the ledger is an earlier copy.
    #[serde(default)]
    pub ledger_behind: bool,
    /// How many resources it deleted, by reason.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub deleted: BTreeMap<WireName<DeletionReason>, u64>,
    /// How many resources it kept, by reason.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub kept: BTreeMap<WireName<KeepReason>, u64>,
    /// How many deletions it held back, because more than half of all owners vanished at once, which is more likely a
    /// mistake.
    pub held: u64,
    /// The same, by namespace. Absent from servers that do not count by namespace.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub held_in: BTreeMap<String, u64>,
    /// How many uploads it cleared away that a crash had interrupted.
    pub interrupted_uploads: u64,
    /// How many interrupted deletions it finished.
    pub interrupted_deletions: u64,
    /// How many files it removed that belong to no resource.
    pub stray_files: u64,
    /// How many tombstones it removed after their seven days.
    pub forgotten_tombstones: u64,
    /// How many tombstones it removed earlier, because there were too many. Absent from servers before this limit.
    #[serde(default)]
    pub dropped_tombstones: u64,
}

/// The state of the server.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    /// The server's version.
    pub version: String,
    /// The server's time.
    pub now: Timestamp,
    /// Whether the server asks a cluster about owners.
    pub owners_asked: bool,
    /// Which cluster it asks; absent before the first question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterStatus>,
    /// Whether the ledger is an earlier copy than the one that its store has seen. Then no sweep deletes anything until an admin
    /// resumes deletions.
    #[serde(default)]
    pub ledger_behind: bool,
    /// How many resources this version of the server cannot read. It keeps them.
    #[serde(default)]
    pub unreadable_resources: u64,
    /// How many of them have a damaged id. As long as there is one, no stray is removed unless an admin asks for it.
    #[serde(default)]
    pub damaged_ids: u64,
    /// The first of the others.
    #[serde(default)]
    pub unreadable: Vec<UnreadableResource>,
    /// Strays: whole bundles that belong to no resource, because the ledger was lost or replaced. The server keeps them for
    /// its `--stray-age`.
    #[serde(default)]
    pub strays: u64,
    /// Bytes of all strays, each counted as 4 KiB or more.
    #[serde(default)]
    pub stray_bytes: u64,
    /// The watches of owners. There is none before the first resource is staged for a kind.
    pub watches: Vec<WatchStatus>,
    /// Bytes of all staged bundles.
    pub stored_bytes: u64,
    /// Bytes free on the data directory's disk; absent if the server cannot find out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// The limits of the server.
    pub limits: ServerLimits,
    /// Uploads in flight.
    pub uploads_in_flight: u64,
    /// Downloads in flight.
    pub downloads_in_flight: u64,
    /// When the last sweep ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sweep_at: Option<Timestamp>,
    /// What the last sweep did; absent if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sweep: Option<SweepReport>,
    /// When the next sweep begins, unless an admin asks for one earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_sweep_at: Option<Timestamp>,
}

/// A resource that this version of the server cannot read. The server keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnreadableResource {
    /// Its id.
    pub resource_id: String,
    /// The first column of the ledger that cannot be read.
    pub column: String,
    /// The namespace of its owner; absent if that cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// How many bytes it has; absent if that cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
}

/// Which cluster the server asks about owners, by the uid of its namespace `kube-system`, when the server last checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// `same`: the cluster that owners were seen in. `other`: another cluster, or one that no longer shows its uid; no
    /// resource is deleted for lack of an owner. `unchecked`: no uid is known, and none can be read. `not-asked`: the
    /// cluster has not answered yet.
    #[schema(value_type = String)]
    pub state: WireName<ClusterMatch>,
    /// The uid that the server remembers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<String>,
    /// The uid of the cluster that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// Why the server cannot read the uid of the cluster that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Whether the last question to the API server got no answer, or an error. `state` and `seen` are then from before,
    /// and `failure` says why. No cluster can be accepted then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
}

/// Stands in place of the uid if a cluster does not show its uid.
pub const WITHOUT_UID: &str = "without-uid";

/// The answer to an admin who accepts the cluster that now answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedCluster {
    /// The uid that the server remembers from now on; absent if it remembers none, and checks none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<String>,
    /// The uid that it remembered before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_before: Option<String>,
}

/// The answer to an admin who lets sweeps delete again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResumedDeletions {
    /// Whether the ledger was an earlier copy; otherwise nothing was changed.
    pub was_behind: bool,
}

/// The limits of a server. Sizes are in bytes.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerLimits {
    /// The largest size of one bundle.
    pub max_resource_size: u64,
    /// The largest size of all bundles together; absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_total_size: Option<u64>,
    /// How much of the disk must stay free.
    pub min_free_space: u64,
    /// Resources at once; absent from servers before this limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_resources: Option<u64>,
    /// Uploads at once.
    pub max_concurrent_uploads: u64,
    /// Downloads at once.
    pub max_concurrent_downloads: u64,
    /// How much of all these limits one namespace may have, in percent; absent if there are no shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_percent: Option<u8>,
}

/// One watch of owners.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatchStatus {
    /// The kind of owner that it watches.
    pub kind: String,
    /// The namespace that it watches; absent if it watches all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Whether it is the second watch of pods, which sees only pods that are not finished.
    pub unfinished_only: bool,
    /// `starting`, `ready`, `forbidden`, `failing`, `no-such-kind` or `namespace-gone`.
    #[schema(value_type = String)]
    pub state: WireName<WatchState>,
    /// Since when it has been in this state.
    pub since: Timestamp,
    /// What last went wrong; absent if nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
}
