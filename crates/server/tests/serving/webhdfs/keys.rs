//! Who may upload: upload keys, in the path and in the name of a header.

use cloakroom_core::resource::ResourceSecret;
use cloakroom_server::http::{TokenFile, TokenUse, UploadAuth};
use cloakroom_testing::wait::until;
use reqwest::{Method, StatusCode};

use super::{CREATE, FOLDER, KEY, OTHER_FOLDER, Scene, options, refused};
use crate::support::app::Options;

/// A server that takes [`KEY`] for the namespace `spark`, and nothing without a key.
fn with_a_key(takes_plain_keys: bool) -> (tempfile::NamedTempFile, Options) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("spark {KEY}\n")).unwrap();
    let keys = TokenFile::open(file.path(), TokenUse::WebHdfs).unwrap();
    let mut options = options(|webhdfs| {
        webhdfs.keys = Some(keys);
        webhdfs.takes_plain_keys = takes_plain_keys;
    });
    let token = ResourceSecret::from_text("an-upload-token-0123456789");
    options.settings.upload_auth = UploadAuth::Token(TokenFile::made(&token, TokenUse::Upload));
    (file, options)
}

/// The server has seen that the key in this path was taken away.
async fn key_ends(scene: &Scene, path: &str) {
    let is_refused =
        async || scene.ask(Method::PUT, path, CREATE, "").await.status() == StatusCode::FORBIDDEN;
    until("the key is refused", is_refused).await;
}

#[tokio::test]
async fn an_upload_needs_the_key_of_its_namespace_and_a_read_needs_none() {
    let (keys, options) = with_a_key(false);
    let scene = Scene::new(options).await;
    let other_key = KEY.replace('_', "-");
    for (path, says) in [
        (format!("spark/{FOLDER}/app.jar"), "ask the admin"),
        (format!("spark/{other_key}/{FOLDER}/app.jar"), "no upload key of this namespace"),
        (format!("demo/{KEY}/{FOLDER}/app.jar"), "no upload key of this namespace"),
    ] {
        for query in [CREATE, &format!("{CREATE}&step=2"), "op=MKDIRS"] {
            let (status, exception, message) =
                refused(scene.ask(Method::PUT, &path, query, "jar").await).await;
            assert_eq!((status, exception.as_str()), (403, "AccessControlException"));
            assert!(message.contains(says), "{message}");
        }
    }
    scene.app.assert_nothing_kept().await;
    // The name of a header in place of a part of the path.
    let hex = |key: &str| key.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    for (key, status) in [(KEY, StatusCode::TEMPORARY_REDIRECT), (&other_key, StatusCode::FORBIDDEN)] {
        let url = scene.app.url(&format!("/webhdfs/v1/spark/{FOLDER}/app.jar?{CREATE}"));
        let request = scene.client.put(url).header(format!("X-Cloakroom-Key-{}", hex(key)), "\"\"");
        assert_eq!(request.send().await.unwrap().status(), status);
    }
    assert!(
        scene.app.metric("upload_refusals_total{reason=\"forbidden\"}").await.parse::<u64>().unwrap() > 9
    );
    scene.created(&format!("spark/{KEY}/{FOLDER}/app.jar"), b"jar").await;
    // A key that is taken away ends no job that waits for its node.
    std::fs::write(keys.path(), "spark sha256:00\n").unwrap();
    std::fs::write(keys.path(), format!("spark {other_key}\n")).unwrap();
    let path = format!("spark/{KEY}/{OTHER_FOLDER}/app.jar");
    key_ends(&scene, &path).await;
    assert_eq!(scene.read(&format!("spark/{KEY}/{FOLDER}/app.jar")).await, b"jar");
    assert_eq!(scene.read(&format!("spark/{FOLDER}/app.jar")).await, b"jar");
    // The last line can go, too.
    let path = path.replace(KEY, &other_key);
    assert_eq!(scene.ask(Method::PUT, &path, CREATE, "").await.status(), StatusCode::TEMPORARY_REDIRECT);
    std::fs::write(keys.path(), "\n").unwrap();
    key_ends(&scene, &path).await;
    // The folder is no ticket.
    let id = scene.app.staging.ready(None, 1)[0].id;
    let url = scene.app.url(&format!("/api/v1/resources/{id}"));
    for method in [Method::GET, Method::DELETE] {
        let request = scene.client.request(method, &url).bearer_auth(format!("spark/{FOLDER}"));
        assert_eq!(request.send().await.unwrap().status(), StatusCode::NOT_FOUND);
    }
}

/// Also where the proxy that passed it on is on this machine.
#[tokio::test]
async fn a_key_that_came_unencrypted_from_elsewhere_does_not_count() {
    for (scheme, client, takes_plain_keys, status) in [
        ("http", Some("203.0.113.9"), false, StatusCode::FORBIDDEN),
        ("http", Some("127.0.0.1"), false, StatusCode::FORBIDDEN),
        ("http", None, false, StatusCode::FORBIDDEN),
        ("http", None, true, StatusCode::TEMPORARY_REDIRECT),
        ("https", None, false, StatusCode::TEMPORARY_REDIRECT),
    ] {
        let (_keys, mut options) = with_a_key(takes_plain_keys);
        options.settings.trusted_proxies = "127.0.0.0/8".parse().unwrap();
        let scene = Scene::new(options).await;
        let url = scene.app.url(&format!("/webhdfs/v1/spark/{KEY}/{FOLDER}/app.jar?{CREATE}"));
        let mut request = scene.client.put(url).header("x-forwarded-proto", scheme);
        if let Some(client) = client {
            request = request.header("x-forwarded-for", client);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status, "{scheme}, {client:?}, {takes_plain_keys}");
        if status == StatusCode::FORBIDDEN {
            let (_, exception, message) = refused(answer).await;
            assert_eq!(exception, "AccessControlException");
            assert!(message.contains("--webhdfs-plain-keys"), "{message}");
        }
    }
}
