//! A disk that is really full, by a limit on the size of files: SQLite then rolls back by itself, and must still be of
//! use when there is room again.

use std::process::Command;
use std::time::Duration;

use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::process::command;

use crate::support::TestApp;
use crate::support::faults::{Fault, Step};

/// Starts a server whose files may have 300 blocks, of 512 bytes or 1 KiB by the shell.
fn serve_with_little_room(folder: &std::path::Path) -> Cloakroom {
    let mut shell = Command::new("sh");
    // The signal would end the process where a full disk only fails the write.
    let script = "trap '' XFSZ; ulimit -S -f 300; exec \"$0\" \"$@\"";
    shell.args(["-c", script]).arg(command().get_program()).args(["serve", "--listen", "127.0.0.1:0"]);
    shell.arg("--data-dir").arg(folder).env_remove("CLOAKROOM_LISTEN");
    Cloakroom::start(shell)
}

fn make_room(server: &Cloakroom) {
    let pid = server.pid().to_string();
    let limits = ["--fsize=unlimited:unlimited", "--pid", &pid];
    assert!(Command::new("prlimit").args(limits).status().unwrap().success());
}

#[tokio::test]
async fn a_ledger_that_ran_out_of_room_works_again_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve_with_little_room(folder.path());
    let client = client();
    let stage = async || {
        let url = server.url("/api/v1/resources?namespace=demo&label=app%3Ddemo");
        let answer = client.post(url).body("a bundle").send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let mut tickets = Vec::new();
    let refused = loop {
        let (status, body) = stage().await;
        if status != 201 {
            break status;
        }
        tickets.push(serde_json::from_str::<serde_json::Value>(&body).unwrap());
        assert!(tickets.len() < 1000, "the limit does not hold");
    };
    assert!(matches!(refused, 503 | 507), "{refused}");
    make_room(&server);
    let (status, body) = stage().await;
    assert_eq!(status, 201, "{body}\n{}", server.log());
    for ticket in tickets {
        let url = server.url(&format!("/api/v1/resources/{}", ticket["resourceId"].as_str().unwrap()));
        let answer =
            client.get(url).bearer_auth(ticket["resourceSecret"].as_str().unwrap()).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.text().await.unwrap(), "a bundle");
    }
}

#[tokio::test]
async fn on_a_full_ledger_downloads_go_on_and_their_use_is_written_down_later() {
    let app = TestApp::start().await;
    let ticket = app.stage("a bundle").await;
    app.faults.set(Step::LedgerMarkUsed, Fault::Full);
    for _ in 0..3 {
        let answer = app.download(&ticket).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.text().await.unwrap(), "a bundle");
    }
    assert!(!app.ready_row(&ticket.resource_id).await.is_used());
    // Past its unused timeout: it was used, and that is not forgotten while there is no room to write it down.
    app.clock.advance(Duration::from_mins(31));
    app.sweep().await;
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 200);
    app.faults.clear();
    app.sweep().await;
    assert!(app.ready_row(&ticket.resource_id).await.is_used());
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn an_upload_that_fills_the_disk_leaves_no_bytes_even_if_its_row_cannot_be_removed() {
    let app = TestApp::start().await;
    app.faults.set(Step::StoreCommit, Fault::Full);
    app.faults.set(Step::LedgerBury, Fault::Full);
    let answer = app.put("", vec![7; 2_000_000]).send().await.unwrap();
    assert_eq!(answer.status(), 507);
    assert_eq!(app.files(), Vec::<String>::new());
    app.faults.clear();
    app.sweep().await;
    app.assert_nothing_kept().await;
}

#[tokio::test]
async fn an_upload_past_the_limit_on_file_sizes_is_refused_and_the_server_lives() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    let script = "ulimit -S -f 20000; exec \"$0\" \"$@\"";
    shell.args(["-c", script]).arg(command().get_program()).args(["serve", "--listen", "127.0.0.1:0"]);
    let server = Cloakroom::start({
        shell.arg("--data-dir").arg(folder.path());
        shell
    });
    let client = client();
    let url = server.url("/api/v1/resources?namespace=demo&label=app%3Ddemo");
    let answer = client.post(&url).body(vec![7; 60_000_000]).send().await.unwrap();
    assert_eq!(answer.status(), 507);
    assert_eq!(client.post(&url).body("a bundle").send().await.unwrap().status(), 201);
    assert_eq!(std::fs::read_dir(folder.path().join("incoming")).unwrap().count(), 0);
}

fn client() -> reqwest::Client {
    let tls = cloakroom_testing::tls::no_roots();
    reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls).build().unwrap()
}
