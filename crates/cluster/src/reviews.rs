//! Reviews by the API server: which user a bearer token belongs to, and whether that user may stage in a namespace. Answers
//! are kept for a short time.

mod accepted;
mod cache;
mod unknown;
mod user;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Resource;
use kube::api::{PostParams, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use self::accepted::TokenPurpose;
use self::cache::{Cache, Key, key};
use self::unknown::UnknownTokens;
use super::{ApiFailure, ApiServer};
use cloakroom_core::client::Host;
use cloakroom_core::clock::Clock;
use cloakroom_core::lock::lock;
use cloakroom_core::metrics::{LimitUse, Limited};

pub use accepted::AcceptedTokens;
pub use user::User;

/// How long a positive answer is used. A token or a role that is revoked works on until then.
const YES_LASTS: Duration = Duration::from_mins(1);

/// How long a negative answer is used. It is short, so that a user need not wait long after getting a role. It still
/// keeps repeated guesses away from the API server.
const NO_LASTS: Duration = Duration::from_secs(10);

/// Reviews at once of tokens that were valid before and of known users. More of them wait, at most for the time of a
/// call.
const AT_ONCE: usize = 12;

/// Asks the API server, and keeps its answers for a while.
pub struct Reviews {
    server: ApiServer,
    accepted: AcceptedTokens,
    clock: Arc<dyn Clock>,
    /// The three caches are separate, so that refused tokens displace no valid ones.
    users: Mutex<Cache<User>>,
    refused: Mutex<Cache<()>>,
    permissions: Mutex<Cache<bool>>,
    slots: Semaphore,
    unknown: UnknownTokens,
    turns: UserTurns,
}

/// Why a caller is not let in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// The token is unknown to the cluster, is for another audience, or has expired.
    #[error("the cluster knows no such token for {accepted}, or it has run out")]
    NotAuthenticated { accepted: String },
    /// The user lacks the right in the namespace.
    #[error("{user} may not create {resource} in the namespace {namespace}")]
    Forbidden { user: String, resource: String, namespace: String },
    /// Too many reviews of unknown tokens are waiting.
    #[error("too many tokens that are not known yet are shown at once")]
    TooManyUnknown,
    /// The API server did not answer. This does not count as permission.
    #[error("the API server cannot be asked who may upload")]
    Unanswered(#[from] ApiFailure),
}

impl Reviews {
    /// Sends reviews of `accepted` tokens to `server`; `clock` measures the age of answers.
    pub fn new(server: ApiServer, accepted: AcceptedTokens, clock: Arc<dyn Clock>) -> Self {
        Self {
            server,
            accepted,
            clock,
            users: Mutex::default(),
            refused: Mutex::default(),
            permissions: Mutex::default(),
            slots: Semaphore::new(AT_ONCE),
            unknown: UnknownTokens::default(),
            turns: UserTurns::default(),
        }
    }

    /// The tokens that are taken.
    pub fn accepted(&self) -> &AcceptedTokens {
        &self.accepted
    }

    /// The refusal of a token that is not good here.
    pub fn not_authenticated(&self) -> ReviewError {
        ReviewError::NotAuthenticated { accepted: self.accepted.to_string() }
    }

    /// How much of the limits for concurrent reviews is in use.
    pub fn limits(&self) -> [LimitUse; 2] {
        let reviews = AT_ONCE.saturating_sub(self.slots.available_permits());
        [
            LimitUse::from_counts(Limited::Reviews, reviews, AT_ONCE),
            LimitUse::from_counts(Limited::UnknownTokens, self.unknown.count(), unknown::MOST),
        ]
    }

    /// The user of a token, if the answer to an earlier review still holds. This asks nothing.
    pub fn known(&self, token: &str) -> Option<User> {
        self.known_by(&key(&[token.as_bytes()]))
    }

    fn known_by(&self, key: &Key) -> Option<User> {
        lock(&self.users).get(key, self.clock.monotonic())
    }

    /// Finds the user of a token that a request from `host` shows.
    pub async fn authenticate(&self, token: &str, host: Host) -> Result<User, ReviewError> {
        let key = key(&[token.as_bytes()]);
        if let Some(user) = self.known_by(&key) {
            return Ok(user);
        }
        if lock(&self.refused).get(&key, self.clock.monotonic()).is_some() {
            return Err(self.not_authenticated());
        }
        let was_good = lock(&self.users).has(&key);
        let reviewed = if was_good {
            self.review_token(token, key, Some(&self.slots)).await?
        } else {
            self.review_unknown(token, key, host).await?
        };
        let Some(user) = reviewed else {
            lock(&self.users).remove(&key);
            self.remember(&self.refused, key, (), NO_LASTS);
            return Err(self.not_authenticated());
        };
        self.remember(&self.users, key, user.clone(), YES_LASTS);
        Ok(user)
    }

    /// The wait for a place is a part of the call's time.
    async fn review_unknown(&self, token: &str, key: Key, host: Host) -> Result<Option<User>, ReviewError> {
        let after = self.server.call_timeout();
        let reviewing = async {
            let _place = self.unknown.enter(host).await.ok_or(ReviewError::TooManyUnknown)?;
            Ok(self.review_token(token, key, None).await?)
        };
        let reviewed = tokio::time::timeout(after, reviewing).await;
        reviewed.unwrap_or(Err(ReviewError::Unanswered(ApiFailure::TimedOut { after })))
    }

    /// Checks that the user may stage for owners in `namespace`: may create bundles there, or pods if the token is one for
    /// the API server.
    pub async fn may_stage_in(&self, user: &User, namespace: &str) -> Result<(), ReviewError> {
        let key = key(&[&user.key, namespace.as_bytes()]);
        let known = lock(&self.permissions).get(&key, self.clock.monotonic());
        let is_allowed = if let Some(is_allowed) = known {
            is_allowed
        } else {
            let is_allowed = self.review_access(user, namespace).await?;
            self.remember(&self.permissions, key, is_allowed, if is_allowed { YES_LASTS } else { NO_LASTS });
            is_allowed
        };
        if is_allowed {
            return Ok(());
        }
        let resource = match user.purpose.needed_right() {
            (Some(group), resource) => format!("{resource}.{group}"),
            (None, resource) => resource.to_owned(),
        };
        Err(ReviewError::Forbidden {
            user: user.name().to_owned(),
            resource,
            namespace: namespace.to_owned(),
        })
    }

    fn remember<V: Clone>(&self, cache: &Mutex<Cache<V>>, key: Key, value: V, lasts: Duration) {
        lock(cache).put(key, value, self.clock.monotonic(), lasts);
    }

    async fn review_token(
        &self,
        token: &str,
        key: Key,
        slots: Option<&Semaphore>,
    ) -> Result<Option<User>, ApiFailure> {
        let purpose = self.accepted.purpose(token);
        // Without an audience, the API server takes its own.
        let audience = (purpose == TokenPurpose::Uploads).then(|| self.accepted.audience.clone());
        let spec =
            TokenReviewSpec { token: Some(token.to_owned()), audiences: audience.clone().map(|it| vec![it]) };
        let review = TokenReview { spec, ..TokenReview::default() };
        let status = self.create(&review, slots).await?.status.unwrap_or_default();
        if status.authenticated != Some(true) {
            return Ok(None);
        }
        // An authenticator that knows no audiences names none: its token could be for another program. A token with further
        // audiences is good elsewhere too, so this server must not see it.
        if let Some(audience) = audience {
            let is_named = status.audiences.unwrap_or_default().contains(&audience);
            if !is_named || accepted::is_for_more_than(&audience, token) {
                return Ok(None);
            }
        }
        let user = status.user.and_then(|user| User::new(user, key, purpose));
        let unreadable =
            || ApiFailure::Unreadable { why: "a token was accepted, and no user is named".to_owned() };
        user.map(Some).ok_or_else(unreadable)
    }

    async fn review_access(&self, user: &User, namespace: &str) -> Result<bool, ApiFailure> {
        let (group, resource) = user.purpose.needed_right();
        let wanted = ResourceAttributes {
            namespace: Some(namespace.to_owned()),
            verb: Some("create".to_owned()),
            group: group.map(str::to_owned),
            resource: Some(resource.to_owned()),
            ..ResourceAttributes::default()
        };
        let spec = SubjectAccessReviewSpec { resource_attributes: Some(wanted), ..user.as_subject() };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let of_user = self.turns.of(user.name());
        Ok(self.create(&review, [&*of_user, &self.slots]).await?.status.is_some_and(|status| status.allowed))
    }

    /// Sends a review after it has a turn of each of `slots`.
    ///
    /// It does not use [`kube::Api::create`], which logs an answer that it cannot read, and a token is in the answer.
    async fn create<'s, K>(
        &self,
        review: &K,
        slots: impl IntoIterator<Item = &'s Semaphore>,
    ) -> Result<K, ApiFailure>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        let unreadable = |why: &str| ApiFailure::Unreadable { why: why.to_owned() };
        let body = serde_json::to_vec(review).map_err(|_| unreadable("the question cannot be written"))?;
        let request = Request::new(K::url_path(&(), None)).create(&PostParams::default(), body);
        let request = request.map_err(|error| unreadable(&error.to_string()))?;
        let client = self.server.client();
        let answer = self.server.call(async {
            let mut turns = Vec::new();
            for slots in slots {
                // The semaphores are never closed, so this is never an error.
                turns.push(slots.acquire().await);
            }
            client.request_text(request).await
        });
        serde_json::from_str(&answer.await?).map_err(|_| unreadable("it is no review"))
    }
}

/// Shows only the API server's address, and no token.
impl std::fmt::Debug for Reviews {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reviews").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Questions at once about one user. Without this limit, one user could fill all slots with made-up namespaces.
const OF_USER_AT_ONCE: usize = 2;

/// The turns of each user that has a question open, by the user's name: the questions about one user keep no other user
/// waiting.
#[derive(Debug, Default)]
struct UserTurns(Mutex<HashMap<Box<str>, Weak<Semaphore>>>);

impl UserTurns {
    /// The turns of this user. It forgets users that have no question open.
    fn of(&self, user: &str) -> Arc<Semaphore> {
        let mut all = lock(&self.0);
        all.retain(|_, turns| turns.strong_count() > 0);
        let turns = all.get(user).and_then(Weak::upgrade);
        turns.unwrap_or_else(|| {
            let turns = Arc::new(Semaphore::new(OF_USER_AT_ONCE));
            all.insert(user.into(), Arc::downgrade(&turns));
            turns
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_turns_of_its_own_as_long_as_something_is_asked_about_it() {
        let all = UserTurns::default();
        let (first, second, other) = (all.of("jo"), all.of("jo"), all.of("mo"));
        assert!(Arc::ptr_eq(&first, &second) && !Arc::ptr_eq(&first, &other));
        drop((first, second));
        all.of("mo");
        assert_eq!(all.0.lock().unwrap().len(), 1, "nothing is asked about jo any more");
    }
}
