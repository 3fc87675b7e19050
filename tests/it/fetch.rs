//! Fetching, against servers that break, change, lie and hang.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloakroom::client::{Backoff, HttpClient, Timeouts};
use cloakroom::fetch::{FetchError, FetchObserver, FetchOptions, FetchPlan, SourceReport};
use cloakroom::spark::{InitContainerProperties, Properties};
use tokio_util::sync::CancellationToken;

use crate::support::bundles::{header, octal, tgz, tgz_with_raw_header};
use crate::support::scripted::{Answer, Reply, Scripted, ServedFile};

const ID: &str = "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1";
const SECRET: &str = "s3cret-of-the-ticket";

/// A pod's view: a target folder and a file with the secret.
struct Pod {
    folder: tempfile::TempDir,
    told: Arc<Told>,
    options: FetchOptions,
}

#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl FetchObserver for Told {
    fn retrying(&self, _: &str, why: &str) {
        self.0.lock().unwrap().push(format!("retrying: {why}"));
    }

    fn starting_over(&self, _: &str, why: &str) {
        self.0.lock().unwrap().push(format!("starting over: {why}"));
    }
}

impl Pod {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), format!("{SECRET}\n")).unwrap();
        let backoff = Backoff { first: Duration::from_millis(1), longest: Duration::from_millis(10) };
        let options = FetchOptions { timeout: Duration::from_secs(30), backoff, ..FetchOptions::default() };
        Self { folder, told: Arc::default(), options }
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("jars")
    }

    async fn fetch(&self, server: &Scripted) -> Result<Vec<SourceReport>, FetchError> {
        let secret = self.folder.path().join("secret");
        self.run(FetchPlan::from_ticket(&server.url(), ID, &secret, &self.target())?).await
    }

    /// Runs what a properties file says; `{secret}` and `{target}` stand for the pod's own.
    async fn fetch_properties(&self, text: &str) -> Result<Vec<SourceReport>, FetchError> {
        let secret = self.folder.path().join("secret");
        let text = text.replace("{secret}", secret.to_str().unwrap());
        let text = text.replace("{target}", self.target().to_str().unwrap());
        let properties = Properties::parse("spark-init.properties", &text).unwrap();
        let plan = FetchPlan::from_properties(&InitContainerProperties::from(&properties).unwrap())?;
        self.run(plan).await
    }

    async fn run(&self, plan: FetchPlan) -> Result<Vec<SourceReport>, FetchError> {
        let timeouts = Timeouts { stall: Duration::from_millis(300), ..Timeouts::default() };
        let http = HttpClient::new(&[], timeouts).unwrap();
        let stop = CancellationToken::new();
        cloakroom::fetch::run(plan, &http, &self.options, &stop, Arc::clone(&self.told) as _).await
    }

    fn told(&self) -> Vec<String> {
        self.told.0.lock().unwrap().clone()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.target().join(name)).unwrap()
    }

    /// Everything in the target folder but receipts.
    fn names(&self) -> Vec<String> {
        let mut names = all_names(&self.target());
        names.retain(|name| !(name.starts_with(".cloakroom-") && name.ends_with(".json")));
        names
    }
}

fn all_names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Bytes that do not compress, so that a bundle's size is that of its files.
fn noise(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    (0..length).map(next).collect()
}

fn bundle() -> (Vec<u8>, Vec<u8>) {
    let jar = noise(3_000_000, 1);
    (tgz(&[("app.jar", &jar), ("lib.jar", b"lib")]), jar)
}

#[tokio::test]
async fn a_bundle_comes_with_the_ticket_and_is_readable_for_all() {
    let (bytes, jar) = bundle();
    let file = ServedFile::new(bytes, "a");
    let server = Scripted::start(move |_, request| file.answer(request).into()).await;
    let pod = Pod::new();
    let reports = pod.fetch(&server).await.unwrap();
    assert_eq!((reports[0].files, reports[0].was_there), (2, false));
    assert_eq!(pod.names(), ["app.jar", "lib.jar"]);
    assert_eq!(pod.read("app.jar"), jar);
    let mode = std::fs::metadata(pod.target().join("app.jar")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    let request = &server.requests()[0];
    assert_eq!(request.target, format!("/api/v1/resources/{ID}"));
    assert_eq!(request.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    assert!(request.header("user-agent").unwrap().starts_with("cloakroom/"));
}

#[tokio::test]
async fn a_download_that_is_cut_goes_on_where_it_stopped() {
    let (bytes, jar) = bundle();
    let file = ServedFile::new(bytes, "a");
    let server = Scripted::start(move |number, request| {
        let answer = file.answer(request);
        if number < 3 { answer.cut_after(700_000).into() } else { answer.into() }
    })
    .await;
    let pod = Pod::new();
    let reports = pod.fetch(&server).await.unwrap();
    assert_eq!(pod.read("app.jar"), jar);
    let starts: Vec<_> =
        server.requests().iter().map(crate::support::scripted::Request::range_start).collect();
    assert_eq!(starts, [None, Some(700_000), Some(1_400_000), Some(2_100_000)]);
    assert!(server.requests()[1..].iter().all(|request| request.header("if-range") == Some("\"a\"")));
    assert!(reports[0].downloaded_bytes > 3_000_000);
    assert!(
        pod.told().iter().all(|line| line.starts_with("retrying: the connection broke")),
        "{:?}",
        pod.told()
    );
}

#[tokio::test]
async fn a_server_that_stops_sending_is_left_and_asked_for_the_rest() {
    let (bytes, jar) = bundle();
    let file = ServedFile::new(bytes, "a");
    let server = Scripted::start(move |number, request| {
        let answer = file.answer(request);
        if number == 0 { answer.hang_after(500_000).into() } else { answer.into() }
    })
    .await;
    let pod = Pod::new();
    pod.fetch(&server).await.unwrap();
    assert_eq!(pod.read("app.jar"), jar);
    assert_eq!(server.requests()[1].range_start(), Some(500_000));
    assert_eq!(pod.told(), ["retrying: nothing came for 300ms"]);
}

#[tokio::test]
async fn a_server_without_ranges_is_asked_again_from_the_beginning() {
    let (bytes, jar) = bundle();
    let file = ServedFile::new(bytes, "a");
    let server = Scripted::start(move |number, _| {
        if number == 0 { file.whole().cut_after(700_000).into() } else { file.whole().into() }
    })
    .await;
    let pod = Pod::new();
    pod.fetch(&server).await.unwrap();
    assert_eq!(pod.read("app.jar"), jar);
    assert_eq!(server.requests().len(), 2, "the second answer is used as it is");
    assert!(pod.told()[1].starts_with("starting over: "), "{:?}", pod.told());
}

#[tokio::test]
async fn other_bytes_at_the_same_address_are_taken_whole_and_never_mixed() {
    let (old, _) = bundle();
    let new_jar = noise(2_000_000, 2);
    let (old, new) = (ServedFile::new(old, "a"), ServedFile::new(tgz(&[("new.jar", &new_jar)]), "b"));
    let server = Scripted::start(move |number, request| {
        if number == 0 { old.answer(request).cut_after(700_000).into() } else { new.answer(request).into() }
    })
    .await;
    let pod = Pod::new();
    pod.fetch(&server).await.unwrap();
    assert_eq!(pod.names(), ["new.jar"]);
    assert_eq!(pod.read("new.jar"), new_jar);
}

#[tokio::test]
async fn a_range_that_is_refused_means_to_start_over() {
    let (bytes, jar) = bundle();
    let file = ServedFile::new(bytes, "a");
    let server = Scripted::start(move |number, _| match number {
        0 => file.whole().cut_after(700_000).into(),
        1 => Answer::problem(416, "range-not-satisfiable", "no such bytes").into(),
        _ => file.whole().into(),
    })
    .await;
    let pod = Pod::new();
    pod.fetch(&server).await.unwrap();
    assert_eq!(pod.read("app.jar"), jar);
}

#[tokio::test]
async fn bytes_with_another_digest_than_announced_are_refused_and_nothing_stays() {
    let (bytes, _) = bundle();
    let announced = cloakroom::protocol::digest::format(&[7; 32]);
    let server =
        Scripted::start(move |_, _| Answer::new(200, bytes.clone()).header("repr-digest", &announced).into())
            .await;
    let pod = Pod::new();
    let error = pod.fetch(&server).await.unwrap_err().to_string();
    assert!(error.contains("has the SHA-256 ") && error.contains(&"07".repeat(32)), "{error}");
    assert!(all_names(&pod.target()).is_empty());
}

#[tokio::test]
async fn a_server_that_is_being_replaced_is_waited_for() {
    let (bytes, jar) = bundle();
    let file = ServedFile::new(bytes, "a");
    let server = Scripted::start(move |number, request| match number {
        0 => Answer::problem(503, "shutting-down", "the server is about to stop").into(),
        1 => Answer::new(502, "<html><title>Bad Gateway</title>").header("content-type", "text/html").into(),
        2 => Answer::new(429, "").header("retry-after", "0").into(),
        _ => file.answer(request).into(),
    })
    .await;
    let pod = Pod::new();
    pod.fetch(&server).await.unwrap();
    assert_eq!(pod.read("app.jar"), jar);
    assert_eq!(pod.told()[0], "retrying: the server is about to stop (503 shutting-down)");
}

#[tokio::test]
async fn a_ticket_that_the_server_does_not_know_fails_at_once() {
    for (status, code) in
        [(401, "unauthorized"), (404, "not-found"), (410, "gone"), (403, "forbidden"), (500, "internal")]
    {
        let server =
            Scripted::start(move |_, _| Answer::problem(status, code, "no such resource").into()).await;
        let pod = Pod::new();
        let error = pod.fetch(&server).await.unwrap_err().to_string();
        let begin = format!(
            "could not fetch the bundle (resource {ID}) from {}: no such resource ({status} {code}); ",
            server.url()
        );
        assert!(error.starts_with(&begin) && !error.contains(SECRET), "{error}");
        assert_eq!(server.requests().len(), 1);
        assert!(all_names(&pod.target()).is_empty());
    }
}

#[tokio::test]
async fn a_hostile_archive_leaves_nothing_behind() {
    let bytes = tgz_with_raw_header(&header(b"../evil.jar", b'0', octal(4)), b"evil");
    let server = Scripted::start(move |_, _| Answer::new(200, bytes.clone()).into()).await;
    let pod = Pod::new();
    let error = pod.fetch(&server).await.unwrap_err().to_string();
    assert!(error.contains("the bundle was not extracted: ") && error.contains("evil"), "{error}");
    assert!(all_names(&pod.target()).is_empty());
    assert!(!pod.folder.path().join("evil.jar").exists());
}

#[tokio::test]
async fn a_hostile_archive_is_refused_even_if_the_server_then_hangs() {
    let mut bytes = tgz_with_raw_header(&header(b"/evil.jar", b'0', octal(4)), b"evil");
    bytes.extend(noise(100_000, 3));
    let length = bytes.len() - 50_000;
    let server = Scripted::start(move |_, _| Answer::new(200, bytes.clone()).hang_after(length).into()).await;
    let error = Pod::new().fetch(&server).await.unwrap_err().to_string();
    assert!(error.contains("the bundle was not extracted: "), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_second_run_finds_its_own_files_and_needs_no_server() {
    let (bytes, jar) = bundle();
    let file = ServedFile::new(bytes, "a");
    let server = Scripted::start(move |_, request| file.answer(request).into()).await;
    let pod = Pod::new();
    pod.fetch(&server).await.unwrap();
    let again = pod.fetch(&server).await.unwrap();
    assert!(again[0].was_there);
    assert_eq!(again[0].files, 2);
    assert_eq!(server.requests().len(), 1);

    std::fs::remove_file(pod.target().join("app.jar")).unwrap();
    std::fs::write(pod.target().join("lib.jar"), "damaged").unwrap();
    let repaired = pod.fetch(&server).await.unwrap();
    assert!(!repaired[0].was_there);
    assert_eq!(pod.read("app.jar"), jar);
    assert_eq!(pod.read("lib.jar"), b"lib");
    assert_eq!(pod.names(), ["app.jar", "lib.jar"]);
}

#[tokio::test]
async fn what_a_crashed_run_left_is_no_obstacle() {
    let file = ServedFile::new(tgz(&[("app.jar", b"app")]), "a");
    let server = Scripted::start(move |_, request| file.answer(request).into()).await;
    let pod = Pod::new();
    let hidden = pod.target().join(format!(".cloakroom-{ID}"));
    std::fs::create_dir_all(&hidden).unwrap();
    std::fs::write(hidden.join("app.jar"), "half").unwrap();
    std::fs::write(pod.target().join(format!(".cloakroom-{ID}.json")), "{\"half\":").unwrap();
    pod.fetch(&server).await.unwrap();
    assert_eq!(pod.names(), ["app.jar"]);
    assert_eq!(pod.read("app.jar"), b"app");
}

#[tokio::test]
async fn one_name_from_a_bundle_and_from_the_web_is_refused_before_anything_is_placed() {
    let file = ServedFile::new(tgz(&[("a.jar", b"a"), ("b.jar", b"b")]), "a");
    let server = Scripted::start(move |_, request| {
        if request.target.starts_with("/api/") {
            file.answer(request).into()
        } else {
            Answer::new(200, "other").into()
        }
    })
    .await;
    let pod = Pod::new();
    let text = format!(
        "spark.kubernetes.resourceStagingServer.uri={url}\n\
         spark.kubernetes.initcontainer.downloadJarsResourceIdentifier={ID}\n\
         spark.kubernetes.initcontainer.downloadJarsSecretLocation={{secret}}\n\
         spark.kubernetes.initcontainer.remoteFiles={url}/x/b.jar\n\
         spark.kubernetes.mountdependencies.jarsDownloadDir={{target}}\n\
         spark.kubernetes.mountdependencies.filesDownloadDir={{target}}/../jars\n",
        url = server.url()
    );
    let error = pod.fetch_properties(&text).await.unwrap_err().to_string();
    let begin = format!("both the staged jars (resource {ID}) and the remote file b.jar bring b.jar to ");
    assert!(error.starts_with(&begin), "{error}");
    assert!(all_names(&pod.target()).is_empty());
}

#[tokio::test]
async fn all_four_kinds_of_sources_arrive_side_by_side() {
    let other = "00000000-54d9-4a1f-9a6e-0b6f6fd7e7b1";
    let (jars, files) =
        (ServedFile::new(tgz(&[("a.jar", b"a")]), "a"), ServedFile::new(tgz(&[("a.txt", b"t")]), "b"));
    let server = Scripted::start(move |_, request| match request.target.as_str() {
        target if target.ends_with(ID) => jars.answer(request).into(),
        target if target.ends_with(other) => files.answer(request).into(),
        _ => Answer::new(200, "remote").into(),
    })
    .await;
    let pod = Pod::new();
    let text = format!(
        "spark.kubernetes.resourceStagingServer.uri={url}/\n\
         spark.kubernetes.initcontainer.downloadJarsResourceIdentifier={ID}\n\
         spark.kubernetes.initcontainer.downloadJarsSecretLocation={{secret}}\n\
         spark.kubernetes.initcontainer.downloadFilesResourceIdentifier={other}\n\
         spark.kubernetes.initcontainer.downloadFilesSecretLocation={{secret}}\n\
         spark.kubernetes.initcontainer.remoteJars={url}/x/my%20lib.jar?sig=s1gnature\n\
         spark.kubernetes.initcontainer.remoteFiles={url}/y/data.csv\n\
         spark.kubernetes.mountdependencies.jarsDownloadDir={{target}}\n\
         spark.kubernetes.mountdependencies.filesDownloadDir={{target}}/files\n",
        url = server.url()
    );
    let reports = pod.fetch_properties(&text).await.unwrap();
    assert_eq!(reports.len(), 4);
    assert_eq!(pod.names(), ["a.jar", "files", "my lib.jar"]);
    assert_eq!(pod.read("files/data.csv"), b"remote");
    let remote = server.requests().into_iter().find(|request| request.target.starts_with("/x/")).unwrap();
    assert_eq!(remote.target, "/x/my%20lib.jar?sig=s1gnature");
    assert_eq!(remote.header("authorization"), None);
}

#[tokio::test]
async fn when_one_source_fails_the_others_are_given_up_and_nothing_stays() {
    let server = Scripted::start(|_, request| {
        if request.target.starts_with("/gone") { Answer::new(404, "").into() } else { Reply::Hang }
    })
    .await;
    let pod = Pod::new();
    let text = format!(
        "spark.kubernetes.initcontainer.remoteJars={url}/slow.jar,{url}/gone.jar?sig=s1gnature\n\
         spark.kubernetes.mountdependencies.jarsDownloadDir={{target}}\n",
        url = server.url()
    );
    let error = pod.fetch_properties(&text).await.unwrap_err().to_string();
    let expected = format!(
        "could not fetch the remote jar gone.jar from {}/gone.jar: not found (404); check the address",
        server.url()
    );
    assert_eq!(error, expected);
    assert!(all_names(&pod.target()).is_empty());
}

#[tokio::test]
async fn a_file_on_the_web_is_followed_and_resumed() {
    let bytes = noise(2_000_000, 4);
    let file = ServedFile::new(bytes.clone(), "a");
    let server = Scripted::start(move |number, request| match request.target.as_str() {
        "/latest/app.jar" => Answer::new(302, "").header("location", "/v1/renamed.jar?sig=s1gnature").into(),
        _ if number < 2 => file.answer(request).cut_after(900_000).into(),
        _ => file.answer(request).into(),
    })
    .await;
    let pod = Pod::new();
    let text = format!(
        "spark.kubernetes.initcontainer.remoteJars={}/latest/app.jar\n\
         spark.kubernetes.mountdependencies.jarsDownloadDir={{target}}\n",
        server.url()
    );
    pod.fetch_properties(&text).await.unwrap();
    assert_eq!(pod.read("app.jar"), bytes);
    let requests = server.requests();
    assert_eq!(requests.last().unwrap().range_start(), Some(900_000));
    assert!(requests.iter().all(|request| request.header("referer").is_none()));
}

#[tokio::test]
async fn a_ticket_is_never_carried_to_where_a_server_redirects() {
    let server = Scripted::start(|_, _| {
        Answer::new(307, "").header("location", "http://elsewhere.example/?a=b").into()
    })
    .await;
    let error = Pod::new().fetch(&server).await.unwrap_err().to_string();
    assert!(error.contains("it redirects to http://elsewhere.example/, which is not followed"), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_download_that_is_too_slow_says_how_far_it_came() {
    let server = Scripted::start(|number, _| {
        let answer = Answer::new(200, noise(4 << 20, 5)).header("etag", "\"a\"");
        if number == 0 { answer.hang_after(1 << 20).into() } else { Reply::Hang }
    })
    .await;
    let mut pod = Pod::new();
    pod.options.timeout = Duration::from_millis(250);
    let error = pod.fetch(&server).await.unwrap_err().to_string();
    assert!(error.contains(": only 1 MiB of 4 MiB came within 250ms; "), "{error}");
    assert!(all_names(&pod.target()).is_empty());
}
