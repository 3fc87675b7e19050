//! The proxies that stand in front of clusters and of companies, each the real program: bundles go through whole, refusals
//! arrive, and no cache keeps what is secret.

pub mod programs;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::needs::{Need, trial};
use cloakroom_testing::process::{Cloakroom, command, stderr};
use cloakroom_testing::tls::signed_by_ca;
use libtest_mimic::Trial;

use programs::{Kind, NAME, Proxy, REVERSE, SQUID};

const TOKEN: &str = "correct-horse-battery";

/// Larger than all buffers on the way.
const BUNDLE_BYTES: usize = 20_000_000;

pub fn trials() -> Vec<Trial> {
    let of = |kind: &'static Kind, name: &str, test: fn(&Kind)| {
        let needs = [Need::Program(kind.program), Need::Program("curl"), Need::Root];
        trial(&format!("{}: {name}", kind.name), &needs, move || test(kind))
    };
    let reverse = REVERSE.iter().flat_map(|kind| {
        [
            of(kind, "bundles_go_through_and_downloads_are_resumed", bundles),
            of(kind, "refusals_arrive_whether_the_client_waits_or_not", refusals),
        ]
    });
    let others = [
        of(&REVERSE[0], "a_cache_keeps_no_answer_for_others", cached),
        of(&SQUID, "stage_and_fetch_go_through_and_are_told_what_the_proxy_forbids", forward),
    ];
    reverse.chain(others).collect()
}

/// A server that wants a token for uploads, and a folder with a bundle.
struct Setting {
    folder: tempfile::TempDir,
    server: Cloakroom,
}

impl Setting {
    fn new(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), TOKEN).unwrap();
        // Nothing that a proxy could compress or guess.
        let bytes = cloakroom_testing::noise::noise(BUNDLE_BYTES);
        std::fs::write(folder.path().join("app.jar"), bytes).unwrap();
        let token = folder.path().join("token");
        let all = ["--upload-token-file", token.to_str().unwrap(), "--min-free-space", "0b"];
        let server = Cloakroom::serve(&folder.path().join("data"), &[&all, flags].concat());
        Self { folder, server }
    }

    /// The server believes what the proxy says of its clients.
    fn behind(kind: &Kind) -> (Self, Proxy) {
        let setting = Self::new(&["--trusted-proxies", "127.0.0.1"]);
        let proxy = Proxy::start(kind, setting.server.address.parse().unwrap());
        (setting, proxy)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn stage(&self, server: &str) -> Command {
        let mut stage = command();
        stage.args([
            "stage",
            "--server",
            server,
            "--namespace",
            "demo",
            "--label",
            "app=demo",
            "--attempts",
            "1",
        ]);
        stage.arg("--token-file").arg(self.path("token")).arg(self.path("app.jar"));
        stage
    }

    /// Fetches with the ticket that `stage` printed, and compares what came.
    fn fetch(&self, server: &str, staged: &Output, more: impl FnOnce(&mut Command)) {
        let ticket: Ticket = serde_json::from_slice(&staged.stdout).unwrap();
        std::fs::write(self.path("secret"), &ticket.resource_secret).unwrap();
        let mut fetch = command();
        fetch.args(["fetch", "--server", server, "--id", &ticket.resource_id, "--secret-file"]);
        fetch.arg(self.path("secret")).arg("--to").arg(self.path("jars"));
        more(&mut fetch);
        succeeded(&fetch.output().unwrap());
        assert!(same(&self.path("app.jar"), &self.path("jars/app.jar")));
    }
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", stderr(output));
}

fn same(one: &Path, other: &Path) -> bool {
    std::fs::read(one).unwrap() == std::fs::read(other).unwrap()
}

fn curl(arguments: &[&str]) -> String {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--noproxy", "*", "--write-out", "%{http_code}"]).args(arguments);
    String::from_utf8(curl.output().unwrap().stdout).unwrap()
}

fn bundles(kind: &Kind) {
    let (setting, proxy) = Setting::behind(kind);
    let url = format!("http://{}", proxy.address);
    let staged = setting.stage(&url).output().unwrap();
    succeeded(&staged);
    assert!(!stderr(&staged).contains("warning"), "{}", stderr(&staged));
    setting.fetch(&url, &staged, |_| {});
    let ticket: Ticket = serde_json::from_slice(&staged.stdout).unwrap();
    let (whole, part) = (setting.path("whole"), setting.path("part"));
    let bearer = format!("Authorization: Bearer {}", ticket.resource_secret);
    let download = |to: &Path, more: &[&str]| {
        let arguments = ["--header", &bearer, "--output", to.to_str().unwrap(), &ticket.url];
        curl(&[more, &arguments].concat())
    };
    assert_eq!(download(&whole, &[]), "200");
    let whole = std::fs::read(whole).unwrap();
    std::fs::write(&part, &whole[..whole.len() / 3]).unwrap();
    assert_eq!(download(&part, &["--continue-at", "-"]), "206");
    assert!(std::fs::read(part).unwrap() == whole, "a resumed download differs");
}

/// Without a token, with bodies that are sent at once, slowly, or without end in sight.
fn refusals(kind: &Kind) {
    let (setting, proxy) = Setting::behind(kind);
    let url = format!("http://{}/api/v1/resources/?namespace=demo&label=app=demo", proxy.address);
    let (file, nowhere) = (setting.path("app.jar"), "/dev/null");
    let large = setting.path("large");
    std::fs::File::create(&large).unwrap().set_len(300 << 20).unwrap();
    let refused = |file: &Path, more: &[&str]| {
        let arguments = ["--output", nowhere, "--upload-file", file.to_str().unwrap(), &url];
        curl(&[more, &arguments].concat())
    };
    for expect in ["Expect: 100-continue", "Expect:"] {
        for _ in 0..10 {
            let status = refused(&file, &["--header", expect]);
            // Caddy itself sometimes closes on a client that waited and goes on sending. It has no 502 to tell then.
            let is_broken_off = kind.program == "caddy" && status == "100";
            assert!(status == "401" || is_broken_off, "{expect}: {status}");
        }
    }
    assert_eq!(refused(&file, &["--header", "Expect:", "--limit-rate", "5M"]), "401", "slowly");
    assert_eq!(refused(&large, &["--header", "Expect:"]), "401", "300 MiB");
}

fn cached(kind: &Kind) {
    let (setting, proxy) = Setting::behind(kind);
    let staged = setting.stage(&format!("http://{}", proxy.address)).output().unwrap();
    succeeded(&staged);
    let ticket: Ticket = serde_json::from_slice(&staged.stdout).unwrap();
    let bundle = ticket.url.replace("/api/", "/cached/api/");
    let metadata = format!("{bundle}/metadata");
    let ask = |url: &str, secret: &str| {
        curl(&["--header", &format!("Authorization: Bearer {secret}"), "--output", "/dev/null", url])
    };
    for url in [&metadata, &bundle] {
        assert_eq!(ask(url, "of-another-ticket"), "404");
        assert_eq!(ask(url, &ticket.resource_secret), "200");
    }
    assert_eq!(ask(&metadata, "of-another-ticket"), "404");
}

fn forward(kind: &Kind) {
    let certificates = tempfile::tempdir().unwrap();
    let pem = signed_by_ca(certificates.path(), &[NAME]);
    let tls = ["--tls-cert", pem.cert.to_str().unwrap(), "--tls-key", pem.key.to_str().unwrap()];
    let setting = Setting::new(&tls);
    let server: std::net::SocketAddr = setting.server.address.parse().unwrap();
    let proxy = Proxy::start(kind, server);
    let through = format!("http://{}", proxy.address);
    let url = format!("https://{NAME}:{}", server.port());
    let staged =
        setting.stage(&url).arg("--ca-file").arg(&pem.ca).env("HTTPS_PROXY", &through).output().unwrap();
    succeeded(&staged);
    setting.fetch(&url, &staged, |fetch| {
        fetch.env("HTTPS_PROXY", &through).env("CLOAKROOM_CA_FILE", &pem.ca);
    });
    let elsewhere = format!("https://{NAME}:1");
    let forbidden = setting.stage(&elsewhere).env("HTTPS_PROXY", &through).output().unwrap();
    let said = stderr(&forbidden);
    let names = format!("no connection through the proxy {through} (HTTPS_PROXY)");
    assert!(said.contains(&names), "{said}");
}
