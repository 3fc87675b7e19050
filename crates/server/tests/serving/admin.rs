//! The admin's requests, in process.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cloakroom_core::protocol::admin::{Removal, ResourceDetails, ResourcePage, ServerStatus, SweepReport};
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::{DeletionReason, KeepReason};
use cloakroom_server::http::{TokenFile, TokenUse};
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::logs;
use cloakroom_testing::wait::until;
use reqwest::{Method, Response};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::TestApp;
use crate::support::app::{Directory, Options, problem};

pub const TOKEN: &str = "admin-horse-battery-staple";
const MINUTE: Duration = Duration::from_mins(1);

/// A server with an admin.
pub struct Administered {
    pub app: TestApp,
    pub tokens: PathBuf,
    _folder: TempDir,
}

impl Administered {
    pub async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    pub async fn start_with(options: Options) -> Self {
        Self::start_on(Arc::new(tempfile::tempdir().unwrap()), Arc::new(ManualClock::new()), options).await
    }

    /// Another server on the same data.
    pub async fn restart_with(self, mut options: Options) -> Self {
        let Self { app, tokens, _folder: folder } = self;
        options.admin_tokens = Some(TokenFile::open(&tokens, TokenUse::Admin).unwrap());
        let app = app.crash_and_restart_with(options).await;
        Self::settled(app, tokens, folder).await
    }

    async fn start_on(directory: Directory, clock: Arc<ManualClock>, mut options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tokens = folder.path().join("tokens");
        std::fs::write(&tokens, format!("{TOKEN}\nold-{TOKEN}\n")).unwrap();
        options.admin_tokens = Some(TokenFile::open(&tokens, TokenUse::Admin).unwrap());
        let app = TestApp::start_on(directory, clock, options).await;
        Self::settled(app, tokens, folder).await
    }

    async fn settled(app: TestApp, tokens: PathBuf, folder: TempDir) -> Self {
        app.keep_secret(TOKEN);
        let server = Self { app, tokens, _folder: folder };
        // On a busy machine the first sweep would come later, and do what a test expects of another one.
        until("the first sweep is over", || async {
            server.get::<ServerStatus>("/admin/v1/status").await.last_sweep_at.is_some()
        })
        .await;
        server
    }

    /// The same data directory under another server, with an admin.
    pub async fn restart(app: TestApp) -> Self {
        let (directory, clock) = app.end().await;
        Self::start_on(directory, clock, Options::default()).await
    }

    pub async fn ask(&self, method: Method, path: &str) -> Response {
        self.app.client.request(method, self.app.url(path)).bearer_auth(TOKEN).send().await.unwrap()
    }

    pub async fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> T {
        read(self.ask(Method::GET, path).await).await
    }

    async fn list(&self, query: &str) -> ResourcePage {
        self.get(&format!("/admin/v1/resources?{query}")).await
    }

    /// The ids that a list has.
    async fn ids(&self, query: &str) -> BTreeSet<String> {
        self.list(query).await.resources.into_iter().map(|resource| resource.resource_id).collect()
    }

    async fn remove(&self, ticket: &Ticket, query: &str) -> Response {
        self.ask(Method::DELETE, &format!("/admin/v1/resources/{}{query}", ticket.resource_id)).await
    }

    /// Stages for the label app=`app` of a `kind` in `namespace`.
    pub async fn stage(&self, namespace: &str, kind: &str, app: &str) -> Ticket {
        let path = format!("/api/v1/resources/deps.tgz?namespace={namespace}&kind={kind}&label=app%3D{app}");
        let response = self.app.client.put(self.app.url(&path)).body("jars").send().await.unwrap();
        self.app.ticket(response).await
    }

    pub async fn use_once(&self, ticket: &Ticket) {
        let response = self.app.download(ticket).send().await.unwrap();
        assert_eq!(response.text().await.unwrap(), "jars");
        until("the download is over", async || self.app.staging.in_flight() == (0, 0)).await;
    }
}

pub async fn read<T: serde::de::DeserializeOwned>(response: Response) -> T {
    let status = response.status();
    let text = response.text().await.unwrap();
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn set<const N: usize>(tickets: [&Ticket; N]) -> BTreeSet<String> {
    tickets.into_iter().map(|ticket| ticket.resource_id.clone()).collect()
}

/// Every method and path that belongs to the admin, out of the contract.
async fn admin_requests(app: &TestApp) -> Vec<(Method, String)> {
    let document: Value = app.get("/api/openapi.json").send().await.unwrap().json_value().await;
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys().filter(|_| path.starts_with("/admin/")) {
            let path =
                path.replace("{id}", "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1").replace("{uid}", "a-cluster");
            found.push((Method::from_bytes(method.to_uppercase().as_bytes()).unwrap(), path));
        }
    }
    assert_eq!(found.len(), 7, "{found:?}");
    found
}

trait JsonValue {
    async fn json_value(self) -> Value;
}

impl JsonValue for Response {
    async fn json_value(self) -> Value {
        serde_json::from_slice(&self.bytes().await.unwrap()).unwrap()
    }
}

#[tokio::test]
async fn nothing_is_answered_without_an_admin_token_of_the_server() {
    let server = Administered::start().await;
    let ticket = server.app.stage("jars").await;
    for (method, path) in admin_requests(&server.app).await {
        for (token, says) in [
            (None, "only an admin may ask for this"),
            (Some("wrong-horse-battery-staple"), "not an admin token"),
            (Some(&TOKEN[1..]), "not an admin token"),
            (Some(ticket.resource_secret.as_str()), "not an admin token"),
        ] {
            let request = server.app.client.request(method.clone(), server.app.url(&path));
            let request = token.iter().fold(request, |request, token| request.bearer_auth(token));
            let refused = problem(request.send().await.unwrap()).await;
            assert_eq!((refused.status, refused.code.as_str()), (401, "unauthorized"), "{method} {path}");
            assert!(refused.detail.contains(says), "{}", refused.detail);
        }
    }
    assert_eq!(server.app.files().len(), 1);
    let other = server.app.client.get(server.app.url("/admin/v1/status")).bearer_auth(format!("old-{TOKEN}"));
    assert_eq!(other.send().await.unwrap().status(), 200, "any line of the file is a token");
}

#[tokio::test]
async fn without_a_token_file_the_answer_says_how_to_turn_it_on() {
    let app = TestApp::start().await;
    for (method, path) in admin_requests(&app).await {
        let request = app.client.request(method.clone(), app.url(&path)).bearer_auth(TOKEN);
        let refused = problem(request.send().await.unwrap()).await;
        assert_eq!((refused.status, refused.code.as_str()), (403, "admin-off"), "{method} {path}");
        assert!(refused.detail.contains("--admin-token-file FILE"), "{}", refused.detail);
    }
}

#[tokio::test]
async fn a_list_says_for_whom_how_big_and_why_each_is_kept() {
    let server = Administered::start().await;
    let unused = server.app.ticket(server.app.put("&name=driver", "four").send().await.unwrap()).await;
    let used = server.stage("demo", "Pod", "x").await;
    server.use_once(&used).await;
    server.app.clock.advance(10 * MINUTE);
    let page = server.list("").await;
    assert_eq!((page.resources.len(), page.next), (2, None));
    let of =
        |ticket: &Ticket| page.resources.iter().find(|row| row.resource_id == ticket.resource_id).unwrap();
    let row = of(&unused);
    assert_eq!((row.owner.namespace.as_str(), row.owner.name.as_deref()), ("demo", Some("driver")));
    assert_eq!((row.size_bytes, row.last_used_at), (4, None));
    assert_eq!(row.kept_because.as_deref(), Some("not-used-yet"));
    assert_eq!(row.expires_at, Some(unused.expires_at));
    assert_eq!(page.now.duration_since(row.created_at).as_mins(), 10);
    let row = of(&used);
    assert_eq!((row.kept_because.as_deref(), row.expires_at), (Some("owners-not-asked"), None));
    server.app.clock.advance(20 * MINUTE);
    let due = server.list("why=due").await.resources;
    assert_eq!(due.len(), 1);
    assert_eq!((due[0].due_because.as_deref(), due[0].kept_because.as_deref()), (Some("unused"), None));
}

#[tokio::test]
async fn every_filter_leaves_out_what_it_does_not_mean() {
    let server = Administered::start().await;
    let old = server.stage("demo", "Pod", "x").await;
    server.use_once(&old).await;
    server.app.clock.advance(5 * MINUTE);
    let other_kind = server.stage("demo", "Job", "x").await;
    let other_label = server.stage("demo", "Pod", "y").await;
    let other_place = server.stage("team-a", "Pod", "x").await;
    let named = server.app.ticket(server.app.put("&name=driver", "jars").send().await.unwrap()).await;
    for (query, expected) in [
        ("namespace=team-a", set([&other_place])),
        ("kind=Job", set([&other_kind])),
        ("label=app%3Dy", set([&other_label])),
        ("label=app%3Dy&label=role%3Dz", set([])),
        ("name=driver", set([&named])),
        ("unused=true&namespace=demo", set([&other_kind, &other_label, &named])),
        ("unused=false", set([&old, &other_kind, &other_label, &other_place, &named])),
        ("olderThan=5m", set([&old])),
        ("olderThan=301s", set([])),
        ("why=owners-not-asked", set([&old])),
        ("why=owners-not-asked&why=not-used-yet&kind=Pod&namespace=team-a", set([&other_place])),
    ] {
        assert_eq!(server.ids(query).await, expected, "{query}");
    }
    for (query, says) in [
        ("nmespace=demo", "parameter “nmespace” is unknown"),
        ("why=becuse", "none of owner-present"),
        ("limit=0", "not a number from 1 to 1000"),
        ("limit=1001", "not a number from 1 to 1000"),
        ("after=x", "not a resource id"),
        ("unused=yes", "neither true nor false"),
        ("olderThan=3", "olderThan is not usable"),
        ("label=app", "label “app” has no value"),
        ("kind=pod", "kind “pod” is not a Kubernetes kind"),
        ("name=a&name=b", "given more than once"),
        ("a%E2%80%AEb%E2%80%A8c%E2%80%8Bd=x", "parameter “a\u{fffd}b\u{fffd}c\u{fffd}d” is unknown"),
        ("olderThan=a%E2%80%AEb", "a\u{fffd}b"),
    ] {
        let refused = problem(server.ask(Method::GET, &format!("/admin/v1/resources?{query}")).await).await;
        assert_eq!((refused.status, refused.code.as_str()), (400, "invalid-parameter"), "{query}");
        assert!(refused.detail.contains(says), "{query}: {}", refused.detail);
    }
}

#[tokio::test]
async fn thousands_are_listed_in_pages_without_duplicates_amid_changes() {
    const STAY: usize = 5000;
    let clock = Arc::new(ManualClock::new());
    let (directory, _) = crate::expiry::directory_of(STAY, &clock).await;
    let server = Administered::start_on(directory, clock, Options::default()).await;
    let going = futures_util::future::join_all((0..40).map(|_| server.stage("go", "Pod", "c"))).await;
    let (mut seen, mut stayed, mut after, mut pages) = (BTreeSet::new(), 0, None::<String>, 0);
    loop {
        let query = after.map(|after| format!("&after={after}")).unwrap_or_default();
        let page = server.list(&format!("limit=333{query}")).await;
        assert!(page.resources.len() <= 333);
        for resource in page.resources {
            stayed += usize::from(resource.owner.namespace == "demo");
            assert!(seen.insert(resource.resource_id), "listed twice");
        }
        if let Some(ticket) = going.get(pages) {
            assert_eq!(server.remove(ticket, "").await.status(), 200);
            server.stage("come", "Pod", "d").await;
        }
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(stayed, STAY);
    assert!(pages > 15, "{pages}");
    let (mut found, mut after) = (0, String::new());
    loop {
        let page = server.list(&format!("namespace=demo&name=driver&limit=700{after}")).await;
        found += page.resources.len();
        match page.next {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(found, STAY);
}

#[tokio::test]
async fn a_resource_and_its_tombstone_are_shown_with_everything_known_of_them() {
    let server = Administered::start().await;
    let ticket = server.app.ticket(server.app.put("&ttl=2h", "jars").send().await.unwrap()).await;
    server.use_once(&ticket).await;
    let path = format!("/admin/v1/resources/{}", ticket.resource_id);
    let details: ResourceDetails = server.get(&path).await;
    assert_eq!(details.resource.resource_id, ticket.resource_id);
    assert_eq!((details.state.as_str(), &details.sha256), ("ready", &Some(ticket.sha256.clone())));
    assert_eq!(
        (details.file_name.as_deref(), details.resource.uploaded_by.as_deref()),
        (Some("deps.tgz"), Some("127.0.0.1"))
    );
    assert_eq!((details.unused_timeout.as_str(), details.ttl.as_deref()), ("30m", Some("2h")));
    assert!(details.first_used_at.is_some() && details.resource.last_used_at.is_some());
    assert_eq!(details.resource.kept_because.as_deref(), Some("owners-not-asked"));
    assert_eq!(server.app.delete(&ticket).send().await.unwrap().status(), 204);
    let gone: ResourceDetails = server.get(&path).await;
    assert_eq!(
        (gone.state.as_str(), gone.resource.deletion_reason.as_deref()),
        ("deleted", Some("released"))
    );
    assert_eq!((gone.resource.kept_because, gone.resource.due_because), (None, None));
    for id in ["4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1", "x"] {
        let unknown = problem(server.ask(Method::GET, &format!("/admin/v1/resources/{id}")).await).await;
        assert_eq!((unknown.status, unknown.code.as_str()), (404, "not-found"));
    }
}

#[tokio::test]
async fn a_removal_frees_the_room_and_the_ticket_is_told_who_did_it() {
    let server = Administered::start().await;
    let ticket = server.app.stage("jars").await;
    server.use_once(&ticket).await;
    let removal: Removal = read(server.remove(&ticket, "").await).await;
    assert!(removal.removed && removal.size_bytes == Some(4) && removal.deletion_reason.is_none());
    assert_eq!(server.app.files(), Vec::<String>::new());
    assert_eq!(server.app.stored().await.bytes, 0);
    let gone = problem(server.app.download(&ticket).send().await.unwrap()).await;
    assert_eq!((gone.status, gone.deletion_reason.as_deref()), (410, Some("removed")));
    let lines = logs::lines_with(&ticket.resource_id);
    let is_said = |line: &String| {
        ["removed by the admin", "reason=removed", "peer=127.0.0.1"].iter().all(|part| line.contains(part))
    };
    assert!(lines.iter().any(is_said), "{lines:?}");
    let again: Removal = read(server.remove(&ticket, "").await).await;
    assert!(!again.removed);
    assert_eq!((again.deletion_reason.as_deref(), again.deleted_at), (Some("removed"), gone.deleted_at));
    assert_eq!(server.list("").await.resources.len(), 0);
}

#[tokio::test]
async fn what_is_removed_as_unused_stays_if_somebody_has_used_it_since() {
    let server = Administered::start().await;
    let (used, unused) = (server.app.stage("jars").await, server.app.stage("jars").await);
    server.use_once(&used).await;
    let refused = problem(server.remove(&used, "?unused=true").await).await;
    assert_eq!((refused.status, refused.code.as_str()), (409, "in-use"));
    assert_eq!(server.remove(&unused, "?unused=true").await.status(), 200);
    assert_eq!(server.ids("").await, set([&used]));
    let refused = problem(server.remove(&used, "?unsued=true").await).await;
    assert_eq!((refused.status, refused.code.as_str()), (400, "invalid-parameter"));
    assert_eq!(server.app.files().len(), 1);
}

#[tokio::test]
async fn a_sweep_that_was_asked_for_answers_when_it_is_done_with_what_it_did() {
    let server = Administered::start().await;
    let old = server.app.stage("jars").await;
    server.app.clock.advance(30 * MINUTE);
    let young = server.app.stage("jars").await;
    let report: SweepReport = read(server.ask(Method::POST, "/admin/v1/sweeps").await).await;
    assert_eq!(report.deleted, [(DeletionReason::Unused.into(), 1)].into());
    assert_eq!(report.kept, [(KeepReason::NotUsedYet.into(), 1)].into());
    assert_eq!(server.ids("").await, set([&young]));
    let gone = problem(server.app.download(&old).send().await.unwrap()).await;
    assert_eq!(gone.deletion_reason.as_deref(), Some("unused"));
    let status: ServerStatus = server.get("/admin/v1/status").await;
    assert_eq!(status.last_sweep, Some(report));
    assert_eq!(status.last_sweep_at, Some(status.now));
    assert_eq!(status.next_sweep_at.unwrap().duration_since(status.now).as_hours(), 24);
}

#[tokio::test]
async fn the_status_tells_the_room_and_whether_owners_are_asked_for() {
    let mut options = Options { free_bytes: Some(5000), ..Options::default() };
    options.limits.capacity.max_total_size = Some(1000);
    let server = Administered::start_with(options).await;
    server.app.stage("jars").await;
    let status: ServerStatus = server.get("/admin/v1/status").await;
    assert_eq!(status.version, env!("CARGO_PKG_VERSION"));
    assert!(!status.owners_asked && status.watches.is_empty());
    assert_eq!((status.stored_bytes, status.free_bytes), (4, Some(5000)));
    assert_eq!((status.limits.max_total_size, status.limits.max_concurrent_uploads), (Some(1000), 64));
    assert_eq!((status.uploads_in_flight, status.downloads_in_flight), (0, 0));
}

#[tokio::test]
async fn no_answer_has_a_secret_or_its_hash() {
    use base64::Engine as _;
    use sha2::Digest as _;
    let server = Administered::start().await;
    let ticket = server.app.stage("jars").await;
    let hash = sha2::Sha256::digest(ticket.resource_secret.as_bytes());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let base64 = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(hash);
    let one = format!("/admin/v1/resources/{}", ticket.resource_id);
    for path in ["/admin/v1/resources", "/admin/v1/status", &one] {
        let text = server.ask(Method::GET, path).await.text().await.unwrap();
        for secret in [&ticket.resource_secret, TOKEN, hex.as_str(), base64.as_str(), "secret", "hash"] {
            assert!(!text.contains(secret), "{path} has {secret}: {text}");
        }
    }
}

#[tokio::test]
async fn an_admin_token_opens_no_bundle() {
    let server = Administered::start().await;
    let ticket = server.app.stage("jars").await;
    let refused = server.app.client.get(&ticket.url).bearer_auth(TOKEN).send().await.unwrap();
    assert_eq!(refused.status(), 404);
}

#[tokio::test]
async fn admins_requests_are_logged_each() {
    let server = Administered::start().await;
    let id = format!("admin-{:016x}", rand::random::<u64>());
    let request = server.app.get("/admin/v1/status").bearer_auth(TOKEN).header("x-request-id", &id);
    assert_eq!(request.send().await.unwrap().status(), 200);
    let lines = logs::lines_with(&id);
    assert!(lines.iter().any(|line| line.contains(" INFO ") && line.contains("answered")), "{lines:?}");
}
