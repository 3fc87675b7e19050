//! What users are told when it goes wrong, on a cluster that is real.

use cloakroom_testing::jobs::Job;

use super::Journey;
use super::deploy::{SERVER, server};
use super::jobs::{namespace, submission, submit};
use crate::images::{CLOAKROOM, VERSIONS};
use crate::shell::{At, Ran, laptop, run, until};

pub const JOURNEYS: &[Journey] = &[
    Journey("a_driver_without_memory_is_told_so", out_of_memory),
    Journey("an_image_that_is_not_there_is_told", no_image),
    Journey("a_quota_is_told_before_anything_is_made", quota),
    Journey("a_quota_without_room_for_executors_is_named", no_executors),
    Journey("a_forgotten_service_account_is_told", forgotten_account),
    Journey("a_volume_of_root_is_told", volume_of_root),
    Journey("those_who_may_run_pods_may_stage_by_the_clusters_word", upload_auth),
];

/// Fails unless all of it was said.
fn assert_told(ran: &Ran, needles: &[&str]) {
    for needle in needles {
        assert!(ran.stderr.contains(needle), "no “{needle}” in:\n{}", ran.stderr);
    }
}

fn out_of_memory() {
    namespace("greedy");
    let ran = run(
        At::Laptop,
        &format!("{} project/tests/node/example/greedy.py", submission("greedy", VERSIONS[0])),
    );
    assert_told(&ran, &["OOMKilled", "went over its memory limit", "spark.driver.memoryOverhead"]);
    ran.ended_with(137);
}

/// As with Ctrl-C when the line was read.
fn no_image() {
    namespace("no-image");
    let command =
        submission("no-image", VERSIONS[0]).replace(&format!("spark:{}", VERSIONS[0]), "spark:4.30");
    let ran = run(
        At::Laptop,
        &format!(
            "{command} local:///opt/app.py 2>told & submit=$!
         until grep -q 'cannot be pulled' told; do sleep 0.2; kill -0 $submit; done
         kill -INT $submit
         wait $submit && code=0 || code=$?
         cat told >&2
         exit $code"
        ),
    );
    assert_told(
        &ran,
        &["The image apache/spark:4.30", "cannot be pulled", "Stopped waiting", "--kill no-image:driver"],
    );
    ran.ended_with(130);
}

fn quota() {
    namespace("quota");
    laptop("kubectl create quota team -n quota --hard=requests.memory=512Mi");
    let ran = submit("quota", VERSIONS[0], Job::Java, "");
    assert_told(&ran, &["exceeded quota: team", "nothing was created"]);
    assert_eq!(laptop("kubectl get pods,secrets -n quota -o name").stdout, "");
    ran.ended_with(1);
}

/// The driver fits, and nothing beside it.
fn no_executors() {
    namespace("lonely");
    laptop("kubectl create quota team -n lonely --hard=pods=1");
    let ran = submit("lonely", VERSIONS[0], Job::Java, "");
    assert_told(&ran, &["quota team"]);
    ran.ended_with(11);
}

fn forgotten_account() {
    namespace("forgotten");
    let ran = submit(
        "forgotten",
        VERSIONS[0],
        Job::Java,
        "--conf spark.kubernetes.authenticate.driver.serviceAccountName=default",
    );
    assert_told(
        &ran,
        &[
            "default",
            "spark.kubernetes.authenticate.driver.serviceAccountName",
            "spark-driver",
            "system:serviceaccount:forgotten:default",
        ],
    );
    ran.ended_with(1);
}

/// A folder of the host belongs to root, and the kubelet gives it to nobody.
fn volume_of_root() {
    server();
    let pod = serde_json::json!({
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
    let kustomization = serde_json::json!({
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
    assert_told(&refused.ended_with(1), &["spark-stager may not create pods in the namespace default"]);
}
