//! What earlier runs of `cloakroom stage --for` left goes with the next one, as far as it is certain that nobody needs it; and a
//! stager's role is enough for a server that asks the cluster.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::ResourceId;
use cloakroom_testing::cluster::{Account, CLOAKROOM_USER};
use cloakroom_testing::wait::BOUND;
use cloakroom_transfer::client::{HttpClient, ServerAddress, Timeouts};

use super::*;

const REMOVED: &str = "removed from namespace demo what earlier runs had left there";
const MAP_KEY: &str = "download-submitted-files";

/// A config map and a secret.
type Pair = [Value; 2];

impl Stager {
    fn told(&self, more: &[&str]) -> String {
        let output = self.output("spark-submit", more);
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    }

    fn names(&self, kind: Kind) -> Vec<String> {
        let everything = self.api_server.everything_in("demo");
        let prefix = format!("{} ", kind.kind);
        everything.iter().filter_map(|name| Some(name.strip_prefix(&prefix)?.to_owned())).collect()
    }

    /// Stages, and returns what that made.
    fn leaves(&self, more: &[&str]) -> Pair {
        let before = [CONFIG_MAP, SECRET].map(|kind| self.names(kind));
        self.told(more);
        [(CONFIG_MAP, &before[0]), (SECRET, &before[1])].map(|(kind, before)| {
            let name = self.names(kind).into_iter().find(|name| !before.contains(name)).unwrap();
            self.api_server.object(kind, "demo", &name).unwrap()
        })
    }

    /// Puts another object in the place of one.
    fn replace(&self, kind: Kind, object: Value) {
        self.api_server.delete(kind, "demo", &name(&object));
        self.api_server.add(kind, "demo", object);
    }

    /// Deletes from the server what one ticket of a pair is for: of `Jars` or of `Files`.
    fn release(&self, [map, secret]: &Pair, what: &str) {
        let properties = text(&map["data"][MAP_KEY]);
        let key = format!("download{what}ResourceIdentifier=");
        let id = properties.lines().find_map(|line| Some(line.split_once(&key)?.1)).unwrap();
        let shown = STANDARD.decode(text(&secret["data"][format!("downloadSubmitted{what}Secret")])).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        let ticket: Ticket = serde_json::from_value(json!({
            "resourceId": id, "resourceSecret": shown, "sizeBytes": 0, "sha256": "", "url": "",
            "createdAt": "2026-01-01T00:00:00Z", "expiresAt": "2026-01-01T00:00:00Z",
        }))
        .unwrap();
        let address = ServerAddress::parse(&self.server.url("")).unwrap();
        let id = ResourceId::parse(id).unwrap();
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let http = HttpClient::new(&[], Timeouts::default()).unwrap();
            assert_eq!(http.is_gone(&address, &id, &shown).await, Ok(false));
            http.release(&address, &ticket).await.unwrap();
            assert_eq!(http.is_gone(&address, &id, &shown).await, Ok(true));
        });
    }
}

fn name(object: &Value) -> String {
    text(&object["metadata"]["name"])
}

#[test]
fn what_an_earlier_run_left_goes_once_the_server_has_deleted_its_files() {
    let stager = Stager::new();
    let gone = stager.leaves(&["--files", "data.txt", "app.jar"]);
    let kept = stager.leaves(&["app.jar"]);
    stager.release(&gone, "Jars");
    stager.release(&gone, "Files");
    // Addresses with secrets are in the secret: there is no config map then.
    let fetched =
        ["--conf", "spark.kubernetes.cloakroom.fetchRemote=true", "--files", "https://h/x?sig=1", "app.jar"];
    let told = stager.told(&fetched);
    let removed = told.lines().find(|line| line.starts_with(REMOVED)).unwrap_or_else(|| panic!("{told}"));
    assert!(removed.contains(&format!("secrets {}, and", name(&gone[1]))), "{removed}");
    assert_eq!(stager.names(CONFIG_MAP), [name(&kept[0])]);
    assert!(!stager.names(SECRET).contains(&name(&gone[1])), "{told}");
    assert_eq!(stager.names(SECRET).len(), 2);
    assert!(!stager.told(&["app.jar"]).contains(REMOVED));
}

// Invariant: `stage --for` removes objects of earlier runs only if their files are certainly gone.
#[test]
fn what_is_not_certainly_gone_and_certainly_its_own_stays() {
    let stager = Stager::new();
    let half = stager.leaves(&["--files", "data.txt", "app.jar"]);
    stager.release(&half, "Jars");
    let changes: [fn(&mut Pair); 5] = [
        // Another server's, although this one would know the ticket.
        |pair| {
            let properties = text(&pair[0]["data"][MAP_KEY]);
            let uri = "spark.kubernetes.resourceStagingServer.uri=";
            pair[0]["data"][MAP_KEY] = properties.replace(uri, &format!("{uri}http\\://other/")).into();
        },
        // Lost by the server, or never had: it knows no such id.
        |pair| {
            let properties = text(&pair[0]["data"][MAP_KEY]);
            let key = "downloadJarsResourceIdentifier=";
            let (before, rest) = properties.split_once(key).unwrap();
            let (_, rest) = rest.split_at(36);
            let other = format!("{before}{key}00000000-0000-4000-8000-000000000000{rest}");
            pair[0]["data"][MAP_KEY] = other.into();
        },
        |pair| pair[1]["data"]["downloadSubmittedJarsSecret"] = STANDARD.encode("wrong").into(),
        |pair| pair[1]["metadata"]["ownerReferences"] = json!([{"kind": "Pod", "name": "p", "uid": "u"}]),
        |pair| pair[0]["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "helm".into(),
    ];
    for change in changes {
        let mut pair = stager.leaves(&["app.jar"]);
        stager.release(&pair, "Jars");
        change(&mut pair);
        let [map, secret] = pair;
        stager.replace(CONFIG_MAP, map);
        stager.replace(SECRET, secret);
    }
    let told = stager.told(&["app.jar"]);
    assert!(!told.contains(REMOVED), "{told}");
    assert_eq!((stager.names(CONFIG_MAP).len(), stager.names(SECRET).len()), (7, 7));
}

#[test]
fn leftovers_that_may_not_be_looked_for_stay_without_a_word() {
    let stager = Stager::new();
    let gone = stager.leaves(&["app.jar"]);
    stager.release(&gone, "Jars");
    for (verb, fault) in [
        (Verb::List, Fault::Status(403)),
        (Verb::List, Fault::Status(500)),
        (Verb::List, Fault::Hang),
        (Verb::Delete, Fault::Status(403)),
    ] {
        stager.api_server.fail(verb, fault);
        let began = Instant::now();
        let told = stager.told(&["app.jar"]);
        assert!(!told.contains(REMOVED) && !told.contains("the API server"), "{told}");
        assert!(told.contains("submit the application before") && began.elapsed() < BOUND, "{told}");
        stager.api_server.heal();
        assert!(stager.names(SECRET).contains(&name(&gone[1])));
    }
    assert!(stager.told(&["app.jar"]).contains(REMOVED));
}

#[test]
fn a_quiet_run_removes_leftovers_without_a_word() {
    let stager = Stager::new();
    let gone = stager.leaves(&["app.jar"]);
    stager.release(&gone, "Jars");
    assert!(!stager.told(&["--quiet", "app.jar"]).contains("removed"));
    assert!(!stager.names(SECRET).contains(&name(&gone[1])));
}

#[test]
fn the_role_of_the_stager_is_enough_for_a_server_that_asks_the_cluster() {
    let mut stager = Stager::new();
    let reviews = json!([
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ]);
    stager.api_server.grant_rules(CLOAKROOM_USER, None, reviews);
    let token = stager.api_server.token(Account::Cloakroom);
    let own = stager.path("server-kubeconfig");
    std::fs::write(&own, kubeconfig(None, stager.api_server.address(), &token)).unwrap();
    let own = own.display().to_string();
    let flags = [
        "--fetch-image",
        IMAGE,
        "--upload-auth",
        "kubernetes",
        "--accept-cluster-tokens",
        "--kubeconfig",
        &own,
    ];
    stager.server = Cloakroom::serve(&stager.path("server-that-asks"), &flags);
    std::fs::write(stager.path("token"), TOKEN).unwrap();
    let arguments = ["--token-file", "token", "app.jar"];
    stager.api_server.grant_rules("stager", Some("demo"), rules_of_submitters(&["cluster-tokens.yaml"]));
    stager.told(&arguments);
    stager.api_server.revoke_all("stager");
    stager.api_server.grant_rules("stager", Some("demo"), rules());
    // A yes is remembered by the server that got it.
    stager.server = Cloakroom::serve(&stager.path("another-that-asks"), &flags);
    let said = stderr(&stager.output("spark-submit", &arguments));
    assert!(said.contains("stager may not create pods in the namespace demo"), "{said}");
}
