//! `cloakroom fetch`, the real binary: exit codes, last words, signals, TLS, proxies.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use cloakroom_core::protocol::digest::to_hex;
use cloakroom_testing::bundles::tgz;
use cloakroom_testing::noise::noise;
use cloakroom_testing::process::{command, stderr};
use cloakroom_testing::scripted::{Answer, Reply, Scripted, ServedFile, closed_port};
use cloakroom_testing::terminal::Terminal;
use cloakroom_testing::tls;
use sha2::{Digest as _, Sha256};

const ID: &str = "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1";
const SECRET: &str = "s3cret-of-the-ticket";

/// A pod with its files.
struct Pod {
    folder: tempfile::TempDir,
}

impl Pod {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), SECRET).unwrap();
        std::fs::write(folder.path().join("termination-log"), "").unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn last_words(&self) -> String {
        std::fs::read_to_string(self.path("termination-log")).unwrap()
    }

    fn command(&self) -> Command {
        let mut command = command();
        command.arg("fetch").arg("--termination-log").arg(self.path("termination-log"));
        command
    }

    /// The flag form for this pod's ticket.
    fn fetch(&self, server: &str) -> Command {
        let mut command = self.command();
        command.args(["--server", server, "--id", ID, "--secret-file"]).arg(self.path("secret"));
        command.arg("--to").arg(self.path("jars"));
        command
    }

    /// A ticket of this server, with a secret and more fields in JSON.
    fn fetch_ticket(&self, server: &str, secret: &str, more: &str) -> Command {
        let url = format!("{server}/api/v1/resources/{ID}");
        let ticket = format!(r#"{{"resourceId":"{ID}","resourceSecret":"{secret}","url":"{url}"{more}}}"#);
        std::fs::write(self.path("ticket.json"), ticket).unwrap();
        let mut command = self.command();
        command.arg("--ticket").arg(self.path("ticket.json")).arg("--to").arg(self.path("jars"));
        command
    }

    fn properties(&self, text: &str) -> Command {
        let path = self.path("spark-init.properties");
        std::fs::write(&path, text.replace("{pod}", self.folder.path().to_str().unwrap())).unwrap();
        let mut command = self.command();
        command.arg(path);
        command
    }
}

/// Runs a command to its end without blocking the server of the test.
async fn output(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none())
}

fn served(
    content: &'static [u8],
) -> impl Fn(usize, &cloakroom_testing::scripted::Request) -> Reply + Send + Sync {
    let file = ServedFile::new(tgz(&[("app.jar", content)]), "a");
    move |_, request| file.answer(request).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_absent_server_is_named_in_one_sentence_and_in_the_last_words() {
    let (pod, port) = (Pod::new(), closed_port());
    let text = format!(
        "spark.kubernetes.resourceStagingServer.uri=http://127.0.0.1:{port}\n\
         spark.kubernetes.initcontainer.downloadJarsResourceIdentifier={ID}\n\
         spark.kubernetes.initcontainer.downloadJarsSecretLocation={{pod}}/secret\n\
         spark.kubernetes.mountdependencies.jarsDownloadDir={{pod}}/jars\n\
         spark.kubernetes.mountdependencies.mountTimeout=1500ms\n"
    );
    let output = output(pod.properties(&text)).await;
    assert_eq!(output.status.code(), Some(1));
    let sentence = format!(
        "could not fetch the staged jars (resource {ID}) from http://127.0.0.1:{port}: connection refused for 1500ms; \
         check that the staging server runs, that this is its address for pods, and that a NetworkPolicy lets this \
         pod reach it"
    );
    assert!(stderr(&output).ends_with(&format!("error: {sentence}\n")), "{}", stderr(&output));
    assert_eq!(pod.last_words(), sentence);
    assert!(is_empty(&pod.path("jars")));
}

#[tokio::test(flavor = "multi_thread")]
async fn success_is_one_line_for_each_source() {
    let pod = Pod::new();
    let server = Scripted::start(served(b"app")).await;
    let output = output(pod.fetch(&server.url())).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    assert!(
        stderr(&output).starts_with(&format!("the bundle (resource {ID}): 1 file, ")),
        "{}",
        stderr(&output)
    );
    assert_eq!(stderr(&output).lines().count(), 1);
    assert_eq!(std::fs::read(pod.path("jars/app.jar")).unwrap(), b"app");
    assert_eq!(pod.last_words(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_shows_how_far_a_fetch_is_and_nothing_of_it_afterwards() {
    let pod = Pod::new();
    let file = ServedFile::new(tgz(&[("app.jar", &noise(8 << 20))]), "a");
    let server = Scripted::start(move |_, _| file.whole().hang_after(1 << 20).into()).await;
    let terminal = Terminal::new(100);
    // The command must not keep the terminal open.
    let mut running = {
        let mut fetch = pod.fetch(&server.url());
        fetch.env("TERM", "xterm").stderr(terminal.end()).spawn().unwrap()
    };
    let written = tokio::task::block_in_place(|| terminal.until(" of "));
    assert!(written.contains('░'), "{written}");
    rustix::process::kill_process(rustix::process::Pid::from_child(&running), rustix::process::Signal::INT)
        .unwrap();
    assert_eq!(tokio::task::block_in_place(|| running.wait().unwrap()).code(), Some(130));
    let seen = terminal.seen(&tokio::task::block_in_place(|| terminal.until_closed())).join("");
    assert!(!seen.contains("B/s"), "a bar is left: {seen}");
}

// Invariant: fetch places what the ticket describes, or nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_is_held_against_what_the_server_has() {
    let bundle = tgz(&[("app.jar", b"app")]);
    let (size, sha256) = (bundle.len(), to_hex(&Sha256::digest(&bundle).into()));
    let server = Scripted::start(served(b"app")).await;
    let undescribed = Scripted::start(move |_, _| Answer::new(200, bundle.clone()).into()).await;
    let other = "0".repeat(64);
    for (promise, is_kept) in [
        (String::new(), true),
        (format!(r#","sizeBytes":{size},"sha256":"{sha256}""#), true),
        (format!(r#","sizeBytes":{}"#, size + 1), false),
        (format!(r#","sha256":"{other}""#), false),
        (format!(r#","sizeBytes":{size},"sha256":"{other}""#), false),
    ] {
        for server in [&server, &undescribed] {
            let pod = Pod::new();
            let output = output(pod.fetch_ticket(&server.url(), SECRET, &promise)).await;
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(if is_kept { 0 } else { 1 }), "{promise}: {said}");
            assert_eq!(is_empty(&pod.path("jars")), !is_kept, "{promise}");
            let sentence = "the ticket and the server disagree about the bundle (";
            assert_eq!(pod.last_words().contains(sentence), !is_kept, "{promise}: {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_that_windows_wrote_is_read() {
    let server = Scripted::start(served(b"app")).await;
    let pod = Pod::new();
    let command = pod.fetch_ticket(&server.url(), SECRET, "");
    let text = std::fs::read_to_string(pod.path("ticket.json")).unwrap();
    let utf16 = [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes));
    std::fs::write(pod.path("ticket.json"), utf16.collect::<Vec<u8>>()).unwrap();
    let fetched = output(command).await;
    assert_eq!(fetched.status.code(), Some(0), "{}", stderr(&fetched));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_earlier_run_brought_is_held_against_the_ticket_as_well() {
    let server = Scripted::start(served(b"app")).await;
    let pod = Pod::new();
    let first = output(pod.fetch_ticket(&server.url(), SECRET, "")).await;
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let promise = format!(r#","sha256":"{}""#, "0".repeat(64));
    let second = output(pod.fetch_ticket(&server.url(), SECRET, &promise)).await;
    assert_eq!(second.status.code(), Some(1), "{}", stderr(&second));
    assert!(stderr(&second).contains("the ticket and the server disagree"), "{}", stderr(&second));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_no_header_can_carry_is_refused_before_anything_is_sent() {
    let server = Scripted::start(served(b"app")).await;
    for secret in [r"a\nb", r"a\u0000", "é", "", " "] {
        let pod = Pod::new();
        let output = output(pod.fetch_ticket(&server.url(), secret, "")).await;
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let says = "is not usable: its resourceSecret must be one line of printable ASCII";
        assert!(stderr(&output).contains(says), "{secret}: {}", stderr(&output));
    }
    assert!(server.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn both_forms_at_once_are_refused() {
    let pod = Pod::new();
    let mut both = pod.properties("");
    both.args(["--id", ID]);
    let output = output(both).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--id and the properties file /"), "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_of_the_environment_does_not_contradict_a_properties_file() {
    let pod = Pod::new();
    let mut command = pod.properties("spark.kubernetes.mountdependencies.mountTimeout=1\n");
    command.env("CLOAKROOM_SERVER", "http://elsewhere:10000");
    let output = output(command).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_names_nothing_to_fetch_by_mistake_is_refused() {
    const TIMEOUT: &str = "spark.kubernetes.mountdependencies.mountTimeout=1\n";
    for (text, code, expected) in [
        (
            r#"{"resourceId": "x", "resourceSecret": "s3cret"}"#.to_owned(),
            2,
            "write “cloakroom fetch --ticket /",
        ),
        (String::new(), 1, "names nothing to fetch: set `"),
        ("spark.app.name=x\n".to_owned(), 1, "names nothing to fetch"),
        (
            format!("{TIMEOUT}spark.kubernetes.resourceStagingServer.uri=http://x:1\n"),
            1,
            "names nothing to fetch",
        ),
        (format!("{TIMEOUT}spark.kubernetes.initcontainer.remoteJar=http://x/a.jar\n"), 1, "names nothing"),
        // A template that was not filled in.
        (format!("{TIMEOUT}spark.kubernetes.resourceStagingServer.uri=\n"), 1, "names nothing"),
        ("spark.kubernetes.initcontainer.downloadJarsResourceIdentifier=\n".to_owned(), 1, "names nothing"),
    ] {
        let pod = Pod::new();
        let output = output(pod.properties(&text)).await;
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(expected) && !said.contains("s3cret"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_secret_names_file_and_property() {
    let pod = Pod::new();
    let text = format!(
        "spark.kubernetes.resourceStagingServer.uri=http://127.0.0.1:1\n\
         spark.kubernetes.initcontainer.downloadFilesResourceIdentifier={ID}\n\
         spark.kubernetes.initcontainer.downloadFilesSecretLocation={{pod}}/nothing\n"
    );
    let output = output(pod.properties(&text)).await;
    assert_eq!(output.status.code(), Some(1));
    let expected = format!(
        "spark.kubernetes.initcontainer.downloadFilesSecretLocation names {}, which cannot be read: ",
        pod.path("nothing").display()
    );
    assert!(pod.last_words().starts_with(&expected), "{}", pod.last_words());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_name_is_refused_without_the_secrets_of_its_address() {
    let pod = Pod::new();
    let text = "spark.kubernetes.initcontainer.remoteJars=http://u:hunter2@127.0.0.1:1/a/%2e%2e%2fevil?sig=s1gnature\n";
    let output = output(pod.properties(text)).await;
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output) + &pod.last_words();
    assert!(said.contains("http://127.0.0.1:1/a/%2e%2e%2fevil"), "{said}");
    assert!(!said.contains("hunter2") && !said.contains("s1gnature"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_cannot_be_listed_is_not_reported_as_unwritable() {
    let pod = Pod::new();
    let set_mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    // Root may list everything, so root becomes another user, who may not see where the binary was built.
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let binary = pod.path("cloakroom");
    let copied = Command::new("cp").arg(command().get_program()).arg(&binary).status().unwrap();
    assert!(copied.success());
    std::fs::create_dir(pod.path("jars")).unwrap();
    for (path, mode) in [(pod.folder.path(), 0o755), (&pod.path("jars"), 0o333)] {
        set_mode(path, mode);
    }
    let like = pod.fetch("http://127.0.0.1:9");
    let mut command = Command::new(&binary);
    command.env_clear().args(like.get_args());
    if is_root {
        command.uid(65532).gid(65532);
    }
    let said = stderr(&output(command).await);
    let expected = format!(
        "error: cannot put fetched files into {path}: {path} cannot be listed by this user; give it read permission too \
         (chmod +r), or choose another folder\n",
        path = pod.path("jars").display()
    );
    assert!(said.ends_with(&expected), "{said}");
    set_mode(&pod.path("jars"), 0o755);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_stops_it_and_nothing_stays_behind() {
    let pod = Pod::new();
    let bytes = tgz(&[("app.jar", &vec![7; 3_000_000])]);
    let half = bytes.len() / 2;
    let server = Scripted::start(move |_, _| Answer::new(200, bytes.clone()).hang_after(half).into()).await;
    let mut child = pod.fetch(&server.url()).stderr(Stdio::null()).spawn().unwrap();
    server.wait_for_requests(1).await;
    let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let status = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
    assert_eq!(status.code(), Some(143));
    assert!(is_empty(&pod.path("jars")));
}

fn server_config(pem: &tls::Pem) -> rustls::ServerConfig {
    let certificates =
        CertificateDer::pem_file_iter(&pem.cert).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, PrivateKeyDer::from_pem_file(&pem.key).unwrap())
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_own_self_signed_certificate_is_enough_as_ca_file() {
    for make in [tls::self_signed, tls::signed_by_ca] {
        let pod = Pod::new();
        let pem = make(pod.folder.path(), &["127.0.0.1", "localhost"]);
        let server = Scripted::start_tls(server_config(&pem), served(b"app")).await;
        let mut command = pod.fetch(&server.url());
        command.arg("--ca-file").arg(&pem.ca);
        let output = output(command).await;
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(std::fs::read(pod.path("jars/app.jar")).unwrap(), b"app");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_untrusted_or_misnamed_certificate_fails_at_once_with_what_helps() {
    let pod = Pod::new();
    let pem = tls::self_signed(pod.folder.path(), &["other.example"]);
    let server = Scripted::start_tls(server_config(&pem), served(b"app")).await;
    let untrusted = output(pod.fetch(&server.url())).await;
    assert_eq!(untrusted.status.code(), Some(1));
    assert!(
        stderr(&untrusted).contains("not signed by a CA that is trusted here; "),
        "{}",
        stderr(&untrusted)
    );
    assert!(stderr(&untrusted).contains("--ca-file"), "{}", stderr(&untrusted));
    let mut command = pod.fetch(&server.url());
    command.arg("--ca-file").arg(&pem.ca);
    let other_name = output(command).await;
    assert!(stderr(&other_name).contains("other.example"), "{}", stderr(&other_name));
    assert!(stderr(&other_name).contains("subjectAltName"), "{}", stderr(&other_name));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wrong_scheme_is_recognised() {
    let pod = Pod::new();
    let plain = Scripted::start(served(b"app")).await;
    let over_tls = output(pod.fetch(&plain.url().replace("http:", "https:"))).await;
    assert!(stderr(&over_tls).contains("does not speak TLS; perhaps http"), "{}", stderr(&over_tls));
    let pem = tls::self_signed(pod.folder.path(), &["127.0.0.1"]);
    let encrypted = Scripted::start_tls(server_config(&pem), served(b"app")).await;
    let in_clear = output(pod.fetch(&encrypted.url().replace("https:", "http:"))).await;
    assert!(
        stderr(&in_clear).contains("does not speak HTTP (perhaps it speaks TLS: https)"),
        "{}",
        stderr(&in_clear)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_of_the_environment_is_used_unless_no_proxy_says_otherwise() {
    let pod = Pod::new();
    let proxy = Scripted::start(served(b"app")).await;
    let mut command = pod.fetch("http://staging.example:10000");
    command.env("HTTP_PROXY", proxy.url());
    let through = output(command).await;
    assert_eq!(through.status.code(), Some(0), "{}", stderr(&through));
    let target = format!("http://staging.example:10000/api/v1/resources/{ID}");
    assert_eq!(proxy.requests()[0].target, target);

    let pod = Pod::new();
    let mut command = pod.fetch("http://staging.invalid:10000");
    command.args(["--timeout", "1s"]).env("HTTP_PROXY", proxy.url()).env("NO_PROXY", "staging.invalid");
    let around = output(command).await;
    assert!(stderr(&around).contains("the host name does not resolve"), "{}", stderr(&around));
    assert_eq!(proxy.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn this_machine_is_never_reached_through_a_proxy() {
    let pod = Pod::new();
    let server = Scripted::start(served(b"app")).await;
    let mut command = pod.fetch(&server.url());
    command.env("HTTP_PROXY", format!("http://127.0.0.1:{}", closed_port()));
    let output = output(command).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_driver_gets_its_properties_with_what_was_fetched_in_them() {
    let server = Scripted::start(served(b"app")).await;
    let pod = Pod::new();
    let settings = format!(
        "spark.kubernetes.resourceStagingServer.uri={}\n\
         spark.kubernetes.initcontainer.downloadJarsResourceIdentifier={ID}\n\
         spark.kubernetes.initcontainer.downloadJarsSecretLocation={{pod}}/secret\n\
         spark.kubernetes.mountdependencies.jarsDownloadDir={{pod}}/jars\n",
        server.url()
    );
    let jars = pod.path("jars").display().to_string();
    let written = format!("spark.jars=local\\://{jars}/app.jar,local\\:///opt/x.jar\nspark.app.name=a b\n");
    let command = || {
        let mut command = pod.properties(&settings);
        command.arg("--spark-properties").arg(pod.path("spark.properties"));
        command.arg("--spark-properties-to").arg(pod.path("given.properties"));
        command
    };
    let missing = output(command()).await;
    assert_eq!(missing.status.code(), Some(1), "{}", stderr(&missing));
    assert!(pod.last_words().contains("spark-conf-volume-driver"), "{}", pod.last_words());
    // As the kubelet leaves it for a mount path below spark-submit's config map.
    std::fs::create_dir(pod.path("spark.properties")).unwrap();
    let folder = output(command()).await;
    assert_eq!(folder.status.code(), Some(1), "{}", stderr(&folder));
    let said = pod.last_words();
    assert!(
        said.contains("are a folder: the kubelet makes one") && said.contains("without its first slash"),
        "{said}"
    );
    std::fs::remove_dir(pod.path("spark.properties")).unwrap();
    std::fs::write(pod.path("spark.properties"), written).unwrap();
    // Planted where the draft is made.
    std::fs::write(pod.path("theirs"), "precious").unwrap();
    std::os::unix::fs::symlink(pod.path("theirs"), pod.path("given.properties.draft")).unwrap();
    let fetched = output(command()).await;
    assert!(fetched.status.success(), "{}", stderr(&fetched));
    let given = std::fs::read_to_string(pod.path("given.properties")).unwrap();
    let expected = format!("spark.app.name=a b\nspark.jars=file\\://{jars}/app.jar,local\\:///opt/x.jar\n");
    assert_eq!(given, expected);
    assert_eq!(std::fs::read_to_string(pod.path("theirs")).unwrap(), "precious");
}
