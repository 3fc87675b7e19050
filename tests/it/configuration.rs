//! Flags, environment, properties file and defaults, as the real binary takes them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cloakroom_spark::version::NEWEST_SPARK;
use cloakroom_testing::workspace::Workspace;
use cloakroom_testing::{process, process::Cloakroom, tls};

mod access;
mod limits;

const PORT: &str = "spark.kubernetes.resourceStagingServer.port";
const TIMEOUT: &str = "spark.kubernetes.resourceStagingServer.initialAccessExpirationTimeout";
const TLS: &str = "spark.ssl.kubernetes.resourceStagingServer";
const URI: &str = "spark.kubernetes.resourceStagingServer.uri";

/// A folder of its own for one run of the binary, which finds nothing else there.
struct ServerFiles(Workspace);

impl ServerFiles {
    fn new() -> Self {
        Self(Workspace::new())
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        self.0.write(name, text)
    }

    fn properties(&self, lines: &[(&str, &str)]) -> PathBuf {
        let text: String = lines.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
        self.file("server.properties", &text)
    }

    fn command(&self) -> Command {
        let mut command = process::command();
        command.current_dir(self.0.root());
        command
    }

    fn check(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let mut command = self.command();
        command.args(["serve", "--check"]).args(arguments).envs(environment.iter().copied());
        command.output().unwrap()
    }

    /// What `serve --check` says of a good configuration.
    fn valid(&self, arguments: &[&str], environment: &[(&str, &str)]) -> String {
        let output = self.check(arguments, environment);
        assert!(output.status.success(), "{arguments:?} {environment:?}: {}", process::stderr(&output));
        let said = stdout(&output);
        assert!(said.starts_with("the configuration is valid\n"), "{said}");
        assert!(!self.0.path("cloakroom-data").exists(), "a check changes nothing");
        said
    }

    /// What `serve --check` says of a bad one.
    fn refused(&self, arguments: &[&str], environment: &[(&str, &str)]) -> String {
        let output = self.check(arguments, environment);
        assert!(!output.status.success(), "{arguments:?} {environment:?}: {}", stdout(&output));
        assert_eq!(stdout(&output), "");
        process::stderr(&output)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The value of one line of the summary.
fn value<'a>(summary: &'a str, name: &str) -> &'a str {
    let line = summary.lines().find_map(|line| line.trim().strip_prefix(name));
    line.unwrap_or_else(|| panic!("no “{name}” in {summary}")).trim()
}

#[test]
fn flags_win_over_the_environment_over_the_properties_file_over_defaults() {
    let files = ServerFiles::new();
    let file = files.properties(&[(PORT, "10001"), (TIMEOUT, "11m")]);
    let environment = [("CLOAKROOM_LISTEN", "127.0.0.1:10002"), ("CLOAKROOM_UNUSED_TIMEOUT", "12m")];
    let flags = ["--listen", "127.0.0.1:10003", "--unused-timeout", "13m"];
    let of_file = [text(&file)];
    let all = [&of_file[..], &flags].concat();
    for (arguments, environment, address, timeout) in [
        (&[][..], &[][..], "http://127.0.0.1:10000", "30m"),
        (&of_file, &[], "http://0.0.0.0:10001", "11m"),
        (&of_file, &environment, "http://127.0.0.1:10002", "12m"),
        (&all, &environment, "http://127.0.0.1:10003", "13m"),
        (&flags, &environment, "http://127.0.0.1:10003", "13m"),
    ] {
        let said = files.valid(arguments, environment);
        let found = (value(&said, "serves on"), value(&said, "unused timeout"));
        assert_eq!(found, (address, timeout), "{arguments:?} {environment:?}");
    }
}

#[test]
fn a_variable_that_no_flag_has_is_warned_of_and_its_value_is_not_shown() {
    let files = ServerFiles::new();
    let mistyped = "the environment variable CLOAKROOM_MAX_TOTALSIZE has no effect, because no flag has it: is \
                    CLOAKROOM_MAX_TOTAL_SIZE meant?";
    let strange = "the environment variable CLOAKROOM_PORT has no effect, because no flag has it: cloakroom serve \
                   --help lists the variables";
    let variables = [("CLOAKROOM_MAX_TOTALSIZE", "hunter2"), ("CLOAKROOM_PORT", "hunter3")];
    let checked = files.check(&["--listen", "127.0.0.1:0"], &variables);
    assert!(checked.status.success());
    let mut command = files.command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir", "started"]).envs(variables);
    let server = Cloakroom::start(command);
    for said in [process::stderr(&checked), server.log()] {
        assert!(said.contains(mistyped) && said.contains(strange), "{said}");
        assert!(!said.contains("hunter"), "{said}");
    }
    let known = [
        ("CLOAKROOM_SERVER", "http://h"),
        ("CLOAKROOM_CA_FILE", "ca.pem"),
        ("CLOAKROOM_ADMIN_URL", "http://h"),
        ("CLOAKROOM_SPARK_SUBMIT", "spark-submit"),
        ("CLOAKROOM_TERMINATION_LOG", "log"),
        ("CLOAKROOM_PORT", "tcp://10.0.0.1:10000"),
        ("CLOAKROOM_PORT_10000_TCP", "tcp://10.0.0.1:10000"),
        ("CLOAKROOM_OPERATIONS_SERVICE_HOST", "10.0.0.1"),
    ];
    let said = process::stderr(&files.check(&["--listen", "127.0.0.1:0"], &known));
    assert!(!said.contains("has no effect"), "{said}");
}

#[test]
fn tls_comes_from_flags_environment_or_properties_file_in_that_order() {
    let files = ServerFiles::new();
    let pem = tls::self_signed(files.0.root(), &["localhost"]);
    let (cert, key) = (text(&pem.cert), text(&pem.key));
    let key_pem = format!("{TLS}.keyPem");
    let cert_pem = format!("{TLS}.serverCertPem");
    let enabled = format!("{TLS}.enabled");
    let scheme = |arguments: &[&str], environment: &[(&str, &str)]| {
        value(&files.valid(arguments, environment), "serves on").split(':').next().unwrap().to_owned()
    };
    let good = files.properties(&[(&enabled, "true"), (&key_pem, key), (&cert_pem, cert)]);
    assert_eq!(scheme(&[text(&good)], &[]), "https");
    assert_eq!(scheme(&["--tls-cert", cert, "--tls-key", key], &[]), "https");
    assert_eq!(scheme(&[], &[("CLOAKROOM_TLS_CERT", cert), ("CLOAKROOM_TLS_KEY", key)]), "https");
    assert_eq!(scheme(&[], &[]), "http");
    let off = files.properties(&[(&enabled, "false"), (&key_pem, key), (&cert_pem, cert)]);
    assert_eq!(scheme(&[text(&off)], &[]), "http");
    // Flags in place of files that are not there.
    let bad = files.properties(&[(&enabled, "true"), (&key_pem, "/no/key"), (&cert_pem, "/no/cert")]);
    assert!(files.refused(&[text(&bad)], &[]).contains("/no/"));
    assert_eq!(scheme(&[text(&bad), "--tls-cert", cert, "--tls-key", key], &[]), "https");
    assert!(files.refused(&["--tls-cert", cert], &[]).contains("--tls-key"));
}

#[test]
fn a_properties_file_alone_serves_or_fetches_by_its_keys() {
    let files = ServerFiles::new();
    let data = files.0.path("data");
    let server = files.properties(&[(PORT, "0")]);
    let mut command = files.command();
    command.arg(&server).env("CLOAKROOM_DATA_DIR", &data).env("CLOAKROOM_LOG", "info");
    let server = Cloakroom::start(command);
    assert!(server.address.starts_with("0.0.0.0:"), "{}", server.address);
    drop(server);

    // An init-container with nothing to fetch is done at once.
    let nothing = files.properties(&[("spark.kubernetes.mountdependencies.mountTimeout", "1")]);
    let output = files.command().arg(&nothing).output().unwrap();
    assert!(output.status.success(), "{}", process::stderr(&output));
    assert!(process::stderr(&output).contains("names nothing to fetch"), "{}", process::stderr(&output));
}

#[test]
fn a_properties_file_of_no_role_or_both_is_refused_with_a_way_out() {
    let files = ServerFiles::new();
    for (lines, expected) in [
        (&[("spark.app.name", "x")][..], &["neither"][..]),
        (&[], &["neither"]),
        (&[(PORT, "1"), (URI, "http://x:1")], &[PORT, "line 1", URI, "line 2"]),
    ] {
        let file = files.properties(lines);
        let output = files.command().arg(&file).output().unwrap();
        let said = process::stderr(&output);
        assert!(!output.status.success(), "{lines:?}");
        for expected in [expected, &[text(&file), "cloakroom serve", "cloakroom fetch"]].concat() {
            assert!(said.contains(expected), "{lines:?}: “{expected}” is missing: {said}");
        }
    }
    let output = files.command().arg("/no/such.properties").output().unwrap();
    assert!(!output.status.success());
    assert!(process::stderr(&output).contains("cannot read the properties file /no/such.properties"));
}

#[test]
fn a_warning_names_keys_without_a_meaning_and_not_their_values() {
    let files = ServerFiles::new();
    let password = format!("{TLS}.keyStorePassword");
    let file = files.properties(&[(PORT, "1234"), ("spark.executor.cores", "4"), (&password, "hunter2")]);
    let output = files.check(&[text(&file)], &[]);
    let said = process::stderr(&output);
    assert!(output.status.success(), "{said}");
    for expected in ["spark.executor.cores", "line 2", &password, "line 3"] {
        assert!(said.contains(expected), "“{expected}” is missing: {said}");
    }
    assert!(!said.contains("hunter2"), "{said}");
    assert!(!said.contains(&format!("{PORT}`")), "a key with a meaning is not warned about: {said}");
}

#[test]
fn an_impossible_value_is_refused_with_file_line_and_key() {
    let files = ServerFiles::new();
    let auth = "spark.kubernetes.authenticate.resourceStagingServer";
    let enabled = format!("{TLS}.enabled");
    let token = (&*format!("{auth}.oauthToken"), "abc");
    let token_file = (&*format!("{auth}.oauthTokenFile"), "/t");
    for (lines, line, key) in [
        (&[(PORT, "70000")][..], 1, PORT),
        (&[(PORT, "http")], 1, PORT),
        (&[(PORT, "1"), (TIMEOUT, "soon")], 2, TIMEOUT),
        (&[(PORT, "1"), (TIMEOUT, "0")], 2, TIMEOUT),
        (&[(PORT, "1"), (TIMEOUT, "-5m")], 2, TIMEOUT),
        (&[(PORT, "1"), (&enabled, "maybe")], 2, &enabled),
        (&[(PORT, "1"), (&enabled, "true")], 2, &enabled),
        (&[(PORT, "1"), token, token_file], 2, token.0),
        (&[("spark.kubernetes.resourceStagingServer.apiServer.url", "ftp://x")], 1, "apiServer.url"),
    ] {
        let file = files.properties(lines);
        let said = files.refused(&[text(&file)], &[]);
        for expected in [text(&file), &format!("line {line}"), key] {
            assert!(said.contains(expected), "{lines:?}: “{expected}” is missing: {said}");
        }
        assert!(!said.contains("abc"), "a token is shown: {said}");
    }
}

#[test]
fn an_impossible_value_of_a_flag_names_the_flag() {
    let files = ServerFiles::new();
    for arguments in [
        ["--listen", "nonsense"],
        ["--max-resource-size", "8 apples"],
        ["--unused-timeout", "0s"],
        ["--cleanup-interval", "0s"],
        ["--finished-owner-retention", "always"],
        ["--max-deletions-per-sweep", "0"],
        ["--max-age", "0s"],
        ["--max-concurrent-uploads", "0"],
        ["--public-url", "ftp://x"],
        ["--owner-kinds", "pod"],
        ["--log", "=="],
        ["--upload-auth", "token"],
        ["--upload-token-file", "/no/such/file"],
    ] {
        let said = files.refused(&arguments, &[]);
        let flag = if arguments[0] == "--upload-token-file" { arguments[1] } else { arguments[0] };
        assert!(said.contains(flag), "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    }
}

#[test]
fn who_may_upload_must_be_chosen_where_other_machines_reach_the_port() {
    let files = ServerFiles::new();
    let tokens = files.file("tokens", "correct-horse-battery\n");
    for address in ["0.0.0.0:10000", "[::]:10000", "192.0.2.1:80"] {
        let said = files.refused(&["--listen", address], &[]);
        for expected in [address, "--upload-auth token", "--upload-token-file", "--upload-auth none"] {
            assert!(said.contains(expected), "“{expected}” is missing: {said}");
        }
        if address.starts_with("192.0.2.1") {
            // Of no machine (RFC 5737).
            let said = files.refused(&["--listen", address, "--upload-auth", "none"], &[]);
            assert!(said.contains("cannot listen on 192.0.2.1:80"), "{said}");
            continue;
        }
        let none = files.valid(&["--listen", address, "--upload-auth", "none"], &[]);
        assert!(value(&none, "upload auth").starts_with("none"));
        let token = files.valid(&["--listen", address, "--upload-token-file", text(&tokens)], &[]);
        assert_eq!(value(&token, "upload auth"), "token");
    }
    for address in ["127.0.0.1:0", "[::1]:0"] {
        assert!(value(&files.valid(&["--listen", address], &[]), "upload auth").starts_with("none"));
    }
    let said = files.refused(&["--upload-auth", "none", "--upload-token-file", text(&tokens)], &[]);
    assert!(said.contains("contradict"), "{said}");
    let short = files.file("short", "hunter2\n");
    let said = files.refused(&["--upload-token-file", text(&short)], &[]);
    assert!(said.contains("line 1") && !said.contains("hunter2"), "{said}");
}

#[test]
fn a_properties_file_implies_uploads_for_everybody_with_a_warning() {
    let files = ServerFiles::new();
    let file = files.properties(&[(PORT, "10000")]);
    let output = files.check(&[text(&file)], &[]);
    let said = process::stderr(&output);
    assert!(output.status.success() && value(&stdout(&output), "upload auth").starts_with("none"), "{said}");
    assert!(
        said.contains("WARN") && said.contains("0.0.0.0:10000") && said.contains("--upload-auth none"),
        "{said}"
    );
    let output = files.check(&[text(&file), "--upload-auth", "none"], &[]);
    assert!(
        output.status.success() && !process::stderr(&output).contains("WARN"),
        "{}",
        process::stderr(&output)
    );
}

#[test]
fn in_a_pod_the_default_is_to_serve_on_all_addresses() {
    let files = ServerFiles::new();
    let in_a_pod = ("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    let said = files.valid(&["--upload-auth", "none", "--no-kubernetes"], &[in_a_pod]);
    assert_eq!(value(&said, "serves on"), "http://0.0.0.0:10000");
    assert!(files.refused(&["--no-kubernetes"], &[in_a_pod]).contains("--upload-auth"));
    let said = files.valid(&["--no-kubernetes"], &[in_a_pod, ("CLOAKROOM_LISTEN", "127.0.0.1:7")]);
    assert_eq!(value(&said, "serves on"), "http://127.0.0.1:7");
}

#[test]
fn a_java_key_store_is_refused_with_the_lines_that_convert_it() {
    let files = ServerFiles::new();
    let (enabled, store) = (format!("{TLS}.enabled"), format!("{TLS}.keyStore"));
    let password = format!("{TLS}.keyStorePassword");
    let file = files.properties(&[(&enabled, "true"), (&store, "/mnt/server.jks"), (&password, "hunter2")]);
    let said = files.refused(&[text(&file)], &[]);
    for expected in [
        "line 2",
        &store,
        "keytool -importkeystore -srckeystore /mnt/server.jks",
        "openssl pkcs12",
        &format!("{TLS}.keyPem"),
        &format!("{TLS}.serverCertPem"),
    ] {
        assert!(said.contains(expected), "“{expected}” is missing: {said}");
    }
    assert!(!said.contains("hunter2"), "{said}");
}

/// The flags of a help text, each with all that is said about it.
fn flags(help: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in process::flags_in(help).lines() {
        let start = line.trim_start();
        if let Some(at) = start.find("--").filter(|at| start.starts_with('-') && *at < 6) {
            let name = start[at..].split([' ', ',', '=']).next().unwrap();
            found.push((name.to_owned(), String::new()));
        }
        if let Some((_, text)) = found.last_mut() {
            *text += start;
            *text += " ";
        }
    }
    found
}

#[test]
fn every_flag_of_serve_has_an_environment_name_and_says_its_default() {
    let output = process::run(&["serve", "--help"]);
    assert!(output.status.success());
    let flags = flags(&stdout(&output));
    assert!(flags.len() > 20, "{flags:?}");
    // These are what to do, and no settings.
    for (flag, text) in
        flags.iter().filter(|(flag, _)| !["--check", "--help", "--version"].contains(&&**flag))
    {
        let name = flag.trim_start_matches('-').replace('-', "_").to_uppercase();
        // The value of a variable that may have a secret in it is left out.
        let is_named = ["=", "]"].iter().any(|end| text.contains(&format!("[env: CLOAKROOM_{name}{end}")));
        assert!(is_named, "{flag}: {text}");
        assert!(text.contains("[default: "), "{flag} does not say its default: {text}");
    }
}

#[test]
fn help_and_version_are_answered_and_no_arguments_is_a_call_for_help() {
    let number = format!("cloakroom {}\n", env!("CARGO_PKG_VERSION"));
    let version = process::run(&["-V"]);
    assert_eq!(stdout(&version), number);
    assert!(version.status.success());
    let details = stdout(&process::run(&["--version"]));
    let details = details.strip_prefix(&number).unwrap();
    let named: Vec<&str> = details.lines().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(named, ["revision", "target", "submits for Spark"]);
    assert!(details.contains(std::env::consts::ARCH) && details.contains(NEWEST_SPARK), "{details}");
    let output = process::run(&[]);
    assert!(!output.status.success());
    let said = process::stderr(&output);
    for expected in ["Usage:", "serve", "stage", "fetch", "properties file"] {
        assert!(said.contains(expected), "“{expected}” is missing: {said}");
    }
}

#[test]
fn limits_that_would_refuse_everything_are_refused_by_name() {
    let files = ServerFiles::new();
    for (arguments, named) in [
        (&["--max-resource-size", "0"][..], "--max-resource-size is zero"),
        (&["--max-total-size", "0"], "--max-total-size is zero"),
        (&["--unused-timeout", "2m", "--max-unused", "1m"], "longer than --max-unused"),
    ] {
        let said = files.refused(arguments, &[]);
        assert!(said.contains(named), "{said}");
    }
}

#[test]
fn how_owners_are_asked_about_comes_from_flags_file_or_pod() {
    let files = ServerFiles::new();
    let owners = |arguments: &[&str], environment: &[(&str, &str)]| {
        value(&files.valid(arguments, environment), "owners").to_owned()
    };
    assert!(owners(&[], &[("KUBECONFIG", "/no/such/file")]).starts_with("no API server"));
    let file = files.properties(&[
        ("spark.kubernetes.resourceStagingServer.apiServer.url", "https://10.0.0.1"),
        ("spark.kubernetes.authenticate.resourceStagingServer.oauthToken", "s3cret-of-the-api"),
    ]);
    assert_eq!(
        owners(&[text(&file)], &[]),
        "the API server at https://10.0.0.1 is asked, as the properties file says"
    );
    assert!(owners(&[text(&file), "--no-kubernetes"], &[]).starts_with("no API server"));
    assert!(owners(&[text(&file)], &[("CLOAKROOM_NO_KUBERNETES", "true")]).starts_with("no API server"));
    let kubeconfig = files.file(
        "kubeconfig",
        "{current-context: a, contexts: [{name: a, context: {cluster: c}}], \
         clusters: [{name: c, cluster: {server: 'http://127.0.0.1:8001'}}]}",
    );
    let said = owners(&[text(&file), "--kubeconfig", text(&kubeconfig)], &[]);
    assert_eq!(
        said,
        format!(
            "the API server at http://127.0.0.1:8001 is asked, as the current context of {} says",
            text(&kubeconfig)
        )
    );
    let said = owners(&[], &[("CLOAKROOM_KUBECONFIG", text(&kubeconfig)), ("CLOAKROOM_CONTEXT", "a")]);
    assert!(said.contains("as the context “a” of"), "{said}");
    let said = files.valid(&["--namespaces", "spark,etl"], &[]);
    assert_eq!(value(&said, "namespaces"), "etl,spark");
}

#[test]
fn a_cluster_that_cannot_be_asked_stops_the_start_and_shows_no_secrets() {
    let files = ServerFiles::new();
    let url = ("spark.kubernetes.resourceStagingServer.apiServer.url", "http://10.0.0.1");
    let token = ("spark.kubernetes.authenticate.resourceStagingServer.oauthToken", "s3cret-of-the-api");
    let in_clear = files.properties(&[url, token]);
    let in_a_pod = ("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    for (arguments, environment, expected) in [
        (&[][..], &[in_a_pod][..], &["automountServiceAccountToken", "--kubeconfig", "--no-kubernetes"][..]),
        (&["--kubeconfig", "/no/such/file"], &[], &["--kubeconfig", "/no/such/file"]),
        (&["--kubeconfig", "/k", "--no-kubernetes"], &[], &["--kubeconfig", "--no-kubernetes", "contradict"]),
        (&["--context", "prod"], &[], &["--kubeconfig"]),
        (&["--namespaces", "Spark"], &[], &["--namespaces", "“Spark”"]),
        (&[text(&in_clear)], &[], &["http://10.0.0.1", "oauthToken", "in clear"]),
    ] {
        let said = files.refused(&[&["--listen", "127.0.0.1:0"], arguments].concat(), environment);
        for expected in expected {
            assert!(said.contains(expected), "{arguments:?}: “{expected}” is missing: {said}");
        }
        assert!(!said.contains("s3cret-of-the-api"), "{said}");
    }
}

#[test]
fn a_properties_file_that_is_not_utf_8_is_read_as_spark_reads_it() {
    let files = ServerFiles::new();
    let path = files.file("server.properties", "");
    std::fs::write(&path, [b"# caf\xe9\n".as_slice(), format!("{PORT}=10001\n").as_bytes()].concat())
        .unwrap();
    let said = files.valid(&[text(&path)], &[]);
    assert_eq!(value(&said, "serves on"), "http://0.0.0.0:10001");
}
