//! The server is replaced while clients use it, and no client fails.

use std::time::Duration;

use cloakroom_testing::documentation::page;
use cloakroom_testing::jobs::{EXIT_CODE, Job};

use super::Journey;
use super::deploy::{SERVER, answers, server};
use super::jobs;
use crate::cluster::{NODE, cluster, node_is};
use crate::images::VERSIONS;
use crate::shell::{At, Background, laptop, run, start, until};

pub const JOURNEYS: &[Journey] = &[
    // Invariant: a rollout with transfers in flight fails no client.
    Journey("twenty_rollouts_with_transfers_in_flight_fail_no_client", twenty_rollouts),
    Journey("a_deleted_pod_is_followed_by_one_that_waits_for_the_volume", || deleted("")),
    Journey("a_killed_pod_breaks_transfers_and_fails_no_client", || deleted("--grace-period=0 --force")),
    Journey("a_submission_during_a_rollout_runs_to_its_end", submission),
    Journey("a_drained_node_takes_the_server_back", drained),
    Journey("a_restart_of_the_kubelet_disturbs_nothing", kubelet),
];

/// How long the server may be without a listener.
const GAP: Duration = Duration::from_secs(5);

/// `stage`, as the README calls it.
fn stage(file: &str) -> String {
    format!(
        "cloakroom stage --server {SERVER} --ca-file tls.crt --token-file upload-token --namespace demo --label app=rollout {file}"
    )
}

/// What transfers are made of: a large file and a small one, and the ticket of the large one.
fn files() {
    server();
    laptop(&format!(
        "[ -e big.gz ] || head -c 200000000 /dev/urandom >big.gz
         head -c 100000 /dev/urandom >small.bin
         {} >big.json
         jq -r .resourceSecret big.json >big.secret",
        stage("big.gz")
    ));
}

/// An upload and a download that take a second or more, both on their way when this returns.
fn transfers() -> Vec<Background> {
    let fetch = format!(
        "to=$(mktemp -d)
         cloakroom fetch --server {SERVER} --ca-file tls.crt --id $(jq -r .resourceId big.json) --secret-file big.secret --to $to
         cmp big.gz $to/big.gz
         rm -r $to"
    );
    let transfers = vec![start(&stage("big.gz")), start(&fetch)];
    until("both are on their way", || in_flight("upload") + in_flight("download") >= 1);
    transfers
}

/// The line of docs/api.md for scripts.
fn script_upload() -> String {
    let text = page("docs/api.md");
    let line = text.lines().find_map(|line| line.strip_prefix("- **In a script**: `")).unwrap();
    let (curl, _) = line.split_once(" -T …`").unwrap();
    format!(
        "{curl} -sS --cacert tls.crt -o script.json -T small.bin -H \"Authorization: Bearer $(cat upload-token)\" \
             '{SERVER}/api/v1/resources/?namespace=demo&label=app=rollout'
         jq -e .resourceSecret script.json >/dev/null"
    )
}

/// By the server's own metrics.
fn in_flight(direction: &str) -> usize {
    let script = format!(
        "kubectl get --raw /api/v1/namespaces/cloakroom/services/cloakroom-operations:10001/proxy/metrics \
             | sed -n 's/^cloakroom_transfers_in_flight{{direction=\"{direction}\"}} //p'"
    );
    run(At::Laptop, &script).stdout.trim().parse().unwrap_or_default()
}

/// In each round transfers are on their way, and clients that know nothing of it come all the time.
fn twenty_rollouts() {
    let (mut gaps, mut clients, mut longest) = (Vec::new(), 0, Duration::ZERO);
    for round in 1..=20 {
        files();
        let mut running = transfers();
        let watch = Watch::start();
        laptop("kubectl rollout restart deployment/cloakroom -n cloakroom");
        running.push(start(&script_upload()));
        let mut rollout = start("kubectl rollout status deployment/cloakroom -n cloakroom --timeout=90s");
        while rollout.is_running() {
            if running.len() < 12 {
                running.push(start(&stage("small.bin")));
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        rollout.end().ok();
        clients += running.len();
        for ran in running.into_iter().map(Background::end) {
            assert_eq!(ran.code, Some(0), "round {round}: {}", ran.stderr);
            longest = longest.max(ran.took);
        }
        gaps.push(watch.longest_gap());
    }
    gaps.sort();
    eprintln!(
        "node: {clients} clients in 20 rollouts, none failed; the slowest took {:.1} s; no listener for {:.1} s (median), \
         {:.1} s (longest)",
        longest.as_secs_f64(),
        gaps[10].as_secs_f64(),
        gaps[19].as_secs_f64()
    );
    assert!(gaps[19] < GAP, "{gaps:?}");
}

fn deleted(how: &str) {
    files();
    let watch = Watch::start();
    let mut running = transfers();
    let old = pod();
    laptop(&format!(
        "kubectl delete pod -n cloakroom -l app.kubernetes.io/name=cloakroom --wait=false {how}"
    ));
    // Its first contact is with a server that ends, or with none.
    running.push(start(&stage("small.bin")));
    let took = until("the new pod is ready", || {
        pod().is_some_and(|(name, ready)| ready && Some(&name) != old.as_ref().map(|(name, _)| name))
    });
    for ran in running.into_iter().map(Background::end) {
        ran.ok();
    }
    // The old pod may still be listed: its server has ended, and the kubelet has yet to tell.
    let restarts = laptop(
        "kubectl get pods -n cloakroom -o jsonpath='{.items[*].status.containerStatuses[*].restartCount}'",
    )
    .stdout;
    assert!(restarts.split_whitespace().all(|count| count == "0"), "a pod crashed: restarts {restarts:?}");
    let gap = watch.longest_gap();
    eprintln!(
        "node: the new pod was ready after {:.1} s; no listener for {:.1} s",
        took.as_secs_f64(),
        gap.as_secs_f64()
    );
}

/// The newest pod of the server, and whether it is ready.
fn pod() -> Option<(String, bool)> {
    let query = "kubectl get pods -n cloakroom -l app.kubernetes.io/name=cloakroom --sort-by=.metadata.creationTimestamp -o json";
    let pods = run(At::Laptop, query);
    let pods: serde_json::Value = serde_json::from_str(&pods.stdout).ok()?;
    let pod = pods["items"].as_array()?.last()?;
    let is_ready = pod["status"]["containerStatuses"][0]["ready"] == true
        && pod["metadata"]["deletionTimestamp"].is_null();
    Some((pod["metadata"]["name"].as_str()?.to_owned(), is_ready))
}

fn submission() {
    jobs::namespace("rollout");
    laptop("kubectl rollout restart deployment/cloakroom -n cloakroom");
    jobs::submit("rollout", VERSIONS[0], Job::Java, "").ended_with(EXIT_CODE);
}

/// There is no other node: the pod waits until this one may be used again, and clients wait with it.
fn drained() {
    files();
    laptop(&format!("kubectl drain {NODE} --ignore-daemonsets --delete-emptydir-data --force --timeout=60s"));
    let client = start(&stage("small.bin"));
    laptop(&format!("sleep 5; kubectl uncordon {NODE}"));
    let ran = client.end().ok();
    eprintln!(
        "node: a client that came after the drain took {:.1} s: {}",
        ran.took.as_secs_f64(),
        ran.stderr.trim()
    );
}

fn kubelet() {
    files();
    let (before, _) = pod().unwrap();
    cluster().stop_kubelet();
    for ran in transfers().into_iter().map(Background::end) {
        ran.ok();
    }
    cluster().start_kubelet();
    until("the node is ready", || node_is("True"));
    // The kubelet may call each pod not ready until it has looked again.
    until("the same pod is ready", || pod() == Some((before.clone(), true)));
    until("the server answers", answers);
}

/// Looks all the time whether anything listens; an answer of any kind counts.
struct Watch(Background);

impl Watch {
    fn start() -> Self {
        until("the server answers", answers);
        let look = format!("curl -s -m 1 -o /dev/null --cacert tls.crt {SERVER}/api/v1 && date +%s%N");
        Self(start(&format!("touch watching; while [ -e watching ]; do {look} || true; sleep 0.02; done")))
    }

    /// Ends when the server answers again.
    fn longest_gap(self) -> Duration {
        until("the server answers", answers);
        // So that the last look sees it as well.
        laptop("sleep 0.2; rm watching");
        let times: Vec<u64> = self.0.end().stdout.lines().map(|line| line.parse().unwrap()).collect();
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        Duration::from_nanos(gaps.max().unwrap_or_default())
    }
}
