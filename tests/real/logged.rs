//! A server without a volume: its ledger is in the bucket of its bundles, and another server goes on with every ticket.

mod kills;

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cloakroom_testing::api_server::FakeApiServer;
use cloakroom_testing::cluster::{Account, Cluster as _};
use cloakroom_testing::documentation::block;
use cloakroom_testing::front::{Front, Turn};
use cloakroom_testing::minio::Minio;
use cloakroom_testing::needs::{Need, trial};
use cloakroom_testing::process::{Cloakroom, command, output_in_time, stderr};
use cloakroom_testing::s3_gateway::{ACCESS_KEY, BUCKET, S3Gateway, SECRET_KEY};
use cloakroom_testing::wait::until_true;
use libtest_mimic::Trial;

use self::kills::what_was_acknowledged_outlives_every_kill_without_a_data_directory;
use crate::buckets::{Bucket, assert_fetched, at, curl, download, run, staged};

macro_rules! trials {
    ($($test:ident),+ $(,)?) => {
        vec![$(trial(concat!("logged::", stringify!($test)), &S3Gateway::needs(), || run($test))),+]
    };
}

pub fn trials() -> Vec<Trial> {
    let mut with_a_small_store = Minio::needs();
    with_a_small_store.extend([Need::Root, Need::Namespaces]);
    let mut all = trials![
        a_second_server_waits_until_the_first_one_has_stopped,
        a_server_that_was_suspended_ends_once_another_one_has_taken_over,
        an_admin_takes_over_at_once,
        a_server_that_is_cut_off_from_its_cluster_gives_way,
        a_log_that_the_bucket_does_not_take_is_told_and_nothing_is_lost,
        an_admin_goes_back_to_a_copy_once,
        a_log_that_is_not_whole_is_refused_by_its_object,
        a_lost_stamp_is_told_and_an_admin_goes_on_without_it,
        the_bucket_has_no_secret_of_a_ticket,
        a_data_directory_of_a_server_without_a_bucket_is_refused,
        what_was_acknowledged_outlives_every_kill_without_a_data_directory,
    ];
    all.push(trial("logged::a_full_store_frees_itself", &with_a_small_store, || {
        tokio::runtime::Runtime::new().unwrap().block_on(a_full_store_frees_itself());
    }));
    all
}

/// The command of another server at the same bucket, with a data directory of its own. It is patient, unless `more` says otherwise.
fn beside(bucket: &Bucket, folder: &str, more: &[&str]) -> Command {
    let (store, endpoint) = (format!("s3://{BUCKET}/cloakroom"), bucket.gateway.url());
    let arguments = ["--store", &store, "--store-endpoint", &endpoint];
    bucket.serve_with(&bucket.folder.path().join(folder), arguments.into_iter().chain(more.iter().copied()))
}

fn is_behind(server: &Cloakroom) -> bool {
    curl(&[&server.url("/metrics")]).contains("\ncloakroom_ledger_behind 1\n")
}

fn stop(server: &mut Cloakroom) {
    server.signal("TERM");
    assert!(server.wait().success(), "{}", server.log());
}

fn refused(mut command: Command) -> String {
    let output = output_in_time(&mut command);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    stderr(&output)
}

async fn a_second_server_waits_until_the_first_one_has_stopped(bucket: Bucket) {
    let file = bucket.file("a.jar", 1000);
    let mut first = bucket.serve();
    let ticket = staged(&first, &file);
    let mut second = Cloakroom::launch(beside(&bucket, "second", &[]));
    second.wait_for_log("another server has this prefix");
    assert_fetched(&ticket, &file);
    stop(&mut first);
    second.wait_until_it_serves();
    assert_fetched(&at(&ticket, &second), &file);
}

/// As a node does that was suspended.
async fn a_server_that_was_suspended_ends_once_another_one_has_taken_over(bucket: Bucket) {
    let file = bucket.file("a.jar", 1000);
    let mut first = bucket.serve();
    let ticket = staged(&first, &file);
    first.signal("STOP");
    let second = Cloakroom::start(beside(&bucket, "second", &["--takeover-after", "1s"]));
    let log = bucket.log();
    first.signal("CONT");
    assert_eq!(first.wait().code(), Some(1));
    assert!(first.log().contains("another server has taken over this prefix"), "{}", first.log());
    assert_eq!(bucket.log(), log, "it has written nothing more");
    assert_fetched(&at(&ticket, &second), &file);
}

async fn an_admin_takes_over_at_once(bucket: Bucket) {
    let file = bucket.file("a.jar", 1000);
    let mut first = bucket.serve();
    let ticket = staged(&first, &file);
    let second = Cloakroom::start(beside(&bucket, "second", &["--take-over", "--takeover-after", "1d"]));
    assert_fetched(&at(&ticket, &second), &file);
    let late = curl(&["--request", "DELETE", "--header", &bearer(&ticket), &url(&ticket)]);
    assert!(!late.starts_with("HTTP/1.1 204"), "{late}");
    assert_eq!(first.wait().code(), Some(1));
    assert_fetched(&at(&ticket, &second), &file);
}

async fn a_server_that_is_cut_off_from_its_cluster_gives_way(bucket: Bucket) {
    let (api, kubeconfig) = (FakeApiServer::start(), bucket.folder.path().join("kubeconfig"));
    std::fs::write(&kubeconfig, api.kubeconfig(Account::Cloakroom, api.address())).unwrap();
    let kubeconfig = ["--kubeconfig", kubeconfig.to_str().unwrap()];
    let mut first = Cloakroom::start(bucket.command(&bucket.gateway.url(), &kubeconfig));
    let patient = ["--takeover-after", "1d", "--no-kubernetes"];
    let mut second = Cloakroom::launch(beside(&bucket, "second", &patient));
    second.wait_for_log("another server has this prefix");
    api.stop();
    second.wait_until_it_serves();
    assert_eq!(first.wait().code(), Some(1));
    assert!(first.log().contains("another server at this prefix may take over at once"), "{}", first.log());
}

async fn a_log_that_the_bucket_does_not_take_is_told_and_nothing_is_lost(bucket: Bucket) {
    let is_failing = Arc::new(AtomicBool::new(false));
    let fails = Arc::clone(&is_failing);
    let front = Front::before(bucket.gateway.address(), move |line| {
        let is_log = line.starts_with("PUT ") && line.contains("/log/");
        if is_log && fails.load(Ordering::Relaxed) { Turn::Answer(503, "text/plain", "") } else { Turn::Pass }
    });
    let server = Cloakroom::start(bucket.command(&front.url(), &[]));
    let file = bucket.file("a.jar", 1000);
    let tickets = [staged(&server, &file), staged(&server, &file)];
    assert_fetched(&tickets[1], &file);
    is_failing.store(true, Ordering::Relaxed);
    let upload = server.url("/api/v1/resources?namespace=jobs&label=app%3Da");
    let [first_use, deletion, upload] = [
        vec!["--header", &bearer(&tickets[0]), &url(&tickets[0])]
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>(),
        ["--request", "DELETE", "--header", &bearer(&tickets[1]), &url(&tickets[1])]
            .map(str::to_owned)
            .to_vec(),
        ["--upload-file", file.to_str().unwrap(), &upload].map(str::to_owned).to_vec(),
    ]
    .map(|arguments| {
        std::thread::spawn(move || curl(&arguments.iter().map(String::as_str).collect::<Vec<_>>()))
    });
    for asked in [first_use, deletion, upload] {
        let answer = asked.join().unwrap();
        assert!(answer.contains("HTTP/1.1 503") && answer.contains("does not take the log"), "{answer}");
    }
    is_failing.store(false, Ordering::Relaxed);
    until_true("the deletion that was asked for is done", || {
        download(&tickets[1]).starts_with("HTTP/1.1 410")
    })
    .await;
    assert_fetched(&tickets[0], &file);
}

// Invariant: an earlier copy of the ledger deletes nothing before an admin says so.
async fn an_admin_goes_back_to_a_copy_once(bucket: Bucket) {
    let (early_file, late_file) = (bucket.file("early.jar", 1000), bucket.file("late.jar", 1000));
    let mut server = bucket.serve();
    let early = staged(&server, &early_file);
    stop(&mut server);
    let mut server = bucket.serve();
    let late = staged(&server, &late_file);
    stop(&mut server);
    let said = refused(bucket.command(&bucket.gateway.url(), &["--restore-ledger", "7-7"]));
    assert!(
        said.contains("there is no copy 7-7 of the ledger: there are ") && said.contains("2-0 of 2"),
        "{said}"
    );
    std::fs::write(bucket.gateway.objects().join("cloakroom/ledger/1-9.db"), "not a ledger").unwrap();
    let said = refused(bucket.command(&bucket.gateway.url(), &["--restore-ledger", "1-9"]));
    assert!(
        said.contains(&format!(
            "s3://{BUCKET}/cloakroom/ledger/1-9.db cannot be used, because it is no database, or its beginning is damaged; nothing was \
             changed"
        )),
        "{said}"
    );
    let page = block("docs/buckets.md", "Copies of the ledger", "cloakroom serve");
    let page = page.trim().replace("s3://team/cloakroom", &format!("s3://{BUCKET}/cloakroom"));
    let page = page.replace("https://s3.example.com", &bucket.gateway.url()).replace("12-0", "2-0");
    let restored = || Cloakroom::start(bucket.serve_with(&bucket.data_dir(), page.split(' ').skip(2)));
    let mut server = restored();
    assert_fetched(&at(&early, &server), &early_file);
    assert!(download(&at(&late, &server)).starts_with("HTTP/1.1 404"));
    assert!(is_behind(&server) && bucket.objects().len() == 2);
    let ledgers = std::fs::read_dir(bucket.gateway.objects().join("cloakroom/ledger")).unwrap();
    let mut names = ledgers.map(|entry| entry.unwrap().file_name());
    assert!(
        names.any(|name| name.to_string_lossy().starts_with("2-") && name != "2-0.db"),
        "it can be undone"
    );
    stop(&mut server);
    // The flag stays where it is, and the ledger stays behind.
    let mut server = restored();
    assert!(
        server.log().contains("was put back from this copy already") && is_behind(&server),
        "{}",
        server.log()
    );
    let mut resume = command();
    resume.arg("resume-deletions").arg("--data-dir").arg(bucket.data_dir());
    assert!(output_in_time(&mut resume).status.success());
    let new = staged(&server, &late_file);
    stop(&mut server);
    let server = restored();
    assert!(!is_behind(&server));
    assert_fetched(&at(&new, &server), &late_file);
}

async fn a_log_that_is_not_whole_is_refused_by_its_object(bucket: Bucket) {
    let file = bucket.file("a.jar", 1000);
    let server = bucket.serve();
    let ticket = staged(&server, &file);
    staged(&server, &file);
    server.kill();
    let log = bucket.gateway.objects().join("cloakroom/log");
    let group = std::fs::read(log.join("1-1")).unwrap();
    std::fs::remove_file(log.join("1-1")).unwrap();
    let refused = || refused(bucket.command(&bucket.gateway.url(), &[]));
    let said = refused();
    let place = format!("s3://{BUCKET}/cloakroom/log/1-1");
    assert!(said.contains(&format!("{place} is missing, and the next one is there: put it back")), "{said}");
    std::fs::write(log.join("1-1"), &group[..group.len() / 2]).unwrap();
    let said = refused();
    assert!(said.contains(&format!("{place} cannot be used, because its digest")), "{said}");
    std::fs::write(log.join("1-1"), group).unwrap();
    let copy = bucket.gateway.objects().join("cloakroom/ledger/1-0.db");
    let whole = std::fs::read(&copy).unwrap();
    std::fs::write(&copy, &whole[..whole.len() / 2]).unwrap();
    let said = refused();
    assert!(
        said.contains(&format!(
            "s3://{BUCKET}/cloakroom/ledger/1-0.db cannot be used, because it is damaged"
        )),
        "{said}"
    );
    std::fs::write(&copy, &whole).unwrap();
    let server = bucket.serve();
    assert_fetched(&at(&ticket, &server), &file);
    drop(server);
    stop(&mut bucket.serve());
    let newest = newest_copy(&bucket);
    let kept = std::fs::read(&newest).unwrap();
    std::fs::remove_file(&newest).unwrap();
    let said = refused();
    assert!(
        said.contains("the log of the ledger ends at ") && said.contains("objects of it are missing"),
        "{said}"
    );
    std::fs::write(&newest, kept).unwrap();
    assert_fetched(&at(&ticket, &bucket.serve()), &file);
}

fn newest_copy(bucket: &Bucket) -> PathBuf {
    let copies = std::fs::read_dir(bucket.gateway.objects().join("cloakroom/ledger")).unwrap();
    let epoch =
        |path: &PathBuf| -> Option<u64> { path.file_name()?.to_str()?.split_once('-')?.0.parse().ok() };
    copies.map(|entry| entry.unwrap().path()).max_by_key(epoch).unwrap()
}

async fn a_lost_stamp_is_told_and_an_admin_goes_on_without_it(bucket: Bucket) {
    let (file, stamp) = (bucket.file("a.jar", 1000), bucket.gateway.objects().join("cloakroom/stamp"));
    let mut first = bucket.serve();
    let ticket = staged(&first, &file);
    let written = std::fs::read_to_string(&stamp).unwrap();
    std::fs::write(&stamp, written.replace("form-1", "form-2")).unwrap();
    for flags in [&["--check"][..], &[]] {
        let said = refused(beside(&bucket, "newer", flags));
        assert!(
            said.contains("/stamp: the prefix belongs to a newer cloakroom: its ledger has form 2"),
            "{said}"
        );
    }
    first.wait_for_log("its ledger has form 2");
    std::fs::remove_file(stamp).unwrap();
    // Each new reason is told.
    let missing = format!("s3://{BUCKET}/cloakroom/stamp is missing");
    let is_told =
        || curl(&[&first.url("/readyz")]).contains("ready\nlog-stalled: ") && first.log().contains(&missing);
    until_true("the server says that its stamp is gone", is_told).await;
    let said = refused(beside(&bucket, "second", &[]));
    assert!(
        said.contains("if no other server uses this prefix, start the server anew with --take-over"),
        "{said}"
    );
    let second = Cloakroom::start(beside(&bucket, "second", &["--take-over"]));
    assert_fetched(&at(&ticket, &second), &file);
    assert_eq!(first.wait().code(), Some(1));
}

/// What expires makes room, although each deletion needs some in the log.
async fn a_full_store_frees_itself() {
    let (minio, folder) = (Minio::start_with_room("64m").await, tempfile::tempdir().unwrap());
    let serve = || {
        let (mut command, store) = (command(), format!("s3://{BUCKET}/cloakroom"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--store-allow-http", "--store", &store]);
        command.args(["--store-endpoint", &format!("http://{}", minio.address()), "--takeover-after", "1s"]);
        command
            .args(["--cleanup-interval", "1s", "--no-kubernetes", "--data-dir"])
            .arg(folder.path().join("data"));
        command.env("AWS_ACCESS_KEY_ID", ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
        Cloakroom::start(command)
    };
    let server = serve();
    let file = folder.path().join("a.jar");
    std::fs::write(&file, cloakroom_testing::noise::noise(4 << 20)).unwrap();
    let stored = staged(&server, &file);
    let upload = server.url("/api/v1/resources?namespace=jobs&label=app%3Da&ttl=20s");
    // What is small must not take the room that is for deletions. Each size fills what the one before has left.
    let next = folder.path().join("next");
    for bytes in [4 << 20, 256 << 10, 16 << 10, 5] {
        std::fs::write(&next, cloakroom_testing::noise::noise(bytes)).unwrap();
        let mut uploads = 0;
        while curl(&["--upload-file", next.to_str().unwrap(), &upload]).contains("201 Created") {
            uploads += 1;
            assert!(uploads < 200, "the store is not full: {}", server.log());
        }
    }
    for refused in ["the store has no room", "the room that is left is for deletions"] {
        assert!(server.log().contains(refused), "no “{refused}” in {}", server.log());
    }
    assert_fetched(&stored, &file);
    server.kill();
    let server = serve();
    assert_fetched(&at(&stored, &server), &file);
    until_true("what has expired is gone", || in_store(&server) == 1).await;
    let upload = server.url("/api/v1/resources?namespace=jobs&label=app%3Da&ttl=1h");
    // MinIO frees what was deleted a moment later, and only until a twentieth is free: the rest stays in its trash for minutes.
    std::fs::write(&next, cloakroom_testing::noise::noise(1 << 20)).unwrap();
    let is_taken = || curl(&["--upload-file", next.to_str().unwrap(), &upload]).contains("201 Created");
    until_true("there is room again", is_taken).await;
}

/// How many resources the server has.
fn in_store(server: &Cloakroom) -> u64 {
    let metrics = curl(&[&server.url("/metrics")]);
    let line = metrics.lines().find(|line| line.starts_with("cloakroom_resources{state=\"ready\"}"));
    line.and_then(|line| line.rsplit_once(' ')?.1.parse().ok()).unwrap()
}

async fn the_bucket_has_no_secret_of_a_ticket(bucket: Bucket) {
    let file = bucket.file("a.jar", 1000);
    let mut server = bucket.serve();
    let ticket = staged(&server, &file);
    assert_fetched(&ticket, &file);
    stop(&mut server);
    let mut server = bucket.serve();
    stop(&mut server);
    let ticket: serde_json::Value = serde_json::from_str(&ticket).unwrap();
    let holding = |name: &str| {
        let mut grep = Command::new("grep");
        grep.args(["--recursive", "--text", "--files-with-matches", "--fixed-strings"]);
        let found = grep.arg(ticket[name].as_str().unwrap()).arg(bucket.gateway.objects()).output().unwrap();
        String::from_utf8(found.stdout).unwrap()
    };
    assert_eq!(holding("resourceSecret"), "");
    assert!(holding("resourceId").contains("/ledger/"), "the copies have its id");
}

async fn a_data_directory_of_a_server_without_a_bucket_is_refused(bucket: Bucket) {
    let mut server = Cloakroom::serve(&bucket.data_dir(), &["--no-kubernetes"]);
    stop(&mut server);
    let said = refused(bucket.command(&bucket.gateway.url(), &[]));
    assert!(said.contains("ledger.db is the ledger of a server without --store"), "{said}");
}

fn bearer(ticket: &str) -> String {
    let ticket: serde_json::Value = serde_json::from_str(ticket).unwrap();
    format!("Authorization: Bearer {}", ticket["resourceSecret"].as_str().unwrap())
}

fn url(ticket: &str) -> String {
    let ticket: serde_json::Value = serde_json::from_str(ticket).unwrap();
    ticket["url"].as_str().unwrap().to_owned()
}
