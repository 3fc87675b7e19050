//! Files that no server stages: on the web, at addresses whose query is a secret, and in a folder that all sides see.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use cloakroom_testing::jobs::{EXIT_CODE, Job};

use super::jobs::{arguments, home, log, namespace, submission};
use super::{Journey, secrets};
use crate::cluster::NODE_ADDRESS;
use crate::images::{CLOAKROOM, VERSIONS};
use crate::shell::{At, laptop, run};

pub const JOURNEYS: &[Journey] = &[
    Journey("a_java_job_at_signed_addresses_runs", || on_the_web(VERSIONS[0], Job::Java)),
    Journey("a_python_job_at_signed_addresses_runs", || on_the_web(VERSIONS[1], Job::Python)),
    Journey("a_job_in_a_folder_that_all_sides_see_runs", shared_folder),
];

/// What the web server wants to see in the query.
const SIGNATURE: &str = "signedByNobodyElse";

/// Submits a job without a staging server, and looks at its driver's log.
fn runs(name: &str, version: &str, more: &str, arguments: &str) {
    let command = submission(name, version).replace("settings.conf", "plain.conf");
    let ran = run(At::Laptop, &format!("{command} {more} {arguments}"));
    secrets::keep(name, &ran.stderr);
    ran.ended_with(EXIT_CODE);
    assert_eq!(Job::complaint(&log(name)), None, "{}", log(name));
}

/// The init-container fetches the files, and neither Spark nor the submitter. Spark says all of its configuration in its log.
fn on_the_web(version: &str, job: Job) {
    let name = format!("web-{}", job.name());
    namespace(&name);
    std::fs::write(home().join("web.secret"), format!("{SIGNATURE}\n")).unwrap();
    arguments(version, job);
    let web = Web::serve(home().join(format!("jobs-{version}")));
    let signed = job.arguments(|file| format!("'http://{}/{file}?sig={SIGNATURE}'", web.address)).join(" ");
    let more = format!(
        "--conf spark.kubernetes.cloakroom.fetchRemote=true --conf spark.kubernetes.initContainer.image={CLOAKROOM} \
         --conf spark.logConf=true"
    );
    // An archive's name is behind its address.
    runs(&name, version, &more, &signed.replace("'#books", "#books'"));
    let mut given = web.given.lock().unwrap().clone();
    given.sort();
    assert_eq!(given, job.files());
}

/// A web server that gives files to whoever shows the signature.
struct Web {
    address: SocketAddr,
    given: Arc<Mutex<Vec<String>>>,
}

impl Web {
    fn serve(folder: PathBuf) -> Self {
        let listener = TcpListener::bind((NODE_ADDRESS, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let given = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&given);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                kept.lock().unwrap().extend(give(client, &folder));
            }
        });
        Self { address, given }
    }
}

/// Answers one request. Returns the name of the file that was given.
fn give(mut client: TcpStream, folder: &std::path::Path) -> Option<String> {
    let mut lines = BufReader::new(&client).lines().map_while(Result::ok);
    let line = lines.next()?;
    lines.find(String::is_empty)?;
    let (name, query) = line.split(' ').nth(1)?.trim_start_matches('/').split_once('?')?;
    let file = std::fs::read(folder.join(name)).ok().filter(|_| query == format!("sig={SIGNATURE}"))?;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", file.len());
    client.write_all(&[head.as_bytes(), &file].concat()).ok()?;
    Some(name.to_owned())
}

/// It is at one path on the laptop and in pods.
fn shared_folder() {
    let (name, version, job) = ("shared-folder", VERSIONS[0], Job::Python);
    namespace(name);
    laptop("mkdir -p /run/shared && chmod 755 /run/shared");
    let volume = |role: &str, end: &str| {
        format!("--conf spark.kubernetes.{role}.volumes.hostPath.shared.{end}=/run/shared")
    };
    let volumes =
        ["driver", "executor"].map(|role| volume(role, "mount.path") + " " + &volume(role, "options.path"));
    let more = format!("--conf spark.kubernetes.file.upload.path=file:///run/shared {}", volumes.join(" "));
    runs(name, version, &more, &arguments(version, job).join(" "));
}
