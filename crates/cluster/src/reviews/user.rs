//! A user of the cluster, as the API server describes it.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::authentication::v1::UserInfo;
use k8s_openapi::api::authorization::v1::SubjectAccessReviewSpec;

use super::accepted::TokenPurpose;
use super::cache::Key;

/// The user that the API server found for a token.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    name: String,
    uid: Option<String>,
    groups: Option<Vec<String>>,
    extra: Option<BTreeMap<String, Vec<String>>>,
    /// The hash of the token.
    pub(super) key: Key,
    pub(super) purpose: TokenPurpose,
}

impl User {
    /// `None` if the API server gave no name.
    pub(super) fn new(info: UserInfo, key: Key, purpose: TokenPurpose) -> Option<Self> {
        let UserInfo { extra, groups, uid, username } = info;
        let name = username.filter(|name| !name.is_empty())?;
        Some(Self { name, uid, groups, extra, key, purpose })
    }

    /// The name in the cluster, such as `system:serviceaccount:spark:submitter`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Includes groups, uid and extra, because an authorizer may look at all of them.
    pub(super) fn as_subject(&self) -> SubjectAccessReviewSpec {
        SubjectAccessReviewSpec {
            user: Some(self.name.clone()),
            uid: self.uid.clone(),
            groups: self.groups.clone(),
            extra: self.extra.clone(),
            ..SubjectAccessReviewSpec::default()
        }
    }
}

/// Shows the name, and never the token's hash.
impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").field("name", &self.name).finish_non_exhaustive()
    }
}
