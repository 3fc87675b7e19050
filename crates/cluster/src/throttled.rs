//! Keeps the time that an API server asks its clients to wait.

use hyper::StatusCode;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use hyper::http::{HeaderValue, Response};
use kube::client::Body;
use serde_json::json;

/// Moves the `Retry-After` of a `429` into its body, because kube passes on bodies and not headers. If priority and
/// fairness refuse a call, the API server answers with a plain line
/// (<https://kubernetes.io/docs/concepts/cluster-administration/flow-control/>).
pub(super) fn with_retry_after(answer: Response<Body>) -> Response<Body> {
    let seconds =
        answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse::<u32>().ok());
    let (StatusCode::TOO_MANY_REQUESTS, Some(seconds)) = (answer.status(), seconds) else { return answer };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests", "code": 429,
        "message": format!("too many requests: try again in {seconds}s"),
        "details": {"retryAfterSeconds": seconds},
    });
    let (mut head, _) = answer.into_parts();
    head.headers.remove(CONTENT_LENGTH);
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(head, Body::from(status.to_string().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiFailure;
    use kube::Client;
    use std::time::Duration;

    #[tokio::test]
    async fn the_time_that_the_api_server_asks_for_reaches_the_failure() {
        for (header, expected) in
            [(Some("17"), Some(Duration::from_secs(17))), (Some("soon"), None), (None, None)]
        {
            let service = tower::service_fn(move |_| {
                let answer = Response::builder().status(429);
                let answer =
                    header.into_iter().fold(answer, |answer, value| answer.header(RETRY_AFTER, value));
                let answer =
                    with_retry_after(answer.body(Body::from(b"Too many requests".to_vec())).unwrap());
                std::future::ready(Ok::<_, std::convert::Infallible>(answer))
            });
            let failed = Client::new(service, "default").list_core_api_versions().await.unwrap_err();
            let ApiFailure::Throttled { retry_after, .. } = ApiFailure::from(failed) else {
                panic!("{header:?}")
            };
            assert_eq!(retry_after, expected);
        }
    }
}
