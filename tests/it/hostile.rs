//! Archives of strangers, through the real server and the real `fetch`.

use std::path::Path;

use cloakroom_testing::bundles::hostile;
use cloakroom_testing::process::{Cloakroom, command, stderr};

use crate::served::Served;

/// Everything below a folder, with what it has.
fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !path.is_symlink() {
            found
                .extend(tree(&path).into_iter().map(|(inner, content)| (format!("{name}/{inner}"), content)));
        } else {
            found.push((name, std::fs::read(&path).unwrap_or_default()));
        }
    }
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn fetch_refuses_every_hostile_archive_and_leaves_nothing_of_it() {
    let server = Served::start();
    let pod = tempfile::tempdir().unwrap();
    let (secret, target) = (pod.path().join("secret"), pod.path().join("target"));
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("mine.txt"), b"was there before").unwrap();
    for (name, bundle) in hostile() {
        let ticket = server.stage(bundle).await;
        std::fs::write(&secret, &ticket.resource_secret).unwrap();
        let before = tree(pod.path());
        let mut fetch = command();
        fetch.args(["fetch", "--server", &server.url(""), "--id", &ticket.resource_id, "--secret-file"]);
        let output = fetch.arg(&secret).arg("--to").arg(&target).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert_eq!(said.lines().count(), 1, "{name}: {said}");
        assert!(said.starts_with("error: could not fetch the bundle"), "{name}: {said}");
        assert!(!said.contains(&ticket.resource_secret), "{name}");
        assert_eq!(tree(pod.path()), before, "{name}: {said}");
        server.delete(&ticket).await;
    }
}

#[test]
fn a_bundle_over_the_limits_of_fetch_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Cloakroom::serve(&folder.path().join("data"), &[]);
    let files: Vec<_> = ["a.jar", "b.jar"].map(|name| folder.path().join(name)).into();
    for file in &files {
        std::fs::write(file, vec![7; 600 << 10]).unwrap();
    }
    let mut stage = command();
    stage.args(["stage", "--server", &server.url(""), "--namespace", "ns", "--label", "a=b"]).args(&files);
    let ticket: serde_json::Value = serde_json::from_slice(&stage.output().unwrap().stdout).unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, ticket["resourceSecret"].as_str().unwrap()).unwrap();
    for (flag, value, why) in [("--max-entries", "1", "entries"), ("--max-unpacked", "1MiB", "unpacks")] {
        let mut fetch = command();
        let id = ticket["resourceId"].as_str().unwrap();
        fetch.args(["fetch", "--server", &server.url(""), "--id", id, flag, value, "--secret-file"]);
        let output = fetch.arg(&secret).arg("--to").arg(folder.path().join("target")).output().unwrap();
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(tree(&folder.path().join("target")), []);
    }
}
