//! `cloakroom stage --for pods` with a real kubectl and API server: what it prints is accepted, twice, and its Secret replaces
//! no foreign one.

use std::process::Output;

use cloakroom_testing::cluster::{Account, Cluster as _, kubeconfig};
use cloakroom_testing::control_plane::ControlPlane;
use cloakroom_testing::process::{output_in_time, stderr};
use cloakroom_testing::workspace::Workspace;
use libtest_mimic::Trial;

use crate::api_server::shared;

const CONTAINER: &str = "{name: main, image: python, securityContext: {runAsNonRoot: true, runAsUser: 1000, \
                         allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}}";

pub fn trials() -> Vec<Trial> {
    vec![shared("files_for_pods::kubectl_applies_what_is_printed", vec![], kubectl_applies_what_is_printed)]
}

async fn kubectl_applies_what_is_printed(plane: &ControlPlane) {
    let user = Workspace::with(&[("tree/main.py", "print('hello')")]);
    user.write("kubeconfig", kubeconfig(plane.ca(), plane.address(), &plane.token(Account::Admin)));
    let server =
        user.serve(&["--no-kubernetes", "--fetch-image", "x", "--internal-url", "http://staging:10000"]);
    ok(&plane.kubectl(&["create", "namespace", "ml"]));
    for level in ["enforce", "warn"] {
        let label = format!("pod-security.kubernetes.io/{level}=restricted");
        ok(&plane.kubectl(&["label", "namespace", "ml", &label]));
    }
    let pod = format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: once}}, spec: {{containers: [{CONTAINER}]}}}}"
    );
    let job = format!(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: train}}, spec: {{suspend: true, template: {{spec: {{restartPolicy: \
         Never, containers: [{CONTAINER}]}}}}}}}}"
    );
    let stage = |file: &str, more: &[&str]| {
        user.write("input.yaml", file);
        let mut command = user.command();
        command.env("KUBECONFIG", user.path("kubeconfig"));
        command.args([
            "stage",
            "--for",
            "pods",
            "--server",
            &server.url(""),
            "-n",
            "ml",
            "-f",
            "input.yaml",
            "tree",
        ]);
        output_in_time(command.args(more))
    };
    for (kind, file) in [("pod", &pod), ("job.batch", &job)] {
        let applied = |secret: &str, object: &str| {
            user.write("printed.yaml", ok(&stage(file, &[])));
            let path = user.text("printed.yaml");
            let output = plane.kubectl(&["apply", "-n", "ml", "-f", &path]);
            let said = ok(&output);
            assert!(!stderr(&output).contains("would violate"), "{}", stderr(&output));
            assert!(said.starts_with("secret/") && said.contains(secret) && said.contains(object), "{said}");
        };
        applied(" created\n", &format!("{kind}/{} created\n", if kind == "pod" { "once" } else { "train" }));
        applied(" unchanged\n", " unchanged\n");
    }
    let printed = ok(&stage(&job, &["--secret", "code"]));
    assert!(!printed.contains("kind: Secret"), "{printed}");
    ok(&stage(&job, &["--secret", "code"]));
    ok(&plane.kubectl(&["get", "secret", "code", "-n", "ml"]));
    let refused = stage(&job.replace("train", "other"), &["--secret", "code"]);
    assert!(stderr(&refused).contains("already, for Job train: choose"), "{}", stderr(&refused));
    ok(&plane.kubectl(&["create", "secret", "generic", "theirs", "-n", "ml", "--from-literal=a=b"]));
    let refused = stage(&job, &["--secret", "theirs"]);
    assert!(
        stderr(&refused).contains("there is secret theirs in namespace ml already, made by kubectl-create"),
        "{}",
        stderr(&refused)
    );
}

fn ok(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
