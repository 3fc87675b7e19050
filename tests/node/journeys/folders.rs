//! A folder of the laptop in the pods of a Job, by the words of docs/ray-and-jobs.md.

use cloakroom_testing::documentation::block;

use super::Journey;
use super::deploy::server;
use super::lifecycle::{UNUSED_SECONDS, more_than_the_grace};
use super::transfers::{goes_after_the_grace, status};
use crate::images::{VERSIONS, spark};
use crate::shell::{laptop, until};

pub const JOURNEY: Journey =
    Journey("a_folder_runs_in_a_job_and_stays_while_the_job_is_suspended", into_a_job);

/// The settings of a user who reaches the API server, in the folder of this journey.
const SETTINGS: &str = "cd ml
export CLOAKROOM_SERVER_NAMESPACE=cloakroom CLOAKROOM_CA_FILE=../tls.crt CLOAKROOM_UPLOAD_TOKEN_FILE=../upload-token";

fn of_the_page(beginning: &str) -> String {
    block("docs/ray-and-jobs.md", "Into a Job", beginning)
}

/// The Job of the page, in an image that the node has.
fn job(name: &str) -> String {
    let job = of_the_page("apiVersion: batch/v1").replace("python:3.13", &spark(VERSIONS[0]));
    job.replace("name: train", &format!("name: {name}"))
}

fn into_a_job() {
    server();
    let shown = of_the_page("$ cloakroom stage");
    let command = shown.lines().next().unwrap().trim_start_matches("$ ");
    laptop(&format!(
        "kubectl create namespace ml
         mkdir -p ml/project/lib ml/project/.git && cd ml/project
         echo 'import lib.hello' >main.py
         echo 'print(\"hello from the folder\")' >lib/hello.py
         echo '*.log' >.gitignore && echo noise >a.log
         cd .. && cat >job.yaml <<'END'\n{}\nEND",
        job("train")
    ));
    let staged = laptop(&format!("{SETTINGS}\n{command}"));
    assert!(
        staged.stderr.contains("left out 1 file by project/.gitignore, 1 folder named .git"),
        "{}",
        staged.stderr
    );
    laptop("kubectl wait -n ml --for=condition=Complete job/train --timeout=120s");
    assert_eq!(laptop("kubectl logs -n ml job/train").stdout, "hello from the folder\n");

    suspended(command);
}

/// It keeps its files for longer than they may stay unused.
fn suspended(command: &str) {
    let later = job("later").replacen("spec:\n", "spec:\n  suspend: true\n", 1);
    let staged = laptop(&format!(
        "{SETTINGS}
         cat >job.yaml <<'END'\n{later}\nEND
         {}
         kubectl get secret -n ml -o name | grep later-job-files >secret.txt
         kubectl get -n ml $(cat secret.txt) -o json | jq -r '.data[\"ticket.json\"]' | base64 -d >../later.json
         cloakroom stage -n ml -l app=none --unused-timeout {UNUSED_SECONDS}s --ticket-to ../none.json ../app.jar",
        command.replace("--workdir", &format!("--unused-timeout {UNUSED_SECONDS}s --workdir"))
    ));
    until("what belongs to nothing is gone", || status("none.json") == "410");
    more_than_the_grace();
    assert_eq!(status("later.json"), "200");
    laptop("kubectl patch job later -n ml -p '{\"spec\":{\"suspend\":false}}'");
    laptop("kubectl wait -n ml --for=condition=Complete job/later --timeout=120s");
    let (_, told) = staged.stderr.split_once("“kubectl delete").unwrap();
    let (named, _) = told.split_once('”').unwrap();
    laptop("kubectl delete job train -n ml");
    goes_after_the_grace("later.json", &format!("kubectl delete{named}"));
}
