//! What an admin asks of the running server: what is staged, why it is kept, and that it goes.
//!
//! Nothing here has a secret in it, or anything that one could be found out from.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Word;
use super::standing::{ClusterStanding, WatchState};
use super::v1::OwnerMetadata;
use crate::resource::{DeletionReason, State, Why};

/// Everything that is staged.
pub const RESOURCES: &str = "/admin/v1/resources";
/// Sweeps that somebody asks for.
pub const SWEEPS: &str = "/admin/v1/sweeps";
/// How the server is.
pub const STATUS: &str = "/admin/v1/status";

/// The path at which a cluster is accepted.
pub fn cluster_path(uid: impl fmt::Display) -> String {
    format!("/admin/v1/clusters/{uid}")
}

/// The path of one resource.
pub fn resource_path(id: impl fmt::Display) -> String {
    format!("{RESOURCES}/{id}")
}

/// The query parameters of a list, and of a removal.
pub mod query {
    /// Only after this one, in the order of ids: the `next` of the page before.
    pub const AFTER: &str = "after";
    /// At most so many on a page.
    pub const LIMIT: &str = "limit";
    /// Only owners in this namespace.
    pub const NAMESPACE: &str = "namespace";
    /// Only owners of this kind.
    pub const KIND: &str = "kind";
    /// Only owners with this label, `KEY=VALUE`; repeatable.
    pub const LABEL: &str = "label";
    /// Only the owner of this name.
    pub const NAME: &str = "name";
    /// Only what is kept for this reason; repeatable, and one of them is enough.
    pub const WHY: &str = "why";
    /// `true`: only what nobody has downloaded.
    pub const UNUSED: &str = "unused";
    /// Only what was staged at least so long ago.
    pub const OLDER_THAN: &str = "olderThan";
    /// Only resources whose ids begin so.
    pub const ID: &str = "id";
    /// `true`: what is deleted and remembered, in place of what is staged.
    pub const DELETED: &str = "deleted";
    /// All parameters of a list.
    pub const OF_LIST: [&str; 11] =
        [AFTER, LIMIT, NAMESPACE, KIND, LABEL, NAME, WHY, UNUSED, OLDER_THAN, ID, DELETED];
}

/// The most that one page has.
pub const MAX_PAGE: usize = 1000;

/// What [`query::WHY`] says for what the next sweep deletes.
pub const DUE: &str = "due";

/// One page of what is staged.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourcePage {
    /// The server's time, from which ages are counted.
    #[schema(value_type = String, format = DateTime)]
    pub now: Timestamp,
    /// In the order of their ids.
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
    /// Whom it is for.
    pub owner: OwnerMetadata,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// When it was acknowledged.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Its last download; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_used_at: Option<Timestamp>,
    /// Why it is kept, in one word such as `owner-present`; absent if the next sweep deletes it, or if it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub kept_because: Option<Word<Why>>,
    /// When time alone will delete it, as things stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Why the next sweep deletes it, in the word that the log and a later 410 have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub due_because: Option<Word<DeletionReason>>,
    /// Who uploaded it: the name of the upload token or of the cluster's user, else the address that the upload came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploaded_by: Option<String>,
    /// When it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deleted_at: Option<Timestamp>,
    /// Why it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub deletion_reason: Option<Word<DeletionReason>>,
}

/// All that the server knows of one resource, or of its tombstone: of that one's owner only kind and namespace.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDetails {
    /// The server's time, from which ages are counted.
    #[schema(value_type = String, format = DateTime)]
    pub now: Timestamp,
    /// What a list has of it.
    #[serde(flatten)]
    pub resource: StagedResource,
    /// `ready`, `deleting` or `deleted`.
    #[schema(value_type = String)]
    pub state: Word<State>,
    /// SHA-256 of its bytes, in hexadecimal digits; a tombstone has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The name it was uploaded under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
    /// How long it may stay without being downloaded, such as `30m`.
    pub unused_timeout: String,
    /// The upper bound on its life, such as `2h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
    /// Its first download.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub first_used_at: Option<Timestamp>,
    /// When its owner was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub owner_seen_at: Option<Timestamp>,
    /// Since when its owner is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub owner_absent_since: Option<Timestamp>,
    /// Since when all pods that own it are finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub owner_finished_since: Option<Timestamp>,
}

/// The answer to a removal.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Removal {
    /// Names the resource.
    pub resource_id: String,
    /// `true` if it went by this request, `false` if it was gone already.
    pub removed: bool,
    /// How many bytes it had; absent if the server cannot read that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Why it was gone already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub deletion_reason: Option<Word<DeletionReason>>,
    /// Since when it was gone already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deleted_at: Option<Timestamp>,
}

/// What a sweep did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SweepReport {
    /// How many resources it deleted, by reason.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub deleted: BTreeMap<Word<DeletionReason>, u64>,
    /// How many it kept, by why.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub kept: BTreeMap<Word<Why>, u64>,
    /// How many it held back because more than half of all used resources at once is more likely a mistake.
    pub held: u64,
    /// Uploads that a crash had interrupted, cleared away.
    pub interrupted_uploads: u64,
    /// Deletions that had been interrupted, finished.
    pub interrupted_deletions: u64,
    /// Files that belong to no resource, removed.
    pub stray_files: u64,
    /// Tombstones that had served their seven days.
    pub forgotten_tombstones: u64,
    /// Tombstones that went before, because there were too many; absent from servers before this limit.
    #[serde(default)]
    pub dropped_tombstones: u64,
}

/// How the server is.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    /// The server's version.
    pub version: String,
    /// The server's time.
    #[schema(value_type = String, format = DateTime)]
    pub now: Timestamp,
    /// Whether a cluster is asked about owners.
    pub owners_asked: bool,
    /// Which cluster that is; absent before it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterStatus>,
    /// Resources that this version of the server cannot read, and keeps.
    #[serde(default)]
    pub unreadable_resources: u64,
    /// The first of them.
    #[serde(default)]
    pub unreadable: Vec<UnreadableResource>,
    /// The watches of owners; none before the first resource is staged for a kind.
    pub watches: Vec<WatchStatus>,
    /// Bytes of everything that is staged.
    pub stored_bytes: u64,
    /// Free on the data directory's disk; absent if that cannot be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// What the server takes on.
    pub limits: ServerLimits,
    /// Uploads going on.
    pub uploads_in_flight: u64,
    /// Downloads going on.
    pub downloads_in_flight: u64,
    /// When the last sweep ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_sweep_at: Option<Timestamp>,
    /// What it did; absent if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sweep: Option<SweepReport>,
    /// When the next one begins, unless somebody asks for one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_sweep_at: Option<Timestamp>,
}

/// A resource that this version of the server cannot read, and keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnreadableResource {
    /// Its id; where that is damaged, `damaged-` and its bytes in hexadecimal digits. A removal takes either.
    pub resource_id: String,
    /// The column of the ledger that cannot be read.
    pub column: String,
    /// The namespace of its owner, if that can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// How many bytes it has, if that can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
}

/// Which cluster is asked about owners, by the uids of the namespace `kube-system`, as the server found it out last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// `same`: the one that owners were seen in. `other`: another one, or one that does not show its uid any more; nothing
    /// goes for lack of an owner. `unchecked`: no uid is known, and none can be read. `not-asked`: there was no answer yet.
    #[schema(value_type = String)]
    pub state: Word<ClusterStanding>,
    /// The uid that the server knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<String>,
    /// The uid of the cluster that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// Why the uid of the cluster that answers cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Whether the API server did not answer when it was asked last, or with an error: `state` and `seen` are from before,
    /// `failure` says why. No cluster can be accepted then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
}

/// What names a cluster whose uid cannot be read, in place of the uid.
pub const WITHOUT_UID: &str = "without-uid";

/// The answer to an admin who accepts the cluster that answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedCluster {
    /// The uid that the server knows from now on; absent if it knows none, and checks none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<String>,
    /// The one that it knew before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_before: Option<String>,
}

/// How much a server takes on. Sizes are in bytes.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerLimits {
    /// Of one bundle.
    pub max_resource_size: u64,
    /// Of all bundles together; absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_total_size: Option<u64>,
    /// Of the disk, to leave free.
    pub min_free_space: u64,
    /// Resources at once; absent from servers before this limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_resources: Option<u64>,
    /// Uploads at once.
    pub max_concurrent_uploads: u64,
    /// Downloads at once.
    pub max_concurrent_downloads: u64,
    /// What one namespace may have of all these, in percent; absent where there are no shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_percent: Option<u8>,
}

/// One watch of owners.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatchStatus {
    /// What it watches.
    pub kind: String,
    /// Where; absent if everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Whether it is the second watch of pods, of those that are not finished.
    pub unfinished_only: bool,
    /// `starting`, `ready`, `forbidden`, `failing`, `no-such-kind` or `namespace-gone`.
    #[schema(value_type = String)]
    pub state: Word<WatchState>,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
}
