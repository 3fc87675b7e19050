//! Commands of pages whose reader has a cluster: a real API server, and a staging server that is reached by https.

use std::path::Path;

use cloakroom_testing::cluster::{Cluster as _, kubeconfig};
use cloakroom_testing::control_plane::ControlPlane;
use cloakroom_testing::dist;
use cloakroom_testing::documentation::block;
use cloakroom_testing::documentation::table::By;
use cloakroom_testing::known::{parse, text};
use cloakroom_testing::needs::{Need, kubectl};
use cloakroom_testing::page_shell::Terminal;
use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::tls;
use libtest_mimic::Trial;
use serde_json::Value;
use tempfile::TempDir;

use super::{blocks, needs, plain};
use crate::api_server::shared;

/// Where pages have the staging server.
const NODE: &str = "NODE:31000";

/// The member of a team who reads a page.
pub struct Member {
    pub page: &'static str,
    /// The account that the page asks for, and what it may list.
    account: (&'static str, &'static str),
    /// What there is before the first command.
    prepare: fn(&mut MemberMachine),
}

pub const MEMBERS: [Member; 3] = [
    Member { page: "docs/ci.md", account: SUBMITTER, prepare: job_of_ci },
    Member {
        page: "docs/clients.md",
        account: STAGER,
        prepare: |machine| {
            machine.terminal.prepare("for jar in dep app; do head -c 290000 /dev/urandom >$jar.jar; done");
            machine.terminal.prepare("echo some data >data.txt; tar -czf env.tar.gz data.txt");
        },
    },
    Member {
        page: "docs/spark-operator.md",
        account: STAGER,
        prepare: |machine| {
            machine.terminal.prepare("for file in mod.py main.py; do echo pass >$file; done");
            // As the chapter before has it.
            let url = machine.server.url("");
            machine.terminal.prepare(&format!("export CLOAKROOM_SERVER={url} CLOAKROOM_CA_FILE=tls.crt"));
            machine.terminal.prepare("export CLOAKROOM_UPLOAD_TOKEN_FILE=upload-token");
        },
    },
];

const SUBMITTER: (&str, &str) = ("spark-submitter", "pods");
const STAGER: (&str, &str) = ("spark-stager", "secrets");

pub fn trials() -> Vec<Trial> {
    let clean_up = "pages::the_clean_up_of_the_airflow_page_removes_the_drivers_of_one_run";
    let mut trials = vec![shared(clean_up, with_kubectl(), clean_up_of_airflow)];
    for Member { page, account, prepare } in MEMBERS {
        let name = format!("pages::every_command_of_{}_works_with_a_cluster", plain(page));
        let test = async move |plane: &ControlPlane| {
            let mut machine = MemberMachine::new(plane, account).await;
            prepare(&mut machine);
            for block in blocks(page, By::Member) {
                machine.terminal.type_block(&block);
            }
        };
        trials.push(shared(&name, with_kubectl(), test));
    }
    trials
}

/// What tests of pages with a cluster need of a machine.
pub fn with_kubectl() -> Vec<Need> {
    let mut needs = needs();
    needs.push(Need::Kubectl);
    needs
}

/// A machine with a kubeconfig, the certificate of a staging server, and its upload token.
struct MemberMachine {
    terminal: Terminal,
    server: Cloakroom,
    api_server: String,
    _data: TempDir,
}

impl MemberMachine {
    async fn new(plane: &ControlPlane, (account, lists): (&str, &str)) -> Self {
        let token = plane.token_with_a_shipped_role(account, lists).await;
        let data = tempfile::tempdir().unwrap();
        let certificate = tls::self_signed(data.path(), &["127.0.0.1"]);
        let upload_token = data.path().join("upload-token");
        std::fs::write(&upload_token, "an upload token of the pages\n").unwrap();
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let (cert, key, tokens) = (path(&certificate.cert), path(&certificate.key), path(&upload_token));
        let tls = ["--tls-cert", &cert, "--tls-key", &key, "--fetch-image", "cloakroom:0.1.0"];
        let auth = ["--upload-auth", "token", "--upload-token-file", &tokens, "--no-kubernetes"];
        let server = Cloakroom::serve(&data.path().join("data"), &[&tls[..], &auth[..]].concat());
        let mut terminal = Terminal::open(&["--mount"], &dist::binary());
        let program = kubectl().unwrap();
        terminal.prepare(&format!("ln -s $(command -v {}) /usr/local/bin/kubectl", program.display()));
        let config = kubeconfig(plane.ca(), plane.address(), &token);
        std::fs::write(terminal.folder().join("kubeconfig"), config).unwrap();
        std::fs::copy(&certificate.cert, terminal.folder().join("tls.crt")).unwrap();
        std::fs::copy(&upload_token, terminal.folder().join("upload-token")).unwrap();
        terminal.prepare("export KUBECONFIG=$PWD/kubeconfig");
        // No pod is there that could look for the server on its own machine.
        terminal.prepare("mkdir .spark; export SPARK_CONF_DIR=$PWD/.spark");
        std::fs::write(terminal.folder().join(".spark/spark-defaults.conf"), for_pods(&server)).unwrap();
        terminal.replace(NODE, &server.address);
        let api_server = format!("https://{}", plane.address());
        Self { terminal, server, api_server, _data: data }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.terminal.folder().join(name), text).unwrap();
    }
}

/// The server's address is one of this machine alone, and pods are to be told another one.
fn for_pods(server: &Cloakroom) -> String {
    format!("spark.kubernetes.resourceStagingServer.internal.uri {}\n", server.url(""))
}

/// The variables and files of a job, made as the page makes them of secrets.
fn job_of_ci(machine: &mut MemberMachine) {
    let page = "docs/ci.md";
    let settings = block(page, "From a CI job", "spark.kubernetes").replace(NODE, &machine.server.address);
    // No node runs the driver here. Its name is the one of the chapter on jobs that are cancelled.
    let more =
        "spark.kubernetes.submission.waitAppCompletion false\nspark.kubernetes.driver.pod.name build-7";
    machine.write("spark.conf", &format!("{settings}\n{more}\n{}", for_pods(&machine.server)));
    let program = dist::binary().display().to_string();
    for (name, value) in [
        ("APISERVER", machine.api_server.clone()),
        ("BINARY_URL", format!("file://{program}")),
        ("BINARY_SHA256", format!("$(sha256sum {program} | cut -d' ' -f1)")),
        ("KUBECONFIG_TEXT", "$(cat kubeconfig)".to_owned()),
        ("UPLOAD_TOKEN", "$(cat upload-token)".to_owned()),
        ("KUBECONFIG", "kubeconfig".to_owned()),
        ("ID", "7".to_owned()),
    ] {
        machine.terminal.prepare(&format!("export {name}=\"{value}\""));
    }
    let step = in_one_line(&block(page, "From a CI job", "curl"));
    let github = &parse(&block(page, "GitHub Actions", "jobs:"))[0]["jobs"]["run"];
    machine.terminal.prepare("rm kubeconfig upload-token; mkdir target; echo app >target/app.jar");
    machine.terminal.prepare(text(&github["steps"][1]["run"]));
    assert_eq!(in_one_line(text(&github["steps"][2]["run"])), step);
    let gitlab = &parse(&block(page, "GitLab CI", "run:"))[0]["run"];
    let of = |name: &str| gitlab[name].as_array().unwrap()[1..].to_vec();
    let lines: Vec<Value> = [of("before_script"), of("script")].concat();
    let lines: Vec<&str> = lines.iter().map(text).collect();
    assert_eq!(in_one_line(&lines.join(" ")), step);
}

fn in_one_line(script: &str) -> String {
    script.replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

async fn clean_up_of_airflow(plane: &ControlPlane) {
    let mut machine = MemberMachine::new(plane, SUBMITTER).await;
    for run in ["one", "two"] {
        let labels = format!("spark-role=driver,dag=nightly,run={run}");
        let pod = ["run", run, "-n", "spark", "--image=spark", "--restart=Never", "-l", &labels];
        let made = plane.kubectl(&pod);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    let task = block("docs/airflow.md", "Remove what a task leaves", "clean_up = ");
    let command = task.split("bash_command=\"").nth(1).unwrap().split('"').next().unwrap();
    machine
        .terminal
        .prepare(&command.replace("{{ dag.dag_id }}", "nightly").replace("{{ ts_nodash }}", "one"));
    let left = plane.kubectl(&["get", "pods", "-n", "spark", "-l", "dag=nightly", "-o", "name"]);
    assert_eq!(String::from_utf8_lossy(&left.stdout), "pod/two\n");
}
