//! Tests that only files that are used are read, and each only once.

use std::path::Path;

use super::PlanCase;
use super::attached::{Attached, submitted};
use crate::plan::{Begun, Facts, Needs, needs};

const BASICS: [&str; 4] = [
    "-c",
    "spark.kubernetes.container.image=repo.example/spark:4",
    "-c",
    "spark.kubernetes.initContainer.image=repo.example/cloakroom:1",
];

/// All needs until the application was planned or refused.
async fn asked(attached: &Attached, words: &[&str]) -> (Vec<Needs>, Option<String>) {
    let refused = submitted(attached, &[&BASICS[..], words].concat()).await.err();
    (attached.asked.lock().unwrap().clone(), refused.map(|error| error.to_string()))
}

/// How often the content of a file was needed, and whether something else of it was.
fn reads(asked: &[Needs], path: &str) -> (usize, bool) {
    let path = Path::new(path);
    let is_looked_at =
        asked.iter().any(|needs| needs.places.contains(path) || needs.manifests.contains(path));
    (asked.iter().filter(|needs| needs.contents.contains(path)).count(), is_looked_at)
}

#[tokio::test]
async fn a_missing_file_is_refused_before_anything_is_read_or_downloaded() {
    let template = "spark.kubernetes.driver.podTemplateFile=https://web.example/pod.yaml";
    let words = ["-c", template, "-c", "spark.kubernetes.kerberos.krb5.path=krb5.conf", "missing.jar"];
    let (asked, refused) = asked(&Attached::default(), &words).await;
    assert!(refused.unwrap().contains("/nowhere/missing.jar does not exist"));
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].web.is_empty() && asked[0].contents.is_empty(), "{asked:?}");
}

#[tokio::test]
async fn a_template_is_read_once_and_small_jars_are_not_read() {
    let attached = Attached::default()
        .with("/nowhere/pod.yaml", "spec: {}")
        .with("/nowhere/a.jar", "a")
        .with("/nowhere/a.txt", "a");
    let template = "spark.kubernetes.driver.podTemplateFile=pod.yaml";
    let words = ["-c", template, "--files", "a.txt", "local:///app.jar"];
    let (read, refused) = asked(&attached, &words).await;
    assert_eq!(refused, None);
    assert_eq!(reads(&read, "/nowhere/pod.yaml"), (1, false));
    assert_eq!(reads(&read, "/nowhere/a.txt"), (1, true));
    let (read, refused) = asked(&attached, &["a.jar"]).await;
    assert!(refused.unwrap().contains("a.jar is on this machine"));
    assert_eq!(reads(&read, "/nowhere/a.jar"), (0, true));
}

#[tokio::test]
async fn token_and_certificates_are_read_only_to_stage_and_with_tls_on() {
    let tls = "spark.ssl.kubernetes.resourceStagingServer";
    let (certificate, internal) = (
        format!("{tls}.clientCertPem=ca.pem"),
        "spark.ssl.kubernetes.resourceStagingServer.internal.clientCertPem=in.pem",
    );
    let enabled = format!("{tls}.enabled=true");
    let words = [
        "-c",
        "spark.kubernetes.resourceStagingServer.uri=https://staging.example:10000",
        "-c",
        "spark.kubernetes.cloakroom.uploadTokenFile=token",
        "-c",
        &certificate,
        "-c",
        internal,
    ];
    let with = |more: &[&str]| {
        let words = words.map(str::to_owned).into_iter().chain(more.iter().map(|word| (*word).to_owned()));
        words.collect::<Vec<_>>()
    };
    for (more, expected) in [
        (&["local:///app.jar"][..], [0, 0, 0]),
        (&["app.jar"], [1, 0, 0]),
        (&["-c", &enabled, "app.jar"], [1, 1, 1]),
    ] {
        let attached = Attached::default().with("/nowhere/app.jar", "");
        let words = with(more);
        let (read, _) = asked(&attached, &words.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let files = ["/nowhere/token", "/nowhere/ca.pem", "/nowhere/in.pem"];
        assert_eq!(files.map(|file| reads(&read, file).0), expected, "{more:?}");
    }
}

#[test]
fn what_was_not_collected_is_an_error_and_not_taken_for_nothing() {
    let request = PlanCase::new().with("spark.files", "/nowhere/a.txt").request();
    assert!(needs(&request).unwrap().places.contains(Path::new("/nowhere/a.txt")));
    let randomness = PlanCase::randomness();
    let unknown = Begun::new(&request, &Facts::default(), &randomness).err().unwrap().to_string();
    assert!(unknown.contains("it was not collected"), "{unknown}");
}
