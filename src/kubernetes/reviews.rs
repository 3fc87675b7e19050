//! Who shows a bearer token, and whether that user may run pods in a namespace: the API server's word, kept shortly.

mod cache;
mod user;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Resource;
use kube::api::{PostParams, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use self::cache::{Cache, Key, key};
use super::{ApiFailure, ApiServer};
use crate::clock::Clock;

pub use user::User;

/// A yes is good for so long: a token that is revoked, or a role that is taken away, works on until then.
const YES_LASTS: Duration = Duration::from_mins(1);

/// A no is good for so long: whoever is given a role need not wait, and guesses do not all reach the API server.
const NO_LASTS: Duration = Duration::from_secs(10);

/// Questions at once; more wait, within the time of a call.
const AT_ONCE: usize = 16;

/// Asks, and remembers the answers.
pub struct Reviews {
    server: ApiServer,
    clock: Arc<dyn Clock>,
    users: Mutex<Cache<Option<User>>>,
    permissions: Mutex<Cache<bool>>,
    slots: Semaphore,
}

/// Why a caller does not pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// The token is nobody's, or no longer good.
    #[error("the cluster does not know this token, or it has run out")]
    NotAuthenticated,
    /// The user may not.
    #[error("{user} may not create pods in the namespace {namespace}")]
    Forbidden {
        /// The user's name in the cluster.
        user: String,
        /// The namespace.
        namespace: String,
    },
    /// There is no answer, which is not a yes.
    #[error("the API server cannot be asked who may upload")]
    Unanswered(#[from] ApiFailure),
}

impl Reviews {
    /// Asks `server`; `clock` says how old an answer is.
    pub fn new(server: ApiServer, clock: Arc<dyn Clock>) -> Self {
        let (users, permissions) = (Mutex::default(), Mutex::default());
        Self { server, clock, users, permissions, slots: Semaphore::new(AT_ONCE) }
    }

    /// Whose token this is.
    pub async fn authenticate(&self, token: &str) -> Result<User, ReviewError> {
        let key = key(&[token.as_bytes()]);
        let known = locked(&self.users).get(&key, self.clock.monotonic());
        let user = if let Some(user) = known {
            user
        } else {
            let user = self.review_token(token, key).await?;
            self.remember(&self.users, key, user.clone(), user.is_some());
            user
        };
        user.ok_or(ReviewError::NotAuthenticated)
    }

    /// Lets the user pass who may create pods in `namespace`.
    pub async fn may_create_pods(&self, user: &User, namespace: &str) -> Result<(), ReviewError> {
        let key = key(&[&user.key, namespace.as_bytes()]);
        let known = locked(&self.permissions).get(&key, self.clock.monotonic());
        let is_allowed = if let Some(is_allowed) = known {
            is_allowed
        } else {
            let is_allowed = self.review_access(user, namespace).await?;
            self.remember(&self.permissions, key, is_allowed, is_allowed);
            is_allowed
        };
        if is_allowed {
            return Ok(());
        }
        Err(ReviewError::Forbidden { user: user.name().to_owned(), namespace: namespace.to_owned() })
    }

    fn remember<V: Clone>(&self, cache: &Mutex<Cache<V>>, key: Key, value: V, is_yes: bool) {
        let lasts = if is_yes { YES_LASTS } else { NO_LASTS };
        locked(cache).put(key, value, self.clock.monotonic(), lasts);
    }

    async fn review_token(&self, token: &str, key: Key) -> Result<Option<User>, ApiFailure> {
        let spec = TokenReviewSpec { token: Some(token.to_owned()), audiences: None };
        let review = TokenReview { spec, ..TokenReview::default() };
        let status = self.create(&review).await?.status.unwrap_or_default();
        if status.authenticated != Some(true) {
            return Ok(None);
        }
        let user = status.user.and_then(|user| User::new(user, key));
        let unreadable =
            || ApiFailure::Unreadable { why: "a token was accepted, and no user is named".to_owned() };
        user.map(Some).ok_or_else(unreadable)
    }

    async fn review_access(&self, user: &User, namespace: &str) -> Result<bool, ApiFailure> {
        let pods = ResourceAttributes {
            namespace: Some(namespace.to_owned()),
            verb: Some("create".to_owned()),
            resource: Some("pods".to_owned()),
            ..ResourceAttributes::default()
        };
        let spec = SubjectAccessReviewSpec { resource_attributes: Some(pods), ..user.as_subject() };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        Ok(self.create(&review).await?.status.is_some_and(|status| status.allowed))
    }

    /// Not by [`kube::Api::create`], which logs an answer that it cannot read: a token is in it.
    async fn create<K>(&self, review: &K) -> Result<K, ApiFailure>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        let unreadable = |why: &str| ApiFailure::Unreadable { why: why.to_owned() };
        let body = serde_json::to_vec(review).map_err(|_| unreadable("the question cannot be written"))?;
        let request = Request::new(K::url_path(&(), None)).create(&PostParams::default(), body);
        let request = request.map_err(|error| unreadable(&error.to_string()))?;
        let client = self.server.client();
        let answer = self.server.call(async {
            // The semaphore is never closed.
            let _slot = self.slots.acquire().await;
            client.request_text(request).await
        });
        serde_json::from_str(&answer.await?).map_err(|_| unreadable("it is no review"))
    }
}

fn locked<V>(cache: &Mutex<Cache<V>>) -> std::sync::MutexGuard<'_, Cache<V>> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows whom it asks, and nobody's tokens.
impl std::fmt::Debug for Reviews {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reviews").field("server", &self.server).finish_non_exhaustive()
    }
}
