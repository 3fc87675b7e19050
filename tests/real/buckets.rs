//! A server whose bundles are in a bucket, as its admin and its clients see it. The gateway is a real one.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloakroom_testing::documentation::block;
use cloakroom_testing::front::{Front, Turn};
use cloakroom_testing::needs::trial;
use cloakroom_testing::process::{Cloakroom, binary, command, output_in_time, stderr};
use cloakroom_testing::s3_gateway::{ACCESS_KEY, BUCKET, S3Gateway, SECRET_KEY};
use cloakroom_testing::tls;
use cloakroom_testing::wait::{BOUND, until_true};
use cloakroom_testing::wire::{Answer, Wire, upload_head};
use libtest_mimic::Trial;
use tokio::task::JoinSet;

/// More than one part.
const LARGE: usize = 12 << 20;

macro_rules! trials {
    ($needs:expr; $($test:ident),+ $(,)?) => {
        vec![$(trial(concat!("buckets::", stringify!($test)), &$needs, || run($test))),+]
    };
}

pub fn trials() -> Vec<Trial> {
    trials![
        S3Gateway::needs();
        the_commands_of_the_page_begin_a_server_at_a_store_with_tls,
        what_is_staged_is_in_the_bucket_and_outlives_the_server,
        a_server_that_is_killed_in_the_middle_of_an_upload_leaves_nothing,
        a_check_says_what_is_missing,
        no_secret_is_told_of_a_bucket,
        a_bucket_that_fails_is_told_counted_and_waited_for,
        slow_clients_that_hold_all_memory_give_way_to_the_next,
    ]
}

pub(crate) fn run(test: impl AsyncFnOnce(Bucket)) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let gateway = S3Gateway::start().await;
        let folder = tempfile::tempdir().unwrap();
        test(Bucket { gateway, folder }).await;
    });
}

pub(crate) struct Bucket {
    pub(crate) gateway: S3Gateway,
    pub(crate) folder: tempfile::TempDir,
}

impl Bucket {
    pub(crate) fn data_dir(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    /// `cloakroom serve` with the bucket. `endpoint` is where the gateway is reached.
    pub(crate) fn command(&self, endpoint: &str, more: &[&str]) -> Command {
        let store = format!("s3://{BUCKET}/cloakroom");
        let store = ["--store", &store, "--store-endpoint", endpoint, "--takeover-after", "1s"];
        self.serve_with(&self.data_dir(), store.into_iter().chain(more.iter().copied()))
    }

    /// `cloakroom serve` with this data directory.
    pub(crate) fn serve_with<'a>(
        &self,
        data_dir: &Path,
        arguments: impl Iterator<Item = &'a str>,
    ) -> Command {
        let mut command = command();
        command.args(["serve", "--listen", "127.0.0.1:0", "--store-allow-http", "--data-dir"]);
        command.arg(data_dir).args(arguments);
        command.env("AWS_ACCESS_KEY_ID", ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
        command
    }

    pub(crate) fn serve(&self) -> Cloakroom {
        Cloakroom::start(self.command(&self.gateway.url(), &[]))
    }

    pub(crate) fn file(&self, name: &str, bytes: usize) -> std::path::PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, (0..bytes).map(|at| (at / 255 + at) as u8).collect::<Vec<u8>>()).unwrap();
        path
    }

    /// All groups of the log.
    pub(crate) fn log(&self) -> String {
        let Ok(entries) = std::fs::read_dir(self.gateway.objects().join("cloakroom/log")) else {
            return String::new();
        };
        entries.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default()).collect()
    }

    /// The names of the objects below the prefix.
    pub(crate) fn objects(&self) -> Vec<String> {
        let folder = self.gateway.objects().join("cloakroom/blobs");
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

pub(crate) fn stage_command(server: &Cloakroom, file: &Path) -> Command {
    let mut command = command();
    command.args(["stage", "--server", &server.url(""), "-n", "jobs", "-l", "app=a"]).arg(file);
    command
}

/// Stages a file, and returns the ticket.
pub(crate) fn staged(server: &Cloakroom, file: &Path) -> String {
    let output = output_in_time(&mut stage_command(server, file));
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Fetches with the ticket, and compares with the file that was staged.
pub(crate) fn assert_fetched(ticket: &str, file: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let (ticket_file, to) = (folder.path().join("ticket"), folder.path().join("to"));
    std::fs::write(&ticket_file, ticket).unwrap();
    let mut command = command();
    command.args(["fetch", "--ticket"]).arg(&ticket_file).arg("--to").arg(&to);
    let output = output_in_time(&mut command);
    assert!(output.status.success(), "{}", stderr(&output));
    let fetched = std::fs::read(to.join(file.file_name().unwrap())).unwrap();
    assert!(fetched == std::fs::read(file).unwrap());
}

/// The ticket with the address of a server that was started again.
pub(crate) fn at(ticket: &str, server: &Cloakroom) -> String {
    let mut ticket: serde_json::Value = serde_json::from_str(ticket).unwrap();
    let url = ticket["url"].as_str().unwrap();
    let path = url.splitn(4, '/').nth(3).unwrap().to_owned();
    ticket["url"] = server.url(&format!("/{path}")).into();
    ticket.to_string()
}

async fn the_commands_of_the_page_begin_a_server_at_a_store_with_tls(bucket: Bucket) {
    let pem = tls::signed_by_ca(bucket.folder.path(), &["localhost"]);
    let gateway = S3Gateway::start_with_tls(&pem).await;
    let page = block("docs/buckets.md", "Begin", "export AWS_ACCESS_KEY_ID");
    let page = page
        .replace("AWS_ACCESS_KEY_ID=…", &format!("AWS_ACCESS_KEY_ID={ACCESS_KEY}"))
        .replace("AWS_SECRET_ACCESS_KEY=…", &format!("AWS_SECRET_ACCESS_KEY={SECRET_KEY}"))
        .replace("https://s3.example.com", &gateway.url())
        .replace("cloakroom serve", &format!("exec {} serve", binary().display()));
    let [export, check, serve] = page.lines().collect::<Vec<_>>()[..] else { panic!("{page}") };
    let typed = |line: &str| {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("{export}\n{line}")]).env_clear().current_dir(bucket.folder.path());
        shell.env("CLOAKROOM_LISTEN", "127.0.0.1:0");
        shell
    };
    let output = output_in_time(&mut typed(check));
    let said = stderr(&output);
    assert!(
        !output.status.success()
            && said.contains("not signed by a CA that is trusted here")
            && said.contains("--store-ca"),
        "{said}"
    );
    let output = output_in_time(typed(check).env("CLOAKROOM_STORE_CA", &pem.ca));
    assert!(output.status.success(), "{}", stderr(&output));
    let mut command = typed(serve);
    command.env("CLOAKROOM_STORE_CA", &pem.ca);
    let (server, file) = (Cloakroom::start(command), bucket.file("a.jar", LARGE));
    assert_fetched(&staged(&server, &file), &file);
}

async fn what_is_staged_is_in_the_bucket_and_outlives_the_server(bucket: Bucket) {
    let (small, large) = (bucket.file("small.jar", 1000), bucket.file("large.jar", LARGE));
    let server = bucket.serve();
    let tickets = [(staged(&server, &small), &small), (staged(&server, &large), &large)];
    for (ticket, file) in &tickets {
        assert_fetched(ticket, file);
    }
    assert_eq!(bucket.objects().len(), 2);
    assert!(!bucket.data_dir().join("bundles").exists());
    server.kill();
    std::fs::remove_dir_all(bucket.data_dir()).unwrap();
    let server = bucket.serve();
    for (ticket, file) in &tickets {
        assert_fetched(&at(ticket, &server), file);
    }
}

async fn a_server_that_is_killed_in_the_middle_of_an_upload_leaves_nothing(bucket: Bucket) {
    let is_second_part = |line: &str| line.contains("partNumber=2");
    let front = Front::before(bucket.gateway.address(), move |line| {
        if is_second_part(line) { Turn::Hold { after: 1000 } } else { Turn::Pass }
    });
    let server = Cloakroom::start(bucket.command(&front.url(), &[]));
    let mut client =
        stage_command(&server, &bucket.file("large.jar", LARGE)).stderr(Stdio::null()).spawn().unwrap();
    front.holds().await;
    assert_eq!(bucket.gateway.uploads().len(), 1);
    // Without that, the store's own rule for incomplete uploads removes the parts.
    until_true("the log knows the upload", || bucket.log().contains("upload_handles")).await;
    server.kill();
    client.kill().unwrap();
    client.wait().unwrap();
    front.let_go();
    let _server = Cloakroom::start(bucket.command(&bucket.gateway.url(), &["--cleanup-interval", "1s"]));
    let is_nothing_left = || bucket.gateway.uploads().is_empty() && bucket.objects().is_empty();
    until_true("the next server has removed the parts", is_nothing_left).await;
}

async fn a_check_says_what_is_missing(bucket: Bucket) {
    let xml = "application/xml";
    let denied = "<Error><Code>AccessDenied</Code></Error>";
    let check = |endpoint: &str| {
        let output = output_in_time(&mut bucket.command(endpoint, &["--check"]));
        (output.status.success(), stderr(&output))
    };
    let (is_valid, said) = check(&bucket.gateway.url());
    assert!(is_valid, "{said}");
    for (method, query, right) in [
        ("PUT ", "/probe-", "s3:PutObject"),
        ("GET ", "/probe-", "s3:GetObject"),
        ("GET ", "list-type=2", "s3:ListBucket"),
        ("DELETE ", "/probe-", "s3:DeleteObject"),
        ("DELETE ", "uploadId=", "s3:AbortMultipartUpload"),
    ] {
        let is_asked = move |line: &str| {
            let is_of_upload = line.contains("uploadId=");
            line.starts_with(method) && line.contains(query) && (query == "uploadId=" || !is_of_upload)
        };
        let front = Front::before(bucket.gateway.address(), move |line| {
            if is_asked(line) { Turn::Answer(403, xml, denied) } else { Turn::Pass }
        });
        let (is_valid, said) = check(&front.url());
        assert!(!is_valid && said.contains(right) && said.contains("403 (AccessDenied)"), "{right}: {said}");
        let left = usize::from(query == "uploadId=");
        assert_eq!(bucket.gateway.uploads().len(), left, "{right}");
    }
    let ignores = |line: &str| line.starts_with("PUT ") && line.contains("/probe-");
    let front = Front::before(bucket.gateway.address(), move |line| {
        if ignores(line) { Turn::Answer(200, xml, "") } else { Turn::Pass }
    });
    let (is_valid, said) = check(&front.url());
    assert!(!is_valid && said.contains("ignores the condition"), "{said}");
}

async fn no_secret_is_told_of_a_bucket(bucket: Bucket) {
    let check = |command: &mut Command| {
        let output = output_in_time(command);
        let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
        for secret in [ACCESS_KEY, SECRET_KEY, "SECRET"] {
            assert!(!said.contains(secret), "{said}");
        }
        (output.status.code(), said)
    };
    let mut in_url = command();
    in_url.args(["serve", "--store", "s3://AKIAKEY:SECRET@team/prefix"]);
    assert_eq!(check(&mut in_url).0, Some(2));
    let mut in_environment = command();
    in_environment.arg("serve").env("CLOAKROOM_STORE", "s3://team/prefix?sig=SECRET");
    assert_eq!(check(&mut in_environment).0, Some(2));
    let mut in_help = command();
    in_help.args(["serve", "--help"]).env("CLOAKROOM_STORE", "s3://KEY:SECRET@team/prefix");
    assert_eq!(check(&mut in_help).0, Some(0));
    let mut wrong = bucket.command(&bucket.gateway.url(), &["--check"]);
    wrong.env("AWS_SECRET_ACCESS_KEY", "another-SECRET");
    let (code, said) = check(&mut wrong);
    assert!(code == Some(1) && said.contains("403 (SignatureDoesNotMatch)"), "{said}");
    let mut right = bucket.command(&bucket.gateway.url(), &["--check"]);
    let (code, said) = check(&mut right);
    assert!(code == Some(0) && said.contains(&format!("in s3://{BUCKET}/cloakroom")), "{said}");
}

async fn a_bucket_that_fails_is_told_counted_and_waited_for(bucket: Bucket) {
    const XML: &str = "application/xml";
    let failures = [
        (Turn::Answer(500, XML, "<Error><Code>InternalError</Code></Error>"), "unavailable"),
        (Turn::Answer(403, XML, "<Error><Code>AccessDenied</Code></Error>"), "denied"),
    ];
    let failing = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&failing);
    let front = Front::before(bucket.gateway.address(), move |_| seen.lock().unwrap().unwrap_or(Turn::Pass));
    let server = Cloakroom::start(bucket.command(&front.url(), &[]));
    let file = bucket.file("a.jar", 1000);
    let ticket = staged(&server, &file);
    for (failure, outcome) in failures {
        *failing.lock().unwrap() = Some(failure);
        let upload = server.url("/api/v1/resources?namespace=jobs&label=app%3Da");
        for answer in [curl(&["--upload-file", file.to_str().unwrap(), &upload]), download(&ticket)] {
            assert!(answer.contains("503 Service Unavailable"), "{outcome}: {answer}");
            assert!(answer.to_lowercase().contains("\nretry-after: "), "{outcome}: {answer}");
        }
        let metrics = curl(&[&server.url("/metrics")]);
        for call in ["get", "put"] {
            let count = format!("cloakroom_store_requests_total{{call=\"{call}\",outcome=\"{outcome}\"}} ");
            assert!(metrics.contains(&count), "{metrics}");
        }
        *failing.lock().unwrap() = None;
        assert_fetched(&ticket, &file);
    }
    for secret in [ACCESS_KEY, SECRET_KEY] {
        assert!(!server.log().contains(secret), "{}", server.log());
    }
}

/// One of them is told to come again.
async fn slow_clients_that_hold_all_memory_give_way_to_the_next(bucket: Bucket) {
    let memory_for_three_parts = ["--store-memory", "16MiB", "--max-resource-size", "1GiB"];
    let server = Cloakroom::start(bucket.command(&bucket.gateway.url(), &memory_for_three_parts));
    let file = bucket.file("large.jar", LARGE);
    let address = server.address.parse().unwrap();
    let mut slow: JoinSet<Answer> = (0..3).map(|_| trickled(address)).collect();
    let staging = async {
        // The first ones may come before the slow ones have all memory.
        loop {
            let mut next = tokio::process::Command::from(stage_command(&server, &file));
            let staged = next.kill_on_drop(true).output().await.unwrap();
            assert!(staged.status.success(), "{}", stderr(&staged));
        }
    };
    let told = tokio::time::timeout(BOUND * 3, async {
        tokio::select! {
            told = slow.join_next() => told.unwrap().unwrap(),
            () = staging => unreachable!(),
        }
    });
    let told = told.await.unwrap();
    drop(slow);
    assert!(told.status == 503 && told.text().contains("overloaded"), "{}", told.text());
    assert!(server.log().contains("--store-memory"), "{}", server.log());
}

/// Uploads 32 KiB a second, which is not too slow (`--min-rate`), until there is an answer.
async fn trickled(server: SocketAddr) -> Answer {
    let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
    let mut wire = Wire::connect(server).await;
    wire.send(upload_head("Transfer-Encoding: chunked\r\n")).await;
    while tokio::time::timeout(Duration::from_secs(1), wire.0.readable()).await.is_err() {
        wire.send(&chunk).await;
    }
    wire.answer().await
}

/// What the ticket's address answers to a download, with its head.
pub(crate) fn download(ticket: &str) -> String {
    let ticket: serde_json::Value = serde_json::from_str(ticket).unwrap();
    let secret = format!("Authorization: Bearer {}", ticket["resourceSecret"].as_str().unwrap());
    curl(&["--header", &secret, ticket["url"].as_str().unwrap()])
}

pub(crate) fn curl(arguments: &[&str]) -> String {
    let output = output_in_time(Command::new("curl").args(["--silent", "--include"]).args(arguments));
    String::from_utf8(output.stdout).unwrap()
}
