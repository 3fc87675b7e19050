//! Stage and fetch a whole Spark distribution's jars.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use cloakroom_testing::needs::{Need, path, trial};
use cloakroom_testing::process::{Cloakroom, command, stderr};
use libtest_mimic::Trial;
use sha2::{Digest as _, Sha256};

const JARS: &str = "CLOAKROOM_TEST_SPARK_JARS";

pub fn trials() -> Vec<Trial> {
    let jars = || Need::Path(JARS, "the folder of a Spark distribution's jars");
    vec![
        trial("sparks_jars_travel_through_stage_and_fetch", &[jars()], stage_and_fetch),
        trial("sparks_jars_reach_an_init_container_of_the_original", &[jars()], init_container),
        trial(
            "a_bundle_of_sparks_jars_is_read_by_gzip_and_tar",
            &[jars(), Need::Program("curl"), Need::Program("tar")],
            plain_tools,
        ),
    ]
}

fn jars() -> Vec<PathBuf> {
    let mut jars: Vec<PathBuf> =
        std::fs::read_dir(path(JARS)).unwrap().map(|entry| entry.unwrap().path()).collect();
    jars.retain(|path| path.extension().is_some_and(|extension| extension == "jar"));
    assert!(jars.len() > 100, "a Spark distribution has some hundred jars");
    jars.sort();
    jars
}

/// Names and digests of all files in a folder.
fn contents(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let visible = entries
        .filter(|path| path.is_file() && !path.file_name().unwrap().to_str().unwrap().starts_with('.'));
    visible.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), digest(&path))).collect()
}

fn digest(path: &Path) -> String {
    let mut hash = Sha256::new();
    std::io::copy(&mut std::fs::File::open(path).unwrap(), &mut HashWriter(&mut hash)).unwrap();
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

struct HashWriter<'a>(&'a mut Sha256);

impl std::io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", stderr(output));
}

struct Ticket {
    id: String,
    secret_file: PathBuf,
}

fn stage(server: &Cloakroom, folder: &Path) -> Ticket {
    let output = command()
        .args(["stage", "--server", &server.url(""), "--namespace", "demo", "--label", "app=demo"])
        .args(jars())
        .output()
        .unwrap();
    succeeded(&output);
    let ticket: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let secret = ticket["resourceSecret"].as_str().unwrap();
    assert!(!stderr(&output).contains(secret) && !server.log().contains(secret), "the secret was printed");
    let secret_file = folder.join("secret");
    std::fs::write(&secret_file, secret).unwrap();
    Ticket { id: ticket["resourceId"].as_str().unwrap().to_owned(), secret_file }
}

fn stage_and_fetch() {
    let folder = tempfile::tempdir().unwrap();
    let server = Cloakroom::serve(&folder.path().join("data"), &[]);
    let ticket = stage(&server, folder.path());
    let target = folder.path().join("target");
    let fetch = || {
        let output = command()
            .args(["fetch", "--server", &server.url(""), "--id", &ticket.id, "--secret-file"])
            .arg(&ticket.secret_file)
            .arg("--to")
            .arg(&target)
            .output()
            .unwrap();
        succeeded(&output);
    };
    fetch();
    assert_eq!(contents(&target), contents(&path(JARS)));
    // An init-container that runs again finds its own files.
    fetch();
    assert_eq!(contents(&target), contents(&path(JARS)));
}

fn init_container() {
    let folder = tempfile::tempdir().unwrap();
    let server = Cloakroom::serve(&folder.path().join("data"), &[]);
    let ticket = stage(&server, folder.path());
    let target = folder.path().join("spark-jars");
    let properties = folder.path().join("spark-init.properties");
    let text = format!(
        "spark.kubernetes.resourceStagingServer.uri={}\n\
         spark.kubernetes.initcontainer.downloadJarsResourceIdentifier={}\n\
         spark.kubernetes.initcontainer.downloadJarsSecretLocation={}\n\
         spark.kubernetes.mountdependencies.jarsDownloadDir={}\n",
        server.url("").replace(':', "\\:"),
        ticket.id,
        ticket.secret_file.display(),
        target.display(),
    );
    std::fs::write(&properties, text).unwrap();
    // The file as the only argument, as the original's image was started.
    succeeded(&command().arg(&properties).output().unwrap());
    assert_eq!(contents(&target), contents(&path(JARS)));
}

fn plain_tools() {
    let folder = tempfile::tempdir().unwrap();
    let server = Cloakroom::serve(&folder.path().join("data"), &[]);
    let ticket = stage(&server, folder.path());
    let target = folder.path().join("target");
    std::fs::create_dir(&target).unwrap();
    let script = format!(
        "set -e; curl --fail --silent --show-error --noproxy '*' -H \"Authorization: Bearer $(cat {})\" {} \
         | gzip -dc | tar xf - -C {}",
        ticket.secret_file.display(),
        server.url(&format!("/api/v1/resources/{}", ticket.id)),
        target.display(),
    );
    succeeded(&std::process::Command::new("bash").args(["-o", "pipefail", "-c", &script]).output().unwrap());
    assert_eq!(contents(&target), contents(&path(JARS)));
}
