//! A data directory that is removed or replaced under a running server: the real binary.

use std::path::{Path, PathBuf};

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::tls;
use reqwest::Client;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;

const BUNDLES: usize = 60;

/// A server on a data directory, and a client of it.
struct World {
    folder: tempfile::TempDir,
    client: Client,
}

impl World {
    fn new() -> Self {
        let client = Client::builder().no_proxy().tls_backend_preconfigured(tls::no_roots()).build().unwrap();
        Self { folder: tempfile::tempdir().unwrap(), client }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Sweeps often, so that a server notices what happened without a request.
    fn serve(&self) -> Cloakroom {
        self.serve_sweeping_every("100ms")
    }

    fn serve_sweeping_every(&self, interval: &str) -> Cloakroom {
        Cloakroom::serve(&self.data(), &["--min-free-space", "0b", "--cleanup-interval", interval])
    }

    async fn upload(&self, server: &Cloakroom) -> Result<Ticket, String> {
        let url = server.url("/api/v1/resources/deps.tgz?namespace=demo&name=driver");
        let answer = self.client.put(url).body("jars").send().await.map_err(|error| error.to_string())?;
        let (status, body) = (answer.status(), answer.text().await.unwrap());
        if status == 201 { Ok(serde_json::from_str(&body).unwrap()) } else { Err(body) }
    }

    async fn upload_all(&self, server: &Cloakroom) -> Vec<Ticket> {
        let uploads = (0..BUNDLES).map(|_| self.upload(server));
        futures_util::future::try_join_all(uploads).await.unwrap()
    }

    async fn assert_all_served(&self, server: &Cloakroom, tickets: &[Ticket]) {
        assert_eq!(tickets.len(), BUNDLES);
        for ticket in tickets {
            let url = server.url(&format!("/api/v1/resources/{}", ticket.resource_id));
            let answer = self.client.get(url).bearer_auth(&ticket.resource_secret).send().await.unwrap();
            assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (200, "jars"));
        }
    }
}

fn log_of(data: &Path) -> PathBuf {
    data.join("ledger.db-wal")
}

/// The path is this one, or one in it: a folder is removed file by file, and the server may look in between.
fn assert_ended_because(mut server: Cloakroom, path: &Path) {
    let status = server.wait();
    let said = server.log();
    assert_eq!(status.code(), Some(1), "{said}");
    let error = format!("error: {}", path.display());
    let reason = said.lines().find(|line| line.starts_with(&error)).unwrap_or_else(|| panic!("{said}"));
    assert!(reason.contains(" was removed, moved or replaced while this server worked with it"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

// Invariant: a folder that took the place of the data directory is left alone, and nothing more is acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_folder_was_replaced_ends_and_leaves_the_new_one_alone() {
    for is_moved in [true, false] {
        let world = World::new();
        let first = world.serve();
        let earlier = world.upload_all(&first).await;
        if is_moved {
            std::fs::rename(world.data(), world.folder.path().join("before")).unwrap();
        } else {
            std::fs::remove_dir_all(world.data()).unwrap();
        }
        let second = world.serve();
        let later = world.upload_all(&second).await;
        assert_ended_because(first, &world.data());
        world.assert_all_served(&second, &later).await;
        drop(second);
        let again = world.serve();
        world.assert_all_served(&again, &later).await;
        if is_moved {
            drop(again);
            std::fs::rename(world.data(), world.folder.path().join("after")).unwrap();
            std::fs::rename(world.folder.path().join("before"), world.data()).unwrap();
            world.assert_all_served(&world.serve(), &earlier).await;
        }
    }
}

// Invariant: a removed log of the ledger costs nothing that was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_uploads_are_there_after_the_ledgers_log_was_removed() {
    let world = World::new();
    // This upload is the first to notice, and not a sweep.
    let server = world.serve_sweeping_every("1h");
    let tickets = world.upload_all(&server).await;
    std::fs::remove_file(log_of(&world.data())).unwrap();
    let refused = world.upload(&server).await.expect_err("it was acknowledged");
    assert!(refused.contains("\"code\":\"shutting-down\""), "{refused}");
    assert_ended_because(server, &log_of(&world.data()));
    world.assert_all_served(&world.serve(), &tickets).await;
}

/// SQLite's locks end if a process closes any handle of the file. Then the next program that closes the ledger takes its log
/// for left over, and removes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_reads_the_ledger_leaves_the_running_servers_log_alone() {
    let world = World::new();
    let server = world.serve();
    let mut tickets = world.upload_all(&server).await;
    for _ in 0..3 {
        let ledger = SqliteConnectOptions::new().filename(world.data().join("ledger.db"));
        let mut connection = ledger.connect().await.unwrap();
        let rows: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM resources").fetch_one(&mut connection).await.unwrap();
        assert_eq!(rows, tickets.len() as i64);
        sqlx::Connection::close(connection).await.unwrap();
        assert!(log_of(&world.data()).exists(), "the log of a running server was removed");
        tickets.push(world.upload(&server).await.unwrap());
    }
    server.kill();
    tickets.truncate(BUNDLES);
    world.assert_all_served(&world.serve(), &tickets).await;
}
