//! Where the staging server is, from this machine.

use std::fmt;
use std::time::Duration;

use cloakroom_core::protocol::USUAL_PLACE;
use cloakroom_core::resource::is_dns_label;
use cloakroom_transfer::client::{RetryPolicy, ServerAddress};

/// The port of the Service for clients.
pub(super) const PORT: u16 = 10_000;

/// How long the way to a Service is waited for that has never led to an answer, of the server or of the API server.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the staging server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerPlace {
    /// At an address that this machine reaches.
    Address(ServerAddress),
    /// Behind a Service of the cluster, to which the API server leads.
    Service(ServerService),
}

/// A Service with a staging server behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerService {
    pub namespace: String,
    pub name: String,
    /// Whether a flag, setting or variable has this name. The default one may be replaced by a Service with the labels.
    pub is_named: bool,
    /// The way on which it has answered this client.
    pub(super) route: Option<Route>,
}

/// A way to the server behind a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// Through the API server's proxy for Services, by https or http.
    Proxy { has_tls: bool },
    /// By streams to its pod, because the proxy does not reach that.
    Stream,
    /// At an address that this machine reaches, without the API server.
    Direct(ServerAddress),
}

impl fmt::Display for ServerPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Service(service) => service.fmt(f),
        }
    }
}

/// `the Service NAME in the namespace NAMESPACE`
impl fmt::Display for ServerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the Service {} in the namespace {}", self.name, self.namespace)
    }
}

impl ServerService {
    /// The namespace and the name of the Service that manifests and chart make.
    pub const DEFAULT: &str = USUAL_PLACE;

    /// The Service of these names; `None` is [`Self::DEFAULT`]. The error says which of the two is not valid.
    pub fn named(namespace: Option<&str>, name: Option<&str>) -> Result<Self, BadName> {
        let or_usual = |given: Option<&str>, bad| {
            let name = given.unwrap_or(Self::DEFAULT);
            if is_dns_label(name) { Ok(name.to_owned()) } else { Err(bad) }
        };
        Ok(Self {
            namespace: or_usual(namespace, BadName::Namespace)?,
            name: or_usual(name, BadName::Service)?,
            is_named: name.is_some(),
            route: None,
        })
    }

    /// How long to wait for it, unless a user says otherwise.
    pub fn policy() -> RetryPolicy {
        RetryPolicy { without_an_answer: PATIENCE, ..RetryPolicy::default() }
    }

    /// How URLs begin by which pods reach it, unless the server says otherwise.
    pub fn url_of_pods(&self) -> String {
        let has_tls = self.route == Some(Route::Proxy { has_tls: true });
        let scheme = if has_tls { "https" } else { "http" };
        format!("{scheme}://{}.{}.svc:{PORT}", self.name, self.namespace)
    }
}

/// A name that is not valid in Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadName {
    Namespace,
    Service,
}

impl BadName {
    /// The rule for both names.
    pub const RULE: &str =
        "it must be a name in Kubernetes: lower-case letters, digits and hyphens, 63 at most";
}
