//! Downloads that break, and servers that change, lie and hang meanwhile.

use std::time::Duration;

use cloakroom_testing::bundles::tgz;
use cloakroom_testing::scripted::{Answer, Request, Scripted, ServedFile};

use crate::pod::{Pod, all_names, bundle, noise};

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
    let starts: Vec<_> = server.requests().iter().map(Request::range_start).collect();
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
async fn a_resource_forgotten_during_its_download_is_told_from_an_unknown_one() {
    let (bytes, _) = bundle();
    let file = ServedFile::new(bytes, "a");
    let server = Scripted::start(move |number, request| match number {
        0 => file.answer(request).cut_after(700_000).into(),
        _ => Answer::problem(404, "not-found", "there is no resource").into(),
    })
    .await;
    let error = Pod::new().fetch(&server).await.unwrap_err().to_string();
    let why = "the download had begun, and now the server does not know the resource any more (404 not-found); it was \
               replaced by one without its data";
    assert!(error.contains(why), "{error}");
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
    let mut pod = Pod::new();
    pod.stall = Duration::from_millis(300);
    pod.fetch(&server).await.unwrap();
    assert_eq!(pod.read("app.jar"), jar);
    assert_eq!(server.requests()[1].range_start(), Some(500_000));
    assert_eq!(pod.told()[0], "retrying: nothing came for 300ms");
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

// Invariant: a resumed download never mixes two bundles.
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
async fn bytes_with_a_digest_that_differs_are_refused_and_nothing_stays() {
    let (bytes, _) = bundle();
    let announced = cloakroom_core::protocol::digest::format(&[7; 32]);
    let server =
        Scripted::start(move |_, _| Answer::new(200, bytes.clone()).header("repr-digest", &announced).into())
            .await;
    let pod = Pod::new();
    let error = pod.fetch(&server).await.unwrap_err().to_string();
    assert!(error.contains("have the SHA-256 ") && error.contains(&"07".repeat(32)), "{error}");
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
async fn a_download_that_is_too_slow_says_how_far_it_came() {
    let bytes = tgz(&[("app.jar", &noise(4 << 20, 5))]);
    let server =
        Scripted::start(move |_, _| Answer::new(200, bytes.clone()).hang_after(1 << 20).into()).await;
    let mut pod = Pod::new();
    pod.options.timeout = Duration::from_secs(1);
    let error = pod.fetch(&server).await.unwrap_err().to_string();
    assert!(error.contains(": only 1 MiB of 4 MiB came within 1s; "), "{error}");
    assert!(all_names(&pod.target()).is_empty());
}
