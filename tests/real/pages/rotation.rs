//! The recipe for new tokens and a new certificate, typed at a real API server. A server shows what the Secrets have then.

use std::path::Path;
use std::process::{Command, Output};

use cloakroom_testing::cluster::{Account, Cluster as _};
use cloakroom_testing::control_plane::ControlPlane;
use cloakroom_testing::dist;
use cloakroom_testing::documentation::{block, blocks};
use cloakroom_testing::needs::kubectl;
use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::wait::until;
use cloakroom_testing::workspace::Workspace;
use libtest_mimic::Trial;

use super::member::with_kubectl;
use crate::api_server::shared;

const PAGE: &str = "docs/run.md";
const CHAPTER: &str = "Change tokens and certificate";
const NAMESPACE: &str = "rotation";

/// The token in the Secret, which no step may lose.
const ADMIN_TOKEN: &str =
    "kubectl get secret cloakroom-tokens -n cloakroom -o jsonpath='{.data.admin-token}'";

/// What the kubelet does with a Secret that is mounted.
const MOUNT: &str = r#"for secret in cloakroom-tokens cloakroom-tls; do
    mkdir -p mounted/$secret
    kubectl get secret $secret -n rotation -o json | jq -r '.data | to_entries[] | .key + " " + .value' | while read -r key value; do
        base64 -d <<<"$value" >mounted/new
        mv mounted/new mounted/$secret/$key
    done
done"#;

pub fn trial() -> Trial {
    shared("pages::tokens_and_certificate_change_while_clients_go_on", with_kubectl(), changes)
}

async fn changes(plane: &ControlPlane) {
    plane.api(Account::Admin).create_namespace(NAMESPACE).await;
    let machine = AdminMachine::new(plane);
    // The Secrets of the chapter before; nothing is deployed.
    let made = block("docs/deploy.md", "With kustomize", "openssl");
    let is_wanted = |line: &&str| !line.contains("manifests/") && !line.contains("rollout");
    machine.type_in(&made.lines().filter(is_wanted).collect::<Vec<_>>().join("\n"));
    // As for the component `admin-token`, where the Secret is there already.
    let admin = |beginning| block("docs/administer.md", "Administer", beginning);
    machine.type_in(admin("(umask 077").lines().next().unwrap());
    machine.type_in(&admin("kubectl create secret"));
    machine.type_in(MOUNT);
    let server = machine.serve();
    let admin_token = machine.said(ADMIN_TOKEN);
    let steps: Vec<String> =
        blocks(PAGE).into_iter().filter(|block| block.is_in(CHAPTER)).map(|block| block.text).collect();
    let [both_tokens, new_token, both_certificates, new_certificate] = &steps[..] else {
        panic!("{CHAPTER} has other steps: {steps:#?}")
    };
    machine.stage(&server, "tls.crt", "upload-token");

    machine.type_in("cp upload-token first-token");
    machine.type_in(both_tokens);
    machine.type_in(MOUNT);
    until("the new token is taken", async || machine.uploads(&server, "tls.crt", "upload-token")).await;
    machine.stage(&server, "tls.crt", "first-token");
    machine.type_in(new_token);
    machine.type_in(MOUNT);
    until("the old token is refused", async || !machine.uploads(&server, "tls.crt", "first-token")).await;
    machine.stage(&server, "tls.crt", "upload-token");
    assert_eq!(machine.said(ADMIN_TOKEN), admin_token);

    machine.type_in(both_certificates);
    machine.stage(&server, "both.crt", "upload-token");
    machine.type_in(new_certificate);
    machine.type_in(MOUNT);
    until("the new certificate is shown", async || machine.uploads(&server, "new.crt", "upload-token")).await;
    machine.stage(&server, "both.crt", "upload-token");
    assert!(!machine.uploads(&server, "tls.crt", "upload-token"), "the old certificate is still shown");
}

/// An admin's machine, which is the node as well.
struct AdminMachine {
    folder: Workspace,
    kubeconfig: String,
}

impl AdminMachine {
    fn new(plane: &ControlPlane) -> Self {
        let folder = Workspace::new();
        folder.write("hello.txt", "hello\n");
        Self { folder, kubeconfig: plane.admin_kubeconfig().display().to_string() }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path(name).display().to_string()
    }

    fn serve(&self) -> Cloakroom {
        let path = |name: &str| self.path(&format!("mounted/{name}"));
        let (cert, key) = (path("cloakroom-tls/tls.crt"), path("cloakroom-tls/tls.key"));
        let (tokens, admin) = (path("cloakroom-tokens/upload-token"), path("cloakroom-tokens/admin-token"));
        let tls = ["--tls-cert", &cert, "--tls-key", &key, "--no-kubernetes"];
        let auth = ["--upload-auth", "token", "--upload-token-file", &tokens, "--admin-token-file", &admin];
        Cloakroom::serve(Path::new(&self.path("data")), &[&tls[..], &auth[..]].concat())
    }

    /// Whether an upload with this trust and this token is taken, at the first try.
    fn uploads(&self, server: &Cloakroom, ca: &str, token: &str) -> bool {
        let url = server.url("/api/v1/resources/?namespace=demo&label=app=demo");
        let upload = format!(
            "curl -sf --cacert {ca} -H \"Authorization: Bearer $(cat {token})\" -T hello.txt '{url}'"
        );
        self.run(&upload).status.success()
    }

    /// Stages with the program, which has to succeed.
    #[track_caller]
    fn stage(&self, server: &Cloakroom, ca: &str, token: &str) {
        let url = server.url("");
        self.type_in(&format!(
            "{} stage --server {url} --ca-file {ca} --token-file {token} --namespace demo --label app=demo hello.txt",
            dist::binary().display()
        ));
    }

    /// Types commands of the page, for another namespace. They have to succeed.
    #[track_caller]
    fn type_in(&self, script: &str) {
        self.said(script);
    }

    #[track_caller]
    fn said(&self, script: &str) -> String {
        let output = self.run(script);
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn run(&self, script: &str) -> Output {
        let kubectl = kubectl().unwrap();
        let script = script.replace("-n cloakroom", &format!("-n {NAMESPACE}"));
        let function = format!("kubectl() {{ {} \"$@\"; }}", kubectl.display());
        Command::new("bash")
            .args(["-euo", "pipefail", "-c", &format!("{function}\n{script}")])
            .env("KUBECONFIG", &self.kubeconfig)
            .env("NODE", "127.0.0.1")
            .current_dir(self.folder.root())
            .output()
            .unwrap()
    }
}
