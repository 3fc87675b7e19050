//! What users are told when it goes wrong, on a cluster that is real: docs/submit-troubleshooting.md shows it.

mod before_the_pod;
mod case;
mod of_pods;

use std::collections::BTreeSet;

use cloakroom_testing::dist;
use cloakroom_testing::documentation::{blocks, output::Output};
use cloakroom_testing::jobs::Job;
use cloakroom_testing::page_shell::Terminal;
use serde_json::json;

use super::deploy::{SERVER, server};
use super::jobs::{arguments, namespace};
use super::{Journey, secrets};
use crate::cluster::NODE_ADDRESS;
use crate::images::{CLOAKROOM, VERSIONS};
use crate::shell::{At, laptop, run, side_by_side, until};
use crate::world;
use case::Case;

pub const JOURNEYS: &[Journey] = &[
    Journey("each_failure_before_the_pod_is_shown_by_the_page_and_leaves_nothing", before_the_pod),
    Journey("each_failure_of_a_pod_is_shown_by_the_page_and_goes_with_the_pod", of_pods),
    Journey("the_first_submission_says_why_it_failed_and_ends_with_its_code", of_the_page_to_try),
    Journey("a_volume_of_root_is_told", volume_of_root),
    Journey("those_who_may_run_pods_may_stage_by_the_clusters_word", upload_auth),
];

/// Its name, the blocks of the page that show it, and how it comes about.
type Failure = (&'static str, &'static [Output], fn(&Case, &[Output]));

const PAGE: &str = "docs/submit-troubleshooting.md";

/// A block of the page.
const fn shown(heading: &'static str, number: usize) -> Output {
    Output { page: PAGE, heading, number }
}

/// As many below each heading as the page has.
pub fn every_block_is_looked_at() {
    let page = blocks(PAGE);
    let of_page = page.iter().filter(|block| block.is_inside("Failures and what to do"));
    let mut of_page: Vec<&str> = of_page.map(|block| block.headings.last().unwrap().as_str()).collect();
    let failures = [before_the_pod::FAILURES, of_pods::FAILURES].concat();
    let looked_at: BTreeSet<Output> = failures.iter().flat_map(|(_, shown, _)| shown.to_vec()).collect();
    let looked_at: Vec<&str> = looked_at.iter().map(|output| output.heading).collect();
    of_page.sort_unstable();
    assert_eq!(of_page, looked_at);
}

/// Side by side, each in a namespace of its name.
fn all(failures: &[Failure]) {
    server();
    let objects = failures.iter().flat_map(|(name, ..)| {
        let metadata = json!({"name": "spark", "namespace": name});
        let edit = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"});
        let mut binding = json!({"kind": "RoleBinding", "metadata": metadata, "roleRef": edit});
        binding["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
        binding["subjects"] = json!([{"kind": "ServiceAccount", "name": "spark"}]);
        [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
            binding,
        ]
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects.collect::<Vec<_>>()});
    laptop(&format!("kubectl apply -f - <<'END'\n{list}\nEND"));
    let accounts = "kubectl get serviceaccounts -A -o name --field-selector metadata.name=default | wc -l";
    let namespaces = "kubectl get namespaces -o name | wc -l";
    until("the default accounts are there", || laptop(accounts).stdout == laptop(namespaces).stdout);
    side_by_side(failures, |(name, ..)| name, |(name, shown, happens)| happens(&Case::new(name), shown));
}

fn before_the_pod() {
    all(before_the_pod::FAILURES);
}

/// What was made is the pod's, and goes with it.
fn of_pods() {
    // Made once, before several need them.
    arguments(VERSIONS[0], Job::Java);
    all(of_pods::FAILURES);
    secrets::are_nowhere();
    let kinds = "services,configmaps,secrets";
    for (name, ..) in of_pods::FAILURES {
        let owners = format!(
            "kubectl get {kinds} -n {name} -o json | jq -r '.items[] | select(.metadata.name != \"kube-root-ca.crt\") |
                 .metadata.ownerReferences[0] | .kind + \"/\" + .name' | sort -u"
        );
        let owners = laptop(&owners).stdout;
        assert!(["", "Pod/report-driver\n"].contains(&owners.as_str()), "{name}: {owners}");
        laptop(&format!("kubectl delete pod -n {name} report-driver --ignore-not-found --wait=false"));
    }
    for (name, ..) in of_pods::FAILURES {
        let left = format!("kubectl get pods,{kinds} -n {name} -o name");
        until("all has gone with the pod", || laptop(&left).stdout == "configmap/kube-root-ca.crt\n");
    }
}

/// As a reader types what needs an API server alone; the rest of the section is typed where the server was deployed.
fn of_the_page_to_try() {
    server();
    let mut terminal = Terminal::open(&["--mount"], &dist::binary());
    let kubeconfig = world::folder().join("admin.kubeconfig");
    terminal.prepare(&format!("export KUBECONFIG={}", kubeconfig.display()));
    terminal.replace("APISERVER", NODE_ADDRESS);
    let submit = blocks("docs/try.md").into_iter().filter(|block| block.is_in("Submit"));
    let alone: Vec<_> = submit.filter(|block| block.text.contains("APISERVER")).collect();
    assert_eq!(alone.len(), 2);
    alone.iter().for_each(|block| terminal.type_block(block));
}

/// A folder of the host belongs to root, and the kubelet gives it to nobody.
fn volume_of_root() {
    server();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "root-volume"},
        "spec": {
            "restartPolicy": "Never",
            "securityContext": {"runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532},
            "containers": [{"name": "main", "image": CLOAKROOM, "args": ["serve", "--no-kubernetes", "--upload-auth", "none"],
                            "volumeMounts": [{"name": "data", "mountPath": "/var/lib/cloakroom"}]}],
            "volumes": [{"name": "data", "hostPath": {"path": "/run/root-volume", "type": "DirectoryOrCreate"}}],
        },
    });
    laptop(&format!("kubectl apply -f - <<'END'\n{pod}\nEND"));
    until("it ends", || laptop("kubectl get pod root-volume -o jsonpath={.status.phase}").stdout == "Failed");
    let log = laptop("kubectl logs root-volume").stdout;
    for needle in ["/var/lib/cloakroom", "65532", "fsGroup"] {
        assert!(log.contains(needle), "no “{needle}” in: {log}");
    }
}

/// Upload auth `kubernetes` as one more component of the deployed server, with the tokens of the shipped accounts.
fn upload_auth() {
    namespace("reviewed");
    let components = ["nodeport", "tls", "accept-cluster-tokens", "admin-token"];
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["../manifests/base"],
        "components": components.map(|name| format!("../manifests/components/{name}")),
    });
    laptop(&format!(
        "mkdir with-reviews
         openssl rand -base64 32 >admin-token
         kubectl create secret generic cloakroom-tokens --from-file=admin-token --dry-run=client -o yaml |
             kubectl patch secret cloakroom-tokens -n cloakroom --patch-file /dev/stdin
         cat >with-reviews/kustomization.yaml <<'END'\n{kustomization}\nEND
         kubectl apply -k with-reviews
         kubectl rollout status deployment/cloakroom -n cloakroom --timeout=90s
         for account in submitter stager; do kubectl create token -n reviewed spark-$account >$account.token; done
         kubectl create token -n reviewed spark >driver.token"
    ));
    let stage = |account: &str| {
        run(
            At::Laptop,
            &format!(
                "cloakroom stage --server {SERVER} --ca-file tls.crt --token-file {account}.token --namespace reviewed --label app=a app.jar"
            ),
        )
    };
    let elsewhere = format!(
        "cloakroom stage --server {SERVER} --ca-file tls.crt --token-file stager.token --namespace default --label app=a app.jar"
    );
    let allowed = ["submitter", "stager"].map(stage);
    let refused = run(At::Laptop, &elsewhere);
    // As it was, for the journeys that follow.
    laptop(
        "kubectl apply -k manifests/overlays/nodeport
         kubectl rollout status deployment/cloakroom -n cloakroom --timeout=90s",
    );
    for ran in allowed {
        ran.ok();
    }
    let said = refused.ended_with(1).stderr;
    assert!(said.contains("spark-stager may not create pods in the namespace default"), "{said}");
}
