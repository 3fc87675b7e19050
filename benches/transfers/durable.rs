//! One upload of 1 GiB that is acknowledged when the bytes are on the disk under their digest. It is compared with a
//! plain write with fsync, and with servers that promise the same: nginx followed by a sync and a digest, MinIO and
//! versitygw with a digest that they verify. A server that does not sync before it answers pays for the sync
//! afterwards, so that all end in the same state.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cloakroom_testing::files::{have, is_on_path, noise, settle, time};
use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::spread::{Spread, ratio};

use crate::nginx::Nginx;

const ROUNDS: usize = 10;
const BUNDLE_BYTES: u64 = 1 << 30;
/// The credentials of a server that lives only for the benchmark.
const ACCESS_KEY: &str = "benchmark";
const SECRET_KEY: &str = "benchmark-only";
/// SHA-256 of no bytes.
const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const BUCKET: &str = "bundles";

/// One way to store the bundle.
struct Way {
    name: &'static str,
    /// The shell command; it ends when the bundle is acknowledged with its digest.
    upload: String,
    /// The folder that has the bytes then.
    folder: PathBuf,
    /// Restores the state before the upload.
    clear: String,
    acknowledged: Spread,
    durable: Spread,
}

pub fn run() {
    if !have(&["curl", "sync", "dd", "sha256sum", "find"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bundle");
    noise(&bundle, BUNDLE_BYTES);
    let server = Cloakroom::serve(&folder.path().join("data"), &["--min-free-space", "0b"]);
    let mut ways = vec![plain(folder.path(), &bundle), cloakroom(folder.path(), &bundle, &server)];
    // The servers run until these are dropped.
    let nginx = is_there("nginx").then(|| Nginx::start(&folder.path().join("nginx")));
    ways.extend(nginx.as_ref().map(|nginx| with_nginx(nginx, &bundle)));
    let rivals: Vec<S3> =
        [S3::minio, S3::versitygw].iter().filter_map(|start| start(folder.path())).collect();
    ways.extend(rivals.iter().map(|rival| rival.way(&bundle)));
    for round in 0..ROUNDS {
        // The order rotates, so that no way always follows the same one.
        let count = ways.len();
        for index in 0..count {
            ways[(index + round) % count].measure();
        }
    }
    report(&ways);
}

impl Way {
    fn new(name: &'static str, upload: String, folder: PathBuf, clear: String) -> Self {
        Self { name, upload, folder, clear, acknowledged: Spread::default(), durable: Spread::default() }
    }

    fn measure(&mut self) {
        settle();
        let acknowledged = time(&self.upload);
        // This takes no time if the server keeps its promise.
        let rest = time(&format!("find {} -type f -exec sync -d {{}} +", self.folder.display()));
        self.acknowledged.add(acknowledged);
        self.durable.add(acknowledged + rest);
        time(&self.clear);
    }
}

fn report(ways: &[Way]) {
    let [plain, ours, ..] = ways else { return };
    for Way { name, acknowledged, durable, .. } in ways {
        println!("{name:24} acknowledged: {acknowledged}");
        println!("{:24} and synced:   {durable}", "");
    }
    println!("cloakroom's time over the plain write's: {:.2}", ratio(&plain.durable, &ours.durable));
    for way in &ways[2..] {
        println!("{}'s time over cloakroom's: {:.2}", way.name, ratio(&ours.durable, &way.durable));
    }
}

/// Whether the program is installed; prints a message if not.
fn is_there(program: &str) -> bool {
    let is_there = is_on_path(program);
    if !is_there {
        println!(
            "!! {program} IS NOT ON THE PATH: it is left out of this comparison (docs/benchmarks.md says where it comes from)"
        );
        std::io::stdout().flush().unwrap();
    }
    is_there
}

fn plain(folder: &Path, bundle: &Path) -> Way {
    let folder = folder.join("plain");
    std::fs::create_dir(&folder).unwrap();
    let copy = folder.join("copy");
    let (from, to) = (bundle.display(), copy.display());
    let write = format!("dd if={from} of={to} bs=1M conv=fsync status=none");
    let clear = format!("rm {to}");
    Way::new("dd conv=fsync", write, folder, clear)
}

fn cloakroom(folder: &Path, bundle: &Path, server: &Cloakroom) -> Way {
    let (bundle, ticket) = (bundle.display(), folder.join("ticket"));
    let ticket = ticket.display();
    let url = server.url("/api/v1/resources/?namespace=demo&label=app=demo");
    let field = |name: &str| format!("$(sed -E 's/.*\"{name}\":\"([^\"]*)\".*/\\1/' {ticket})");
    Way::new(
        "cloakroom",
        format!("curl -sS --fail -o {ticket} -T {bundle} '{url}'"),
        folder.join("data"),
        format!(
            "curl -sS --fail -X DELETE -H \"Authorization: Bearer {}\" {}",
            field("resourceSecret"),
            field("url")
        ),
    )
}

/// Sync and digest run in parallel, and the digest reads from the page cache: the fastest setup for nginx.
fn with_nginx(nginx: &Nginx, bundle: &Path) -> Way {
    let (stored, bundle) = (nginx.root.join("bundle"), bundle.display());
    let stored = stored.display();
    let upload = format!(
        "curl -sS --fail -T {bundle} http://127.0.0.1:{}/bundle; \
         sync -d {stored} & syncing=$!; sha256sum {stored}; wait $syncing",
        nginx.port
    );
    Way::new("nginx, sync and digest", upload, nginx.root.clone(), format!("rm {stored}"))
}

/// A server that speaks S3. It ends when it is dropped.
struct S3 {
    name: &'static str,
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl S3 {
    fn minio(folder: &Path) -> Option<Self> {
        let (data, address) = (folder.join("minio"), free_address());
        let mut command = Command::new("minio");
        command.args(["server", "--quiet", "--address", &address, "--console-address", &free_address()]);
        command.arg(&data).env("MINIO_ROOT_USER", ACCESS_KEY).env("MINIO_ROOT_PASSWORD", SECRET_KEY);
        Self::start("minio", command.env("MINIO_BROWSER", "off"), &address, data)
    }

    fn versitygw(folder: &Path) -> Option<Self> {
        let (data, address) = (folder.join("versitygw"), free_address());
        let mut command = Command::new("versitygw");
        command
            .args(["--port", &address, "--access", ACCESS_KEY, "--secret", SECRET_KEY, "posix"])
            .arg(&data);
        Self::start("versitygw", &mut command, &address, data)
    }

    fn start(name: &'static str, command: &mut Command, address: &str, folder: PathBuf) -> Option<Self> {
        if !is_there(name) {
            return None;
        }
        std::fs::create_dir_all(&folder).unwrap();
        let home = folder.with_extension("home");
        std::fs::create_dir_all(&home).unwrap();
        let child =
            command.env("HOME", &home).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = child.spawn().unwrap();
        let port = address.rsplit_once(':').unwrap().1.parse().unwrap();
        let server = Self { name, child, port, folder };
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(started.elapsed() < Duration::from_secs(20), "{name} did not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        // A server that listens may not be ready yet.
        let retry = "--retry 20 --retry-delay 1 --retry-all-errors";
        time(&format!("{} {retry} -X PUT {}", signed(NOTHING), server.url("")));
        Some(server)
    }

    fn url(&self, object: &str) -> String {
        format!("http://127.0.0.1:{}/{BUCKET}{object}", self.port)
    }

    /// The signature covers the digest, so the server must compute it and compare before it answers.
    fn way(&self, bundle: &Path) -> Way {
        let digest = Command::new("sha256sum").arg(bundle).output().unwrap().stdout;
        let digest = String::from_utf8(digest).unwrap();
        let digest = digest.split_whitespace().next().unwrap();
        let (object, bundle) = (self.url("/bundle"), bundle.display());
        let upload = format!("{} -T {bundle} {object}", signed(digest));
        Way::new(self.name, upload, self.folder.clone(), format!("{} -X DELETE {object}", signed(NOTHING)))
    }
}

/// A signed request whose body has this SHA-256.
fn signed(digest: &str) -> String {
    format!(
        "curl -sS --fail -o /dev/null --aws-sigv4 aws:amz:us-east-1:s3 --user {ACCESS_KEY}:{SECRET_KEY} \
         -H 'x-amz-content-sha256: {digest}'"
    )
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
