//! What a start finds after a crash, and puts right; what it must not touch, and what it refuses.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloakroom_core::resource::{
    BlobKey, Bundle, DeletionReason, Lifetime, Owner, OwnerKind, ResourceId, ResourceSecret,
};
use cloakroom_staging::Recovered;
use cloakroom_staging::ledger::{
    Authority, Completion, Condition, Deletion, LeaseId, Ledger as _, PendingResource, SqliteLedger,
};
use cloakroom_staging::store::{Begun, BlobStore as _, DataDirectory, DiskStore};
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::wait::until;
use cloakroom_testing::wire::Wire;
use cloakroom_testing::{logs, process};
use jiff::Timestamp;
use sqlx::ConnectOptions as _;
use tempfile::TempDir;

use crate::support::TestApp;
use crate::support::app::{Options, problem};

const RESERVE_BYTES: u64 = 4 << 20;

/// A data directory as an earlier process left it.
struct Remains {
    directory: Arc<TempDir>,
    ledger: SqliteLedger,
    store: DiskStore,
}

impl Remains {
    async fn new() -> Self {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        let data = DataDirectory::open(directory.path()).unwrap();
        let ledger = SqliteLedger::open(&data.ledger()).await.unwrap();
        Self { directory, ledger, store: DiskStore::new(data) }
    }

    /// Starts a server on it.
    async fn start(self) -> TestApp {
        self.ledger.close().await;
        drop(self.store);
        TestApp::start_on(self.directory, Arc::new(ManualClock::new()), Options::default()).await
    }

    async fn pending(&self) -> (ResourceId, LeaseId) {
        let id = ResourceId::generate(&mut rand::rng());
        let pending = PendingResource {
            id,
            secret_hash: ResourceSecret::from_text("secret").hash(),
            file_name: None,
            created_at: now(),
            uploaded_by: None,
        };
        let lease = LeaseId::generate(&mut rand::rng());
        self.ledger.begin(pending, lease, &[]).await.unwrap();
        (id, lease)
    }

    async fn ready(&self, (id, lease): (ResourceId, LeaseId)) {
        let owner = Owner::new(OwnerKind::default(), "demo", [("app".into(), "demo".into())], None).unwrap();
        let lifetime = Lifetime { unused_timeout: Duration::from_mins(30), ttl: None };
        let bundle = Bundle { size_bytes: 5, sha256: [0; 32] };
        self.ledger
            .complete(Completion { id, owner, bundle, lifetime, created_at: now() }, lease)
            .await
            .unwrap();
    }

    async fn deleting(&self) -> ResourceId {
        let (id, lease) = self.pending().await;
        self.ready((id, lease)).await;
        let reason = DeletionReason::Released;
        let deletion = Deletion { id, reason, at: now(), condition: Condition::Always };
        assert!(self.ledger.condemn(deletion, Authority::Ticket).await.unwrap());
        id
    }

    async fn incoming_bytes(&self, id: ResourceId) {
        let Begun { mut writer, .. } = self.store.begin(BlobKey::of(id), None).await.unwrap();
        writer.write(Bytes::from_static(b"bytes")).await.unwrap();
    }

    async fn published_bytes(&self, id: ResourceId) {
        let Begun { mut writer, .. } = self.store.begin(BlobKey::of(id), None).await.unwrap();
        writer.write(Bytes::from_static(b"bytes")).await.unwrap();
        writer.commit().await.unwrap();
    }
}

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

#[tokio::test]
async fn interrupted_uploads_are_gone_after_a_start_however_far_they_came() {
    let remains = Remains::new().await;
    remains.pending().await;
    let (arriving, _) = remains.pending().await;
    remains.incoming_bytes(arriving).await;
    let (renamed, _) = remains.pending().await;
    remains.published_bytes(renamed).await;
    let app = remains.start().await;
    app.assert_nothing_kept().await;
}

#[tokio::test]
async fn interrupted_deletions_are_finished_by_a_start_and_answer_as_gone() {
    let remains = Remains::new().await;
    let with_bytes = remains.deleting().await;
    remains.published_bytes(with_bytes).await;
    let without_bytes = remains.deleting().await;
    let app = remains.start().await;
    assert_eq!(app.files(), Vec::<String>::new());
    assert_eq!(app.rows().await, BTreeMap::from([("deleted", 2)]));
    assert_eq!(app.staging.stored().await.unwrap().bytes, 0);
    for id in [with_bytes, without_bytes] {
        let request = app.get(&format!("/api/v1/resources/{id}")).bearer_auth("secret");
        let gone = problem(request.send().await.unwrap()).await;
        assert_eq!((gone.status, gone.deletion_reason.as_deref()), (410, Some("released")));
    }
}

#[tokio::test]
async fn bytes_that_no_row_knows_are_removed_with_a_word_in_the_log() {
    let remains = Remains::new().await;
    let ids = [(); 2].map(|()| ResourceId::generate(&mut rand::rng()));
    remains.incoming_bytes(ids[0]).await;
    remains.published_bytes(ids[1]).await;
    let (known, lease) = remains.pending().await;
    remains.published_bytes(known).await;
    remains.ready((known, lease)).await;
    let app = remains.start().await;
    assert_eq!(app.files(), [format!("bundles/{}/{known}", known.shard())]);
    for id in ids {
        let lines = logs::lines_with(&id.to_string());
        assert!(lines.iter().any(|line| line.contains("ledger does not know")), "{lines:?}");
    }
    app.ready_row(&known.to_string()).await;
}

#[tokio::test]
async fn what_is_not_the_stores_own_is_left_alone() {
    let remains = Remains::new().await;
    let folder = remains.directory.path().to_owned();
    let id = ResourceId::generate(&mut rand::rng()).to_string();
    let foreign = [
        "incoming/notes.txt".to_owned(),
        "bundles/README".to_owned(),
        "bundles/ab/.keep".to_owned(),
        format!("bundles/ab/{}", id.to_uppercase()),
        format!("bundles/ab/{id}.bak"),
        format!("bundles/lost+found/{}", "x".repeat(36)),
        "other/file".to_owned(),
    ];
    for name in &foreign {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "mine").unwrap();
    }
    // A folder with the name of a bundle is not a bundle.
    std::fs::create_dir_all(folder.join(format!("bundles/{}/{id}/inner", &id[..2]))).unwrap();
    let app = remains.start().await;
    app.recover().await.unwrap();
    for name in &foreign {
        assert_eq!(std::fs::read_to_string(folder.join(name)).unwrap(), "mine", "{name}");
    }
    assert!(folder.join(format!("bundles/{}/{id}/inner", &id[..2])).is_dir());
    let ticket = app.stage("still works").await;
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn the_reserve_is_renewed_when_it_is_missing_or_too_small() {
    let app = TestApp::start().await;
    let reserve = app.data_dir().join("reserve");
    let size = || std::fs::metadata(&reserve).map_or(0, |found| found.len());
    assert_eq!(size(), RESERVE_BYTES);
    std::fs::remove_file(&reserve).unwrap();
    app.sweep().await;
    assert_eq!(size(), RESERVE_BYTES);
    std::fs::write(&reserve, "half of it").unwrap();
    let app = app.crash_and_restart().await;
    assert_eq!(size(), RESERVE_BYTES);
    drop(app);
}

#[tokio::test]
async fn an_upload_in_flight_is_no_debris() {
    let app = TestApp::start().await;
    let mut wire = Wire::connect(app.address).await;
    let head = "PUT /api/v1/resources/a?namespace=demo&name=driver HTTP/1.1\r\nHost: x\r\nContent-Length: 600000\r\n\r\n";
    wire.send(head).await;
    wire.send(vec![1; 300_000]).await;
    until("bytes are arriving", async || !app.files().is_empty()).await;
    assert_eq!(app.recover().await.unwrap(), Recovered::default());
    assert_eq!(app.sweep().await.recovered, Recovered::default());
    wire.send(vec![1; 300_000]).await;
    let answer = wire.answer().await;
    assert_eq!(answer.status, 201);
    let ticket: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    app.keep_secret(ticket["resourceSecret"].as_str().unwrap());
    assert_eq!(app.recover().await.unwrap(), Recovered::default());
    assert_eq!(std::fs::metadata(app.data_dir().join(&app.files()[0])).unwrap().len(), 600_000);
}

/// What the real binary says when it cannot start on `data_dir`.
fn refusal(data_dir: &Path, flags: &[&str]) -> String {
    refusal_to(process::command(), data_dir, flags)
}

fn refusal_to(mut command: Command, data_dir: &Path, flags: &[&str]) -> String {
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data_dir).args(flags);
    let output = command.output().unwrap();
    let said = process::stderr(&output);
    assert!(!output.status.success(), "it started: {said}");
    assert!(said.contains(&*data_dir.to_string_lossy()), "the path is not named: {said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

/// A closed ledger with one table of migrations in it.
async fn closed_ledger() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    SqliteLedger::open(&path).await.unwrap().close().await;
    (folder, path)
}

#[tokio::test]
async fn a_ledger_of_a_newer_version_is_refused_and_left_as_it_is() {
    let (folder, path) = closed_ledger().await;
    let mut connection = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    let sql = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
               VALUES (9999, 'the future', TRUE, x'00', 0)";
    sqlx::query(sql).execute(&mut connection).await.unwrap();
    sqlx::Connection::close(connection).await.unwrap();
    let said = refusal(folder.path(), &[]);
    assert!(said.contains("newer cloakroom") && said.contains("9999"), "{said}");
    let said = refusal(folder.path(), &[]);
    assert!(said.contains("newer cloakroom"), "a second start goes through: {said}");
}

#[tokio::test]
async fn a_corrupted_ledger_is_refused_and_not_replaced_by_an_empty_one() {
    for (at, what) in [(0, "its header"), (4096, "a page")] {
        let (folder, path) = closed_ledger().await;
        let mut bytes = std::fs::read(&path).unwrap();
        let length = bytes.len().min(at + 4096);
        bytes[at..length].fill(0xa5);
        std::fs::write(&path, &bytes).unwrap();
        let said = refusal(folder.path(), &[]);
        assert!(said.contains("ledger.db"), "{what}: {said}");
        assert!(said.contains("damaged") || said.contains("is a cloakroom ledger"), "{what}: {said}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{what} was written over");
    }
}

#[test]
fn a_data_directory_that_is_a_file_is_refused_by_serve_and_by_its_check() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data");
    std::fs::write(&file, "mine").unwrap();
    for flags in [&[][..], &["--check"]] {
        refusal(&file, flags);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn a_data_directory_that_is_not_writable_is_refused_by_serve_and_by_its_check() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let set_mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(folder.path(), 0o755);
    set_mode(&data, 0o555);
    // To root everything is writable, so root becomes nobody, who may not see where the binary was built.
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let binary = folder.path().join("cloakroom");
    // By another process: a file that this one has open for writing, or a child between fork and exec, cannot be run.
    let copied = Command::new("cp").arg(process::command().get_program()).arg(&binary).status().unwrap();
    assert!(copied.success());
    for (flags, in_a_pod) in [(&[][..], true), (&["--check"], true), (&[], false), (&["--check"], false)] {
        let mut command = Command::new(&binary);
        command.env_clear().current_dir(&folder);
        if in_a_pod {
            command.env("KUBERNETES_SERVICE_HOST", "192.0.2.1").env("CLOAKROOM_NO_KUBERNETES", "true");
            command.env("CLOAKROOM_LISTEN", "127.0.0.1:0");
        }
        if is_root {
            command.uid(65532).gid(65532);
        }
        let said = refusal_to(command, &data, flags);
        assert!(said.contains("ermission denied"), "{said}");
        let path = data.display();
        let owner = std::fs::metadata(&data).unwrap();
        let whose =
            format!("{path} belongs to user {} and group {} with mode 0555", owner.uid(), owner.gid());
        let (user, group) = if is_root { (65532, 65532) } else { (owner.uid(), owner.gid()) };
        let advice = if in_a_pod {
            [
                format!("`fsGroup: {group}` in the pod's securityContext"),
                format!("an init-container that runs `chown -R {user}:{group} {path}`"),
            ]
        } else {
            [format!("by `chown -R {user}:{group} {path}`"), "another folder by --data-dir".to_owned()]
        };
        let facts = format!("this process runs as user {user} and group {group}, and {whose}");
        for part in advice.into_iter().chain([facts]) {
            assert!(said.contains(&part), "no “{part}” in: {said}");
        }
        assert_eq!(said.contains("fsGroup"), in_a_pod, "{said}");
    }
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0);
    set_mode(&data, 0o755);
}
