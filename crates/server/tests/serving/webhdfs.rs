//! What stock Spark asks for where `spark.kubernetes.file.upload.path` names this server.

mod keys;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloakroom_core::metrics::Metrics;
use cloakroom_server::cleaner::Policy;
use cloakroom_server::http::{Edge, Listener, ServerTls, Serves, Settings, WebHdfs};
use cloakroom_server::shutdown::Shutdown;
use cloakroom_testing::logs;
use cloakroom_testing::noise::noise;
use cloakroom_testing::tls::self_signed;
use cloakroom_testing::wait::{until, until_true};
use cloakroom_testing::wire::Wire;
use reqwest::redirect;
use reqwest::{Body, Client, Method, Response, StatusCode};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::TestApp;
use crate::support::app::Options;
use crate::support::watched::{MINUTE, SECOND};

const KEY: &str = "token-0123456789abcdefghijABCDEFGHIJ_-";
const FOLDER: &str = "spark-upload-4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1";
const OTHER_FOLDER: &str = "spark-upload-4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b2";

const CREATE: &str = "op=CREATE&user.name=ada&permission=644&overwrite=true";
const OPEN: &str = "op=OPEN&user.name=ada&buffersize=65536";

/// A server with WebHDFS, and Hadoop's client, which follows no address before it has looked at it.
struct Scene {
    app: TestApp,
    client: Client,
}

fn options(change: impl FnOnce(&mut WebHdfs)) -> Options {
    let mut webhdfs = WebHdfs::default();
    change(&mut webhdfs);
    let options = Options::default();
    Options { settings: Settings { webhdfs: Some(Arc::new(webhdfs)), ..options.settings }, ..options }
}

impl Scene {
    async fn new(options: Options) -> Self {
        let app = TestApp::start_with(options).await;
        Self::of(app)
    }

    fn of(app: TestApp) -> Self {
        for secret in [KEY, FOLDER, OTHER_FOLDER] {
            app.keep_secret(secret);
        }
        let client = Client::builder().no_proxy().redirect(redirect::Policy::none());
        Self {
            app,
            client: client.tls_backend_preconfigured(cloakroom_testing::tls::no_roots()).build().unwrap(),
        }
    }

    /// The answer, which has no content type and is no 401.
    async fn ask(&self, method: Method, path: &str, query: &str, body: impl Into<Body>) -> Response {
        let url = self.app.url(&format!("/webhdfs/v1/{path}?{query}"));
        self.send(method, &url, body).await
    }

    async fn send(&self, method: Method, url: &str, body: impl Into<Body>) -> Response {
        let response = self.client.request(method, url).body(body).send().await.unwrap();
        assert!(response.headers().get("content-type").is_none(), "{url}: {response:?}");
        assert_ne!(response.status(), StatusCode::UNAUTHORIZED, "{url}");
        response
    }

    /// Both steps of an operation.
    async fn in_two_steps(&self, method: Method, path: &str, query: &str, body: impl Into<Body>) -> Response {
        let first = self.ask(method.clone(), path, query, "").await;
        if first.status() != StatusCode::TEMPORARY_REDIRECT {
            return first;
        }
        let location = first.headers()["location"].to_str().unwrap().to_owned();
        self.send(method, &location, body).await
    }

    async fn create(&self, path: &str, bytes: &[u8]) -> Response {
        // Without a length, as Hadoop's client sends it.
        let pieces: Vec<Result<Vec<u8>, std::io::Error>> =
            bytes.chunks(10_000).map(|piece| Ok(piece.to_vec())).collect();
        let body = Body::wrap_stream(futures_util::stream::iter(pieces));
        self.in_two_steps(Method::PUT, path, CREATE, body).await
    }

    /// What `create` must come to.
    async fn created(&self, path: &str, bytes: &[u8]) {
        let response = self.create(path, bytes).await;
        assert_eq!(response.status(), StatusCode::CREATED, "{}", response.text().await.unwrap());
    }

    async fn open(&self, path: &str, more: &str) -> Response {
        self.in_two_steps(Method::GET, path, &format!("{OPEN}{more}"), "").await
    }

    async fn read(&self, path: &str) -> Vec<u8> {
        let response = self.open(path, "").await;
        assert_eq!(response.status(), StatusCode::OK);
        response.bytes().await.unwrap().to_vec()
    }

    /// The state of the one row that there is.
    async fn is_kept(&self) -> bool {
        self.app.rows().await == BTreeMap::from([("ready", 1)])
    }

    async fn is_read_once_more(&self) {
        let listed = || self.app.staging.ready(None, 1)[0].life.last_used_at;
        let now = self.app.staging.readings().wall();
        until_true("the read is noted", || listed().is_some_and(|at| at >= now)).await;
    }
}

/// What a `RemoteException` says: status, exception and message.
async fn refused(response: Response) -> (u16, String, String) {
    let status = response.status().as_u16();
    let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    let text = |name: &str| body["RemoteException"][name].as_str().unwrap().to_owned();
    assert!(text("javaClassName").ends_with(&text("exception")), "{body}");
    (status, text("exception"), text("message"))
}

// Invariant: stock Spark of both versions uploads and reads by one property; what it uploads waits for its driver and
// goes after its last reader; no answer to it has a content type.
#[tokio::test]
async fn what_spark_uploads_is_what_its_driver_reads() {
    let scene = Scene::new(options(|_| {})).await;
    let (folder, bytes) = (format!("spark/{FOLDER}"), noise(300_000));
    let file = format!("{folder}/d%C3%A4ta+1~&=;.jar");
    let made = scene.ask(Method::PUT, &folder, "op=MKDIRS&permission=755", "").await;
    assert_eq!((made.status(), made.text().await.unwrap().as_str()), (StatusCode::OK, "{\"boolean\":true}"));
    let status = async || scene.ask(Method::GET, &file, "op=GETFILESTATUS", "").await;
    let (code, exception, _) = refused(status().await).await;
    assert_eq!((code, exception.as_str()), (404, "FileNotFoundException"));
    scene.created(&file, &bytes).await;
    let found: Value = serde_json::from_slice(&status().await.bytes().await.unwrap()).unwrap();
    assert_eq!(
        (&found["FileStatus"]["length"], &found["FileStatus"]["type"]),
        (&300_000.into(), &"FILE".into())
    );
    assert_eq!(scene.app.staging.ready(None, 1)[0].life.last_used_at, None, "nothing of that is a read");
    assert!(scene.read(&file).await == bytes);
    let rest = scene.open(&file, "&offset=299990").await;
    assert_eq!(rest.headers()["content-length"], "10");
    assert!(rest.bytes().await.unwrap() == bytes[299_990..]);
    let part = scene.open(&file, "&offset=7&length=5").await.bytes().await.unwrap();
    assert_eq!(part, bytes[7..12]);
    assert_eq!(scene.open(&file, "&offset=300000").await.bytes().await.unwrap(), "");
    let row = scene.app.staging.ready(None, 1).remove(0);
    let row = scene.app.ready_row(&row.id.to_string()).await;
    assert_eq!(row.data.arrival.file_name.unwrap().as_str(), "däta+1~&=;.jar");
    assert_eq!((row.data.owner.namespace(), row.data.owner.has_objects()), ("spark", false));
    scene.created(&format!("spark/{OTHER_FOLDER}/empty.py"), b"").await;
    assert_eq!(scene.read(&format!("spark/{OTHER_FOLDER}/empty.py")).await, b"");
}

/// Java sends a name as it is, and reads the header as Latin-1.
#[tokio::test]
async fn a_name_that_comes_raw_goes_back_in_ascii() {
    let scene = Scene::new(options(|_| {})).await;
    let mut stream = TcpStream::connect(scene.app.address).await.unwrap();
    let head = format!(
        "PUT /webhdfs/v1/spark/{FOLDER}/é+x.jar?{CREATE} HTTP/1.1\r\nHost: cloakroom.test:1234\r\nContent-Length: 0\r\n"
    );
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let location = format!(
        "\r\nlocation: http://cloakroom.test:1234/webhdfs/v1/spark/{FOLDER}/%C3%A9+x.jar?{CREATE}&step=2\r\n"
    );
    assert!(answer.starts_with("HTTP/1.1 307 ") && answer.contains(&location), "{answer}");
    let mut stream = TcpStream::connect(scene.app.address).await.unwrap();
    stream.write_all(head.replace("cloakroom.test:1234", "").as_bytes()).await.unwrap();
    stream.write_all(b"Connection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("header Host"), "{answer}");
    assert!(!answer.to_ascii_lowercase().contains("content-type"), "{answer}");
}

#[tokio::test]
async fn the_second_step_is_where_the_client_has_come_from() {
    let of = |change: &dyn Fn(&mut Settings)| {
        let mut options = options(|_| {});
        change(&mut options.settings);
        options
    };
    let trusts = |settings: &mut Settings| settings.trusted_proxies = "127.0.0.0/8".parse().unwrap();
    let is_public =
        |settings: &mut Settings| settings.public_url = Some("https://public.test:444".parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let pem = self_signed(folder.path(), &["::1"]);
    let tls = ServerTls::open(&pem.cert, &pem.key).unwrap();
    for (options, host, told, begins) in [
        (of(&|_| {}), "a.test:1", Some("https"), "http://a.test:1/webhdfs/v1/"),
        (of(&trusts), "a.test", Some("https"), "https://a.test/webhdfs/v1/"),
        (of(&trusts), "a.test", None, "http://a.test/webhdfs/v1/"),
        (
            of(&|settings| settings.public_url = Some("https://a.test:443".parse().unwrap())),
            "a.test",
            None,
            "https://a.test/",
        ),
        (of(&is_public), "public.test:444", None, "https://public.test:444/webhdfs/v1/"),
        (of(&is_public), "other.test:444", None, "http://other.test:444/webhdfs/v1/"),
        (of(&|settings| settings.tls = Some(tls.clone())), "[::1]:9", None, "https://[::1]:9/webhdfs/v1/"),
    ] {
        let scene = Scene::new(options).await;
        let url = scene.app.url(&format!("/webhdfs/v1/spark/{FOLDER}/app.jar?{CREATE}"));
        let mut request = scene.client.put(url).header("host", host);
        if let Some(told) = told {
            request = request.header("x-forwarded-proto", told);
        }
        let answer = request.send().await.unwrap();
        let location = answer.headers()["location"].to_str().unwrap();
        assert!(location.starts_with(begins), "{location}");
    }
    let scene = Scene::new(of(&|_| {})).await;
    for host in [":80", "a.test:abc", "user@a.test", "a.test/x"] {
        let url = scene.app.url(&format!("/webhdfs/v1/spark/{FOLDER}/app.jar?{CREATE}"));
        let answer = scene.client.put(url).header("host", host).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{host}");
    }
}

#[tokio::test]
async fn a_folder_takes_one_file_once() {
    let scene = Scene::new(options(|_| {})).await;
    let file = format!("spark/{FOLDER}/app.jar");
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Vec<u8>, std::io::Error>>(1);
    let body = Body::wrap_stream(futures_util::stream::unfold(receiver, async |mut receiver| {
        Some((receiver.recv().await?, receiver))
    }));
    let taken = async |step: &str| {
        let answer = scene.ask(Method::PUT, &file, &format!("{CREATE}{step}"), "others").await;
        let (code, exception, message) = refused(answer).await;
        assert_eq!((code, exception.as_str()), (403, "FileAlreadyExistsException"));
        assert!(message.contains("this folder has or had a file already"), "{message}");
    };
    let uploading = scene.in_two_steps(Method::PUT, &file, CREATE, body);
    let meanwhile = async {
        sender.send(Ok(b"first".to_vec())).await.unwrap();
        until("the upload has begun", async || !scene.app.rows().await.is_empty()).await;
        taken("").await;
        taken("&step=2").await;
        assert_eq!(
            scene.ask(Method::GET, &file, "op=GETFILESTATUS", "").await.status(),
            StatusCode::NOT_FOUND
        );
        drop(sender);
    };
    let (uploaded, ()) = tokio::join!(uploading, meanwhile);
    assert_eq!(uploaded.status(), StatusCode::CREATED);
    taken("").await;
    taken("&step=2").await;
    assert_eq!(
        scene.ask(Method::PUT, &format!("spark/{FOLDER}"), "op=MKDIRS", "").await.status(),
        StatusCode::OK
    );
    assert_eq!(scene.read(&file).await, b"first");
}

#[tokio::test]
async fn what_spark_does_not_do_is_refused_in_words_that_it_shows() {
    let scene = Scene::new(options(|_| {})).await;
    let (folder, file) = (format!("spark/{FOLDER}"), format!("spark/{FOLDER}/app.jar"));
    for (method, path, query, status, says) in [
        (Method::GET, &*folder, "op=LISTSTATUS", 403, "it is no file system"),
        (Method::DELETE, &file, "op=DELETE", 403, "it is no file system"),
        (Method::HEAD, &file, OPEN, 403, ""),
        (Method::PUT, &folder, CREATE, 403, "name the file"),
        (Method::GET, &file, OPEN, 404, "submit again"),
        (Method::GET, &file, "op=OPEN&step=2&offset=x", 403, "numbers of bytes"),
        (Method::PUT, "spark/spark-upload-1/app.jar", CREATE, 403, "UUID"),
        (Method::PUT, "Spark/x", CREATE, 403, "namespace"),
        (Method::PUT, "spark/team/x/app.jar", CREATE, 403, "webhdfs://HOST:PORT/NAMESPACE"),
        (Method::GET, "", "op=GETFILESTATUS", 404, "no path of a file"),
        (Method::PUT, &format!("{folder}/my%20app.jar"), CREATE, 403, "rename the file"),
        (
            Method::PUT,
            "token-0123456789abcdefghijabcdefghij/spark-upload-x/app.jar",
            CREATE,
            403,
            "namespace",
        ),
    ] {
        let response = scene.ask(method.clone(), path, query, "").await;
        assert_eq!(response.status().as_u16(), status, "{method} {path} {query}");
        if method != Method::HEAD {
            let (_, _, message) = refused(response).await;
            assert!(message.contains(says), "{message}");
        }
    }
    scene.app.assert_nothing_kept().await;
    let doubled = scene.app.url(&format!("//webhdfs/v1/{file}?{CREATE}"));
    assert_eq!(scene.send(Method::PUT, &doubled, "").await.status(), StatusCode::NOT_FOUND);
    let off = Scene::new(Options::default()).await;
    let (status, exception, _) = refused(off.ask(Method::PUT, &file, CREATE, "").await).await;
    assert_eq!((status, exception.as_str()), (404, "FileNotFoundException"));
}

#[tokio::test]
async fn a_file_waits_for_its_driver_and_goes_some_time_after_its_last_read() {
    let policy = Policy { max_unused: 100 * MINUTE, ..Policy::default() };
    let scene = Scene::new(Options { policy, ..options(|_| {}) }).await;
    let file = format!("spark/{FOLDER}/app.jar");
    scene.created(&file, &noise(100_000)).await;
    let pass = async |time: Duration| {
        scene.app.clock.advance(time);
        scene.app.sweep().await;
        scene.is_kept().await
    };
    // A queued driver, whose file someone looks at and reads in part.
    assert!(pass(90 * MINUTE).await);
    assert_eq!(scene.open(&file, "&length=99999").await.bytes().await.unwrap().len(), 99_999);
    assert_eq!(scene.open(&file, "&offset=100000").await.bytes().await.unwrap().len(), 0);
    assert_eq!(scene.app.staging.ready(None, 1)[0].life.last_used_at, None);
    scene.read(&file).await;
    scene.is_read_once_more().await;
    assert!(pass(30 * MINUTE - SECOND).await);
    scene.open(&file, "&offset=99999").await.bytes().await.unwrap();
    scene.is_read_once_more().await;
    assert!(pass(30 * MINUTE - SECOND).await);
    assert!(!pass(SECOND).await);
    assert_eq!(scene.app.rows().await, BTreeMap::new(), "without a tombstone");
    assert_eq!(scene.open(&file, "").await.status(), StatusCode::NOT_FOUND);
    // A late driver looks for its file there, and must not find another one.
    let answer = scene.create(&file, b"others").await;
    assert_eq!(refused(answer).await.1, "FileAlreadyExistsException");

    let unread = format!("spark/{OTHER_FOLDER}/app.jar");
    scene.created(&unread, b"jar").await;
    assert!(pass(100 * MINUTE - SECOND).await);
    assert!(!pass(SECOND).await);
}

#[tokio::test]
async fn the_time_after_a_read_begins_anew_with_a_server() {
    let scene = Scene::new(options(|_| {})).await;
    let file = format!("spark/{FOLDER}/app.jar");
    scene.created(&file, b"jar").await;
    scene.read(&file).await;
    scene.is_read_once_more().await;
    scene.app.clock.advance(29 * MINUTE);
    let (directory, clock) = scene.app.end().await;
    clock.advance(29 * MINUTE);
    let scene = Scene::of(TestApp::start_on(directory, clock, options(|_| {})).await);
    scene.app.sweep().await;
    assert!(scene.is_kept().await);
    scene.app.clock.advance(30 * MINUTE);
    scene.app.sweep().await;
    assert!(!scene.is_kept().await);
}

#[tokio::test]
async fn a_file_that_is_kept_too_late_for_its_client_is_not_kept() {
    let scene = Scene::new(options(|webhdfs| webhdfs.answer_within = Duration::ZERO)).await;
    let file = format!("spark/{FOLDER}/app.jar");
    let (status, exception, message) = refused(scene.create(&file, b"jar").await).await;
    assert_eq!((status, exception.as_str()), (503, "RetriableException"));
    assert!(message.contains("too long"), "{message}");
    until("nothing is kept", async || scene.app.rows().await.is_empty()).await;
    scene.app.assert_nothing_kept().await;
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_nothing_and_can_come_again() {
    let scene = Scene::new(options(|_| {})).await;
    let file = format!("spark/{FOLDER}/app.jar");
    let first = scene.ask(Method::PUT, &file, CREATE, "").await;
    let location = first.headers()["location"].to_str().unwrap().to_owned();
    let pieces = [Ok(noise(100_000)), Err(std::io::Error::other("the laptop is shut"))];
    let body = Body::wrap_stream(futures_util::stream::iter(pieces));
    assert!(scene.client.put(location).body(body).send().await.is_err());
    until("nothing is kept", async || scene.app.rows().await.is_empty()).await;
    scene.app.assert_nothing_kept().await;
    scene.created(&file, b"jar").await;
}

/// Hadoop's client tries again, if it may, and shows the sentence otherwise.
#[tokio::test]
async fn a_server_that_starts_or_stops_says_so_in_the_same_form() {
    logs::capture();
    let shutdown = Shutdown::default();
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let listener = Listener { socket, tls: None, serves: Serves::Everything };
    let connections = Options::default().connections;
    let edge = Edge::open(vec![listener], connections, &Metrics::new(), &shutdown);
    let mut scene = Scene::new(options(|_| {})).await;
    let file = format!("spark/{KEY}/{FOLDER}/app.jar");
    let starting = format!("http://{address}/webhdfs/v1/{file}?{CREATE}");
    let (status, exception, message) = refused(scene.send(Method::PUT, &starting, "").await).await;
    assert_eq!((status, exception.as_str()), (503, "RetriableException"));
    assert!(message.contains("this server is starting"), "{message}");
    edge.close().await;
    // A connection of its own, which the server has to end with an answer.
    let mut wire = Wire::connect(scene.app.address).await;
    scene.app.shutdown.request();
    assert!(wire.send(format!("GET /webhdfs/v1/{file}?{OPEN} HTTP/1.1\r\nHost: x\r\n\r\n")).await);
    let answer = wire.answer().await;
    assert_eq!((answer.status, answer.header("content-type")), (503, ""));
    assert!(
        answer.text().contains("RetriableException") && answer.text().contains("about to stop"),
        "{}",
        answer.text()
    );
    scene.app.stop().await;
    assert!(logs::text().contains("/webhdfs/v1/spark/…/app.jar"));
}

#[tokio::test]
async fn the_limits_of_uploads_are_those_of_every_upload() {
    let mut small = options(|_| {});
    small.limits.capacity.max_resource_size = 1000;
    small.limits.max_resources = 1;
    let scene = Scene::new(small).await;
    let (status, exception, message) =
        refused(scene.create(&format!("spark/{FOLDER}/app.jar"), &[7; 2000]).await).await;
    assert_eq!((status, exception.as_str()), (413, "IOException"));
    assert!(message.contains("--max-resource-size"), "{message}");
    scene.created(&format!("spark/{FOLDER}/app.jar"), b"jar").await;
    let (status, _, message) =
        refused(scene.create(&format!("spark/{OTHER_FOLDER}/b.jar"), b"jar").await).await;
    assert_eq!(status, 507);
    assert!(message.contains("--max-resources"), "{message}");
}
