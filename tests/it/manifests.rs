//! The manifests' files agree with the code, the image and the pages. What shows only when overlays are rendered is in
//! tests/real/manifests.rs.

mod dashboard;
mod expressions;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cloakroom_core::metrics::Limited;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::protocol::{HEALTHZ, METRICS, READYZ};
use cloakroom_core::time::SparkDuration;
use cloakroom_testing::known::{self, list, parse, rights_for_owner_kinds, rights_of, text};
use serde_json::Value;

#[test]
fn every_environment_name_is_a_flag_of_serve() {
    // The key of a bucket has the names that all tools of AWS read.
    let of_a_bucket = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(str::to_owned);
    let known: BTreeSet<_> = known::environment_names().into_iter().chain(of_a_bucket).collect();
    for (path, name) in environment() {
        assert!(known.contains(&name), "{}: `cloakroom serve` does not know {name}", path.display());
    }
}

#[test]
fn the_server_may_only_read_its_default_owner_kinds_and_namespaces() {
    let mut expected = rights_for_owner_kinds();
    let named = one("components/namespaced/owners-in-spark.yaml", "Role");
    assert_eq!(rights_of(&named), expected);
    expected.insert("/namespaces get".to_owned());
    assert_eq!(rights_of(&one("base/cluster-role.yaml", "ClusterRole")), expected);
}

#[test]
fn a_user_may_reach_one_port_of_one_service_and_nothing_else() {
    let role = one("base/user-role.yaml", "Role");
    let of_service = |verb| format!("/services/proxy {verb} of http:cloakroom:10000");
    assert_eq!(rights_of(&role), ["create", "delete", "get", "update"].map(of_service).into());
}

#[test]
fn asking_who_may_upload_takes_two_rights_and_no_more() {
    let role = one("base/reviews-role.yaml", "ClusterRole");
    let expected =
        ["authentication.k8s.io/tokenreviews create", "authorization.k8s.io/subjectaccessreviews create"];
    assert_eq!(rights_of(&role), expected.map(str::to_owned).into());
}

#[test]
fn the_uploader_may_stage_and_nothing_else() {
    let right: BTreeSet<String> = ["cloakroom.dev/bundles create".to_owned()].into();
    let to_pass_on = one("base/uploads-role.yaml", "ClusterRole");
    assert_eq!(rights_of(&to_pass_on), right);
    let roles = parse(&std::fs::read_to_string(manifests().join("submitter/uploader.yaml")).unwrap());
    let of = |name: &str| {
        let is_it = |role: &&Value| role["kind"] == "Role" && role["metadata"]["name"] == name;
        rights_of(roles.iter().find(is_it).unwrap())
    };
    assert_eq!(of("cloakroom-uploader"), right);
    let token = "/serviceaccounts/token create of cloakroom-uploader".to_owned();
    assert_eq!(of("cloakroom-token"), [token].into());
}

#[test]
fn the_pages_make_the_secret_with_the_keys_that_the_server_reads() {
    let pages_of = [
        ("upload-auth-token", "upload-token", &["docs/deploy.md", "charts/cloakroom/README.md"][..]),
        ("admin-token", "admin-token", &["docs/administer.md"]),
        ("webhdfs", "webhdfs-keys", &["docs/stock-spark.md"]),
    ];
    for (component, key, pages) in pages_of {
        let deployment = format!("components/{component}/deployment.yaml");
        let container = &one(&deployment, "Deployment")["spec"]["template"]["spec"]["containers"][0];
        let file = format!("/etc/cloakroom/tokens/{key}");
        assert!(list(&container["env"]).iter().any(|pair| pair["value"] == file), "{component}");
        for page in pages.iter().copied().chain([&*format!("manifests/{deployment}")]) {
            let page_text = std::fs::read_to_string(project().join(page)).unwrap();
            let makes = page_text.lines().any(|line| {
                line.contains("create secret generic cloakroom-tokens")
                    && line.contains(&format!("--from-file={key}"))
            });
            assert!(makes, "{page} does not say how to make the Secret cloakroom-tokens with the key {key}");
        }
    }
}

#[test]
fn no_manifest_has_a_secret_or_stands_in_the_way_of_a_drain() {
    for (path, document) in documents() {
        for kind in ["Secret", "PodDisruptionBudget"] {
            assert_ne!(document["kind"], kind, "{}", path.display());
        }
    }
}

#[test]
fn the_pod_has_time_for_the_whole_shutdown() {
    // The cleaner's and the ledger's last words (LAST_WORDS in src/commands/serve.rs, twice), then the last answers
    // (LAST_ANSWERS in crates/server/src/http/connection.rs).
    const LAST_WORDS_SECONDS: u64 = 6 + 1;
    let pod = pod();
    let deadline: SparkDuration = known::default_of("--shutdown-deadline").parse().unwrap();
    let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(grace > deadline.get().as_secs() + LAST_WORDS_SECONDS, "{grace} s");
}

#[test]
fn the_pod_fits_the_image() {
    let dockerfile = std::fs::read_to_string(project().join("Dockerfile")).unwrap();
    let line = |keyword: &str| dockerfile.lines().find_map(|line| line.strip_prefix(keyword)).unwrap();
    let pod = pod();
    let user = &pod["securityContext"];
    assert_eq!(format!("{}:{}", user["runAsUser"], user["runAsGroup"]), line("USER "));
    let mounts = list(&pod["containers"][0]["volumeMounts"]);
    let data = mounts.iter().find(|mount| mount["name"] == "data").unwrap();
    assert_eq!(text(&data["mountPath"]), line("ENV CLOAKROOM_DATA_DIR="));
    let kustomization = one("base/kustomization.yaml", "Kustomization");
    assert_eq!(kustomization["images"][0]["newTag"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn probes_ask_for_what_is_served() {
    let container = &pod()["containers"][0];
    for (probe, path) in [("startupProbe", HEALTHZ), ("livenessProbe", HEALTHZ), ("readinessProbe", READYZ)] {
        assert_eq!(container[probe]["httpGet"]["path"], path);
    }
    // Between two servers nobody answers: as short as the kubelet allows. A node that is slow still has five minutes.
    for probe in ["startupProbe", "readinessProbe"] {
        assert_eq!(container[probe]["periodSeconds"], 1, "{probe}");
    }
    assert_eq!(container["startupProbe"]["failureThreshold"], 300);
    let monitor = one("components/monitoring/service-monitor.yaml", "ServiceMonitor");
    assert_eq!(monitor["spec"]["endpoints"][0]["path"], METRICS);
}

#[test]
fn every_overlay_is_a_component_and_documented() {
    let page = std::fs::read_to_string(project().join("docs/deploy.md")).unwrap();
    let overlays = folders("overlays");
    assert_eq!(overlays, folders("components"));
    for name in overlays {
        let overlay = one(&format!("overlays/{name}/kustomization.yaml"), "Kustomization");
        assert_eq!(overlay["resources"], serde_json::json!(["../../base"]));
        let mut components = vec![format!("../../components/{name}")];
        // A node's port is for clients without a kubeconfig. They send the upload token, over https only. The overlay
        // `namespaced` has that token too, because reviews of other tokens need cluster-wide rights.
        let others: &[&str] = match name.as_str() {
            "nodeport" => &["tls", "upload-auth-token"],
            "namespaced" => &["upload-auth-token"],
            // An upload key counts over TLS only.
            "webhdfs" => &["tls"],
            _ => &[],
        };
        components.extend(others.iter().map(|other| format!("../../components/{other}")));
        assert_eq!(overlay["components"], serde_json::json!(components));
        assert!(page.contains(&format!("\n| `{name}` |")), "docs/deploy.md has no row for {name}");
    }
}

#[test]
fn alerts_and_dashboard_use_metrics_that_exist() {
    let known = expressions::documented_metrics();
    let mut expressions: Vec<String> = alerts().iter().map(|alert| text(&alert["expr"]).to_owned()).collect();
    let dashboard =
        std::fs::read_to_string(manifests().join("components/monitoring/cloakroom.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let targets = list(&dashboard["panels"]).iter().flat_map(|panel| list(&panel["targets"]));
    expressions.extend(targets.map(|target| text(&target["expr"]).to_owned()));
    assert!(expressions.len() > 30, "{} expressions are too few", expressions.len());
    let complaints: Vec<_> =
        expressions.iter().flat_map(|expression| expressions::complaints(expression, &known)).collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn the_dashboard_shows_every_metric() {
    let dashboard =
        std::fs::read_to_string(manifests().join("components/monitoring/cloakroom.json")).unwrap();
    for name in expressions::documented_metrics().keys() {
        assert!(dashboard.contains(name.as_str()), "no panel shows {name}");
    }
}

#[test]
fn no_alert_is_about_the_share_of_one_namespace() {
    let mut looked_at = 0;
    for alert in alerts() {
        let (name, expression) = (text(&alert["alert"]), text(&alert["expr"]));
        assert!(
            !expression.contains("status=\"507\"") && !expression.contains("outcome=\"refused\""),
            "{name}"
        );
        for refusals in expression.split("cloakroom_upload_refusals_total").skip(1) {
            let is_room =
                refusals.starts_with(&format!("{{reason=\"{}\"}}", Code::InsufficientStorage.as_str()));
            assert!(is_room || refusals.starts_with("{reason!=\"share\"}"), "{name}: {refusals}");
            assert!(is_room || alert["labels"]["severity"] == "warning", "{name}");
            looked_at += 1;
        }
    }
    assert_eq!(looked_at, 3);
}

// Invariant: an alert comes before every refusal that concerns all.
#[test]
fn an_alert_comes_before_every_refusal_that_concerns_all() {
    let alerts = alerts();
    let near = alerts.iter().find(|alert| alert["alert"] == "CloakroomLimitNear").unwrap();
    let expression = text(&near["expr"]);
    let (left_out, threshold) = expression
        .strip_prefix("cloakroom_limit_used{of!~\"")
        .and_then(|rest| rest.split_once("\"} / cloakroom_limit > "))
        .unwrap_or_else(|| panic!("{expression}"));
    assert_eq!(threshold, "0.8");
    let left_out: Vec<&str> = left_out.split('|').collect();
    let is_left_out = |of: &str| {
        left_out.iter().any(|word| word.strip_suffix(".*").map_or(*word == of, |start| of.starts_with(start)))
    };
    let page = std::fs::read_to_string(project().join("docs/reference/metrics-and-logs.md")).unwrap();
    let (_, limits) = page.split_once("\n### Limits\n").unwrap();
    let rows: Vec<Vec<&str>> = limits.lines().take_while(|line| !line.starts_with('#')).map(cells).collect();
    for of in Limited::ALL.iter().map(|of| of.as_str()) {
        let word = format!("`{of}`");
        let row =
            rows.iter().find(|row| row.first().is_some_and(|cell| cell.split(", ").any(|of| of == word)));
        let row = row.unwrap_or_else(|| {
            panic!("docs/reference/metrics-and-logs.md has no row for {word} under “Limits”")
        });
        let says = if is_left_out(of) { "no" } else { "yes" };
        assert_eq!(*row.last().unwrap(), says, "whether there is an alert for {word}");
    }
}

/// The cells of a row of a table.
fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

#[test]
fn every_alert_says_what_to_do() {
    let alerts = alerts();
    assert!(alerts.len() >= 7);
    let commands = String::from_utf8(cloakroom_testing::process::run(&["--help"]).stdout).unwrap();
    for alert in alerts {
        let name = text(&alert["alert"]);
        let annotations = &alert["annotations"];
        assert!(text(&annotations["summary"]).len() > 20, "{name}");
        let description = text(&annotations["description"]);
        assert!(description.len() > 100, "{name}: {description}");
        assert!(["warning", "critical"].contains(&text(&alert["labels"]["severity"])), "{name}");
        let in_quotes = description.split("`cloakroom ").skip(1).map(|rest| rest.split('`').next().unwrap());
        let mut help = known::help().clone();
        for line in in_quotes {
            let command = line.split_whitespace().next().unwrap();
            assert!(commands.contains(&format!("\n  {command} ")), "{name}: no `cloakroom {command}`");
            let of_command = cloakroom_testing::process::run(&[command, "--help"]).stdout;
            help.push_str(&String::from_utf8(of_command).unwrap());
        }
        for flag in description.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
            let is_known = [" <", "\n"].iter().any(|after| help.contains(&format!("{flag}{after}")));
            assert!(!flag.starts_with("--") || is_known, "{name}: there is no {flag}");
        }
    }
}

/// Links of alerts lead there, by the alert's name.
#[test]
fn every_alert_has_a_section_of_its_name_on_the_run_page() {
    let page = std::fs::read_to_string(project().join("docs/run.md")).unwrap();
    let (_, sections) = page.split_once("\n## Alerts\n").unwrap();
    let sections = sections.split("\n## ").next().unwrap().lines();
    let sections: Vec<_> = sections.filter_map(|line| line.strip_prefix("### ")).collect();
    let alerts = alerts();
    let names: Vec<_> = alerts.iter().map(|alert| text(&alert["alert"])).collect();
    assert_eq!(sections, names, "docs/run.md has the alerts in the order of the rules");
}

fn alerts() -> Vec<Value> {
    let rules = one("components/monitoring/alerts.yaml", "PrometheusRule");
    let groups = list(&rules["spec"]["groups"]);
    groups.iter().flat_map(|group| list(&group["rules"])).cloned().collect()
}

fn pod() -> Value {
    one("base/deployment.yaml", "Deployment")["spec"]["template"]["spec"].clone()
}

/// Every name that base or a component sets for the container, and where.
fn environment() -> Vec<(PathBuf, String)> {
    let mut names = Vec::new();
    for (path, document) in documents() {
        for container in list(&document["spec"]["template"]["spec"]["containers"]) {
            let env = list(&container["env"]).iter();
            names.extend(env.map(|pair| (path.clone(), text(&pair["name"]).to_owned())));
        }
    }
    assert!(names.len() > 8);
    names
}

/// The one document of a kind in a file.
fn one(path: &str, kind: &str) -> Value {
    let text =
        std::fs::read_to_string(manifests().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut found: Vec<_> = parse(&text).into_iter().filter(|document| document["kind"] == kind).collect();
    assert_eq!(found.len(), 1, "{path} has {} of kind {kind}", found.len());
    found.remove(0)
}

/// Every YAML document below manifests/, with its file.
fn documents() -> Vec<(PathBuf, Value)> {
    let mut found = Vec::new();
    for tree in ["base", "components", "overlays"] {
        for path in yaml_below(&manifests().join(tree)) {
            let text = std::fs::read_to_string(&path).unwrap();
            found.extend(parse(&text).into_iter().map(|document| (path.clone(), document)));
        }
    }
    assert!(found.len() > 30);
    found
}

fn yaml_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files = Vec::new();
    for path in entries {
        if path.is_dir() {
            files.extend(yaml_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files
}

fn folders(below: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(manifests().join(below)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn manifests() -> PathBuf {
    project().join("manifests")
}

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
