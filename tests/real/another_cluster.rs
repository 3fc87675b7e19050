//! Another cluster behind the same address: etcd and the API server are made anew, empty, with the same certificates.

use std::path::{Path, PathBuf};
use std::process::Output;

use cloakroom_core::protocol::admin::{ClusterStatus, ServerStatus, StagedResource};
use cloakroom_core::protocol::status::ClusterMatch;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::cluster::{Account, Cluster as _, NAMESPACE, Object};
use cloakroom_testing::control_plane::{ASSETS, ControlPlane};
use cloakroom_testing::needs::{Need, trial};
use cloakroom_testing::process::{Cloakroom, command, stderr};
use cloakroom_testing::tls;
use cloakroom_testing::wait::until;
use libtest_mimic::Trial;
use reqwest::Client;
use tempfile::TempDir;

const ADMIN_TOKEN: &str = "a-token-of-the-admin";

pub fn trials() -> Vec<Trial> {
    vec![trial(
        "another_cluster_behind_the_address_costs_nothing_until_accepted",
        &[Need::Path(ASSETS, "a folder with etcd and kube-apiserver (tests/programs/build-control-plane)")],
        another_cluster_behind_the_address_costs_nothing_until_accepted,
    )]
}

fn another_cluster_behind_the_address_costs_nothing_until_accepted() {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let plane = ControlPlane::start(&["ServiceAccount"]).await;
        let admin = plane.api(Account::Admin);
        admin.create_namespace("demo").await;
        admin.create(&Object::pod("demo", "driver", &[("app", "demo")])).await;
        let mut watching = WatchingServer::open(&plane);
        let tickets = [watching.stage().await, watching.stage().await];
        watching.fetch(&tickets[0]).await;
        watching.until_all_are_kept_because(2, "owner-present").await;
        let known = watching.uid_of_the_cluster(&plane).await;
        watching
            .until_cluster_is(&ClusterStatus {
                state: ClusterMatch::Same.into(),
                known: Some(known.clone()),
                seen: Some(known.clone()),
                failure: None,
                unanswered: false,
            })
            .await;

        plane.replace().await;
        let seen = watching.uid_of_the_cluster(&plane).await;
        let other = ClusterStatus {
            state: ClusterMatch::Other.into(),
            known: Some(known.clone()),
            seen: Some(seen.clone()),
            failure: None,
            unanswered: false,
        };
        watching.until_cluster_is(&other).await;
        watching.assert_nothing_goes().await;
        // A server that starts beside the other cluster knows the old one from its ledger.
        watching.restart();
        watching.until_cluster_is(&other).await;
        watching.assert_nothing_goes().await;

        let refused = watching.run(&["clean", "--accept-cluster", &known]).await;
        assert!(!refused.status.success() && stderr(&refused).contains(&seen), "{}", stderr(&refused));
        let accepted = watching.run(&["clean", "--accept-cluster", &seen]).await;
        assert!(accepted.status.success() && stderr(&accepted).contains(&known), "{}", stderr(&accepted));
        until("the used one is gone", async || watching.list().await.len() == 1).await;
        assert_eq!(watching.metric("other_cluster").await, "0");
        assert_eq!(watching.list().await[0].resource_id, tickets[1].resource_id, "its unused timeout holds");
        watching.assert_no_secret_is_logged(&tickets);
        plane.end().await;
    });
}

/// A server whose grace and sweeps are short, and its admin.
struct WatchingServer {
    server: Cloakroom,
    /// What the servers before it logged.
    logs: String,
    client: Client,
    folder: TempDir,
}

impl WatchingServer {
    fn open(plane: &ControlPlane) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kubeconfig"), plane.lasting_kubeconfig()).unwrap();
        std::fs::write(folder.path().join("tokens"), ADMIN_TOKEN).unwrap();
        let client = Client::builder().no_proxy().tls_backend_preconfigured(tls::no_roots()).build().unwrap();
        Self { server: serve(folder.path()), logs: String::new(), client, folder }
    }

    fn restart(&mut self) {
        self.logs.push_str(&self.server.log());
        self.server.signal("TERM");
        assert!(self.server.wait().success());
        self.server = serve(self.folder.path());
    }

    async fn stage(&self) -> Ticket {
        let url = self.server.url("/api/v1/resources/deps.tgz?namespace=demo&label=app%3Ddemo");
        let answer = self.client.put(url).body("jars").send().await.unwrap();
        assert_eq!(answer.status(), 201);
        serde_json::from_str(&answer.text().await.unwrap()).unwrap()
    }

    async fn fetch(&self, ticket: &Ticket) {
        let url = self.server.url(&format!("/api/v1/resources/{}", ticket.resource_id));
        let answer = self.client.get(url).bearer_auth(&ticket.resource_secret).send().await.unwrap();
        assert_eq!(answer.text().await.unwrap(), "jars");
    }

    /// `cloakroom ls`.
    async fn look(&self) -> (Vec<StagedResource>, ServerStatus) {
        let listed = self.run(&["ls", "-o", "json"]).await;
        let mut listing: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
        let mut part = |name: &str| listing[name].take();
        (serde_json::from_value(part("resources")).unwrap(), serde_json::from_value(part("server")).unwrap())
    }

    async fn list(&self) -> Vec<StagedResource> {
        self.look().await.0
    }

    async fn until_all_are_kept_because(&self, count: usize, reason: &str) {
        let is_so = async || {
            let listed = self.list().await;
            listed.len() == count && listed.iter().all(|one| one.kept_because.as_deref() == Some(reason))
        };
        until(&format!("all are kept because {reason}"), is_so).await;
    }

    async fn until_cluster_is(&self, expected: &ClusterStatus) {
        until(&format!("the server says {expected:?}"), async || {
            self.look().await.1.cluster.as_ref() == Some(expected)
        })
        .await;
    }

    /// Over many sweeps and more than twice the grace.
    async fn assert_nothing_goes(&self) {
        let swept = async || self.metric(r#"sweeps_total{outcome="ok"}"#).await.parse::<f64>().unwrap();
        let enough = swept().await + 30.0;
        until("many sweeps are over", async || {
            let listed = self.list().await;
            let is_kept = |one: &StagedResource| one.kept_because.as_deref() == Some("other-cluster");
            assert!(listed.len() == 2 && listed.iter().all(is_kept), "{listed:?}\n{}", self.server.log());
            swept().await >= enough
        })
        .await;
        assert_eq!(self.metric("other_cluster").await, "1");
    }

    async fn metric(&self, name: &str) -> String {
        let text = self.client.get(self.server.url("/metrics")).send().await.unwrap().text().await.unwrap();
        let line = text.lines().find(|line| line.starts_with(&format!("cloakroom_{name} "))).unwrap();
        line.rsplit_once(' ').unwrap().1.to_owned()
    }

    async fn uid_of_the_cluster(&self, plane: &ControlPlane) -> String {
        let path = Object::new(NAMESPACE, "", "kube-system", &[]).path();
        let admin = plane.api(Account::Admin);
        until("kube-system is there", async || admin.get(&path).await.0 == 200).await;
        admin.get(&path).await.1["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    /// An admin's command.
    async fn run(&self, args: &[&str]) -> Output {
        let mut command = command();
        command.args(args).args(["--admin-url", &self.server.url(""), "--admin-token-file"]);
        command.arg(self.folder.path().join("tokens"));
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    fn assert_no_secret_is_logged(&self, tickets: &[Ticket]) {
        let log = format!("{}{}", self.logs, self.server.log());
        let kubeconfig = std::fs::read_to_string(self.folder.path().join("kubeconfig")).unwrap();
        let kubeconfig: serde_json::Value = serde_json::from_str(&kubeconfig).unwrap();
        let token = kubeconfig["users"][0]["user"]["token"].as_str().unwrap();
        let tickets = tickets.iter().map(|ticket| ticket.resource_secret.as_str());
        for secret in tickets.chain([ADMIN_TOKEN, token]) {
            assert!(!log.contains(secret), "a secret is in the log");
        }
    }
}

fn serve(folder: &Path) -> Cloakroom {
    let path = |name: &str| -> PathBuf { folder.join(name) };
    let flags = [
        ("--kubeconfig", path("kubeconfig").display().to_string()),
        ("--admin-token-file", path("tokens").display().to_string()),
        ("--cleanup-interval", "100ms".to_owned()),
        ("--orphan-grace", "1s".to_owned()),
    ];
    let flags: Vec<&str> = flags.iter().flat_map(|(name, value)| [*name, value.as_str()]).collect();
    Cloakroom::serve(&path("data"), &flags)
}
