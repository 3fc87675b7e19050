//! Proxies on the way to the API server: of the kubeconfig, and of the environment.

use cloakroom_cluster::{Access, ApiServer, Proxies};
use cloakroom_testing::proxy::Proxy;
use cloakroom_testing::scripted::{Scripted, closed_port};
use cloakroom_testing::tls::{server_config, signed_by_ca};

use super::folder::{CredentialFolder, answer, quick, version};
use super::kubeconfig::config;

/// A name that only the proxy knows.
const NAME: &str = "api.cloakroom.test";

/// An API server with a certificate for [`NAME`], a kubeconfig for it, and its port.
async fn behind_a_proxy(folder: &CredentialFolder) -> Scripted {
    std::fs::create_dir_all(folder.path("kube")).unwrap();
    let pem = signed_by_ca(&folder.path("kube"), &[NAME, "127.0.0.1"]);
    Scripted::start_tls(server_config(&pem, None), |_, _| answer(200, "{}").into()).await
}

fn access(folder: &CredentialFolder, port: u16, proxy_url: &str, proxies: Proxies) -> Access {
    let cluster =
        format!("server: 'https://{NAME}:{port}', certificate-authority: ca.pem, proxy-url: '{proxy_url}'");
    folder.write("kube/config", &config(&cluster, "token: s3cret"));
    Access::Kubeconfig {
        paths: vec![folder.path("kube/config")],
        context: None,
        setting: "--kubeconfig".to_owned(),
        proxies,
    }
}

fn environment(variables: &[(&str, &str)]) -> Proxies {
    let value = |wanted: &str| variables.iter().find(|(name, _)| *name == wanted);
    Proxies::from_variables(|wanted| value(wanted).map(|(_, value)| (*value).to_owned()))
}

async fn call(access: &Access) -> Result<(), String> {
    let server = ApiServer::connect_with(access, quick()).unwrap();
    version(&server).await.map_err(|failure| failure.to_string())
}

#[tokio::test]
async fn the_kubeconfigs_proxy_of_any_kind_wins_over_the_environments() {
    let folder = CredentialFolder::new();
    let server = behind_a_proxy(&folder).await;
    let port = server.address().port();
    // Trusted as the API server is, as kubectl does.
    let pem = folder.certificate("proxy");
    let joined =
        [folder.path("kube/ca.pem"), pem.ca.clone()].map(|path| std::fs::read_to_string(path).unwrap());
    folder.write("kube/ca.pem", &joined.concat());
    let elsewhere = format!("http://127.0.0.1:{}", closed_port());
    for (scheme, asked) in [
        ("http", format!("CONNECT {NAME}:{port} HTTP/1.1")),
        ("https", format!("CONNECT {NAME}:{port} HTTP/1.1")),
        ("socks5", format!("socks5 {NAME}:{port}")),
        ("socks5h", format!("socks5 {NAME}:{port}")),
    ] {
        let proxy = match scheme {
            "https" => Proxy::start_tls(server.address(), server_config(&pem, None)).await,
            _ => Proxy::start(server.address()).await,
        };
        let login = if scheme.starts_with("http") { "me:pass@" } else { "" };
        let url = format!("{scheme}://{login}{}", proxy.address);
        call(&access(&folder, port, &url, environment(&[("HTTPS_PROXY", &elsewhere)]))).await.unwrap();
        let [seen] = &proxy.asked()[..] else { panic!("{:?}", proxy.asked()) };
        assert!(seen.starts_with(&asked), "{seen}");
        assert_eq!(seen.contains("Basic bWU6cGFzcw=="), !login.is_empty(), "{seen}");
        assert!(!seen.contains("s3cret"), "{seen}");
    }
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn the_environments_proxy_is_used_unless_no_proxy_says_otherwise() {
    let folder = CredentialFolder::new();
    let server = behind_a_proxy(&folder).await;
    let proxy = Proxy::start(server.address()).await;
    let port = server.address().port();
    let set = ("https_proxy", &*proxy.address.to_string());
    call(&access(&folder, port, "", environment(&[set]))).await.unwrap();
    assert_eq!(proxy.asked().len(), 1);
    let refused =
        call(&access(&folder, port, "", environment(&[set, ("NO_PROXY", ".cloakroom.test")]))).await;
    let refused = refused.unwrap_err();
    assert!(refused.contains("cannot be reached") && !refused.contains("proxy"), "{refused}");
    assert_eq!(proxy.asked().len(), 1);
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_named_with_the_setting_that_names_it() {
    let folder = CredentialFolder::new();
    behind_a_proxy(&folder).await;
    let dead = format!("127.0.0.1:{}", closed_port());
    let of_config =
        call(&access(&folder, 6443, &format!("http://me:s3cret@{dead}"), Proxies::default())).await;
    let of_config = of_config.unwrap_err();
    let named = format!("no connection through the proxy http://{dead} (proxy-url of the cluster “c”");
    assert!(of_config.contains(&named) && of_config.contains("refused"), "{of_config}");
    let of_environment = call(&access(&folder, 6443, "", environment(&[("ALL_PROXY", &dead)]))).await;
    let of_environment = of_environment.unwrap_err();
    assert!(
        of_environment.contains(&format!("through the proxy http://{dead} (ALL_PROXY)")),
        "{of_environment}"
    );
    assert!(!of_config.contains("s3cret"), "{of_config}");
}

#[tokio::test]
async fn a_proxy_that_wants_a_login_gets_the_right_one_and_says_so_otherwise() {
    let folder = CredentialFolder::new();
    let server = behind_a_proxy(&folder).await;
    let proxy = Proxy::start_with_login(server.address(), "me:s3cret").await.address;
    let port = server.address().port();
    for scheme in ["http", "socks5"] {
        let called = async |login: &str| {
            call(&access(&folder, port, &format!("{scheme}://{login}{proxy}"), Proxies::default())).await
        };
        called("me:s3cret@").await.unwrap();
        for (login, says) in
            [("", "it wants a user and a password"), ("me:wr0ng@", "it does not accept this user")]
        {
            let refused = called(login).await.unwrap_err();
            assert!(refused.contains(says) && refused.contains("proxy-url of the cluster"), "{refused}");
            assert!(!refused.contains("wr0ng"), "{refused}");
        }
    }
    assert_eq!(server.requests().len(), 2);
}
