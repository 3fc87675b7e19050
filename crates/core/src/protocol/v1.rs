//! cloakroom's own protocol, version 1.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::WireName;
use crate::resource::{KeepReason, Owner, State, named};

/// The path at which bundles are staged.
pub const RESOURCES: &str = "/api/v1/resources";

/// The path at which the server describes itself.
pub const INFO: &str = "/api/v1";

/// The query parameters of an upload.
pub mod query {
    /// The owner's namespace. Required.
    pub const NAMESPACE: &str = "namespace";
    /// A label of the owner, `KEY=VALUE`; repeatable.
    pub const LABEL: &str = "label";
    /// The owner's name.
    pub const NAME: &str = "name";
    /// The owner's kind.
    pub const KIND: &str = "kind";
    /// Upper bound on the resource's life.
    pub const TTL: &str = "ttl";
    /// How long it may stay without a download.
    pub const UNUSED_TIMEOUT: &str = "unusedTimeout";
    /// All parameters of an upload.
    pub const ALL: [&str; 6] = [NAMESPACE, LABEL, NAME, KIND, TTL, UNUSED_TIMEOUT];
}

/// The path of one resource.
pub fn resource_path(id: impl fmt::Display) -> String {
    format!("{RESOURCES}/{id}")
}

/// The path of one resource's metadata.
pub fn metadata_path(id: impl fmt::Display) -> String {
    format!("{RESOURCES}/{id}/metadata")
}

/// The path of the read keys of one resource.
pub fn keys_path(id: impl fmt::Display) -> String {
    format!("{RESOURCES}/{id}/keys")
}

/// The query parameter of a read key in a download. Spark hides the values of properties that have this word in them.
pub const READ_KEY: &str = "token";

/// The path at which bundles are staged that have parts of another one.
pub fn spliced_path(source: impl fmt::Display) -> String {
    format!("{RESOURCES}/{source}/spliced")
}

/// The credential that uploads need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadAuthKind {
    /// Nothing: each client that reaches the server may upload.
    None,
    /// A token that the admin gives out.
    Token,
    /// A token of the cluster.
    Kubernetes,
}

named!(UploadAuthKind { None => "none", Token => "token", Kubernetes => "kubernetes" });

/// What a client may ask of the server before it stages anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerInfo {
    /// The version of the server.
    pub version: String,
    /// The image of init-containers that fetch, if the server knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch_image: Option<String>,
    /// How URLs begin for clients outside of the cluster, if the admin has said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// How URLs begin for pods, if the admin has said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_url: Option<String>,
    /// The credential that uploads need: `none`, `token` or `kubernetes`. An older server does not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub upload_auth: Option<WireName<UploadAuthKind>>,
    /// The largest bundle that the server takes, in bytes. An older server does not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_resource_size: Option<u64>,
    /// The largest bundle that the server takes through Kubernetes' API server, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_proxied_size: Option<u64>,
    /// How long a read key may be good for, such as `7d`; with `0s` there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_key_ttl: Option<String>,
}

/// The answer to an upload.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ticket {
    /// Names the resource. Not a secret.
    pub resource_id: String,
    /// The secret that downloads need. It is never shown again.
    pub resource_secret: String,
    /// How many bytes were stored.
    pub size_bytes: u64,
    /// SHA-256 of the bytes, in hexadecimal digits.
    pub sha256: String,
    /// When the resource was acknowledged.
    pub created_at: Timestamp,
    /// When the resource expires if it is never downloaded.
    pub expires_at: Timestamp,
    /// The address to download it from.
    pub url: String,
}

/// Shows the id only, not the secret.
impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("resource_id", &self.resource_id).finish_non_exhaustive()
    }
}

/// The terms of a read key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadKeyTerms {
    /// How long the key is good for, such as `12h`; a day if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
}

/// A URL that downloads one resource without a ticket, until it ends.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyedUrl {
    /// The download's address, which contains the key. It is all that a reader of the bundle needs.
    pub url: String,
    /// When the key ends.
    pub expires_at: Timestamp,
}

/// Shows the time only, not the key.
impl fmt::Debug for KeyedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedUrl").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// What the server knows of a resource.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Names the resource.
    pub resource_id: String,
    /// Its state: `ready` for every resource that a ticket can ask about.
    #[schema(value_type = String)]
    pub state: WireName<State>,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
    /// The objects that it lives for.
    pub owner: OwnerMetadata,
    /// The name that it was uploaded under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
    /// When it was acknowledged.
    pub created_at: Timestamp,
    /// Its first download.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_used_at: Option<Timestamp>,
    /// Its last download.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    /// When time alone will delete it, if nothing else changes. Absent if only DELETE, or a change of its owner, will
    /// delete it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Why it is kept, in one word such as `owner-present`; absent if the next sweep deletes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub kept_because: Option<WireName<KeepReason>>,
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

/// The objects that a resource lives for.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnerMetadata {
    /// `Pod`, or `Kind.group`.
    pub kind: String,
    /// The namespace of the objects.
    pub namespace: String,
    /// Labels that all owning objects carry.
    pub labels: BTreeMap<String, String>,
    /// The name that the owning object must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl From<&Owner> for OwnerMetadata {
    fn from(owner: &Owner) -> Self {
        Self {
            kind: owner.kind().to_string(),
            namespace: owner.namespace().to_owned(),
            labels: owner.labels().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            name: owner.name().map(str::to_owned),
        }
    }
}
