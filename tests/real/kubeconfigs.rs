//! Kubeconfigs beside kubectl itself: the same server is asked with the same credential, or both refuse.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use cloakroom_cluster::{Access, ApiServer, Proxies};
use cloakroom_testing::needs::{Need, kubectl, trial};
use cloakroom_testing::proxy::Proxy;
use cloakroom_testing::scripted::{Answer, Scripted};
use cloakroom_testing::tls::{Pem, self_signed, server_config, signed_by_ca};
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("kubeconfigs_are_read_as_kubectl_reads_them", &[Need::Kubectl], as_kubectl),
        trial(
            "kubeconfigs_with_client_certificates_are_read_as_kubectl_reads_them",
            &[Need::Kubectl],
            certificates,
        ),
        trial("kubeconfigs_that_only_kubectl_refuses_are_clear", &[Need::Kubectl], used_here_alone),
    ]
}

/// The headers of one call that carry its credentials. `None` if the API server was not called.
type Seen = Option<BTreeMap<String, String>>;

struct Setting {
    folder: tempfile::TempDir,
    server: Scripted,
    runtime: tokio::runtime::Runtime,
}

impl Setting {
    /// A server whose certificate a CA has signed. It wants client certificates if there is a CA for them.
    fn new(clients: Option<&Path>, make: fn(&Path, &[&str]) -> Pem) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let pem = make(folder.path(), &["127.0.0.1", "api.cloakroom.test"]);
        let version = r#"{"major": "1", "minor": "33", "gitVersion": "v1.33.0"}"#;
        let answer = move |_: usize, _: &_| {
            Answer::new(200, version).header("content-type", "application/json").into()
        };
        let server = runtime.block_on(Scripted::start_tls(server_config(&pem, clients), answer));
        Self { folder, server, runtime }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// One context, with these lines of its cluster and of its user in flow form.
    fn config(&self, cluster: &str, user: &str) -> String {
        let server = self.server.url();
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
             contexts:\n- {{name: here, context: {{cluster: c, user: u}}}}\n\
             clusters:\n- {{name: c, cluster: {{server: '{server}', {cluster}}}}}\n\
             users:\n- {{name: u, user: {{{user}}}}}\n"
        )
    }

    fn seen_after(&self, call: impl FnOnce()) -> Seen {
        let before = self.server.requests().len();
        call();
        let request = self.server.requests().into_iter().nth(before)?;
        let says_who = |name: &str| name == "authorization" || name.starts_with("impersonate-");
        Some(request.headers.into_iter().filter(|(name, _)| says_who(name)).collect())
    }

    fn by_kubectl(&self, files: &[PathBuf]) -> Seen {
        self.seen_after(|| {
            let mut command = Command::new(kubectl().unwrap());
            command.env("KUBECONFIG", std::env::join_paths(files).unwrap()).env("HOME", self.folder.path());
            for proxy in ["HTTPS_PROXY", "https_proxy"] {
                command.env_remove(proxy);
            }
            let output = command.args(["get", "--raw", "/version"]).stdin(Stdio::null()).output();
            output.unwrap();
        })
    }

    fn by_cloakroom(&self, files: &[PathBuf]) -> Seen {
        self.seen_after(|| {
            let access = Access::Kubeconfig {
                paths: files.to_vec(),
                context: None,
                setting: "KUBECONFIG".to_owned(),
                proxies: Proxies::default(),
            };
            self.runtime.block_on(async {
                // Where both refuse, the words differ: what counts is that nothing was sent.
                if let Ok(server) = ApiServer::connect(&access) {
                    let client = server.client();
                    let _ = server.call(client.apiserver_version()).await;
                }
            });
        })
    }

    fn both(&self, what: &str, text: &str) -> Seen {
        let file = self.path("config");
        std::fs::write(&file, text).unwrap();
        let files = [file];
        let (kubectl, cloakroom) = (self.by_kubectl(&files), self.by_cloakroom(&files));
        assert_eq!(cloakroom, kubectl, "{what}");
        cloakroom
    }
}

/// A token that expires far in the future, as a provider of OIDC gives it.
fn id_token() -> String {
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(r#"{"exp": 4000000000}"#))
}

fn script(folder: &Path, name: &str, lines: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn as_kubectl() {
    const CA: &str = "certificate-authority: ca.pem";
    const EXEC: &str = "apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never";
    let setting = Setting::new(None, signed_by_ca);
    std::fs::write(setting.path("token"), "of-a-file\n").unwrap();
    let credential = r#"{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "of-a-plugin"}}"#;
    script(setting.folder.path(), "plugin", &format!("echo '{credential}'"));
    script(setting.folder.path(), "failing", "echo no; exit 1");
    let ca = STANDARD.encode(std::fs::read(setting.path("ca.pem")).unwrap());
    let in_lines: Vec<_> = ca.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line)).collect();
    let in_lines = in_lines.join("\\n");
    let token = id_token();
    let oidc = format!(
        "auth-provider: {{name: oidc, config: {{client-id: c, idp-issuer-url: 'https://192.0.2.1', id-token: {token}}}}}"
    );
    for (cluster, user, is_sent) in [
        (CA, "token: t", true),
        (CA, "tokenFile: token", true),
        (CA, "token: t, tokenFile: token", true),
        (CA, "token: t, tokenFile: nothing", true),
        (CA, "tokenFile: nothing", false),
        (CA, "username: me, password: p", true),
        (CA, "token: t, username: '', password: ''", true),
        (CA, "token: t, username: me, password: p", false),
        (CA, "token: t, client-certificate-data: '', client-key-data: ''", true),
        (CA, &format!("exec: {{command: ./plugin, {EXEC}}}"), true),
        (CA, &format!("token: t, exec: {{command: ./plugin, {EXEC}}}"), true),
        (CA, &format!("exec: {{command: ./failing, {EXEC}}}"), false),
        (CA, &format!("exec: {{command: ./missing, {EXEC}}}"), false),
        (
            CA,
            "exec: {command: ./plugin, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Always}",
            false,
        ),
        (CA, "token: t, as: other", true),
        (CA, "token: t, as: other, as-uid: '7', as-groups: [g], as-user-extra: {scope: [a]}", true),
        (CA, &oidc, true),
        (CA, "auth-provider: {name: gcp, config: {access-token: t}}", false),
        (CA, "client-certificate: cert.pem", false),
        (&format!("certificate-authority-data: {ca}"), "token: t", true),
        (&format!("certificate-authority-data: \"{in_lines}\""), "token: t", true),
        ("certificate-authority: cert.pem", "token: t", true),
        ("certificate-authority: nothing.pem", "token: t", false),
        ("certificate-authority-data: '%'", "token: t", false),
        ("tls-server-name: api.cloakroom.test, certificate-authority: ca.pem", "token: t", true),
        ("tls-server-name: other.cloakroom.test, certificate-authority: ca.pem", "token: t", false),
        ("proxy-url: 'ftp://127.0.0.1', certificate-authority: ca.pem", "token: t", false),
        ("proxy-url: '', certificate-authority: ca.pem", "token: t", true),
    ] {
        let seen = setting.both(&format!("{cluster}, {user}"), &setting.config(cluster, user));
        assert_eq!(seen.is_some(), is_sent, "{cluster}, {user}: {seen:?}");
    }
    for scheme in ["http", "socks5"] {
        for call in [Setting::by_kubectl, Setting::by_cloakroom] {
            let proxy = setting.runtime.block_on(Proxy::start(setting.server.address()));
            let cluster = format!("{CA}, proxy-url: '{scheme}://{}'", proxy.address);
            let file = setting.path("config");
            std::fs::write(&file, setting.config(&cluster, "token: t")).unwrap();
            let seen = call(&setting, &[file]).unwrap();
            assert_eq!(seen["authorization"], "Bearer t", "{scheme}");
            // kubectl sometimes opens a second connection for its one request.
            assert_ne!(proxy.asked(), Vec::<String>::new(), "went past the proxy: {scheme}");
        }
    }
    for text in ["", "{}", "kind: Config\ncurrent-context: nowhere\n", "users: {a: [}\n"] {
        assert_eq!(setting.both(text, text), None);
    }
    merged(&setting);
    let own = Setting::new(None, self_signed);
    assert!(own.both("self-signed", &own.config("certificate-authority: cert.pem", "token: t")).is_some());
}

fn used_here_alone() {
    let clients = tempfile::tempdir().unwrap();
    let client = signed_by_ca(clients.path(), &["client"]);
    let setting = Setting::new(Some(&client.ca), signed_by_ca);
    let data = |path: &Path| STANDARD.encode(std::fs::read(path).unwrap());
    let (cert, key) = (data(&client.cert), data(&client.key));
    let shown = format!("client-certificate-data: {cert}, client-key-data: {key}");
    let ca = "certificate-authority: ca.pem";
    let both_cas = format!("{ca}, certificate-authority-data: {}", data(&setting.path("ca.pem")));
    let credential = r#"{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}"#;
    script(setting.folder.path(), "plugin", &format!("echo '{credential}'"));
    let exec = |fields: &str| format!("{shown}, exec: {{command: ./plugin, {fields}}}");
    let proxy = setting.runtime.block_on(Proxy::start(setting.server.address())).address;
    for (cluster, user) in [
        (ca, exec("apiVersion: client.authentication.k8s.io/v1")),
        (ca, exec("apiVersion: client.authentication.k8s.io/v1alpha1, interactiveMode: Never")),
        (ca, format!("{shown}, client-certificate: nowhere.pem, client-key: nowhere.pem")),
        (&both_cas, shown.clone()),
        (&format!("{ca}, proxy-url: '{proxy}'"), shown.clone()),
    ] {
        let file = setting.path("config");
        std::fs::write(&file, setting.config(cluster, &user)).unwrap();
        let files = [file];
        assert_eq!(setting.by_kubectl(&files), None, "{cluster}, {user}");
        assert!(setting.by_cloakroom(&files).is_some(), "{cluster}, {user}");
    }
}

/// Of several files the first one wins, piece by piece.
fn merged(setting: &Setting) {
    let files = ["one", "two"].map(|name| setting.path(name));
    std::fs::write(
        &files[0],
        "apiVersion: v1\nkind: Config\nusers:\n- {name: u, user: {token: of-the-first}}\n",
    )
    .unwrap();
    std::fs::write(&files[1], setting.config("certificate-authority: ca.pem", "token: of-the-second"))
        .unwrap();
    let (kubectl, cloakroom) = (setting.by_kubectl(&files), setting.by_cloakroom(&files));
    assert_eq!(cloakroom, kubectl);
    assert_eq!(cloakroom.unwrap()["authorization"], "Bearer of-the-first");
}

fn certificates() {
    let clients = tempfile::tempdir().unwrap();
    let client = signed_by_ca(clients.path(), &["client"]);
    let setting = Setting::new(Some(&client.ca), signed_by_ca);
    let data = |path: &Path| STANDARD.encode(std::fs::read(path).unwrap());
    let ca = "certificate-authority: ca.pem";
    let (cert, key) = (client.cert.display(), client.key.display());
    for (user, is_sent) in [
        (format!("client-certificate: '{cert}', client-key: '{key}'"), true),
        (
            format!(
                "client-certificate-data: {}, client-key-data: {}",
                data(&client.cert),
                data(&client.key)
            ),
            true,
        ),
        ("token: t".to_owned(), false),
        (format!("client-key: '{key}'"), false),
    ] {
        let seen = setting.both(&user, &setting.config(ca, &user));
        assert_eq!(seen.is_some(), is_sent, "{user}");
    }
}
