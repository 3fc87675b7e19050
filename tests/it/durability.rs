//! Acknowledged means: survives power loss. What the kernel is asked for, in which order, as strace sees it.

use std::path::{Path, PathBuf};
use std::process::Command;

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::needs::skip;
use cloakroom_testing::wait::until_true;
use cloakroom_testing::{process, process::Cloakroom, tls};
use reqwest::Client;
use tempfile::TempDir;

const CALLS: &str = "fdatasync,fsync,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,write,writev,pwrite64,\
                     sendto,sendmsg,openat";

/// One system call that succeeded: when it began and when it returned, as line numbers of the trace.
#[derive(Debug)]
struct Call {
    name: String,
    arguments: String,
    begin: usize,
    end: usize,
}

impl Call {
    fn syncs(&self, path: &str) -> bool {
        matches!(self.name.as_str(), "fsync" | "fdatasync") && self.arguments.contains(&format!("{path}>"))
    }

    fn says(&self, text: &str) -> bool {
        matches!(self.name.as_str(), "write" | "writev" | "sendto" | "sendmsg")
            && self.arguments.contains(text)
    }
}

fn strace() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|folder| folder.join("strace")).find(|file| file.is_file());
    if found.is_none() {
        skip("strace is not installed, so the order of durability is not checked");
    }
    found
}

/// A server under strace, with a data directory that does not exist yet.
struct Traced {
    server: Cloakroom,
    folder: TempDir,
    client: Client,
}

impl Traced {
    fn start(strace: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = process::command().get_program().to_owned();
        let mut command = Command::new(strace);
        // With -D the server is our own child, and strace ends with it.
        command.env_clear().args(["-D", "-f", "-y", "-s", "64", "-e"]).arg(format!("trace={CALLS}"));
        command.arg("-o").arg(folder.path().join("trace")).arg("--").arg(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--min-free-space", "0b", "--data-dir"]);
        command.arg(folder.path().join("data"));
        let client = Client::builder().no_proxy().tls_backend_preconfigured(tls::no_roots()).build().unwrap();
        Self { server: Cloakroom::start(command), folder, client }
    }

    async fn stage(&self) -> Ticket {
        let url = self.server.url("/api/v1/resources/deps.tgz?namespace=demo&label=app%3Ddemo");
        let response = self.client.put(url).body(vec![7; 100_000]).send().await.unwrap();
        assert_eq!(response.status(), 201);
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
    }

    async fn delete(&self, ticket: &Ticket) {
        let url = self.server.url(&format!("/api/v1/resources/{}", ticket.resource_id));
        let response = self.client.delete(url).bearer_auth(&ticket.resource_secret).send().await.unwrap();
        assert_eq!(response.status(), 204);
    }

    /// Stops the server and reads the whole trace.
    async fn calls(mut self) -> Vec<Call> {
        let pid = self.server.pid().to_string();
        self.server.signal("TERM");
        assert!(self.server.wait().success());
        let trace = self.folder.path().join("trace");
        let is_whole = |text: String| {
            let mut words = text.lines().rev().map(str::split_whitespace);
            words.any(|mut words| words.next() == Some(&pid) && words.next() == Some("+++"))
        };
        until_true("strace has written everything", || is_whole(process::read(&trace))).await;
        parse(&process::read(&trace))
    }
}

/// Reads `PID name(arguments) = result`, and calls that another thread's line interrupted.
fn parse(trace: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut unfinished: Vec<(&str, Call)> = Vec::new();
    for (at, line) in trace.lines().enumerate() {
        let Some((pid, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(resumed) = rest.strip_prefix("<... ") {
            let Some(index) = unfinished.iter().position(|(of, _)| *of == pid) else { continue };
            let (_, call) = unfinished.swap_remove(index);
            if !resumed.rsplit(" = ").next().unwrap_or("-").starts_with('-') {
                calls.push(Call { end: at, ..call });
            }
        } else if let Some((name, arguments)) = rest.split_once('(') {
            let call = Call { name: name.into(), arguments: arguments.into(), begin: at, end: at };
            if arguments.ends_with("<unfinished ...>") {
                unfinished.push((pid, call));
            } else if !arguments.rsplit(" = ").next().unwrap_or("-").starts_with('-') {
                calls.push(call);
            }
        }
    }
    calls.sort_by_key(|call| call.begin);
    calls
}

/// The first call that `is` accepts and that began after line `after`.
fn first<'a>(calls: &'a [Call], after: usize, what: &str, is: impl Fn(&Call) -> bool) -> &'a Call {
    calls.iter().find(|call| call.begin > after && is(call)).unwrap_or_else(|| {
        let then: Vec<_> = calls.iter().filter(|call| call.begin > after).collect();
        panic!("nothing {what} after line {after} of the trace; what came then: {then:#?}")
    })
}

/// Where a commit to the ledger's write-ahead log that began after line `after` was durable.
fn commit(calls: &[Call], after: usize) -> usize {
    let wal = "/data/ledger.db-wal";
    let written = first(calls, after, "wrote to the write-ahead log", |call| {
        call.name == "pwrite64" && call.arguments.contains(&format!("{wal}>"))
    });
    first(calls, written.begin, "synced the write-ahead log", |call| call.syncs(wal)).end
}

// Invariant: an upload is acknowledged after it is synced, renamed and committed, in this order.
#[tokio::test]
async fn an_upload_is_synced_renamed_and_committed_before_it_is_acknowledged() {
    let Some(strace) = strace() else { return };
    let traced = Traced::start(&strace);
    let ticket = traced.stage().await;
    let calls = traced.calls().await;
    let (id, shard) = (&ticket.resource_id, &ticket.resource_id[..2]);
    let incoming = format!("incoming/{id}");

    let opened = first(&calls, 0, "created the incoming file", |call| {
        call.name == "openat" && call.arguments.contains(&incoming) && call.arguments.contains("O_CREAT")
    });
    let pending = calls.iter().rfind(|call| call.end < opened.begin && call.syncs("/data/ledger.db-wal"));
    assert!(pending.is_some(), "the pending row was not durable before there were bytes");
    let synced = first(&calls, opened.end, "synced the bytes", |call| call.syncs(&incoming));
    let shard_made = first(&calls, 0, "made the folder", |call| {
        call.name.starts_with("mkdir") && call.arguments.contains(&format!("bundles/{shard}\""))
    });
    let shard_synced = first(&calls, shard_made.end, "synced bundles/", |call| call.syncs("/data/bundles"));
    let renamed = first(&calls, synced.end, "renamed the file", |call| {
        call.name.starts_with("rename")
            && call.arguments.contains(&incoming)
            && call.arguments.contains(&format!("bundles/{shard}/{id}\""))
    });
    assert!(shard_synced.end < renamed.begin, "the new folder was not durable before it was used");
    let folder = format!("/bundles/{shard}");
    let folder_synced = first(&calls, renamed.end, "synced the folder", |call| call.syncs(&folder));
    let committed = commit(&calls, folder_synced.end);
    let answered = first(&calls, 0, "answered", |call| call.says("HTTP/1.1 201"));
    assert!(committed < answered.begin, "the 201 was sent before the commit was durable");
}

// Invariant: a deletion is committed before the bytes are removed, and is finished or never happened.
#[tokio::test]
async fn a_deletion_is_committed_before_the_bytes_go_and_before_it_is_answered() {
    let Some(strace) = strace() else { return };
    let traced = Traced::start(&strace);
    let ticket = traced.stage().await;
    traced.delete(&ticket).await;
    let calls = traced.calls().await;
    let (id, shard) = (&ticket.resource_id, &ticket.resource_id[..2]);

    let staged = first(&calls, 0, "answered the upload", |call| call.says("HTTP/1.1 201"));
    let decided = commit(&calls, staged.end);
    let unlinked = first(&calls, staged.end, "removed the bytes", |call| {
        call.name.starts_with("unlink") && call.arguments.contains(&format!("bundles/{shard}/{id}\""))
    });
    assert!(decided < unlinked.begin, "the bytes went before the decision was durable");
    let folder = format!("/bundles/{shard}");
    let folder_synced = first(&calls, unlinked.end, "synced the folder", |call| call.syncs(&folder));
    let tombstone = commit(&calls, folder_synced.end);
    let answered = first(&calls, staged.end, "answered", |call| call.says("HTTP/1.1 204"));
    assert!(tombstone < answered.begin, "the 204 was sent before the tombstone was durable");
}

#[tokio::test]
async fn a_new_data_directory_is_durable_before_anything_is_in_it() {
    let Some(strace) = strace() else { return };
    let traced = Traced::start(&strace);
    let parent = traced.folder.path().to_string_lossy().into_owned();
    let calls = traced.calls().await;
    let made = first(&calls, 0, "made the data directory", |call| {
        call.name.starts_with("mkdir") && call.arguments.contains(&format!("{parent}/data\""))
    });
    let synced = first(&calls, made.end, "synced its parent", |call| call.syncs(&parent));
    let ledger = first(&calls, 0, "opened the ledger", |call| {
        call.name == "openat" && call.arguments.contains("/data/ledger.db\"")
    });
    assert!(synced.end < ledger.begin, "the data directory's own name was not durable");
}
