//! The chart at a real API server: nothing here runs pods, so this is about objects.

use std::io::Write as _;
use std::process::Output;

use cloakroom_testing::cluster::{Account, Cluster as _};
use cloakroom_testing::control_plane::ControlPlane;
use cloakroom_testing::documentation::block;
use cloakroom_testing::needs::path;
use serde_json::{Value, json};

use super::helm::{CHART_TOOLS, Helm};

/// The kinds that Kubernetes does not have, in the versions that `tests/programs/build-chart-tools` names.
const DEFINITIONS: [&str; 4] = ["http-route-v1.2.1", "servicemonitors", "prometheusrules", "certificates"];

/// A later version of the first of them.
const LATER: &str = "http-route-v1.6.3";

/// Strictly: a field that a definition does not have is an error.
pub async fn the_real_definitions_accept_what_is_rendered(plane: &ControlPlane) {
    let namespace = "chart-definitions";
    let admin = plane.api(Account::Admin);
    for namespace in [namespace, "chart-owners"] {
        admin.create_namespace(namespace).await;
    }
    DEFINITIONS.iter().for_each(|name| define(plane, name));
    for later in [false, true] {
        if later {
            define(plane, LATER);
        }
        for version in Helm::VERSIONS {
            let helm = Helm::new(version).release("definitions").at(plane.admin_kubeconfig(), namespace);
            let files = ["bucket", "nodeport", "ingress", "gateway", "monitoring", "accept-cluster-tokens"]
                .map(|overlay| format!("ci/{overlay}-values.yaml"));
            for values in [
                &["uploadAuth=kubernetes"][..],
                &[
                    "uploadAuth=kubernetes",
                    "tls.existingSecret=",
                    "tls.certManager.issuerRef.name=ca",
                    "tls.certManager.ipAddresses={192.0.2.1}",
                    "namespaces={chart-owners}",
                    "service.type=LoadBalancer",
                    "service.externalTrafficPolicy=Local",
                    "service.loadBalancerClass=example.com/inner",
                    "service.ipFamilyPolicy=PreferDualStack",
                    "persistence.storageClassName=-",
                    "global.imagePullSecrets={registry}",
                    "serviceAccount.name=other",
                    "podAnnotations.a=1",
                    "podLabels.a=true",
                    "networkPolicy.apiServerCidrs={192.0.2.1/32}",
                ],
            ] {
                let rendered = helm.render(&files, values);
                for kind in ["HTTPRoute", "ServiceMonitor", "PrometheusRule"] {
                    assert_eq!(rendered.of_kind(kind).count(), 1, "{kind}");
                }
                ok(apply(plane, rendered.objects()));
            }
        }
        for overlay in ["gateway", "monitoring"] {
            let folder = format!("{}/manifests/overlays/{overlay}", env!("CARGO_MANIFEST_DIR"));
            ok(plane.kubectl(&[
                "apply",
                "--server-side",
                "--force-conflicts",
                "--dry-run=server",
                "--validate=strict",
                "-k",
                &folder,
            ]));
        }
    }
    // What the check is worth.
    let mut route = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"name": "planted", "namespace": namespace}, "spec": {"rules": [{"timeouts": {"request": "0s"}}]},
    });
    ok(apply(plane, &[route.clone()]));
    route["spec"]["rules"][0]["timeouts"] = json!({"whole": "0s"});
    let said = String::from_utf8(apply(plane, &[route]).stderr).unwrap();
    assert!(said.contains("whole"), "{said}");
}

/// Brings in a kind, and waits until it is served.
pub fn define(plane: &ControlPlane, name: &str) {
    let file = path(CHART_TOOLS).join(format!("definitions/{name}.yaml"));
    let file = file.to_str().unwrap();
    ok(plane.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", file]));
    ok(plane.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "-f", file]));
}

/// Tries objects at the API server, and leaves nothing.
fn apply(plane: &ControlPlane, objects: &[Value]) -> Output {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let mut file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    file.write_all(list.to_string().as_bytes()).unwrap();
    let file = file.path().to_str().unwrap();
    plane.kubectl(&["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", file])
}

/// By both versions of Helm, each with a release of its own; then the other way round, as people change over.
pub async fn helm_installs_upgrades_and_uninstalls_and_the_claim_stays(plane: &ControlPlane) {
    let namespace = "chart";
    plane.api(Account::Admin).create_namespace(namespace).await;
    for (version, next) in [("helm-3", "helm-3"), ("helm-4", "helm-4"), ("helm-3", "helm-4")] {
        let release = format!("{version}-{next}");
        let at = |version| Helm::new(version).release(&release).at(plane.admin_kubeconfig(), namespace);
        let (first, second) = (at(version), at(next));
        let files = ["tls", "upload-auth-token"].map(|overlay| format!("ci/{overlay}-values.yaml"));
        let said = ok(first.chart(&["install"], &files, &[]));
        for line in [
            "kubectl create secret generic cloakroom-tokens -n chart --from-file=upload-token\n",
            "kubectl create secret tls cloakroom-tls -n chart --cert=tls.crt --key=tls.key",
            &format!("kubectl rollout status deployment/{release}-cloakroom -n chart"),
            &format!("Clients reach it at https://{release}-cloakroom.chart.svc:10000, inside the cluster."),
            &format!("kubectl exec -n chart deploy/{release}-cloakroom -- cloakroom ls"),
        ] {
            assert!(said.contains(line), "no “{line}” in {said}");
        }
        let claim = claim(plane, &release).unwrap();
        // One of the chart's own variables is replaced, none is there twice.
        let upgrade = [
            "extraEnv[0].name=CLOAKROOM_LOG_FORMAT",
            "extraEnv[0].value=text",
            "priorityClassName=high",
            "uploadAuth=kubernetes",
        ];
        ok(second.chart(&["upgrade"], &files, &upgrade));
        let pod = &deployment(plane, &release)["spec"]["template"]["spec"];
        assert_eq!(pod["priorityClassName"], "high");
        let env = pod["containers"][0]["env"].as_array().unwrap();
        let formats: Vec<_> = env.iter().filter(|pair| pair["name"] == "CLOAKROOM_LOG_FORMAT").collect();
        assert_eq!(formats, [&json!({"name": "CLOAKROOM_LOG_FORMAT", "value": "text"})]);
        assert!(env.iter().all(|pair| pair["name"] != "CLOAKROOM_UPLOAD_TOKEN_FILE"), "{env:?}");
        ok(second.about(&["uninstall"]));
        assert!(deployment(plane, &release).is_null());
        assert_eq!(self::claim(plane, &release), Some(claim.clone()), "the claim is another one");
        // It is taken up again, and goes where that is said.
        ok(second.chart(&["install"], &files, &["persistence.keep=false"]));
        assert_eq!(self::claim(plane, &release), Some(claim), "the claim is another one");
        ok(second.about(&["uninstall"]));
        assert_eq!(self::claim(plane, &release), None);
    }
}

/// By the lines of the page, after an upgrade to an image that no node has.
pub async fn a_release_goes_back_to_a_revision_that_ran(plane: &ControlPlane) {
    let lines = block("docs/versions.md", "Going back", "helm history");
    let [history, back] = &lines.lines().map(arguments).collect::<Vec<_>>()[..] else { panic!("{lines}") };
    plane.api(Account::Admin).create_namespace("chart-back").await;
    for version in Helm::VERSIONS {
        let helm =
            Helm::new(version).release(&version.replace('-', "")).at(plane.admin_kubeconfig(), "chart-back");
        let files = ["ci/tls-values.yaml".to_owned()];
        ok(helm.chart(&["upgrade", "--install"], &files, &[]));
        ok(helm.chart(&["upgrade", "--install"], &files, &["image.tag=none"]));
        let shown = ok(helm.about(history));
        assert!(shown.contains("superseded") && shown.contains("deployed"), "{shown}");
        // No pod runs here that could be waited for.
        let back: Vec<_> = back.iter().copied().filter(|word| *word != "--wait").collect();
        ok(helm.about(&back));
        let name = format!("{}-cloakroom", version.replace('-', ""));
        let deployment = named(plane, "deployment", "chart-back", &name);
        assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "cloakroom:0.1.0");
        ok(helm.about(&["uninstall"]));
    }
}

/// A line's subcommand and what is behind the release's name, without the namespace.
fn arguments(line: &str) -> Vec<&str> {
    let words: Vec<_> = line.split(' ').collect();
    assert_eq!(words[0], "helm", "{line}");
    let others = words[1..].iter().copied();
    others.filter(|word| !["cloakroom", "-n"].contains(word)).collect()
}

/// The uid of the release's claim that is not about to go.
fn claim(plane: &ControlPlane, release: &str) -> Option<String> {
    let claim = get(plane, "persistentvolumeclaim", release);
    let goes = !claim["metadata"]["deletionTimestamp"].is_null();
    claim["metadata"]["uid"].as_str().filter(|_| !goes).map(str::to_owned)
}

fn deployment(plane: &ControlPlane, release: &str) -> Value {
    get(plane, "deployment", release)
}

/// An object of the release; null if there is none.
fn get(plane: &ControlPlane, kind: &str, release: &str) -> Value {
    named(plane, kind, "chart", &format!("{release}-cloakroom"))
}

fn named(plane: &ControlPlane, kind: &str, namespace: &str, name: &str) -> Value {
    let said = ok(plane.kubectl(&["get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found"]));
    if said.is_empty() { Value::Null } else { serde_json::from_str(&said).unwrap() }
}

/// What it said, if it succeeded.
#[track_caller]
fn ok(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

/// As the chart's page says it. All is as it was afterwards.
pub async fn helm_takes_over_what_kustomize_made(plane: &ControlPlane) {
    let claim = || named(plane, "persistentvolumeclaim", "cloakroom", "cloakroom")["metadata"]["uid"].clone();
    let block = block("charts/cloakroom/README.md", "Upgrade and remove", "kubectl delete deployment");
    for version in Helm::VERSIONS {
        let before = claim();
        assert!(before.is_string());
        let flags: Vec<_> = block.split_whitespace().filter(|word| word.starts_with("--")).collect();
        // Helm 3 does not know the flag, and does not need it.
        let flags = flags.into_iter().filter(|flag| version != "helm-3" || *flag != "--force-conflicts");
        ok(plane.kubectl(&["delete", "deployment", "cloakroom", "-n", "cloakroom"]));
        let helm = Helm::new(version).at(plane.admin_kubeconfig(), "cloakroom");
        let install: Vec<_> = ["install"].into_iter().chain(flags).collect();
        ok(helm.chart(&install, &["ci/base-values.yaml".to_owned()], &[]));
        assert_eq!(claim(), before, "the claim is another one");
        assert_eq!(
            plane.rules().await.as_array().unwrap().len(),
            6,
            "a rule for each kind, and one for namespaces"
        );
        // Back again. Uninstalling would take the account with it, and the tokens of all other tests.
        ok(plane.kubectl(&["delete", "deployment", "cloakroom", "-n", "cloakroom"]));
        ok(plane.kubectl(&["delete", "secret", "-l", "owner=helm", "-n", "cloakroom"]));
        let base = format!("{}/manifests/base", env!("CARGO_MANIFEST_DIR"));
        ok(plane.kubectl(&["apply", "--server-side", "--force-conflicts", "-k", &base]));
    }
}
