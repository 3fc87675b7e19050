//! One upload and one download of 1 GiB by curl, compared with nginx (PUT of its DAV module, a static file with
//! sendfile). nginx neither hashes nor syncs uploads.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cloakroom_testing::files::{have, noise, settle, time};
use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::spread::{Spread, ratio};

const PAIRS: usize = 10;
const BUNDLE_BYTES: u64 = 1 << 30;

pub fn run() {
    if !have(&["nginx", "curl", "sync"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bundle");
    noise(&bundle, BUNDLE_BYTES);
    let nginx = Nginx::start(&folder.path().join("nginx"));
    let server = Cloakroom::serve(&folder.path().join("data"), &["--min-free-space", "0b"]);
    let mut figures: [Spread; 5] = Default::default();
    for _ in 0..PAIRS {
        let [our_up, their_up, our_down, their_down, disk] = &mut figures;
        pair(our_up, our_down, || ours(&server, &bundle));
        pair(their_up, their_down, || nginx.transfer(&bundle));
        settle();
        let copy = folder.path().join("copy");
        disk.add(time(&format!(
            "dd if={} of={} bs=1M conv=fsync status=none",
            bundle.display(),
            copy.display()
        )));
        std::fs::remove_file(copy).unwrap();
    }
    let [our_up, their_up, our_down, their_down, disk] = &figures;
    println!(
        "upload:   cloakroom {our_up}\n          nginx     {their_up}\n          ratio     {:.2}",
        ratio(our_up, their_up)
    );
    println!(
        "download: cloakroom {our_down}\n          nginx     {their_down}\n          ratio     {:.2}",
        ratio(our_down, their_down)
    );
    println!("a plain write of the same with fsync: {disk}");
}

fn pair(up: &mut Spread, down: &mut Spread, transfer: impl FnOnce() -> (Duration, Duration)) {
    settle();
    let (took_up, took_down) = transfer();
    up.add(took_up);
    down.add(took_down);
}

pub fn ours(server: &Cloakroom, bundle: &Path) -> (Duration, Duration) {
    let ticket_file = tempfile::NamedTempFile::new().unwrap();
    let url = server.url("/api/v1/resources/?namespace=demo&label=app=demo");
    let up =
        time(&format!("curl -sS --fail -o {} -T {} '{url}'", ticket_file.path().display(), bundle.display()));
    let ticket: serde_json::Value =
        serde_json::from_slice(&std::fs::read(ticket_file.path()).unwrap()).unwrap();
    let authorization = format!("Authorization: Bearer {}", ticket["resourceSecret"].as_str().unwrap());
    let url = ticket["url"].as_str().unwrap();
    settle();
    let down = time(&format!("curl -sS --fail -o /dev/null -H '{authorization}' {url}"));
    time(&format!("curl -sS --fail -X DELETE -H '{authorization}' {url}"));
    (up, down)
}

/// A running nginx that takes and serves files. It ends when it is dropped.
pub struct Nginx {
    child: Child,
    pub port: u16,
    /// The folder of the uploaded files.
    pub root: std::path::PathBuf,
}

impl Nginx {
    pub fn start(prefix: &Path) -> Self {
        let root = prefix.join("root");
        std::fs::create_dir_all(&root).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let template = include_str!("../nginx.conf.template");
        let config = template
            .replace("@PREFIX@", prefix.to_str().unwrap())
            .replace("@ROOT@", root.to_str().unwrap())
            .replace("@PORT@", &port.to_string());
        std::fs::write(prefix.join("nginx.conf"), config).unwrap();
        let child = Command::new("nginx")
            .args(["-e", "stderr", "-p"])
            .arg(prefix)
            .arg("-c")
            .arg(prefix.join("nginx.conf"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(10), "nginx did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Self { child, port, root }
    }

    fn transfer(&self, bundle: &Path) -> (Duration, Duration) {
        let url = format!("http://127.0.0.1:{}/bundle", self.port);
        let up = time(&format!("curl -sS --fail -T {} {url}", bundle.display()));
        settle();
        let down = time(&format!("curl -sS --fail -o /dev/null {url}"));
        std::fs::remove_file(self.root.join("bundle")).unwrap();
        (up, down)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // On QUIT the master ends its workers; SIGKILL would leave them running.
        let _ = Command::new("kill").args(["-QUIT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}
