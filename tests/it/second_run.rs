//! `fetch` into a folder that has something already: its own files are found, a stranger's are never touched.

use std::path::Path;
use std::process::Output;

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::bundles::tgz;
use cloakroom_testing::process::{command, stderr};
use cloakroom_testing::workspace::Workspace;

use crate::served::Served;

struct Fetcher {
    server: Served,
    ticket: Ticket,
    folder: Workspace,
}

impl Fetcher {
    async fn new() -> Self {
        let server = Served::start();
        let ticket = server.stage(tgz(&[("app.jar", b"the app"), ("lib.txt", b"of the bundle")])).await;
        let folder = Workspace::new();
        folder.write("secret", &ticket.resource_secret);
        std::fs::create_dir(folder.path("target")).unwrap();
        Self { server, ticket, folder }
    }

    fn target(&self) -> std::path::PathBuf {
        self.folder.path("target")
    }

    fn fetch(&self) -> Output {
        self.fetch_with(&[])
    }

    fn fetch_with(&self, flags: &[&str]) -> Output {
        let mut fetch = command();
        fetch.args([
            "fetch",
            "--server",
            &self.server.url(""),
            "--id",
            &self.ticket.resource_id,
            "--secret-file",
        ]);
        fetch.arg(self.folder.path("secret")).args(flags).arg("--to").arg(self.target()).output().unwrap()
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_elses_file_is_refused_however_often_fetch_runs() {
    let fetcher = Fetcher::new().await;
    let theirs = fetcher.target().join("lib.txt");
    for content in ["my precious", "of my bundle."] {
        std::fs::write(&theirs, content).unwrap();
        for _ in 0..3 {
            let output = fetcher.fetch();
            assert_eq!(output.status.code(), Some(1));
            assert!(stderr(&output).contains("lib.txt already exists"), "{}", stderr(&output));
            assert_eq!(std::fs::read_to_string(&theirs).unwrap(), content);
            // Nothing new is in place, and no receipt claims otherwise.
            assert_eq!(names(&fetcher.target()), ["lib.txt"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn links_and_folders_in_the_way_are_refused_however_often_fetch_runs() {
    for make in
        [(|path: &Path| std::os::unix::fs::symlink("/etc/hostname", path).unwrap()) as fn(&Path), |path| {
            std::fs::create_dir(path).unwrap()
        }]
    {
        let fetcher = Fetcher::new().await;
        make(&fetcher.target().join("lib.txt"));
        let first = stderr(&fetcher.fetch());
        assert!(first.contains("lib.txt"), "{first}");
        assert_eq!(stderr(&fetcher.fetch()), first);
        assert_eq!(names(&fetcher.target()), ["lib.txt"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_killed_between_files_is_completed_by_the_next() {
    let fetcher = Fetcher::new().await;
    std::fs::write(fetcher.target().join("app.jar"), "the app").unwrap();
    let output = fetcher.fetch();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(fetcher.target().join("lib.txt")).unwrap(), "of the bundle");
    std::fs::remove_file(fetcher.target().join("lib.txt")).unwrap();
    assert!(fetcher.fetch().status.success());
    assert_eq!(std::fs::read_to_string(fetcher.target().join("lib.txt")).unwrap(), "of the bundle");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_of_one_source_keeps_all_sources_out() {
    let fetcher = Fetcher::new().await;
    let files = fetcher.server.stage(tgz(&[("data.txt", b"staged")])).await;
    let path = |name: &str| fetcher.folder.path(name);
    std::fs::write(path("files-secret"), &files.resource_secret).unwrap();
    std::fs::create_dir(path("files")).unwrap();
    std::fs::write(path("files/data.txt"), "somebody else's").unwrap();
    let init = "spark.kubernetes.initcontainer";
    let properties = format!(
        "spark.kubernetes.resourceStagingServer.uri={}\n\
         {init}.downloadJarsResourceIdentifier={}\n{init}.downloadJarsSecretLocation={}\n\
         {init}.downloadFilesResourceIdentifier={}\n{init}.downloadFilesSecretLocation={}\n\
         spark.kubernetes.mountdependencies.jarsDownloadDir={}\n\
         spark.kubernetes.mountdependencies.filesDownloadDir={}\n",
        fetcher.server.url(""),
        fetcher.ticket.resource_id,
        path("secret").display(),
        files.resource_id,
        path("files-secret").display(),
        fetcher.target().display(),
        path("files").display(),
    );
    std::fs::write(path("init.properties"), properties).unwrap();
    let output = command().arg("fetch").arg(path("init.properties")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("data.txt already exists"), "{}", stderr(&output));
    assert_eq!(names(&fetcher.target()), Vec::<String>::new());
    assert_eq!(names(&path("files")), ["data.txt"]);
}

/// As the containers of a pod do, whose init-containers run again after its node was started again.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_and_removed_since_stays_so_in_a_writable_folder() {
    let fetcher = Fetcher::new().await;
    let flags = ["--writable"];
    assert_eq!(fetcher.fetch_with(&flags).status.code(), Some(0));
    let changed = fetcher.target().join("lib.txt");
    std::fs::write(&changed, "longer than that of the bundle").unwrap();
    std::fs::remove_file(fetcher.target().join("app.jar")).unwrap();
    let again = fetcher.fetch_with(&flags);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_eq!(std::fs::read_to_string(&changed).unwrap(), "longer than that of the bundle");
    assert!(!fetcher.target().join("app.jar").exists());
    assert_eq!(fetcher.fetch().status.code(), Some(1), "without the flag a change is no part of the bundle");
}
