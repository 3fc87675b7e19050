//! Fetching: what arrives, what is refused, and that nothing stays behind.

use std::os::unix::fs::PermissionsExt;

use cloakroom_testing::bundles::{header, octal, tgz, tgz_with_raw_header};
use cloakroom_testing::scripted::{Answer, Reply, Scripted, ServedFile};

use crate::pod::{ID, Pod, SECRET, all_names, bundle, noise};

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
async fn a_ticket_that_the_server_does_not_know_fails_at_once() {
    for (status, code) in
        [(401, "unauthorized"), (404, "not-found"), (410, "gone"), (403, "forbidden"), (500, "internal")]
    {
        let server =
            Scripted::start(move |_, _| Answer::problem(status, code, "no such resource").into()).await;
        let pod = Pod::new();
        let error = pod.fetch(&server).await.unwrap_err().to_string();
        let own_words = format!("no such resource ({status} {code})");
        let why = match status {
            404 => {
                "the server knows no resource with this id and secret (404 not-found); either the secret is another"
            }
            _ => &own_words,
        };
        let begin = format!("could not fetch the bundle (resource {ID}) from {}: {why}", server.url());
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

// Invariant: a second run of fetch finds its own files.
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
    let refused = pod.fetch(&server).await.unwrap_err().to_string();
    assert!(refused.contains("lib.jar already exists"), "{refused}");
    std::fs::remove_file(pod.target().join("lib.jar")).unwrap();
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
async fn one_name_from_bundle_and_web_is_refused_before_anything_is_placed() {
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

// Invariant: fetch places everything or nothing.
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
async fn a_ticket_is_never_carried_to_where_a_server_redirects() {
    let server = Scripted::start(|_, _| {
        Answer::new(307, "").header("location", "http://elsewhere.example/?a=b").into()
    })
    .await;
    let error = Pod::new().fetch(&server).await.unwrap_err().to_string();
    assert!(error.contains("it redirects to http://elsewhere.example/, which is not followed"), "{error}");
    assert_eq!(server.requests().len(), 1);
}
