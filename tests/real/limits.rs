//! The static binary at its limits, in the memory that the manifests give it: it comes up, serves and sweeps.

mod pods;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::control_group::ControlGroup;
use cloakroom_testing::dist;
use cloakroom_testing::needs::{Need, trial};
use cloakroom_testing::process::Cloakroom;
use libtest_mimic::Trial;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, SqliteConnection};

/// What `manifests/base/deployment.yaml` says.
const MEMORY: u64 = 512 << 20;

/// Resources whose owners are there.
const KNOWN: &str = "resources_kept{why=\"owner-present\"}";

/// A build without optimization on a busy machine; a release build takes a few seconds.
const PATIENCE: Duration = Duration::from_secs(240);

pub fn trials() -> Vec<Trial> {
    let needs = [
        Need::Below("CLOAKROOM_TEST_DIST", "SHA256SUMS".to_owned()),
        Need::Working("a control group for memory", ControlGroup::can_be_made),
    ];
    vec![
        trial(
            "a_ledger_at_the_limits_comes_up_in_the_memory_of_the_manifests",
            &needs,
            a_ledger_at_the_limits_comes_up_in_the_memory_of_the_manifests,
        ),
        trial(
            "owners_at_the_limits_are_watched_in_the_memory_of_the_manifests",
            &needs,
            owners_at_the_limits_are_watched_in_the_memory_of_the_manifests,
        ),
    ]
}

// Invariant: at its limits the server starts, serves and sweeps within the memory of the manifests.
/// 100,000 resources, with the two that are staged, whose owners fill their memory, and 200,000 tombstones.
fn a_ledger_at_the_limits_comes_up_in_the_memory_of_the_manifests() {
    check(&Filled { tombstones: 200_000, ..FULL });
}

/// All label keys that are looked for, but those of one namespace: 1,000 in each of 99. A tenth of the owners are there.
fn owners_at_the_limits_are_watched_in_the_memory_of_the_manifests() {
    check(&Filled { namespaces: 99, keys: Keys::ThousandInEachNamespace, pods: 10_000, ..FULL });
}

/// As many resources as may be, with the two that are staged, and as long labels as all of them may have.
const FULL: Filled = Filled {
    ready: 99_998,
    namespaces: 1000,
    keys: Keys::NoTwoAlike,
    labels: 1,
    key_bytes: 300,
    value_bytes: 63,
    tombstones: 0,
    pods: 0,
};

enum Keys {
    NoTwoAlike,
    ThousandInEachNamespace,
}

/// What a ledger is filled with, and the cluster: without any pods there is none.
struct Filled {
    ready: u64,
    namespaces: u64,
    keys: Keys,
    labels: u64,
    key_bytes: usize,
    value_bytes: usize,
    tombstones: u64,
    pods: u64,
}

fn check(filled: &Filled) {
    // The pods' API server answers from another thread: this one blocks while the server starts.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let (ticket, owners) = prepare(folder.path(), filled).await;
        let kubeconfig = if owners.is_empty() { None } else { Some(pods::serve(folder.path(), owners).await) };
        let name = format!("limits-{}-{}", filled.ready, filled.pods);
        let group = ControlGroup::make(&name, MEMORY).unwrap();
        let began = Instant::now();
        let server = start(&group, folder.path(), kubeconfig.as_deref());
        let ready_after = began.elapsed();
        until_metric(&server, KNOWN, filled.pods as f64).await;
        let known_after = began.elapsed();
        assert_eq!(metric(&server, "resources{state=\"ready\"}").await, filled.ready as f64 + 1.0);
        assert_eq!(metric(&server, "resources{state=\"deleted\"}").await, filled.tombstones as f64);
        let memory = async |of: &str| metric(&server, &format!("{of}{{of=\"owner-memory\"}}")).await;
        let (used, limit) = (memory("limit_used").await, memory("limit").await);
        assert!((0.8..=1.0).contains(&(used / limit)), "{used} of {limit}");
        assert_eq!(download(&server, &ticket).await, "jars");
        let other = stage(&server).await;
        assert_eq!(download(&server, &other).await, "jars");
        let swept = metric(&server, "sweeps_total{outcome=\"ok\"}").await;
        until_metric(&server, "sweeps_total{outcome=\"ok\"}", swept + 2.0).await;
        assert_eq!(metric(&server, KNOWN).await, filled.pods as f64);
        assert_eq!(metric(&server, "sweeps_total{outcome=\"failed\"}").await, 0.0, "{}", server.log());
        let sweep = metric(&server, "sweep_duration_seconds_sum").await
            / metric(&server, "sweep_duration_seconds_count").await;
        let peak = peak_bytes(server.pid());
        eprintln!(
            "{} resources, {} tombstones, {} pods: ready after {:.1} s, owners known after {:.1} s, {:.1} s a sweep, {} MiB of \
             memory at most",
            filled.ready,
            filled.tombstones,
            filled.pods,
            ready_after.as_secs_f64(),
            known_after.as_secs_f64(),
            sweep,
            peak >> 20
        );
        // The rest is for what comes in and goes out meanwhile.
        assert!(peak < MEMORY / 4 * 3, "{} MiB", peak >> 20);
        drop(server);
        drop(group);
    });
}

/// Starts a server once, stages a bundle, and fills its ledger behind its back. With the ticket come the owners of which
/// there are to be pods: namespaces and labels.
async fn prepare(folder: &Path, filled: &Filled) -> (Ticket, Vec<(String, String)>) {
    let server = Cloakroom::serve(folder, &["--no-kubernetes"]);
    let ticket = stage(&server).await;
    server.signal("TERM");
    let mut server = server;
    assert!(server.wait().success());
    let mut ledger = SqliteConnectOptions::new()
        .filename(folder.join("ledger.db"))
        .journal_mode(SqliteJournalMode::Off)
        .synchronous(SqliteSynchronous::Off)
        .disable_statement_logging()
        .connect()
        .await
        .unwrap();
    fill(&mut ledger, filled).await;
    let owners = format!(
        "SELECT owner_namespace, owner_labels FROM resources WHERE owner_namespace LIKE 'team-%' AND state = 'ready' LIMIT {}",
        filled.pods
    );
    let owners = sqlx::query_as(AssertSqlSafe(owners)).fetch_all(&mut ledger).await.unwrap();
    ledger.close().await.unwrap();
    (ticket, owners)
}

async fn fill(ledger: &mut SqliteConnection, filled: &Filled) {
    let Filled { ready, namespaces, keys, labels, key_bytes, value_bytes, tombstones, .. } = filled;
    // A DNS prefix, a slash, a name. No two values are the same.
    let key_numbers = match keys {
        Keys::NoTwoAlike => "i, j.value".to_owned(),
        Keys::ThousandInEachNamespace => format!("(i / {namespaces} * {labels} + j.value) % 1000, 0"),
    };
    let prefix = "a".repeat(59);
    let dots = (key_bytes - 20) / 60;
    let padding = "c".repeat((key_bytes - 20) % 60);
    let key = format!("{}r%06d/k%02d{padding}%s", format!("{prefix}.").repeat(dots));
    let value = "v".repeat(value_bytes - 9);
    let one = format!("printf('\"{key}\":\"v%06d%02d{value}\"', {key_numbers}, 'abcdefghi', i, j.value)");
    let label_numbers: Vec<String> = (0..*labels).map(|number| number.to_string()).collect();
    let all = format!(
        "(SELECT '{{' || group_concat({one}, ',') || '}}' FROM json_each('[{}]') AS j)",
        label_numbers.join(",")
    );
    let series = |count: u64| {
        format!(
            "WITH RECURSIVE numbers(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < {count})"
        )
    };
    let now = jiff::Timestamp::now().as_millisecond();
    let year = 365_u64 * 24 * 3600 * 1000;
    let resources = format!(
        "INSERT INTO resources (id, secret_hash, state, size_bytes, sha256, owner_kind, owner_namespace, owner_labels, \
         created_at, unused_timeout_millis, uploaded_by) {} \
         SELECT printf('%08x-0000-4000-8000-%012x', i * 13, i), zeroblob(32), 'ready', 0, zeroblob(32), 'Pod', \
         'team-' || (i % {namespaces}), {all}, {now}, {year}, '10.0.0.1' FROM numbers",
        series(*ready)
    );
    sqlx::raw_sql(AssertSqlSafe(resources)).execute(&mut *ledger).await.unwrap();
    if *tombstones > 0 {
        let buried = format!(
            "INSERT INTO resources (id, secret_hash, state, size_bytes, owner_kind, owner_namespace, created_at, \
             unused_timeout_millis, deleted_at, deletion_reason) {} \
             SELECT printf('%08x-0000-4000-9000-%012x', i * 7, i), zeroblob(32), 'deleted', 0, 'Pod', \
             'team-' || (i % {namespaces}), {now}, {year}, {now} - i, 'released' FROM numbers",
            series(*tombstones)
        );
        sqlx::raw_sql(AssertSqlSafe(buried)).execute(&mut *ledger).await.unwrap();
    }
}

/// Starts the server in the group, and waits until it serves or has ended.
fn start(group: &ControlGroup, folder: &Path, kubeconfig: Option<&Path>) -> Cloakroom {
    let mut serve = Command::new(dist::binary());
    serve.args(["serve", "--listen", "127.0.0.1:0", "--cleanup-interval", "1s", "--data-dir"]).arg(folder);
    match kubeconfig {
        Some(kubeconfig) => serve.arg("--kubeconfig").arg(kubeconfig),
        None => serve.arg("--no-kubernetes"),
    };
    let mut server = Cloakroom::launch(inside(group, &serve));
    let until = Instant::now() + PATIENCE;
    while !server.log().contains("serves on http") {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap_or_default();
        assert!(!state.is_empty() && !state.contains(") Z "), "it ended before it served: {}", server.log());
        assert!(Instant::now() < until, "it does not come up: {}", server.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    server.wait_until_it_serves();
    server
}

/// The same command line, in the group from its first moment on.
fn inside(group: &ControlGroup, command: &Command) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(group.door());
    shell.arg(command.get_program()).args(command.get_args()).env_clear();
    shell
}

fn client() -> reqwest::Client {
    let tls = cloakroom_testing::tls::no_roots();
    reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls).build().unwrap()
}

async fn stage(server: &Cloakroom) -> Ticket {
    let url = server.url("/api/v1/resources/deps.tgz?namespace=demo&label=app%3Ddemo");
    let answer = client().put(url).body("jars").send().await.unwrap();
    assert_eq!(answer.status(), 201);
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

async fn download(server: &Cloakroom, ticket: &Ticket) -> String {
    let url = server.url(&format!("/api/v1/resources/{}", ticket.resource_id));
    let answer = client().get(url).bearer_auth(&ticket.resource_secret).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.text().await.unwrap()
}

/// 0 for what has not happened.
async fn metric(server: &Cloakroom, name: &str) -> f64 {
    let text = client().get(server.url("/metrics")).send().await.unwrap().text().await.unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("cloakroom_{name} ")));
    line.map_or(0.0, |line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
}

async fn until_metric(server: &Cloakroom, name: &str, at_least: f64) {
    let until = Instant::now() + PATIENCE;
    while metric(server, name).await < at_least {
        assert!(Instant::now() < until, "{name} stays below {at_least}:\n{}", server.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The most memory that the process ever had of its own.
fn peak_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() << 10
}
