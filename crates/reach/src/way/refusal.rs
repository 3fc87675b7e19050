//! Explains a refusal on the way through the API server: its own, or one of a proxy before it.

use std::sync::atomic::Ordering;

use hyper::http::StatusCode;

use super::{NO_WAY, OTHER_SCHEME, ThroughApiServer, has_any};
use crate::place::{PORT, ServerService};
use cloakroom_core::text::{one_line, without};
use cloakroom_spark::keys;
use cloakroom_transfer::client::Failure;

/// Its words if no pod is ready.
const NO_POD: &str = "no endpoints available";

/// The user of a request without credentials.
const ANONYMOUS: &str = "\"system:anonymous\"";

/// How many characters of the API server's words are shown.
const LONGEST_WORDS: usize = 400;

/// What helps if the way through the API server does not.
const ANOTHER_WAY: &str = "name an address of the server that you reach: --server, in a submission \
                           spark.kubernetes.resourceStagingServer.uri";

/// The words of a refusal.
pub(super) struct Words {
    text: String,
    /// Whether they are in a `Status`, as those of the API server. A proxy before it answers in other forms.
    is_status: bool,
}

impl Words {
    /// A gateway may repeat the request, with its secret.
    pub(super) fn read(body: &[u8], secret: &str) -> Self {
        let status: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let text = status["message"].as_str().map_or_else(|| String::from_utf8_lossy(body), Into::into);
        let text = one_line(&without(&text, &[secret]), LONGEST_WORDS).trim_end_matches('.').to_owned();
        Self { text, is_status: status["kind"] == "Status" }
    }

    /// Whether they say that the server has not got the request.
    fn is_undelivered(&self) -> bool {
        has_any(&self.text, &NO_WAY) || has_any(&self.text, &OTHER_SCHEME) || self.text.contains(NO_POD)
    }
}

impl ThroughApiServer {
    /// The server has not got the secret that was sent to it.
    pub(super) fn dropped_secret(&self) -> Failure {
        let status = Some(StatusCode::UNAUTHORIZED.as_u16());
        let why = format!(
            "a proxy before or behind the API server drops the header X-Cloakroom-Authorization, in which the secret for {} \
             travels: its admin lets it pass, or {ANOTHER_WAY}",
            self.service
        );
        Failure::Way { why, status, is_transient: false, may_have_arrived: false }
    }

    /// Explains a refusal of the API server, or of a proxy before it, and names the next step.
    pub(super) fn refusal(&self, status: StatusCode, words: &Words) -> Failure {
        let service = &self.service;
        let told = format!("{} {}", status.as_u16(), words.text);
        let told = told.trim_end();
        let is_of_gateway = matches!(status.as_u16(), 502..=504);
        let may_have_arrived = is_of_gateway && !words.is_undelivered();
        let why = if may_have_arrived {
            format!("the connection between the API server and {service} broke ({told})")
        } else if is_of_gateway {
            format!(
                "the API server cannot reach {service} ({told}): no pod of it is ready, or a firewall between the control \
                 plane and the nodes shuts port {PORT}"
            )
        } else {
            of_proxy(status, words, told).unwrap_or_else(|| of_api_server(service, status, words, told))
        };
        // An API server that has just started does not know all roles for a moment.
        let is_forgotten = status == StatusCode::FORBIDDEN && self.was_away.load(Ordering::Relaxed);
        let is_transient =
            is_of_gateway || is_forgotten && words.is_status || matches!(status.as_u16(), 408 | 429);
        Failure::Way { why, status: Some(status.as_u16()), is_transient, may_have_arrived }
    }
}

/// Explains a refusal that no API server gives; `None` if it may be the API server's.
fn of_proxy(status: StatusCode, words: &Words, told: &str) -> Option<String> {
    let (what, then) = match status {
        _ if words.is_status => return None,
        StatusCode::PAYLOAD_TOO_LARGE => (
            "takes no body as large as this bundle",
            "its admin raises the limit (client_max_body_size of nginx, proxy-body-size of its Ingress)",
        ),
        StatusCode::LENGTH_REQUIRED => {
            ("asks for a length that was sent", "its admin lets Content-Length pass")
        }
        StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
            ("does not let this request pass", "ask its admin for that")
        }
        _ => return None,
    };
    Some(format!("a proxy before the API server {what} ({told}): {then}, or {ANOTHER_WAY}"))
}

fn of_api_server(service: &ServerService, status: StatusCode, words: &Words, told: &str) -> String {
    match status {
        StatusCode::UNAUTHORIZED => {
            format!("the API server does not accept the kubeconfig's credentials ({told}): renew them")
        }
        StatusCode::FORBIDDEN if words.text.contains(ANONYMOUS) => {
            format!("the kubeconfig's user has no credentials that the API server knows ({told})")
        }
        StatusCode::FORBIDDEN => missing_right(service, told),
        StatusCode::NOT_FOUND => format!(
            "there is no {} ({told}): name yours by --server-namespace and --server-service, in a submission by `{}` and `{}`",
            said(service),
            keys::CLOAKROOM_SERVER_NAMESPACE,
            keys::CLOAKROOM_SERVER_SERVICE
        ),
        _ => format!("the API server answered for {service}: {told}"),
    }
}

/// Explains a 403. Without the right, a user cannot know whether there is such a Service.
fn missing_right(service: &ServerService, told: &str) -> String {
    let ServerService { namespace, name, .. } = service;
    let why = format!(
        "the API server does not let you reach {service} ({told}): an admin gives the right by kubectl create rolebinding \
         NAME -n {namespace} --role={name}-user --user=USER; the manifests and the chart make that role, which has to name the Service as it is quoted here"
    );
    format!(
        "{why}. The API server says so also where there is no such Service: if the server is in another namespace, name that \
         by --server-namespace, in a submission by `{}`",
        keys::CLOAKROOM_SERVER_NAMESPACE
    )
}

/// Without the article.
fn said(service: &ServerService) -> String {
    service.to_string().replacen("the ", "", 1)
}
