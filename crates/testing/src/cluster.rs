//! A Kubernetes cluster for tests: the fake API server, or a real control plane.

mod api;
mod kind;

use std::net::SocketAddr;
use std::path::Path;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::tls;

pub use api::{Api, Next, text};
pub use kind::{
    CLAIM, CONFIG_MAP, DEPLOYMENT, JOB, Kind, NAMESPACE, Object, POD, SERVICE, SPARK_APPLICATION,
    STATEFUL_SET,
};

/// The account that makes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    /// An account that may do everything.
    Admin,
    /// The service account of the server, with the rights that its manifests give it.
    Cloakroom,
    /// A known account without rights.
    Nobody,
}

/// The name that the API server has for the server's service account.
pub const CLOAKROOM_USER: &str = "system:serviceaccount:cloakroom:cloakroom";
/// The name of the account without rights.
pub const NOBODY_USER: &str = "system:serviceaccount:cloakroom:nobody";

/// What a scenario needs of a cluster. Plain HTTP calls go through [`Cluster::api`].
#[async_trait]
pub trait Cluster: Send + Sync {
    /// Where the API server listens.
    fn address(&self) -> SocketAddr;

    /// The CA of its certificate, as PEM; `None` if it speaks plain HTTP.
    fn ca(&self) -> Option<&Path>;

    /// The bearer token of an account.
    fn token(&self, account: Account) -> String;

    fn api(&self, account: Account) -> Api {
        self.api_with_token(&self.token(account))
    }

    fn api_with_token(&self, token: &str) -> Api {
        let tls = self.ca().map_or_else(tls::no_roots, tls::trusting);
        Api::new(&url(self.ca(), self.address()), token, tls)
    }

    /// The kubeconfig of an account, with another address for the API server (that of a proxy).
    fn kubeconfig(&self, account: Account, address: SocketAddr) -> String {
        kubeconfig(self.ca(), address, &self.token(account))
    }

    /// Takes all rights from the server's account. Returns when this is in force.
    async fn revoke(&self);

    /// Gives them back. Returns when this is in force.
    async fn grant(&self);

    /// Ends the API server: connections break, new ones are refused.
    async fn stop(&self);

    /// Starts it again, with its data, at the same address. Returns when it answers.
    async fn start(&self);

    /// Ends all watches, and forgets old versions: a watch that resumes at one gets a 410.
    async fn forget_the_past(&self);
}

/// The rules of the server's ClusterRole.
pub fn rights() -> Value {
    let watched = ["get", "list", "watch"];
    json!([
        {"apiGroups": [""], "resources": ["pods"], "verbs": watched},
        {"apiGroups": ["apps"], "resources": ["deployments", "statefulsets"], "verbs": watched},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": watched},
        {"apiGroups": ["sparkoperator.k8s.io"], "resources": ["sparkapplications"], "verbs": watched},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
    ])
}

/// A kubeconfig with one context, `test`; JSON is YAML.
pub fn kubeconfig(ca: Option<&Path>, address: SocketAddr, token: &str) -> String {
    let mut cluster = json!({"server": url(ca, address)});
    if let Some(ca) = ca {
        cluster["certificate-authority-data"] = STANDARD.encode(std::fs::read(ca).unwrap()).into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    })
    .to_string()
}

fn url(ca: Option<&Path>, address: SocketAddr) -> String {
    format!("{}://{address}", if ca.is_some() { "https" } else { "http" })
}
