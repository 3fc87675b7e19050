//! `cloakroom show --ticket` and `rm --ticket`: the file of a ticket in place of an id.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Output;

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::process::{self, stderr};

use crate::admin_commands::{command, output, run, stdout};
use crate::served::Served;

const ID: &str = "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1";

fn saved(ticket: &Ticket, folder: &Path) -> PathBuf {
    let path = folder.join("ticket.json");
    std::fs::write(&path, serde_json::to_string(ticket).unwrap()).unwrap();
    path
}

/// The output, in which the secret must not be.
fn without_secret(output: Output, ticket: &Ticket) -> Output {
    for text in [&output.stdout, &output.stderr] {
        assert!(!String::from_utf8_lossy(text).contains(&ticket.resource_secret), "the secret was printed");
    }
    output
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_a_ticket_names_the_resource_that_is_shown_and_removed() {
    let server = Served::start();
    let folder = tempfile::tempdir().unwrap();
    let (mine, other) =
        (server.stage_for("demo", "Pod", "x").await, server.stage_for("demo", "Pod", "x").await);
    let path = saved(&mine, folder.path());
    let file = path.to_str().unwrap();
    let shown = without_secret(run(&server, &["show", "--ticket", file]).await, &mine);
    assert!(stdout(&shown).starts_with(&format!("resource    {}\n", mine.resource_id)), "{}", stderr(&shown));
    let mut of_stdin = command(&server.url(""), &server.tokens, &["show", "--ticket", "-"]);
    of_stdin.stdin(File::open(&path).unwrap());
    assert_eq!(stdout(&output(of_stdin).await).lines().next(), stdout(&shown).lines().next());
    let removed = without_secret(run(&server, &["rm", "--yes", "--ticket", file]).await, &mine);
    assert_eq!(stdout(&removed), format!("{} removed, 4 B\n", mine.resource_id), "{}", stderr(&removed));
    assert!(!server.has(&mine).await && server.has(&other).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_secret_of_a_ticket_is_no_admin_token() {
    let server = Served::start();
    let folder = tempfile::tempdir().unwrap();
    let ticket = server.stage_for("demo", "Pod", "x").await;
    let path = saved(&ticket, folder.path());
    let file = path.to_str().unwrap();
    let without_token =
        process::command().args(["rm", "--yes", "--ticket", file]).current_dir(&folder).output().unwrap();
    assert_eq!(without_token.status.code(), Some(2));
    let says = "and none is given. For the server in a cluster, this needs nothing else: kubectl exec -n cloakroom \
         deploy/cloakroom -- cloakroom rm.";
    assert!(stderr(&without_token).contains(says), "{}", stderr(&without_token));
    std::fs::write(folder.path().join("secret"), &ticket.resource_secret).unwrap();
    let args = ["rm", "--yes", "--ticket", file];
    let refused = output(command(&server.url(""), &folder.path().join("secret"), &args)).await;
    assert_eq!(refused.status.code(), Some(1));
    let refused = without_secret(refused, &ticket);
    assert!(stderr(&refused).contains("this is not an admin token of this server"), "{}", stderr(&refused));
    assert!(server.has(&ticket).await);
}

#[test]
fn a_ticket_and_an_id_exclude_each_other_and_one_of_them_is_needed() {
    for (args, parts) in [
        (&["show"][..], ["not provided", "<ID|--ticket <FILE>>"]),
        (&["show", ID, "--ticket", "t"], ["cannot be used with", "--ticket <FILE>"]),
        (&["rm", "--yes", ID, "--ticket", "t"], ["cannot be used with", "--ticket <FILE>"]),
        (&["rm", "--yes", "--unused", "--ticket", "t"], ["cannot be used with", "--ticket <FILE>"]),
    ] {
        let refused = process::run(args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        for part in parts {
            assert!(stderr(&refused).contains(part), "{args:?}: no “{part}” in {}", stderr(&refused));
        }
    }
}

#[test]
fn a_file_that_holds_no_ticket_is_refused_and_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("none"), "s3cret").unwrap();
    for (file, code, says) in [
        ("none", 1, "the ticket in none is not usable: it must be the one line of JSON"),
        ("missing", 1, "--ticket names missing, which cannot be read"),
        (r#"{"resourceSecret":"s3cret"}"#, 2, "--ticket takes the file that holds the ticket"),
    ] {
        for command in [&["show"][..], &["rm", "--yes"]] {
            let mut admin = process::command();
            let refused = admin.args(command).args(["--ticket", file]).current_dir(&folder).output().unwrap();
            let said = stderr(&refused);
            assert_eq!(refused.status.code(), Some(code), "{said}");
            assert!(said.contains(says) && !said.contains("s3cret"), "{said}");
        }
    }
}
