//! A stream to a port of a pod, through the API server and the kubelet, as `kubectl port-forward` opens one. It reaches pods
//! to which the API server itself has no way.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::http::{Request, Response};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Pod, Service, ServicePort as Port};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::Api;
use kube::api::ListParams;
use tokio::io::DuplexStream;

use super::api_server::ApiServer;
use super::failure::{ApiFailure, shortened, within};
use super::service_proxy::{Body, ServicePort, Unanswered};

/// How long the kubelet's words are waited for after a stream has failed. They come on a channel of their own.
const WORDS: Duration = Duration::from_secs(1);

/// A stream to the pod of a Service.
pub struct PodStream {
    stream: DuplexStream,
    /// The kubelet's words, once the port is of no use.
    words: Pin<Box<dyn Future<Output = Option<String>> + Send>>,
    host: HeaderValue,
}

/// There is no stream to a pod.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPodStream {
    /// The Service can lead to no pod.
    #[error("{why}")]
    Unusable { why: String },
    /// No pod of the Service is ready, or the one that was takes no stream: it is being replaced.
    #[error("{why}")]
    NoPod { why: String },
    /// A call to the API server failed.
    #[error(transparent)]
    Call(ApiFailure),
}

impl ApiServer {
    /// Opens a stream to a ready pod of the Service. This takes the rights to read the Service, to list its pods, and to
    /// create `pods/portforward`.
    pub async fn pod_stream(&self, service: &ServicePort) -> Result<PodStream, NoPodStream> {
        self.credential().await.map_err(NoPodStream::Call)?;
        within(self.call_timeout(), self.open_pod_stream(service)).await.map_err(NoPodStream::Call)?
    }

    async fn open_pod_stream(&self, service: &ServicePort) -> kube::Result<Result<PodStream, NoPodStream>> {
        let (namespace, name) = (&service.namespace, &service.name);
        let found = Api::<Service>::namespaced(self.client(), namespace).get(name).await?;
        let spec = found.spec.unwrap_or_default();
        let lacks = |what: &str| format!("the Service {name} in the namespace {namespace} has no {what}");
        let unusable = |what: &str| Ok(Err(NoPodStream::Unusable { why: lacks(what) }));
        let Some(selector) = spec.selector.as_ref().filter(|selector| !selector.is_empty()) else {
            return unusable("selector");
        };
        let Some(port) = spec.ports.iter().flatten().find(|port| port.port == i32::from(service.port)) else {
            return unusable("such port");
        };
        let Ok(host) = HeaderValue::from_str(&format!("{name}.{namespace}.svc:{}", service.port)) else {
            return unusable("name that a request can have");
        };
        let pods: Api<Pod> = Api::namespaced(self.client(), namespace);
        let list = pods.list(&ListParams::default().labels(&labels(selector))).await?;
        let ready = list.items.iter().find_map(|pod| Some((ready_name(pod)?, number(port, pod)?)));
        let Some((pod, port)) = ready else {
            return Ok(Err(NoPodStream::NoPod { why: lacks("ready pod") }));
        };
        let mut messages = match pods.portforward(pod, &[port]).await {
            // In the kubelet's words, or of a pod that has just gone.
            Err(kube::Error::Api(status)) if ![401, 403].contains(&status.code) => {
                let why = format!("the pod {pod} takes no stream ({} {})", status.code, status.message);
                return Ok(Err(NoPodStream::NoPod { why }));
            }
            opened => opened?,
        };
        let (stream, words) = (messages.take_stream(port), messages.take_error(port));
        let (Some(stream), Some(words)) = (stream, words) else { return unusable("such port") };
        Ok(Ok(PodStream { stream, words: Box::pin(words), host }))
    }
}

impl PodStream {
    /// Sends the one request that this stream is for.
    pub async fn send(self, mut request: Request<Body>) -> Result<Response<Body>, Unanswered> {
        let Self { stream, words, host } = self;
        request.headers_mut().insert(HOST, host);
        match exchange(stream, request).await {
            Ok(answer) => Ok(answer.map(|body| body.map_err(io::Error::other).boxed())),
            Err(error) => {
                let words = tokio::time::timeout(WORDS, words).await.ok().flatten();
                Err(Unanswered::Broken { why: shortened(&words.unwrap_or_else(|| error.to_string())) })
            }
        }
    }
}

async fn exchange(stream: DuplexStream, request: Request<Body>) -> hyper::Result<Response<Incoming>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Its error shows where the answer is read.
    tokio::spawn(connection);
    sender.send_request(request).await
}

/// As a list takes a selector.
fn labels(selector: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

/// The name of a pod that is ready and stays.
fn ready_name(pod: &Pod) -> Option<&str> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let is_ready = conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True");
    pod.metadata.name.as_deref().filter(|_| is_ready && pod.metadata.deletion_timestamp.is_none())
}

/// The port of the pod that the Service's port leads to.
fn number(port: &Port, pod: &Pod) -> Option<u16> {
    let number = match port.target_port.as_ref() {
        None => port.port,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(name)) => {
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
            ports.find(|port| port.name.as_ref() == Some(name))?.container_port
        }
    };
    number.try_into().ok()
}
