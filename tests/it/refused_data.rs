//! Data directories that the binary does not start on, and leaves as they are.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_storage::ledger::Ledger as _;
use cloakroom_testing::process;
use sqlx::ConnectOptions as _;
use tempfile::TempDir;

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

// Invariant: a file that is no ledger of this version is refused by name and stays as it is, in a bucket's copies
// too.
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
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/versions.md")).unwrap();
    let known = said.split_once("knows forms up to ").unwrap().1.split_once(':').unwrap().0;
    assert!(
        page.contains(&format!("The ledger's form is {known}")),
        "docs/versions.md names another one: {said}"
    );
}

#[tokio::test]
async fn a_file_that_is_no_ledger_is_named_and_left_as_it_is() {
    let old = "CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY); CREATE TABLE resources (id TEXT PRIMARY KEY)";
    for (content, expected) in [
        (Some("CREATE TABLE notes (text TEXT)"), "is the database of another program"),
        (Some("CREATE TABLE resources (text TEXT)"), "is the database of another program"),
        (Some("PRAGMA application_id = 42"), "is the database of another program"),
        (Some(old), "is a ledger from before version 0.1.0"),
        (None, "is no database, or its beginning is damaged"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        match content {
            Some(sql) => {
                let options =
                    sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
                let mut connection = options.connect().await.unwrap();
                sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
                sqlx::Connection::close(connection).await.unwrap();
            }
            None => std::fs::write(&path, "these are notes, and no database at all").unwrap(),
        }
        let bytes = std::fs::read(&path).unwrap();
        let of_a_copy = SqliteLedger::check_copy(&path).await.unwrap_err().to_string();
        assert!(of_a_copy.contains(expected), "{of_a_copy}");
        let said = refusal(folder.path(), &[]);
        assert!(said.contains(expected) && said.contains("ledger.db"), "{said}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{expected}: it was changed");
    }
}

/// A start that is interrupted leaves an empty file, or the history of the forms alone.
#[tokio::test]
async fn a_ledger_whose_first_start_was_interrupted_is_begun_again() {
    for begun in [
        None,
        Some(
            "CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL, \
        installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, success BOOLEAN NOT NULL, checksum BLOB NOT NULL, \
        execution_time BIGINT NOT NULL)",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        match begun {
            None => std::fs::write(&path, "").unwrap(),
            Some(sql) => {
                let options =
                    sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
                let mut connection = options.connect().await.unwrap();
                sqlx::query(sql).execute(&mut connection).await.unwrap();
                sqlx::Connection::close(connection).await.unwrap();
            }
        }
        for _ in 0..2 {
            SqliteLedger::open(&path).await.unwrap().close().await;
        }
    }
}

// Invariant: a damaged or newer ledger is refused, never replaced.
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

/// Fails to map files as some file systems do, such as FUSE with `direct_io`.
const WITHOUT_SHARED_MEMORY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

typedef void *(*mapping)(void *, size_t, int, int, int, long);

static void *map(void *at, size_t size, int rights, int flags, int file, long from) {
    if ((flags & MAP_SHARED) && file >= 0) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    return ((mapping) dlsym(RTLD_NEXT, "mmap"))(at, size, rights, flags, file, from);
}

void *mmap(void *a, size_t s, int r, int f, int file, long o) { return map(a, s, r, f, file, o); }
void *mmap64(void *a, size_t s, int r, int f, int file, long o) { return map(a, s, r, f, file, o); }
"#;

#[test]
fn a_file_system_without_shared_memory_is_named_and_not_called_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let [source, library] = ["map.c", "map.so"].map(|name| folder.path().join(name));
    std::fs::write(&source, WITHOUT_SHARED_MEMORY).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).args([&library, &source]).arg("-ldl");
    assert!(compiler.status().unwrap().success());
    let mut command = process::command();
    command.env("LD_PRELOAD", &library);
    let said = refusal_to(command, &folder.path().join("data"), &[]);
    assert!(said.contains("needs shared memory") && said.contains("local or block volume"), "{said}");
    assert!(!said.contains("damaged"), "{said}");
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
fn serve_and_its_check_name_another_users_file_in_the_data_directory() {
    let folder = tempfile::tempdir().unwrap();
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let binary = folder.path().join("cloakroom");
    let copied = Command::new("cp").arg(process::command().get_program()).arg(&binary).status().unwrap();
    assert!(copied.success());
    let set_mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(folder.path(), 0o755);
    for (name, mode) in [
        ("ledger.db-wal", 0o400),
        ("ledger.db", 0o400),
        ("incoming", 0o500),
        ("bundles", 0o500),
        ("bundles/1f", 0o700),
    ] {
        let data = folder.path().join(format!("with-{}", name.replace('/', "-")));
        std::fs::create_dir(&data).unwrap();
        set_mode(&data, 0o777);
        let path = data.join(name);
        if name.contains('.') {
            std::fs::write(&path, "").unwrap();
        } else {
            std::fs::create_dir_all(&path).unwrap();
            set_mode(path.parent().unwrap(), 0o777);
        }
        set_mode(&path, if is_root { mode } else { 0 });
        // The check looks first: a start that fails leaves folders behind.
        for flags in [&["--check"][..], &[]] {
            let mut command = Command::new(&binary);
            command.env_clear().current_dir(&folder);
            if is_root {
                command.uid(65532).gid(65532);
            }
            let said = refusal_to(command, &data, flags);
            let owner = std::fs::metadata(&path).unwrap().uid();
            let whose = format!("{} belongs to user {owner}", path.display());
            assert!(said.contains("cannot write to") && said.contains(&whose), "{said}");
            assert!(said.contains("chown -R") && !said.contains("damaged"), "{said}");
        }
    }
}

#[test]
fn serve_and_its_check_refuse_a_data_directory_that_is_not_writable() {
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
