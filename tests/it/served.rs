//! A running server with an admin, and what a test stages on it. It grows older when a test says so.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cloakroom_core::protocol::v1::{Ticket, resource_path};
use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::tls;
use cloakroom_testing::wait::until;
use reqwest::{Body, Client, RequestBuilder, StatusCode};
use sqlx::Connection as _;
use tempfile::TempDir;

pub const TOKEN: &str = "admin-horse-battery-staple";

pub struct Served {
    server: Cloakroom,
    client: Client,
    /// The tokens of its admin.
    pub tokens: PathBuf,
    folder: TempDir,
}

impl Served {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tokens = folder.path().join("tokens");
        std::fs::write(&tokens, format!("{TOKEN}\n")).unwrap();
        let server = Cloakroom::serve(&folder.path().join("data"), &flags(&tokens));
        let tls = tls::no_roots();
        let client = Client::builder().no_proxy().tls_backend_preconfigured(tls).build().unwrap();
        Self { server, client, tokens, folder }
    }

    pub fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// Stages a bundle for the label app=demo of pods in the namespace `demo`.
    pub async fn stage(&self, bundle: impl Into<Body>) -> Ticket {
        self.put("namespace=demo&label=app%3Ddemo", bundle).await
    }

    /// Stages four bytes for the label app=`app` of a `kind` in `namespace`.
    pub async fn stage_for(&self, namespace: &str, kind: &str, app: &str) -> Ticket {
        self.put(&format!("namespace={namespace}&kind={kind}&label=app%3D{app}"), "jars").await
    }

    /// Stages a bundle with these parameters.
    pub async fn put(&self, query: &str, bundle: impl Into<Body>) -> Ticket {
        let url = self.url(&format!("/api/v1/resources/deps.tgz?{query}"));
        let response = self.client.put(url).body(bundle).send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, StatusCode::CREATED, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    pub fn download(&self, ticket: &Ticket) -> RequestBuilder {
        let url = self.url(&resource_path(&ticket.resource_id));
        self.client.get(url).bearer_auth(&ticket.resource_secret)
    }

    pub async fn use_once(&self, ticket: &Ticket) {
        let response = self.download(ticket).send().await.unwrap();
        assert_eq!(response.text().await.unwrap(), "jars");
    }

    pub async fn delete(&self, ticket: &Ticket) {
        let url = self.url(&resource_path(&ticket.resource_id));
        let request = self.client.delete(url).bearer_auth(&ticket.resource_secret);
        request.send().await.unwrap().error_for_status().unwrap();
    }

    /// Whether it is staged, without a use of it.
    pub async fn has(&self, ticket: &Ticket) -> bool {
        let url = self.url(&resource_path(&ticket.resource_id));
        let request = self.client.head(url).bearer_auth(&ticket.resource_secret);
        request.send().await.unwrap().status() == StatusCode::OK
    }

    pub async fn ask_admin(&self, path: &str) -> serde_json::Value {
        let request = self.client.get(self.url(path)).bearer_auth(TOKEN);
        serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap()
    }

    /// Every time that the server has written down is this much earlier.
    pub async fn grow_older(&mut self, by: Duration) {
        let by = by.as_millis();
        let times = ["created_at", "first_used_at", "last_used_at", "deleted_at"];
        let earlier = times.map(|time| format!("{time} = {time} - {by}")).join(", ");
        self.change_ledger(&[format!("UPDATE resources SET {earlier}")]).await;
    }

    /// Stops the server, changes its ledger, and starts it again at the same address.
    pub async fn change_ledger(&mut self, changes: &[String]) {
        self.server.signal("TERM");
        assert!(self.server.wait().success());
        let data = self.folder.path().join("data");
        let url = format!("sqlite://{}", data.join("ledger.db").display());
        let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
        for change in changes {
            sqlx::raw_sql(sqlx::AssertSqlSafe(change.as_str())).execute(&mut connection).await.unwrap();
        }
        connection.close().await.unwrap();
        let address = self.server.address.parse().unwrap();
        self.server = Cloakroom::serve_at(address, &data, &flags(&self.tokens));
        // Connections to the server before are closed by now.
        until("it answers", async || self.client.get(self.url("/api/ping")).send().await.is_ok()).await;
    }
}

/// The interval is so long that only a test's own sweep deletes anything. The half minute beyond half an hour is for the
/// time that a test takes: messages say half an hour until it is over.
fn flags(tokens: &Path) -> [&str; 8] {
    let tokens = tokens.to_str().unwrap();
    [
        "--admin-token-file",
        tokens,
        "--min-free-space",
        "0b",
        "--unused-timeout",
        "1830s",
        "--cleanup-interval",
        "1h",
    ]
}
