//! The way by a stream to the server's pod, where the API server's proxy for Services does not reach it: a firewall between
//! the control plane and the nodes often lets through the kubelet's port alone.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use hyper::http::{Request, Response};

use super::{NO_WAY, ServerService, failed_call, failed_request, has_any, unusable};
use crate::place::PORT;
use cloakroom_cluster::{ApiFailure, ApiServer, NoPodStream, ServicePort};
use cloakroom_core::time::format_duration;
use cloakroom_transfer::client::{Body, Failure, ServerAddress, Way};

/// How long the proxy may be silent before this way is tried as well. A firewall often drops the packets, and then the proxy
/// answers nothing for half a minute.
pub(super) const HEAD_START: Duration = Duration::from_secs(3);

/// Whether the proxy has no way to the pod.
pub(super) fn may_help(failure: &Failure) -> bool {
    matches!(failure, Failure::Way { status: Some(502..=504), may_have_arrived: false, why, .. } if has_any(why, &NO_WAY))
}

/// The failure of the proxy, with that of a stream.
pub(super) fn neither(by_proxy: Failure, by_stream: &Failure) -> Failure {
    let (why, status, is_transient, may_have_arrived) = match by_proxy {
        Failure::Way { why, status, is_transient, may_have_arrived } => {
            (why, status, is_transient, may_have_arrived)
        }
        Failure::NoAnswer { after } => {
            let why = format!("the API server's proxy gave no answer within {}", format_duration(after));
            (format!("{why}, as if a firewall before the nodes dropped its packets"), None, true, false)
        }
        failure => return failure,
    };
    let why = format!(
        "{why}. A stream to its pod, as kubectl port-forward opens one, is no way either: {by_stream}"
    );
    Failure::Way { why, status, is_transient, may_have_arrived }
}

/// Opens a stream for each request.
pub(super) struct Forwarded {
    pub(super) api_server: ApiServer,
    pub(super) address: ServerAddress,
    pub(super) service: ServerService,
    /// Whether the last request failed for a reason that may pass.
    pub(super) was_away: AtomicBool,
}

impl fmt::Debug for Forwarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Forwarded({})", self.address)
    }
}

#[async_trait]
impl Way for Forwarded {
    fn address(&self) -> &ServerAddress {
        &self.address
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, Failure> {
        let ServerService { namespace, name, .. } = self.service.clone();
        let service = ServicePort { namespace, name, port: PORT, has_tls: false };
        let stream = self.api_server.pod_stream(&service).await;
        let (address, was_away) = (self.api_server.address(), self.was_away.load(Ordering::Relaxed));
        let stream = stream.map_err(|failure| no_stream(failure, was_away, address));
        let answer = match stream {
            Ok(stream) => stream.send(request).await.map_err(|failure| failed_request(failure, address)),
            Err(failure) => Err(failure),
        };
        let is_away = answer.as_ref().is_err_and(Failure::is_transient);
        self.was_away.store(is_away, Ordering::Relaxed);
        answer
    }
}

/// `was_away`: whether the API server or the pod was away before, so that the API server may not know all roles yet.
fn no_stream(failure: NoPodStream, was_away: bool, address: &str) -> Failure {
    let passing = |why| Failure::Way { why, status: None, is_transient: true, may_have_arrived: false };
    match failure {
        NoPodStream::Unusable { why } => unusable(why),
        NoPodStream::NoPod { why } => passing(why),
        NoPodStream::Call(ApiFailure::Forbidden { message }) if was_away => passing(message),
        NoPodStream::Call(ApiFailure::Forbidden { message }) => unusable(message),
        NoPodStream::Call(failure) => failed_call(&failure, address),
    }
}
