//! `HTTPS_PROXY` and `NO_PROXY`, with a proxy that knows one name that no resolver knows.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Output;
use std::sync::{Arc, Mutex};

use cloakroom_testing::process::{command, stderr};
use cloakroom_testing::workspace::Workspace;
use cloakroom_testing::{process::Cloakroom, tls};

const NAME: &str = "staging.cloakroom.test";

/// A proxy for CONNECT that leads every name to one address.
struct Proxy {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(to: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (to, kept) = (to.clone(), Arc::clone(&kept));
                std::thread::spawn(move || tunnel(client, &to, &kept));
            }
        });
        Self { url, asked }
    }
}

fn tunnel(mut client: TcpStream, to: &str, asked: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(client.try_clone().unwrap()).lines();
    asked.lock().unwrap().push(lines.next().unwrap().unwrap());
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    let mut server = TcpStream::connect(to).unwrap();
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
    let (mut from, mut back) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut back, &mut client);
        let _ = client.shutdown(Shutdown::Both);
    });
    let _ = std::io::copy(&mut from, &mut server);
    let _ = server.shutdown(Shutdown::Write);
}

struct BehindProxy {
    folder: Workspace,
    _server: Cloakroom,
    proxy: Proxy,
    url: String,
}

impl BehindProxy {
    fn new() -> Self {
        let folder = Workspace::new();
        let pem = tls::signed_by_ca(folder.root(), &[NAME]);
        let flags = ["--tls-cert", pem.cert.to_str().unwrap(), "--tls-key", pem.key.to_str().unwrap()];
        let server = Cloakroom::serve(&folder.path("data"), &flags);
        let port = server.address.rsplit_once(':').unwrap().1.to_owned();
        folder.write("app.jar", b"a jar");
        let proxy = Proxy::start(server.address.clone());
        Self { folder, _server: server, proxy, url: format!("https://{NAME}:{port}") }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path(name)
    }

    fn stage(&self, no_proxy: &str) -> Output {
        let mut stage = command();
        stage.args([
            "stage",
            "--server",
            &self.url,
            "--namespace",
            "ns",
            "--label",
            "a=b",
            "--attempts",
            "1",
        ]);
        stage.arg("--ca-file").arg(self.path("ca.pem")).arg(self.path("app.jar"));
        stage.env("HTTPS_PROXY", &self.proxy.url).env("NO_PROXY", no_proxy).output().unwrap()
    }

    fn fetch(&self, id: &str, to: &Path) -> Output {
        let mut fetch = command();
        fetch.args(["fetch", "--server", &self.url, "--id", id, "--secret-file"]).arg(self.path("secret"));
        fetch.arg("--to").arg(to).env("CLOAKROOM_CA_FILE", self.path("ca.pem"));
        fetch.env("HTTPS_PROXY", &self.proxy.url).output().unwrap()
    }
}

#[test]
fn stage_and_fetch_go_through_the_https_proxy_and_trust_the_extra_ca() {
    let behind_proxy = BehindProxy::new();
    let staged = behind_proxy.stage("");
    assert!(staged.status.success(), "{}", stderr(&staged));
    let ticket: serde_json::Value = serde_json::from_slice(&staged.stdout).unwrap();
    std::fs::write(behind_proxy.path("secret"), ticket["resourceSecret"].as_str().unwrap()).unwrap();
    let fetched = behind_proxy.fetch(ticket["resourceId"].as_str().unwrap(), &behind_proxy.path("jars"));
    assert!(fetched.status.success(), "{}", stderr(&fetched));
    assert_eq!(std::fs::read(behind_proxy.path("jars/app.jar")).unwrap(), b"a jar");
    let asked = behind_proxy.proxy.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked.iter().all(|line| line.starts_with(&format!("CONNECT {NAME}:"))), "{asked:?}");
}

#[test]
fn what_no_proxy_names_is_reached_without_the_proxy() {
    let behind_proxy = BehindProxy::new();
    let staged = behind_proxy.stage(NAME);
    assert!(!staged.status.success());
    // Nobody but the proxy knows the name.
    assert!(stderr(&staged).contains("host"), "{}", stderr(&staged));
    assert!(behind_proxy.proxy.asked.lock().unwrap().is_empty());
}
