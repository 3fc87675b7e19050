//! The manifests as `kubectl apply -k` would send them.

mod elsewhere;
pub mod rendered;
pub mod wiring;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use libtest_mimic::Trial;

use cloakroom_testing::documentation::block;
use cloakroom_testing::known;
use cloakroom_testing::needs::{Need, kubectl, trial};
use cloakroom_testing::process;
use cloakroom_testing::scripted::closed_port;
use rendered::Rendered;

pub fn trials() -> Vec<Trial> {
    let needs = || [Need::Kubectl];
    vec![
        trial("every_overlay_renders_without_a_warning", &needs(), renders),
        trial("every_overlay_is_wired_together", &needs(), is_wired),
        trial("planted_mistakes_in_manifests_are_found", &needs(), planted_mistakes),
        trial("components_combine_and_take_an_image_of_ones_own", &needs(), combine),
        trial("the_kustomization_of_the_operations_page_works", &needs(), as_the_page_says),
        trial(
            "every_overlay_can_be_moved_and_renamed",
            &needs(),
            elsewhere::every_overlay_can_be_moved_and_renamed,
        ),
        trial("serve_accepts_the_environment_of_every_overlay", &needs(), environment_is_accepted),
        trial("the_nodeport_overlay_keeps_the_originals_port", &needs(), keeps_the_port),
        trial("the_namespaced_overlay_has_nothing_cluster_wide", &needs(), nothing_cluster_wide),
        trial("the_tls_overlay_serves_https_and_probes_over_http", &needs(), tls_and_probes),
    ]
}

fn renders() {
    for folder in everything() {
        let output = kustomize(&folder);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{}: {said}", folder.display());
    }
}

fn is_wired() {
    for folder in everything() {
        let complaints = wiring::complaints(&render(&folder));
        assert!(complaints.is_empty(), "{}:\n{}", folder.display(), complaints.join("\n"));
    }
}

/// One thing broken at a time, in a rendering of everything.
fn planted_mistakes() {
    let good = combined(&ALL);
    assert_eq!(wiring::complaints(&good), Vec::<String>::new());
    for (kind, name, pointer, value) in wiring::PLANTED {
        let mut broken = good.clone();
        broken.set(kind, name, pointer, serde_json::from_str(value).unwrap());
        assert!(!wiring::complaints(&broken).is_empty(), "nobody minds {kind} {name} {pointer} = {value}");
    }
}

const ALL: [&str; 9] = [
    "bucket",
    "nodeport",
    "ingress",
    "gateway",
    "tls",
    "monitoring",
    "accept-cluster-tokens",
    "admin-token",
    "webhdfs",
];

fn combine() {
    for components in [
        &ALL[..],
        &["nodeport", "tls", "monitoring"],
        &["namespaced", "ingress", "monitoring"],
        &["namespaced", "upload-auth-token", "admin-token"],
    ] {
        let rendered = combined(components);
        assert_eq!(wiring::complaints(&rendered), Vec::<String>::new(), "{components:?}");
        assert_eq!(rendered.container()["image"], "registry.example.com/cloakroom:1.2.3");
    }
}

/// A kustomization of somebody who keeps it elsewhere.
pub fn combined(components: &[&str]) -> Rendered {
    let mut text = format!(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n\
         resources: [cloakroom/manifests/base]\n\
         images: [{{ name: cloakroom, newName: registry.example.com/cloakroom, newTag: 1.2.3 }}]\n\
         {}components:\n",
        replacements()
    );
    for component in components {
        text.push_str(&format!("  - cloakroom/manifests/components/{component}\n"));
    }
    render_own(&text)
}

/// What the operations page has people put beside `images`.
fn replacements() -> String {
    let page = of_the_page();
    let from = page.find("replacements:").unwrap();
    page[from..page.find("patches:").unwrap()].to_owned()
}

/// The kustomization of the operations page.
pub fn of_the_page() -> String {
    block("docs/deploy.md", "With kustomize", "apiVersion: kustomize")
}

fn as_the_page_says() {
    let rendered = render_own(&of_the_page());
    assert_eq!(wiring::complaints(&rendered), Vec::<String>::new());
    let image = concat!("registry.example.com/cloakroom:", env!("CARGO_PKG_VERSION"));
    assert_eq!(rendered.container()["image"], image);
    assert_eq!(rendered.variable("CLOAKROOM_MAX_TOTAL_SIZE").as_deref(), Some("180GiB"));
    let claim = &rendered.one("PersistentVolumeClaim", "cloakroom")["spec"];
    assert_eq!(claim["storageClassName"], "fast");
    assert_eq!(claim["resources"]["requests"]["storage"], "200Gi");
}

/// A kustomization in a folder of its own, beside a copy of the repository.
pub fn render_own(kustomization: &str) -> Rendered {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().canonicalize().unwrap();
    // Kustomize takes no absolute paths.
    let up: String = own.components().skip(1).map(|_| "../").collect();
    let there = format!("{up}{}", manifests().canonicalize().unwrap().strip_prefix("/").unwrap().display());
    let kustomization = kustomization.replace("cloakroom/manifests", &there);
    std::fs::write(own.join("kustomization.yaml"), kustomization).unwrap();
    render(&own)
}

const KUBECONFIG: &str = "{apiVersion: v1, kind: Config, current-context: it, \
    clusters: [{name: it, cluster: {server: 'http://127.0.0.1:6443'}}], users: [{name: it, user: {}}], \
    contexts: [{name: it, context: {cluster: it, user: it}}]}";

/// With files of the pod replaced by such as these tests can make.
fn environment_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let file = |path: &str| folder.path().join(path.replace('/', "-"));
    let key = rcgen::KeyPair::generate().unwrap();
    let cert = rcgen::CertificateParams::new(vec!["cloakroom.cloakroom.svc".to_owned()]).unwrap();
    let cert = cert.self_signed(&key).unwrap();
    // In place of the pod's service account. Nothing is sent.
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, KUBECONFIG).unwrap();
    for overlay in everything() {
        let mut command = process::command();
        command.args(["serve", "--check", "--data-dir"]).arg(folder.path().join("data"));
        command.arg("--kubeconfig").arg(&kubeconfig);
        for (name, value) in render(&overlay).environment() {
            if !value.starts_with("/etc/cloakroom/") {
                command.env(name, value);
                continue;
            }
            let content = match value.rsplit('/').next().unwrap() {
                "tls.crt" => cert.pem(),
                "tls.key" => key.serialize_pem(),
                "webhdfs-keys" => format!("default token-{}", "k".repeat(32)),
                // As `openssl rand -base64 32` makes it.
                _ => "dGhpcyBpcyBhIHRva2VuIG9mIDMyIGJ5dGVzLi4uLi4=".to_owned(),
            };
            std::fs::write(file(&value), content).unwrap();
            command.env(name, file(&value));
        }
        let has_bucket = render(&overlay).variable("CLOAKROOM_STORE").is_some();
        if has_bucket {
            // In place of the Secret, and of a store of others.
            command.envs([("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret")]);
            command.env("CLOAKROOM_STORE_ENDPOINT", format!("https://127.0.0.1:{}", closed_port()));
        }
        let output = command.output().unwrap();
        let said = process::stderr(&output);
        let is_accepted =
            if has_bucket { said.contains("the store cannot be reached") } else { output.status.success() };
        assert!(is_accepted, "{}: {said}", overlay.display());
        let takes_cluster_tokens = overlay.ends_with("accept-cluster-tokens");
        let warns = said.contains("WARN");
        assert!(warns == takes_cluster_tokens, "{}: {said}", overlay.display());
        assert_eq!(said.contains("--accept-cluster-tokens: clients send"), takes_cluster_tokens, "{said}");
    }
}

fn keeps_the_port() {
    let rendered = render(&manifests().join("overlays/nodeport"));
    let service = rendered.one("Service", "cloakroom");
    assert_eq!(service["spec"]["type"], "NodePort");
    assert_eq!(service["spec"]["ports"][0]["nodePort"], 31000);
    assert_eq!(service["spec"]["ports"][0]["port"], 10000);
}

fn nothing_cluster_wide() {
    let rendered = render(&manifests().join("overlays/namespaced"));
    for object in rendered.objects() {
        assert!(object["metadata"]["namespace"].is_string(), "{} is cluster-wide", object["kind"]);
    }
    let ages = rendered.environment().into_iter().any(|(name, _)| name == "CLOAKROOM_MAX_AGE");
    assert!(ages, "without a ClusterRole only age ends what a deleted namespace leaves");
}

fn tls_and_probes() {
    let rendered = render(&manifests().join("overlays/tls"));
    assert_eq!(rendered.one("Service", "cloakroom")["spec"]["ports"][0]["name"], "https");
    assert_eq!(rendered.one("Service", "cloakroom-operations")["spec"]["ports"][0]["appProtocol"], "http");
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let get = &rendered.container()[probe]["httpGet"];
        assert!(get["scheme"].is_null() && get["port"] == "operations", "{probe}: {get}");
    }
}

/// The base and every overlay.
pub fn everything() -> Vec<PathBuf> {
    let mut folders = vec![manifests().join("base")];
    let overlays = std::fs::read_dir(manifests().join("overlays")).unwrap();
    folders.extend(overlays.map(|entry| entry.unwrap().path()));
    assert!(folders.len() > 7);
    folders
}

fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests")
}

fn kustomize(folder: &Path) -> Output {
    Command::new(kubectl().unwrap()).arg("kustomize").arg(folder).output().unwrap()
}

pub fn render(folder: &Path) -> Rendered {
    let output = kustomize(folder);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Rendered::new(known::parse(&String::from_utf8(output.stdout).unwrap()))
}
