//! The way by a stream to the server's pod, where the API server's proxy for Services does not reach it: a firewall between
//! the control plane and the nodes often lets through the kubelet's port alone.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use hyper::http::{Request, Response};

use super::{ServerService, unusable, words_of_call};
use crate::server_place::PORT;
use cloakroom_cluster::{ApiFailure, ApiServer, NoPodStream, ServicePort};
use cloakroom_transfer::client::{Body, Failure, ServerAddress, Way};

/// How long the proxy may be silent before this way is tried as well. A firewall often drops the packets, and then the proxy
/// answers nothing for half a minute.
pub(super) const HEAD_START: Duration = Duration::from_secs(3);

/// What the proxy says if it has no way to a pod that is ready.
const NO_WAY: &str = "dial tcp";

/// Whether the proxy has no way to the pod.
pub(super) fn may_help(failure: &Failure) -> bool {
    matches!(failure, Failure::Way { status: Some(502..=504), may_have_arrived: false, why, .. } if why.contains(NO_WAY))
}

/// The failure of the proxy, with that of a stream.
pub(super) fn neither(by_proxy: Failure, by_stream: &Failure) -> Failure {
    match by_proxy {
        Failure::Way { why, status, is_transient, may_have_arrived } => {
            let why = format!(
                "{why}. A stream to its pod, as kubectl port-forward opens one, is no way either: {by_stream}"
            );
            Failure::Way { why, status, is_transient, may_have_arrived }
        }
        failure => failure,
    }
}

/// Opens a stream for each request.
pub(super) struct Forwarded {
    pub(super) api_server: ApiServer,
    pub(super) address: ServerAddress,
    pub(super) service: ServerService,
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
        let stream = self.api_server.pod_stream(&service).await.map_err(no_stream)?;
        stream.send(request).await.map_err(|failure| words_of_call(&failure, true))
    }
}

fn no_stream(failure: NoPodStream) -> Failure {
    let passing = |why| Failure::Way { why, status: None, is_transient: true, may_have_arrived: false };
    match failure {
        NoPodStream::Unusable { why } => unusable(why),
        NoPodStream::NoPod { why } => passing(why),
        // Other rights than those of the server's role.
        NoPodStream::Call(ApiFailure::Forbidden { message }) => unusable(message),
        NoPodStream::Call(failure @ ApiFailure::Refused { code: 500.., .. }) => passing(failure.to_string()),
        NoPodStream::Call(failure) => words_of_call(&failure, false),
    }
}
