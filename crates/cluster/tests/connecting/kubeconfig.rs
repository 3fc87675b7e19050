//! Kubeconfigs: which parts of them count, and which are refused.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use cloakroom_cluster::{Access, ApiServer, Proxies};
use cloakroom_testing::logs;
use cloakroom_testing::scripted::Scripted;
use cloakroom_testing::tls::{self_signed, server_config};

use super::folder::{CredentialFolder, answer, quick, version};
use super::refused;

/// One context with these lines of a cluster and of a user, in flow form.
pub fn config(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
         contexts:\n- {{name: here, context: {{cluster: c, user: u}}}}\n- {{name: there, context: {{cluster: gone, user: u}}}}\n\
         clusters:\n- {{name: c, cluster: {{{cluster}}}}}\nusers:\n- {{name: u, user: {{{user}}}}}\n"
    )
}

pub fn access(folder: &CredentialFolder, context: Option<&str>) -> Access {
    Access::Kubeconfig {
        paths: vec![folder.path("kube/config")],
        context: context.map(str::to_owned),
        setting: "--kubeconfig".to_owned(),
        proxies: Proxies::default(),
    }
}

pub async fn in_clear() -> Scripted {
    Scripted::start(|_, _| answer(200, "{}").into()).await
}

pub fn last_token(server: &Scripted) -> Option<String> {
    server.requests().last().unwrap().header("authorization").map(str::to_owned)
}

#[tokio::test]
async fn files_beside_a_kubeconfig_and_data_in_it_are_the_same() {
    let folder = CredentialFolder::new();
    let pem = folder.certificate("kube");
    let client = folder.certificate("kube/client");
    let server =
        Scripted::start_tls(server_config(&pem, Some(&client.ca)), |_, _| answer(200, "{}").into()).await;
    let inline = |path| STANDARD.encode(std::fs::read(path).unwrap());
    let address = server.url();
    for (cluster, user) in [
        (
            format!("server: '{address}', certificate-authority: ca.pem"),
            "client-certificate: client/cert.pem, client-key: client/key.pem".to_owned(),
        ),
        (
            // In lines, as some tools write it.
            format!(
                "server: '{address}', certificate-authority-data: \"{}\"",
                inline(&pem.ca)
                    .as_bytes()
                    .chunks(64)
                    .map(|line| String::from_utf8_lossy(line))
                    .collect::<Vec<_>>()
                    .join("\\n")
            ),
            format!(
                "client-certificate-data: {}, client-key-data: {}",
                inline(&client.cert),
                inline(&client.key)
            ),
        ),
    ] {
        folder.write("kube/config", &config(&cluster, &user));
        version(&ApiServer::connect(&access(&folder, None)).unwrap()).await.unwrap();
    }
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_self_signed_certificate_may_be_the_certificate_authority() {
    let folder = CredentialFolder::new();
    std::fs::create_dir_all(folder.path("kube")).unwrap();
    let pem = self_signed(&folder.path("kube"), &["127.0.0.1"]);
    let server = Scripted::start_tls(server_config(&pem, None), |_, _| answer(200, "{}").into()).await;
    let cluster = format!("server: '{}', certificate-authority: ", server.url());
    folder.write("kube/config", &config(&format!("{cluster} cert.pem"), ""));
    version(&ApiServer::connect(&access(&folder, None)).unwrap()).await.unwrap();
    folder.certificate("kube/other");
    folder.write("kube/config", &config(&format!("{cluster} other/ca.pem"), ""));
    let failure = version(&ApiServer::connect(&access(&folder, None)).unwrap()).await.unwrap_err();
    assert!(failure.to_string().contains("not signed by a CA that is trusted"), "{failure}");
}

#[tokio::test]
async fn tokens_passwords_and_impersonation_are_sent() {
    let folder = CredentialFolder::new();
    let server = in_clear().await;
    let cluster = format!("server: '{}'", server.url());
    folder.write("kube/token", "of-a-file\n");
    let shown = async |user: &str| {
        folder.write("kube/config", &config(&cluster, user));
        version(&ApiServer::connect(&access(&folder, Some("here"))).unwrap()).await.unwrap();
        last_token(&server)
    };
    assert_eq!(shown("token: of-the-config").await.as_deref(), Some("Bearer of-the-config"));
    assert_eq!(shown("tokenFile: token").await.as_deref(), Some("Bearer of-a-file"));
    assert_eq!(shown("username: me, password: s3cret").await.as_deref(), Some("Basic bWU6czNjcmV0"));
    assert_eq!(shown("as: somebody").await, None);
    assert_eq!(server.requests().last().unwrap().header("impersonate-user"), Some("somebody"));
}

#[tokio::test]
async fn an_empty_text_is_absent_and_of_several_credentials_kubectls_counts() {
    let folder = CredentialFolder::new();
    let server = in_clear().await;
    let cluster = format!(
        "server: '{}', certificate-authority: '', certificate-authority-data: '', tls-server-name: '', proxy-url: ''",
        server.url()
    );
    folder.write("kube/token", "of-a-file\n");
    const EMPTY: &str = "username: '', password: '', tokenFile: '', client-certificate: '', client-key: '', \
                         client-certificate-data: '', client-key-data: '', as: '', as-uid: ''";
    for (user, expected) in [
        (format!("token: t, {EMPTY}"), Some("Bearer t")),
        (EMPTY.to_owned(), None),
        ("token: t, tokenFile: token".to_owned(), Some("Bearer of-a-file")),
        ("token: t, tokenFile: nothing".to_owned(), Some("Bearer t")),
        ("username: me".to_owned(), Some("Basic bWU6")),
        ("token: t, exec: {command: ./nothing}".to_owned(), Some("Bearer t")),
    ] {
        folder.write("kube/config", &config(&cluster, &user));
        version(&ApiServer::connect(&access(&folder, None)).unwrap()).await.unwrap();
        assert_eq!(last_token(&server).as_deref(), expected, "{user}");
        assert_eq!(server.requests().last().unwrap().header("impersonate-user"), None);
    }
    folder.write("kube/config", &config(&cluster, "token: s3cret, username: me, password: s3cret"));
    let said = refused(&access(&folder, None));
    assert!(said.contains("both the token of the user “u”") && !said.contains("s3cret"), "{said}");
}

#[tokio::test]
async fn the_token_of_oidc_is_used_until_it_expires() {
    let folder = CredentialFolder::new();
    let server = in_clear().await;
    let cluster = format!("server: '{}'", server.url());
    let token = |expires_at: i64| {
        let claims = format!("{{\"sub\": \"s3cret\", \"exp\": {expires_at}}}");
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
    };
    let user = |token: &str| format!("auth-provider: {{name: oidc, config: {{id-token: {token}}}}}");
    let good = token(4_000_000_000);
    folder.write("kube/config", &config(&cluster, &user(&good)));
    version(&ApiServer::connect(&access(&folder, None)).unwrap()).await.unwrap();
    assert_eq!(last_token(&server), Some(format!("Bearer {good}")));
    for (user, says) in [
        (user(&token(1_000_000_000)), "the id-token in auth-provider of the user “u”"),
        (
            user(&token(1_000_000_000)),
            "has expired at 2001-09-09T01:46:40Z, and is not renewed here: run kubectl",
        ),
        (user("''"), "has no id-token: run kubectl once"),
        ("auth-provider: {name: gcp, config: {access-token: s3cret}}".to_owned(), "is not supported (gcp)"),
    ] {
        folder.write("kube/config", &config(&cluster, &user));
        let said = refused(&access(&folder, None));
        assert!(said.contains(says) && !said.contains("s3cret") && !said.contains("c2ln"), "{said}");
    }
}

#[test]
fn of_several_files_the_one_that_is_broken_is_named() {
    let folder = CredentialFolder::new();
    let good = folder.write("good", "apiVersion: v1\nkind: Config\n");
    let broken = folder.write("broken", "apiVersion: v1\nusers: {s3cret: [}\n");
    let access = Access::Kubeconfig {
        paths: vec![good.clone(), broken.clone()],
        context: None,
        setting: "KUBECONFIG".to_owned(),
        proxies: Proxies::default(),
    };
    let said = refused(&access);
    let (good, broken) = (good.display().to_string(), broken.display().to_string());
    assert!(said.contains(&broken) && !said.contains(&good) && said.contains("line 2"), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
}

#[tokio::test]
async fn a_kubeconfig_is_read_again_and_a_new_address_in_it_is_not_followed() {
    logs::capture();
    let folder = CredentialFolder::new();
    let (server, other) = (in_clear().await, in_clear().await);
    let cluster = format!("server: '{}'", server.url());
    folder.write("kube/token", "of-a-file");
    folder.write("kube/config", &config(&cluster, "tokenFile: token"));
    let asked = ApiServer::connect_with(&access(&folder, None), quick()).unwrap();
    version(&asked).await.unwrap();
    assert_eq!(last_token(&server).as_deref(), Some("Bearer of-a-file"));
    folder.replace("kube/token", "of-another-file");
    version(&asked).await.unwrap();
    assert_eq!(last_token(&server).as_deref(), Some("Bearer of-another-file"));
    folder.replace("kube/config", &config(&cluster, "token: of-the-config"));
    version(&asked).await.unwrap();
    assert_eq!(last_token(&server).as_deref(), Some("Bearer of-the-config"));
    folder.replace("kube/config", &config(&format!("server: '{}'", other.url()), "token: of-the-other"));
    version(&asked).await.unwrap();
    assert_eq!(last_token(&server).as_deref(), Some("Bearer of-the-config"));
    assert!(other.requests().is_empty());
    let said = logs::lines_with(&format!("another API server now, {}", other.url()));
    assert_eq!(said.len(), 1, "{said:?}");
}

#[tokio::test]
async fn what_is_not_there_or_not_supported_is_said_and_no_secret_with_it() {
    let folder = CredentialFolder::new();
    let good = "server: 'https://192.0.2.1'";
    let plugin = "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Always}";
    for (cluster, user, context, says) in [
        (good, "token: s3cret", Some("nowhere"), &["no context “nowhere”", "“here”"][..]),
        (good, "token: s3cret", Some("there"), &["no cluster “gone”", "“c”"]),
        (
            "server: 'https://192.0.2.1', insecure-skip-tls-verify: true",
            "token: s3cret",
            None,
            &["insecure-skip-tls-verify", "“c”"],
        ),
        (
            "server: 'https://192.0.2.1', proxy-url: 'ftp://p:1'",
            "token: s3cret",
            None,
            &["proxy-url of the cluster “c”", "is not the address of a proxy"],
        ),
        (
            "server: 'http://127.0.0.1', proxy-url: 'http://192.0.2.1'",
            "token: s3cret",
            None,
            &["token of the user “u”", "in clear"],
        ),
        ("server: 'http://192.0.2.1'", "token: s3cret", None, &["token of the user “u”", "in clear"]),
        (
            "server: 'http://192.0.2.1'",
            "username: a, password: s3cret",
            None,
            &["password of the user “u”", "in clear"],
        ),
        ("server: 'http://192.0.2.1'", "exec: {command: sh}", None, &["exec", "in clear"]),
        ("", "token: s3cret", None, &["server of the cluster “c”"]),
        (
            "server: 'https://192.0.2.1', certificate-authority: none.pem",
            "",
            None,
            &["none.pem", "certificate-authority of the cluster “c”"],
        ),
        (
            "server: 'https://192.0.2.1', certificate-authority-data: '%'",
            "",
            None,
            &["certificate-authority-data", "base64"],
        ),
        (
            good,
            "client-certificate-data: czNjcmV0",
            None,
            &["client-certificate-data of the user “u”", "client-key"],
        ),
        (good, plugin, None, &["of the user “u”", "must ask a question"]),
        (good, "token: {s3cret: [}", None, &["YAML", "line 10"]),
        (
            good,
            "token: s3cret, token: s3cret",
            None,
            &["the key `token` is there twice in one map, the second time in line 10: remove one of them"],
        ),
    ] {
        let path = folder.write("kube/config", &config(cluster, user)).display().to_string();
        let said = refused(&access(&folder, context));
        for says in [says, &[path.as_str()]].concat() {
            assert!(said.contains(says), "{cluster}, {user}: “{says}” is missing: {said}");
        }
        assert!(!said.contains("s3cret"), "{said}");
    }
    folder.write("kube/config", "");
    assert!(refused(&access(&folder, None)).contains("no current context"));
    std::fs::remove_file(folder.path("kube/config")).unwrap();
    assert!(refused(&access(&folder, None)).contains("No such file"));
}

#[tokio::test]
async fn an_error_that_repeats_the_credential_comes_without_it() {
    let server = Scripted::start(|_, request| {
        let shown = request.header("authorization").unwrap_or_default();
        let status =
            format!(r#"{{"kind": "Status", "status": "Failure", "code": 403, "message": "no {shown}"}}"#);
        answer(403, &status).into()
    })
    .await;
    let folder = CredentialFolder::new();
    for user in ["token: a-token-of-some-length", "username: me, password: a-password"] {
        folder.write("kube/config", &config(&format!("server: '{}'", server.url()), user));
        let asked = ApiServer::connect_with(&access(&folder, None), quick()).unwrap();
        let said = version(&asked).await.unwrap_err().to_string();
        assert!(said.contains("[hidden]"), "{said}");
        let sent = last_token(&server).unwrap();
        assert!(!said.contains(sent.split_once(' ').unwrap().1), "{said}");
    }
}
