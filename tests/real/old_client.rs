//! The original's client libraries (OkHttp 3, Retrofit 2, Jackson) against this server: tests/old-client.

use std::path::Path;
use std::process::{Command, Output};

use cloakroom_testing::needs::{Need, path, trial};
use cloakroom_testing::process::{Cloakroom, command};
use libtest_mimic::Trial;

const JAR: &str = "CLOAKROOM_TEST_OLD_CLIENT";

pub fn trials() -> Vec<Trial> {
    let needs = || [Need::Program("java"), Need::Path(JAR, "old-client.jar (tests/old-client/README.md)")];
    vec![
        trial("the_originals_client_gets_its_pongs", &needs(), ping),
        trial("the_originals_client_uploads_and_downloads", &needs(), round_trip),
        trial("the_originals_client_works_with_only_the_servers_properties_file", &needs(), old_deployment),
        trial("the_originals_client_sees_why_it_was_refused", &needs(), refused),
    ]
}

fn client(args: &[&str]) -> Output {
    Command::new("java").arg("-jar").arg(path(JAR)).args(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn ping() {
    let folder = tempfile::tempdir().unwrap();
    let server = Cloakroom::serve(folder.path(), &[]);
    assert_eq!(
        stdout(&client(&["ping", &server.url("")])).split_whitespace().collect::<Vec<_>>(),
        ["pong", "pong"]
    );
}

fn upload_and_download(url: &str, folder: &Path) {
    let (bundle, copy) = (folder.join("bundle.tgz"), folder.join("copy.tgz"));
    std::fs::write(&bundle, (0..9_000_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
    let labels = "spark-app-selector=spark-0f3c,spark-role=driver";
    let json = stdout(&client(&["upload", url, "spark-cluster", labels, bundle.to_str().unwrap()]));
    let ticket: serde_json::Value = serde_json::from_str(&json).unwrap();
    let (id, secret) = (ticket["resourceId"].as_str().unwrap(), ticket["resourceSecret"].as_str().unwrap());
    stdout(&client(&["download", url, id, secret, copy.to_str().unwrap()]));
    assert!(std::fs::read(&copy).unwrap() == std::fs::read(&bundle).unwrap());
    let wrong = client(&["download", url, id, "not-the-secret", copy.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("401"));
    let unknown =
        client(&["download", url, "00000000-0000-4000-8000-000000000000", secret, copy.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("404"));
}

fn round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let server = Cloakroom::serve(&folder.path().join("data"), &[]);
    upload_and_download(&server.url(""), folder.path());
}

/// A kubespark deployment whose image was changed: one argument, the mounted properties file.
fn old_deployment() {
    let folder = tempfile::tempdir().unwrap();
    let properties = folder.path().join("resource-staging-server.properties");
    let text = "spark.kubernetes.resourceStagingServer.port=10000\n\
                spark.kubernetes.resourceStagingServer.initialAccessExpirationTimeout=30m\n\
                spark.ssl.kubernetes.resourceStagingServer.enabled=false\n";
    std::fs::write(&properties, text).unwrap();
    let mut entrypoint = command();
    entrypoint.arg(&properties).env("CLOAKROOM_DATA_DIR", folder.path().join("data"));
    // The port of the file may be taken on this machine.
    entrypoint.env("CLOAKROOM_LISTEN", "127.0.0.1:0");
    let server = Cloakroom::start(entrypoint);
    upload_and_download(&server.url(""), folder.path());
}

fn refused() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bundle.tgz");
    std::fs::write(&bundle, vec![7; 3_000_000]).unwrap();
    let server = Cloakroom::serve(&folder.path().join("data"), &["--max-resource-size", "1MiB"]);
    let output = client(&["upload", &server.url(""), "ns", "a=b", bundle.to_str().unwrap()]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("413") && stderr.contains("too-large"), "{stderr}");
}
