//! `HTTPS_PROXY` and `NO_PROXY`, with a proxy that knows one name that no resolver knows.

use std::path::Path;
use std::process::Output;

use cloakroom_testing::process::{command, stderr};
use cloakroom_testing::proxy::Proxy;
use cloakroom_testing::scripted::{Answer, Scripted, closed_port};
use cloakroom_testing::workspace::Workspace;
use cloakroom_testing::{process::Cloakroom, tls};

const NAME: &str = "staging.cloakroom.test";

struct BehindProxy {
    folder: Workspace,
    _server: Cloakroom,
    proxy: Proxy,
    url: String,
}

impl BehindProxy {
    async fn new() -> Self {
        let folder = Workspace::new();
        let pem = tls::signed_by_ca(folder.root(), &[NAME]);
        let flags = ["--tls-cert", pem.cert.to_str().unwrap(), "--tls-key", pem.key.to_str().unwrap()];
        let server = Cloakroom::serve(&folder.path("data"), &flags);
        let port = server.address.rsplit_once(':').unwrap().1.to_owned();
        folder.write("app.jar", b"a jar");
        let proxy = Proxy::start(server.address.parse().unwrap()).await;
        Self { folder, _server: server, proxy, url: format!("https://{NAME}:{port}") }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path(name)
    }

    fn stage(&self, variables: &[(&str, &str)]) -> Output {
        self.stage_with(&["--attempts", "1"], variables)
    }

    /// Tries as often as a user's `stage` does.
    fn stage_patiently(&self, variables: &[(&str, &str)]) -> Output {
        self.stage_with(&[], variables)
    }

    fn stage_with(&self, flags: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut stage = command();
        stage.args(["stage", "--server", &self.url, "--namespace", "ns", "--label", "a=b"]).args(flags);
        stage.arg("--ca-file").arg(self.path("ca.pem")).arg(self.path("app.jar"));
        stage.envs(variables.iter().copied()).output().unwrap()
    }

    fn fetch(&self, id: &str, to: &Path, proxy: (&str, &str)) -> Output {
        let mut fetch = command();
        fetch.args(["fetch", "--server", &self.url, "--id", id, "--secret-file"]).arg(self.path("secret"));
        fetch.arg("--to").arg(to).env("CLOAKROOM_CA_FILE", self.path("ca.pem"));
        fetch.env(proxy.0, proxy.1).output().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stage_and_fetch_go_through_the_proxy_and_trust_the_extra_ca() {
    let behind_proxy = BehindProxy::new().await;
    let address = behind_proxy.proxy.address;
    for (run, proxy) in [
        (1, ("HTTPS_PROXY", format!("http://{address}"))),
        (2, ("https_proxy", address.to_string())),
        (3, ("ALL_PROXY", format!("socks5://{address}"))),
    ] {
        let proxy = (proxy.0, proxy.1.as_str());
        let staged = behind_proxy.stage(&[proxy]);
        assert!(staged.status.success() && !stderr(&staged).contains("warning"), "{}", stderr(&staged));
        let ticket: serde_json::Value = serde_json::from_slice(&staged.stdout).unwrap();
        std::fs::write(behind_proxy.path("secret"), ticket["resourceSecret"].as_str().unwrap()).unwrap();
        let to = behind_proxy.path(&format!("jars{run}"));
        let fetched = behind_proxy.fetch(ticket["resourceId"].as_str().unwrap(), &to, proxy);
        assert!(fetched.status.success(), "{}", stderr(&fetched));
        assert_eq!(std::fs::read(to.join("app.jar")).unwrap(), b"a jar");
    }
    let asked = behind_proxy.proxy.asked();
    let begins: Vec<_> = asked.iter().filter_map(|line| line.split(':').next()).collect();
    let (connect, socks) = (format!("CONNECT {NAME}"), format!("socks5 {NAME}"));
    assert_eq!(begins, [&connect, &connect, &connect, &connect, &socks, &socks]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_proxy_names_is_reached_without_the_proxy() {
    let behind_proxy = BehindProxy::new().await;
    let address = behind_proxy.proxy.address.to_string();
    let staged = behind_proxy.stage(&[("HTTPS_PROXY", &address), ("NO_PROXY", ".cloakroom.test.")]);
    assert!(!staged.status.success());
    // Nobody but the proxy knows the name.
    assert!(stderr(&staged).contains("the host name does not resolve"), "{}", stderr(&staged));
    assert!(behind_proxy.proxy.asked().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_the_proxy_is_told_as_the_proxys_and_with_its_variable() {
    let behind_proxy = BehindProxy::new().await;
    let closed = format!("me:s3cret@127.0.0.1:{}", closed_port());
    // It answers CONNECT as a web server does.
    let web = behind_proxy._server.address.clone();
    for (variable, value, says) in [
        ("HTTPS_PROXY", closed.as_str(), "(HTTPS_PROXY): connection refused; check this setting"),
        (
            "all_proxy",
            "http://no-such-proxy.invalid:3128",
            "the proxy http://no-such-proxy.invalid:3128 (all_proxy): the host name does not resolve",
        ),
        ("https_proxy", &format!("socks5://{web}"), "(https_proxy): it does not speak SOCKS 5; check"),
        ("HTTPS_PROXY", &web, "(HTTPS_PROXY): it does not connect to this host and port"),
    ] {
        let staged = behind_proxy.stage(&[(variable, value)]);
        let said = stderr(&staged);
        assert_eq!(staged.status.code(), Some(1), "{said}");
        assert!(said.contains("no connection through the proxy") && said.contains(says), "{said}");
        assert!(!said.contains("s3cret") && !said.contains("check that it is running"), "{said}");
    }
    let refused = behind_proxy.stage(&[("HTTPS_PROXY", "ftp://me:s3cret@proxy")]);
    let said = stderr(&refused);
    assert!(said.contains("HTTPS_PROXY is not the address of a proxy") && !said.contains("s3cret"), "{said}");
    // A variable that is not used does no harm.
    let other = behind_proxy
        .stage(&[("HTTPS_PROXY", &behind_proxy.proxy.address.to_string()), ("ALL_PROXY", "socks://x")]);
    assert!(other.status.success(), "{}", stderr(&other));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_wants_a_login_is_not_asked_again_and_again() {
    let behind_proxy = BehindProxy::new().await;
    let to = behind_proxy._server.address.parse().unwrap();
    let address = Proxy::start_with_login(to, "me:s3cret").await.address;
    for (scheme, login, says) in [
        ("http", "", "it wants a user and a password; write a user"),
        ("http", "me:wr0ng@", "it does not accept this user and password"),
        ("socks5", "", "it wants a user and a password"),
        ("socks5", "me:wr0ng@", "it does not accept this user and password"),
    ] {
        let staged = behind_proxy.stage_patiently(&[("ALL_PROXY", &format!("{scheme}://{login}{address}"))]);
        let said = stderr(&staged);
        assert_eq!(staged.status.code(), Some(1), "{said}");
        assert!(said.contains(says) && said.contains("(ALL_PROXY)"), "{said}");
        assert!(!said.contains("wr0ng") && !said.contains("trying again"), "{said}");
    }
    for scheme in ["http", "socks5"] {
        let proxy = format!("{scheme}://me:s3cret@{address}");
        let staged = behind_proxy.stage_patiently(&[("ALL_PROXY", &proxy)]);
        assert!(staged.status.success(), "{}", stderr(&staged));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_may_be_the_proxys_names_the_proxy() {
    let folder = Workspace::new();
    folder.write("app.jar", b"a jar");
    for (status, says) in [
        (403, "check what this proxy allows"),
        (407, "write a user and a password"),
        (503, "check what this proxy allows"),
    ] {
        let proxy = Scripted::start(move |_, _| Answer::new(status, "no").into()).await;
        let mut stage = command();
        stage.args(["stage", "--server", "http://staging.cloakroom.test:10000", "--attempts", "1"]);
        stage.args(["--namespace", "ns", "--label", "a=b"]).arg(folder.path("app.jar"));
        let staged = stage.env("HTTP_PROXY", proxy.url()).output().unwrap();
        let said = stderr(&staged);
        let named = format!("({status}, perhaps of the proxy {} (HTTP_PROXY))", proxy.url());
        assert!(said.contains(&named) && said.contains(says), "{said}");
        assert_eq!(proxy.requests()[0].header("host"), Some("staging.cloakroom.test:10000"));
    }
}
