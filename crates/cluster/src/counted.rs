//! Counts every call to the API server, by its kind and its outcome.

use hyper::Method;
use hyper::http::Request;
use kube::Client;
use kube::client::Body;

use super::failure::label_of;
use cloakroom_core::metrics::{ApiCall, Metrics};

/// A client that counts its calls in `metrics`.
pub(super) fn counted(client: Client, metrics: Metrics) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, call) = (client.clone(), call_of(&request));
        let count = Count { metrics: metrics.clone(), call, outcome: "timeout" };
        async move {
            // This moves the whole `Count` into the future. Otherwise only the assigned field would be captured, and the
            // `Count` would be dropped before the answer.
            let mut count = count;
            let answer = client.send(request).await;
            count.outcome = match &answer {
                Ok(answer) => outcome_of(answer.status().as_u16()),
                Err(error) => label_of(error),
            };
            answer
        }
    });
    Client::new(service, "default")
}

/// Counts the call when it is dropped. If the caller stopped waiting before the answer, the outcome is `timeout`.
struct Count {
    metrics: Metrics,
    call: ApiCall,
    outcome: &'static str,
}

impl Drop for Count {
    fn drop(&mut self) {
        self.metrics.api_request(self.call, self.outcome);
    }
}

/// Finds the kind of a call. Lists and watches have it in their query; the rest are single objects and discovery
/// documents.
fn call_of<B>(request: &Request<B>) -> ApiCall {
    let has = |name: &str| {
        let mut pairs = request.uri().query().unwrap_or_default().split('&');
        pairs.any(|pair| pair.split('=').next() == Some(name))
    };
    // A discovery document is at `/api/v1`, `/apis/GROUP/VERSION`, or at a shorter path.
    let path: Vec<&str> = request.uri().path().split('/').filter(|part| !part.is_empty()).collect();
    let is_document = matches!(path.as_slice(), ["api" | "apis"] | ["api" | "apis", _] | ["apis", _, _]);
    let is_identity = matches!(path.as_slice(), ["api", "v1", "namespaces", "kube-system"]);
    if request.method() == Method::POST {
        ApiCall::Review
    } else if is_identity {
        ApiCall::Identify
    } else if has("watch") {
        ApiCall::Watch
    } else if is_document {
        ApiCall::Discover
    } else if has("limit") || has("labelSelector") || has("fieldSelector") {
        ApiCall::List
    } else {
        ApiCall::Get
    }
}

/// The outcome, in the values that `ApiFailure::label` has too.
fn outcome_of(status: u16) -> &'static str {
    match status {
        200..=299 => "ok",
        401 => "401",
        403 => "403",
        404 => "404",
        410 => "410",
        429 => "429",
        500.. => "5xx",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_known_by_its_path_and_query() {
        for (path, expected) in [
            ("/api/v1/pods?&limit=500", ApiCall::List),
            ("/api/v1/namespaces/a/pods?&labelSelector=app%3Dx&limit=1", ApiCall::List),
            (
                "/apis/apps/v1/deployments?&watch=true&timeoutSeconds=200&allowWatchBookmarks=true",
                ApiCall::Watch,
            ),
            ("/api/v1/namespaces/demo", ApiCall::Get),
            ("/api/v1/namespaces/kube-system", ApiCall::Identify),
            ("/apis", ApiCall::Discover),
            ("/api/v1", ApiCall::Discover),
            ("/apis/sparkoperator.k8s.io/v1beta2", ApiCall::Discover),
        ] {
            assert_eq!(call_of(&Request::get(path).body(()).unwrap()), expected, "{path}");
        }
        let review = Request::post("/apis/authentication.k8s.io/v1/tokenreviews?").body(()).unwrap();
        assert_eq!(call_of(&review), ApiCall::Review);
    }
}
