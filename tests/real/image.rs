//! The very binary in the image's root: read-only, as another user, with only what the image holds.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cloakroom_testing::needs::{Need, trial};
use cloakroom_testing::process::Cloakroom;
use libtest_mimic::Trial;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

pub fn trials() -> Vec<Trial> {
    let needs = || [Need::Root, Need::Namespaces, Need::Program("chroot"), Need::Program("setpriv")];
    vec![
        trial("in_the_image_the_server_serves_and_stops", &needs(), serve),
        trial("in_the_image_fetch_resolves_names_and_finds_the_tls_roots", &needs(), fetch_over_tls_by_name),
    ]
}

struct Image {
    folder: tempfile::TempDir,
}

impl Image {
    fn assemble() -> Self {
        let folder = tempfile::tempdir().unwrap();
        open_to_all(folder.path());
        let image = Self { folder };
        cloakroom_testing::dist::lay_out(&image.root());
        std::fs::create_dir(image.data()).unwrap();
        image
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Mounted at /var/lib/cloakroom.
    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn entrypoint(&self, args: &[&str]) -> Command {
        let mut command = Command::new(project().join("tests/image/run-in-root"));
        command.arg(self.root()).arg(self.data()).arg("--").args(args);
        command
    }
}

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn open_to_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn succeeded(output: Output) -> Output {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The image's own defaults: only the address differs, because the port may be taken on this machine.
fn serve() {
    let image = Image::assemble();
    let mut server = Cloakroom::start(image.entrypoint(&["serve", "--listen", "127.0.0.1:0"]));
    let bundle = image.folder.path().join("deps.tgz");
    std::fs::write(&bundle, vec![7; 5_000_000]).unwrap();
    let staged = stage(&server.address, "http", &bundle, None);
    assert!(staged["sizeBytes"].as_u64().unwrap() > 0);
    assert!(image.data().join("ledger.db").exists());
    let owner =
        std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(image.data().join("ledger.db")).unwrap());
    assert_eq!(owner, 65532);
    server.signal("TERM");
    assert!(server.wait().success());
}

fn stage(address: &str, scheme: &str, file: &Path, ca: Option<&Path>) -> serde_json::Value {
    let mut command = cloakroom_testing::process::command();
    command.args([
        "stage",
        "--server",
        &format!("{scheme}://{address}"),
        "--namespace",
        "ns",
        "--label",
        "a=b",
    ]);
    if let Some(ca) = ca {
        command.arg("--ca-file").arg(ca);
    }
    let output = succeeded(command.arg(file).output().unwrap());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A server with a certificate of a CA that only the image's root knows, under a name that only a name server knows.
fn fetch_over_tls_by_name() {
    const NAME: &str = "staging.cloakroom.test";
    let image = Image::assemble();
    let folder = image.folder.path();
    let (ca, cert, key) = certificates(folder, &[NAME, "127.0.0.1"]);
    std::fs::copy(&ca, image.root().join("etc/ssl/certs/ca-certificates.crt")).unwrap();
    let flags = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let server = Cloakroom::serve(&folder.join("server-data"), &flags);
    let jar = folder.join("app.jar");
    std::fs::write(&jar, b"a jar").unwrap();
    let ticket = stage(&server.address, "https", &jar, Some(&ca));
    std::fs::write(image.data().join("secret"), ticket["resourceSecret"].as_str().unwrap()).unwrap();

    let names = NameServer::start(NAME);
    let resolv_conf = folder.join("resolv.conf");
    std::fs::write(&resolv_conf, format!("nameserver {}\n", NameServer::ADDRESS)).unwrap();
    let port = server.address.rsplit_once(':').unwrap().1;
    let url = format!("https://{NAME}:{port}");
    let id = ticket["resourceId"].as_str().unwrap();
    let target = "/var/lib/cloakroom/target";
    let args = ["fetch", "--server", &url, "--id", id, "--secret-file", "secret", "--to", target];
    let output = image.entrypoint(&args).env("IN_ROOT_RESOLV_CONF", &resolv_conf).output().unwrap();
    succeeded(output);
    assert_eq!(std::fs::read(image.data().join("target/app.jar")).unwrap(), b"a jar");
    assert!(names.was_asked());
}

fn certificates(folder: &Path, names: &[&str]) -> (PathBuf, PathBuf, PathBuf) {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_pem = ca.self_signed(&ca_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let cert = CertificateParams::new(names).unwrap().signed_by(&key, &Issuer::new(ca, ca_key)).unwrap();
    let paths = (folder.join("ca.pem"), folder.join("cert.pem"), folder.join("key.pem"));
    for (path, text) in [(&paths.0, ca_pem), (&paths.1, cert.pem()), (&paths.2, key.serialize_pem())] {
        std::fs::write(path, text).unwrap();
    }
    paths
}

/// A name server on loopback that knows one name. Resolvers know no port but 53, so this one cannot have a free one.
struct NameServer {
    asked: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl NameServer {
    const ADDRESS: &str = "127.53.0.1";

    fn start(name: &'static str) -> Self {
        let socket = UdpSocket::bind((Self::ADDRESS, 53)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let (asked, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let (asked, stop) = (Arc::clone(&asked), Arc::clone(&stop));
            move || {
                let mut query = [0; 512];
                while !stop.load(Ordering::Relaxed) {
                    let Ok((length, peer)) = socket.recv_from(&mut query) else { continue };
                    asked.store(true, Ordering::Relaxed);
                    socket.send_to(&answer(&query[..length], name), peer).unwrap();
                }
            }
        });
        Self { asked, stop, thread: Some(thread) }
    }

    fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// 127.0.0.1 to a question for the address (type A) of `name`, an empty answer to any other (RFC 1035).
fn answer(query: &[u8], name: &str) -> Vec<u8> {
    let end = 12 + query[12..].iter().position(|&byte| byte == 0).unwrap() + 5;
    let question = &query[12..end];
    let labels: Vec<u8> =
        name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
    let is_known =
        question.starts_with(&labels) && question[question.len() - 4..question.len() - 2] == [0, 1];
    let mut answer = [&query[..2], &[0x81, 0x80, 0, 1, 0, u8::from(is_known), 0, 0, 0, 0], question].concat();
    if is_known {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    }
    answer
}
