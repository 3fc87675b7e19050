//! The server at its limits in the memory that the manifests give it: it comes up, serves and sweeps.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use cloakroom::protocol::v1::Ticket;
use libtest_mimic::Trial;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, SqliteConnection};

use crate::control_group::ControlGroup;
use crate::needs::{Need, trial};
use crate::process::{Cloakroom, command};

/// What `manifests/base/deployment.yaml` says.
const MEMORY: u64 = 512 << 20;

/// A debug build on a busy machine; a release build takes a few seconds.
const PATIENCE: Duration = Duration::from_secs(240);

pub fn trials() -> Vec<Trial> {
    let group = || Need::Working("a control group for memory", ControlGroup::can_be_made);
    vec![
        trial(
            "a_ledger_at_the_limits_comes_up_in_the_memory_of_the_manifests",
            &[group()],
            a_ledger_at_the_limits_comes_up_in_the_memory_of_the_manifests,
        ),
        trial(
            "many_resources_with_more_labels_than_today_come_up_all_the_same",
            &[group()],
            many_resources_with_more_labels_than_today_come_up_all_the_same,
        ),
    ]
}

/// 100,000 resources with 4 KiB of labels each, with the two that are staged, and 200,000 tombstones.
fn a_ledger_at_the_limits_comes_up_in_the_memory_of_the_manifests() {
    check(&Filled { ready: 99_998, labels: 16, key_bytes: 193, value_bytes: 63, tombstones: 200_000 });
}

/// What could be staged before labels had a limit in bytes.
fn many_resources_with_more_labels_than_today_come_up_all_the_same() {
    check(&Filled { ready: 32_777, labels: 60, key_bytes: 317, value_bytes: 63, tombstones: 0 });
}

/// What a ledger is filled with.
struct Filled {
    ready: u64,
    labels: u64,
    key_bytes: usize,
    value_bytes: usize,
    tombstones: u64,
}

fn check(filled: &Filled) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let ticket = prepare(folder.path(), filled).await;
        let group = ControlGroup::make(&format!("limits-{}", filled.ready), MEMORY).unwrap();
        let began = Instant::now();
        let server = start(&group, folder.path());
        let ready_after = began.elapsed();
        assert_eq!(metric(&server, "resources{state=\"ready\"}").await, filled.ready as f64 + 1.0);
        assert_eq!(metric(&server, "resources{state=\"deleted\"}").await, filled.tombstones as f64);
        assert_eq!(download(&server, &ticket).await, "jars");
        let other = stage(&server).await;
        assert_eq!(download(&server, &other).await, "jars");
        let swept = metric(&server, "sweeps_total{outcome=\"ok\"}").await;
        let until = Instant::now() + PATIENCE;
        while metric(&server, "sweeps_total{outcome=\"ok\"}").await < swept + 2.0 {
            assert!(Instant::now() < until, "no sweep came to its end:\n{}", server.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(metric(&server, "sweeps_total{outcome=\"failed\"}").await, 0.0, "{}", server.log());
        let sweep = metric(&server, "sweep_duration_seconds_sum").await
            / metric(&server, "sweep_duration_seconds_count").await;
        let peak = peak_bytes(server.pid());
        eprintln!(
            "{} resources, {} tombstones: ready after {:.1} s, {:.1} s a sweep, {} MiB of memory at most",
            filled.ready,
            filled.tombstones,
            ready_after.as_secs_f64(),
            sweep,
            peak >> 20
        );
        // The rest is for what comes in and goes out meanwhile.
        assert!(peak < MEMORY / 4 * 3, "{} MiB", peak >> 20);
        drop(server);
        drop(group);
    });
}

/// Starts a server once, stages a bundle, and fills its ledger behind its back.
async fn prepare(folder: &Path, filled: &Filled) -> Ticket {
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
    ledger.close().await.unwrap();
    ticket
}

async fn fill(ledger: &mut SqliteConnection, filled: &Filled) {
    let Filled { ready, labels, key_bytes, value_bytes, tombstones } = filled;
    // No two keys and no two values are the same: a DNS prefix, a slash, a name.
    let prefix = "a".repeat(59);
    let dots = (key_bytes - 20) / 60;
    let padding = "c".repeat((key_bytes - 20) % 60);
    let key = format!("{}r%06d/k%02d{padding}%s", format!("{prefix}.").repeat(dots));
    let value = "v".repeat(value_bytes - 9);
    let one = format!("printf('\"{key}\":\"v%06d%02d{value}\"', i, j.value, 'abcdefghi', i, j.value)");
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
         'team-' || (i % 1000), {all}, {now}, {year}, '10.0.0.1' FROM numbers",
        series(*ready)
    );
    sqlx::raw_sql(AssertSqlSafe(resources)).execute(&mut *ledger).await.unwrap();
    if *tombstones > 0 {
        let buried = format!(
            "INSERT INTO resources (id, secret_hash, state, size_bytes, owner_kind, owner_namespace, created_at, \
             unused_timeout_millis, deleted_at, deletion_reason) {} \
             SELECT printf('%08x-0000-4000-9000-%012x', i * 7, i), zeroblob(32), 'deleted', 0, 'Pod', \
             'team-' || (i % 1000), {now}, {year}, {now} - i, 'released' FROM numbers",
            series(*tombstones)
        );
        sqlx::raw_sql(AssertSqlSafe(buried)).execute(&mut *ledger).await.unwrap();
    }
}

/// Starts the server in the group, and waits until it serves or has ended.
fn start(group: &ControlGroup, folder: &Path) -> Cloakroom {
    let mut serve = command();
    serve.args(["serve", "--listen", "127.0.0.1:0", "--no-kubernetes", "--cleanup-interval", "1s"]);
    serve.arg("--data-dir").arg(folder);
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
    let tls = crate::support::tls::no_roots();
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

async fn metric(server: &Cloakroom, name: &str) -> f64 {
    let text = client().get(server.url("/metrics")).send().await.unwrap().text().await.unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("cloakroom_{name} "))).unwrap();
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

/// The most memory that the process ever had of its own.
fn peak_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() << 10
}
