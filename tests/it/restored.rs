//! The drill of docs/run.md for a lost or damaged ledger, with the real binary.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::documentation::block;
use cloakroom_testing::process::{self, Cloakroom, stderr};
use cloakroom_testing::tls;
use cloakroom_testing::wait::until;
use reqwest::Client;

const SWEEPS_OFTEN: [&str; 3] = ["--no-kubernetes", "--cleanup-interval", "1s"];

fn serve(data: &Path) -> Cloakroom {
    Cloakroom::serve(data, &SWEEPS_OFTEN)
}

async fn stop(server: &mut Cloakroom) {
    server.signal("TERM");
    assert!(server.wait().success());
}

fn client() -> Client {
    Client::builder().no_proxy().tls_backend_preconfigured(tls::no_roots()).build().unwrap()
}

async fn staged(server: &Cloakroom, ttl: &str) -> Ticket {
    let url = server.url(&format!("/api/v1/resources/deps.tgz?namespace=demo&label=app%3Ddemo{ttl}"));
    let answer = client().put(url).body("jars").send().await.unwrap();
    assert_eq!(answer.status(), 201);
    serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
}

async fn status(server: &Cloakroom, ticket: &Ticket) -> u16 {
    let url = server.url(&format!("/api/v1/resources/{}", ticket.resource_id));
    client().get(url).bearer_auth(&ticket.resource_secret).send().await.unwrap().status().as_u16()
}

/// A command of the admin of the server on `data`.
fn admin(data: &Path, args: &[&str]) -> Output {
    let output = process::command().args(args).arg("--data-dir").arg(data).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    output
}

fn refused(data: &Path, flags: &[&str]) -> String {
    let mut command: Command = process::command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data).args(SWEEPS_OFTEN).args(flags);
    let output = process::output_in_time(&mut command);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains(&data.display().to_string()), "the directory is not named: {said}");
    said
}

/// The id that the error names for `--adopt-store`.
fn id_in(said: &str) -> String {
    let (_, after) = said.split_once("--adopt-store ").unwrap_or_else(|| panic!("no way out: {said}"));
    after.chars().take_while(char::is_ascii_hexdigit).collect()
}

fn bundles(data: &Path) -> usize {
    let folders = fs::read_dir(data.join("bundles")).unwrap().map(|entry| entry.unwrap().path());
    folders.filter(|path| path.is_dir()).map(|path| fs::read_dir(path).unwrap().count()).sum()
}

const LEDGER: [&str; 3] = ["ledger.db", "ledger.db-wal", "ledger.db-shm"];

fn move_ledger(from: &Path, to: &Path) {
    for name in LEDGER {
        if from.join(name).exists() {
            fs::rename(from.join(name), to.join(name)).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_ledger_deletes_nothing_before_the_admin_says_so() {
    let (folder, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (data, copy) = (&folder.path().join("data"), aside.path().join("copy.db"));
    let mut server = serve(data);
    let ends = staged(&server, "&ttl=5s").await;
    stop(&mut server).await;
    fs::copy(data.join("ledger.db"), &copy).unwrap();
    let mut server = serve(data);
    let unknown = staged(&server, "").await;
    until("its ttl is reached, and a sweep has deleted it", async || bundles(data) == 1).await;
    stop(&mut server).await;
    // The bundle is put back as well, so that a deletion would be seen.
    let shard = data.join("bundles").join(&ends.resource_id[..2]);
    fs::create_dir_all(&shard).unwrap();
    fs::write(shard.join(&ends.resource_id), "jars").unwrap();
    move_ledger(data, aside.path());
    fs::rename(&copy, data.join("ledger.db")).unwrap();
    let mut server = serve(data);
    server.wait_for_log("the ledger is an earlier copy");
    let swept = admin(data, &["clean"]);
    assert!(String::from_utf8_lossy(&swept.stdout).contains("because the ledger is an earlier copy"));
    let warned = stderr(&admin(data, &["ls"]));
    assert!(warned.contains("cloakroom resume-deletions") && !warned.contains("clean --strays"), "{warned}");
    for _ in 0..3 {
        admin(data, &["clean", "--strays"]);
        assert_eq!(bundles(data), 2);
    }
    let block = block("docs/administer.md", "resume-deletions", "$ ");
    let (command, shown) = block.split_once('\n').unwrap();
    let resumed = admin(data, &[command.strip_prefix("$ cloakroom ").unwrap()]);
    assert_eq!(String::from_utf8_lossy(&resumed.stdout).trim_end(), shown.trim_end());
    until("the sweep deletes what is due", async || bundles(data) == 1).await;
    assert_eq!((status(&server, &ends).await, status(&server, &unknown).await), (410, 404));
    let again = admin(data, &["resume-deletions"]);
    assert!(String::from_utf8_lossy(&again.stdout).contains("nothing was changed"));
    assert!(!stderr(&admin(data, &["ls"])).contains("resume-deletions"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bundles_and_a_ledger_are_refused_without_each_other() {
    let (folder, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = &folder.path().join("data");
    let mut server = serve(data);
    let mut tickets = Vec::new();
    for _ in 0..10 {
        tickets.push(staged(&server, "").await);
    }
    stop(&mut server).await;
    move_ledger(data, aside.path());
    let said = refused(data, &[]);
    let shown = block("docs/run.md", "A lost or damaged ledger", "error: ");
    let shown = shown
        .replace("cloakroom-data", &data.display().to_string())
        .replace("6f1d3a90c2b84e57", &id_in(&said));
    assert!(said.contains(shown.trim_end().strip_suffix('…').unwrap()), "{said}");
    assert!(refused(data, &["--adopt-store", "0123456789abcdef"]).contains(&id_in(&said)), "another id");
    assert_eq!(bundles(data), 10);
    // Nothing was made that would be in the way of the ledger, once that is found.
    let made = |name: &&str| data.join(name).exists();
    assert_eq!(LEDGER.into_iter().filter(made).collect::<Vec<_>>(), [""; 0]);
    move_ledger(aside.path(), data);
    let mut server = serve(data);
    assert_eq!(status(&server, &tickets[0]).await, 200);
    stop(&mut server).await;
    move_ledger(data, aside.path());
    let mut server = Cloakroom::serve(data, &["--no-kubernetes", "--adopt-store", &id_in(&said)]);
    let new = staged(&server, "").await;
    assert!(stderr(&admin(data, &["ls"])).contains("10 bundles"));
    stop(&mut server).await;
    let mut server = serve(data);
    assert_eq!((status(&server, &new).await, bundles(data)), (200, 11));
    stop(&mut server).await;
    fs::rename(data.join("bundles"), aside.path().join("bundles")).unwrap();
    let said = refused(data, &[]);
    assert!(said.contains("this store is empty") && said.contains("knows 1 resource;"), "{said}");
    fs::remove_dir(data.join("bundles")).unwrap();
    fs::rename(aside.path().join("bundles"), data.join("bundles")).unwrap();
    let server = serve(data);
    assert_eq!((status(&server, &new).await, bundles(data)), (200, 11));
    drop(server);
    let bad = process::run(&["serve", "--adopt-store", "../bundles"]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(stderr(&bad).contains("16 hexadecimal digits"), "{}", stderr(&bad));
}
