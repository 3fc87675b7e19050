//! A disk that is really full, by a limit on the size of files: SQLite then rolls back by itself, and must still be of
//! use when there is room again.

use std::process::Command;

use cloakroom_testing::process::{Cloakroom, command};

/// Starts a server whose files may have 400 blocks, of 512 bytes or 1 KiB by the shell.
fn serve_with_little_room(folder: &std::path::Path) -> Cloakroom {
    let mut shell = Command::new("sh");
    // The signal would end the process where a full disk only fails the write.
    let script = "trap '' XFSZ; ulimit -S -f 400; exec \"$0\" \"$@\"";
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
async fn an_upload_past_the_file_size_limit_is_refused_and_the_server_lives() {
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
