//! A running `cloakroom serve` that asks a cluster about owners, and the view of its users.

use std::net::SocketAddr;
use std::time::Duration;

use cloakroom_core::protocol::problem::Problem;
use cloakroom_core::protocol::v1::{Metadata, Ticket, metadata_path, resource_path};
use jiff::Timestamp;
use reqwest::{Client, Response};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::cluster::{Account, Api, Cluster, Object};
use crate::process::Cloakroom;
use crate::tls;
use crate::wait::{BOUND, until};

/// The orphan grace of all scenarios that set no other.
pub const GRACE: Duration = Duration::from_millis(1500);

pub struct ServedCluster {
    /// The admin of the cluster.
    pub admin: Api,
    pub server: Cloakroom,
    client: Client,
    folder: TempDir,
    flags: Vec<String>,
}

/// A resource that was deleted.
#[derive(Debug)]
pub struct Gone {
    pub reason: String,
    pub at: Timestamp,
}

impl ServedCluster {
    /// Starts the server with the rights of its manifests, and creates the owner's namespace.
    pub async fn open(cluster: &dyn Cluster, namespace: &str, flags: &[&str]) -> Self {
        cluster.api(Account::Admin).create_namespace(namespace).await;
        Self::open_through(cluster, cluster.address(), flags)
    }

    /// Starts the server with another address for the API server.
    pub fn open_through(cluster: &dyn Cluster, address: SocketAddr, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, cluster.kubeconfig(Account::Cloakroom, address)).unwrap();
        let grace = format!("{}ms", GRACE.as_millis());
        let mut all = vec!["--kubeconfig", kubeconfig.to_str().unwrap(), "--cleanup-interval", "100ms"];
        if !flags.contains(&"--orphan-grace") {
            all.extend(["--orphan-grace", &grace]);
        }
        all.extend(flags);
        let server = Cloakroom::serve(&folder.path().join("data"), &all);
        let client = Client::builder().no_proxy().tls_backend_preconfigured(tls::no_roots()).build().unwrap();
        let flags = all.into_iter().map(str::to_owned).collect();
        Self { admin: cluster.api(Account::Admin), server, client, folder, flags }
    }

    /// Kills the server, and starts another one on its data.
    pub fn restart(self) -> Self {
        let Self { server, folder, flags, .. } = self;
        server.kill();
        let all: Vec<&str> = flags.iter().map(String::as_str).collect();
        let server = Cloakroom::serve(&folder.path().join("data"), &all);
        Self { server, folder, flags, ..self }
    }

    /// Stages a bundle for the owners with the object's kind, namespace and labels.
    pub async fn stage(&self, owner: &Object) -> Ticket {
        let response = self.try_stage(owner).await;
        let status = response.status();
        let text = response.text().await.unwrap();
        assert_eq!(status, 201, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    pub async fn try_stage(&self, owner: &Object) -> Response {
        let mut query = vec![("namespace", owner.namespace.clone()), ("kind", owner.kind.as_owner())];
        query.extend(owner.labels.iter().map(|(key, value)| ("label", format!("{key}={value}"))));
        let mut url = reqwest::Url::parse(&self.server.url("/api/v1/resources/deps.tgz")).unwrap();
        url.query_pairs_mut().extend_pairs(query);
        self.client.put(url).body("a bundle").send().await.unwrap()
    }

    /// Downloads it, as an init-container does.
    pub async fn fetch(&self, ticket: &Ticket) {
        let response = self.get(&resource_path(&ticket.resource_id), ticket).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.text().await.unwrap(), "a bundle");
    }

    /// The server's present answer about the resource.
    pub async fn look(&self, ticket: &Ticket) -> Result<Metadata, Gone> {
        let response = self.get(&metadata_path(&ticket.resource_id), ticket).await;
        let status = response.status();
        let text = response.text().await.unwrap();
        if status == 200 {
            return Ok(serde_json::from_str(&text).unwrap());
        }
        assert_eq!(status, 410, "{text}");
        let problem: Problem = serde_json::from_str(&text).unwrap();
        Err(Gone { reason: problem.deletion_reason.unwrap().to_string(), at: problem.deleted_at.unwrap() })
    }

    /// Waits until the server keeps the resource for this reason.
    pub async fn until_kept_because(&self, ticket: &Ticket, reason: &str) {
        let is_so = async || self.look(ticket).await.unwrap().kept_because.as_deref() == Some(reason);
        until(&format!("it is kept because {reason}"), is_so).await;
    }

    /// Waits until a sweep has seen the owner.
    pub async fn until_seen(&self, ticket: &Ticket) {
        self.until_kept_because(ticket, "owner-present").await;
        let is_seen = async || self.look(ticket).await.unwrap().owner_seen_at.is_some();
        until("a sweep has seen the owner", is_seen).await;
    }

    /// Checks that the resource exists all the time.
    pub async fn stays(&self, ticket: &Ticket, for_so_long: Duration) {
        let end = Instant::now() + for_so_long;
        while Instant::now() < end {
            if let Err(gone) = self.look(ticket).await {
                panic!("it is gone: {gone:?}\n{}", self.server.log());
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the server has deleted the resource.
    pub async fn goes(&self, ticket: &Ticket) -> Gone {
        let end = Instant::now() + BOUND;
        loop {
            match self.look(ticket).await {
                Err(gone) => return gone,
                Ok(metadata) if Instant::now() > end => {
                    panic!("it is still there: {metadata:?}\n{}", self.server.log())
                }
                Ok(_) => sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// How often watches of pods had to list again: because their version was forgotten (410), or because the API
    /// server was away, if forgetting takes its restart.
    pub async fn expired_watches(&self) -> f64 {
        let text = self.client.get(self.server.url("/metrics")).send().await.unwrap().text().await.unwrap();
        let is_wanted = |line: &&str| {
            line.starts_with("cloakroom_owner_watch_restarts_total{")
                && line.contains(r#"kind="Pod""#)
                && [r#"cause="expired""#, r#"cause="away""#].iter().any(|cause| line.contains(cause))
        };
        text.lines()
            .filter(is_wanted)
            .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
            .sum()
    }

    async fn get(&self, path: &str, ticket: &Ticket) -> Response {
        let request = self.client.get(self.server.url(path)).bearer_auth(&ticket.resource_secret);
        request.send().await.unwrap()
    }
}

impl Gone {
    /// Checks that it was deleted for this reason, and not before this time.
    pub fn assert(&self, reason: &str, not_before: Timestamp) {
        assert_eq!(self.reason, reason);
        assert!(self.at >= not_before, "it went at {}, before {not_before}", self.at);
    }
}
