//! Fetching into a folder that others use too: clashes, planted links, and two runs at the same time.

use std::os::unix::fs::symlink;
use std::time::Duration;

use cloakroom_testing::bundles::tgz;
use cloakroom_testing::scripted::{Answer, Scripted, ServedFile};
use cloakroom_testing::wait::until_true;

use crate::pod::{ID, Pod, all_names, bundle, noise};

const OTHER: &str = "00000000-54d9-4a1f-9a6e-0b6f6fd7e7b1";

/// Names and contents.
type Files<'a> = &'a [(&'a str, &'a [u8])];

/// Two bundles, the jars into the target and the files into `files_dir`.
async fn fetch_two(pod: &Pod, jars: Files<'_>, files: Files<'_>, files_dir: &str) -> Result<usize, String> {
    let (jars, files) = (ServedFile::new(tgz(jars), "a"), ServedFile::new(tgz(files), "b"));
    let server = Scripted::start(move |_, request| {
        let file = if request.target.ends_with(ID) { &jars } else { &files };
        file.answer(request).into()
    })
    .await;
    let text = format!(
        "spark.kubernetes.resourceStagingServer.uri={}\n\
         spark.kubernetes.initcontainer.downloadJarsResourceIdentifier={ID}\n\
         spark.kubernetes.initcontainer.downloadJarsSecretLocation={{secret}}\n\
         spark.kubernetes.initcontainer.downloadFilesResourceIdentifier={OTHER}\n\
         spark.kubernetes.initcontainer.downloadFilesSecretLocation={{secret}}\n\
         spark.kubernetes.mountdependencies.jarsDownloadDir={{target}}\n\
         spark.kubernetes.mountdependencies.filesDownloadDir={files_dir}\n",
        server.url()
    );
    pod.fetch_properties(&text).await.map(|reports| reports.len()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_file_that_another_source_has_as_a_folder_is_refused_before_placing() {
    let (file, inside): (Files<'_>, Files<'_>) = (&[("a", b"x")], &[("a/b/c", b"y")]);
    for (jars, files, what) in [
        (file, inside, format!("the staged jars (resource {ID}) brings the file ")),
        (inside, file, format!("the staged files (resource {OTHER}) brings the file ")),
    ] {
        let pod = Pod::new();
        let error = fetch_two(&pod, jars, files, "{target}").await.unwrap_err();
        assert!(error.starts_with(&what) && error.contains("/jars/a, and the staged "), "{error}");
        assert!(all_names(&pod.target()).is_empty(), "{:?}", all_names(&pod.target()));
    }
}

#[tokio::test]
async fn one_path_by_two_targets_is_refused_where_one_is_in_the_other() {
    let pod = Pod::new();
    let error = fetch_two(&pod, &[("in/a", b"x")], &[("a", b"y")], "{target}/in").await.unwrap_err();
    assert!(error.starts_with("both the staged jars"), "{error}");
    let receipt = format!("in/.cloakroom-{OTHER}.json");
    let error = fetch_two(&pod, &[(&receipt, b"x")], &[("a", b"y")], "{target}/in").await.unwrap_err();
    assert!(error.contains("names that begin with .cloakroom- are not for bundles"), "{error}");
    assert_eq!(all_names(&pod.target()), ["in"]);
    assert!(all_names(&pod.target().join("in")).is_empty());
}

// Invariant: fetch never writes through a link.
#[tokio::test]
async fn links_that_were_planted_under_fetchs_own_names_are_not_followed() {
    let file = ServedFile::new(tgz(&[("app.jar", b"app")]), "a");
    let server = Scripted::start(move |_, request| file.answer(request).into()).await;
    let pod = Pod::new();
    let theirs = pod.folder.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::create_dir(pod.target()).unwrap();
    for ending in ["", ".draft", ".json", ".lock"] {
        let precious = theirs.join(format!("precious{ending}"));
        std::fs::write(&precious, "precious").unwrap();
        symlink(&precious, pod.target().join(format!(".cloakroom-{ID}{ending}"))).unwrap();
    }
    pod.fetch(&server).await.unwrap();
    for name in all_names(&theirs) {
        assert_eq!(std::fs::read_to_string(theirs.join(&name)).unwrap(), "precious", "{name}");
    }
    assert_eq!(all_names(&pod.target()), [format!(".cloakroom-{ID}.json"), "app.jar".to_owned()]);
}

// Invariant: a process that swaps folders for links while fetch runs leads no file elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_becomes_a_link_meanwhile_leads_no_file_elsewhere() {
    let hidden = format!("jars/.cloakroom-{ID}");
    for (victim, is_refused) in [("jars", false), (&*hidden, false), (&*format!("{hidden}/d"), true)] {
        let pod = Pod::new();
        let [theirs, aside, victim] = ["theirs", "aside", victim].map(|name| pod.folder.path().join(name));
        std::fs::create_dir_all(theirs.join("d")).unwrap();
        let (begun, theirs_too) = (pod.target().join(format!(".cloakroom-{ID}/d/first")), theirs.clone());
        let file = ServedFile::new(tgz(&[("d/first", &noise(900_000, 1)), ("d/second", b"2")]), "a");
        let server = Scripted::start(move |number, request| {
            if number == 0 {
                return file.answer(request).cut_after(700_000).into();
            }
            let is_there = until_true("the first file is there", || begun.exists());
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(is_there));
            std::fs::rename(&victim, &aside).unwrap();
            symlink(&theirs_too, &victim).unwrap();
            file.answer(request).into()
        })
        .await;
        let fetched = pod.fetch(&server).await.map_err(|error| error.to_string());
        let refused = fetched.err().unwrap_or_default();
        assert_eq!(
            refused.contains("/d is a symbolic link, not a folder; check what else"),
            is_refused,
            "{refused}"
        );
        assert_eq!((refused.is_empty(), server.requests().len()), (!is_refused, 2), "{refused}");
        assert_eq!(all_names(&theirs), ["d"]);
        assert!(all_names(&theirs.join("d")).is_empty());
    }
}

#[tokio::test]
async fn a_pipe_in_place_of_the_receipt_is_not_waited_for() {
    let file = ServedFile::new(tgz(&[("app.jar", b"app")]), "a");
    let server = Scripted::start(move |_, request| file.answer(request).into()).await;
    let pod = Pod::new();
    std::fs::create_dir(pod.target()).unwrap();
    let pipe = pod.target().join(format!(".cloakroom-{ID}.json"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    tokio::time::timeout(Duration::from_secs(20), pod.fetch(&server)).await.unwrap().unwrap();
    assert_eq!(pod.names(), ["app.jar"]);
}

#[tokio::test]
async fn a_folder_in_place_of_a_receipt_is_refused_before_anything_is_placed() {
    let pod = Pod::new();
    let receipt = pod.target().join(format!(".cloakroom-{OTHER}.json"));
    std::fs::create_dir_all(receipt.join("theirs")).unwrap();
    let error = fetch_two(&pod, &[("a", b"x")], &[("b", b"y")], "{target}").await.unwrap_err();
    let expected = format!(
        "could not put the staged files (resource {OTHER}) into place: cannot put a file at {}: a folder is there; choose an \
         empty folder",
        receipt.display()
    );
    assert_eq!(error, expected);
    assert_eq!(all_names(&pod.target()), [format!(".cloakroom-{OTHER}.json")]);
    assert_eq!(all_names(&receipt), ["theirs"]);
}

#[tokio::test]
async fn a_target_that_is_no_folder_is_named_and_nothing_is_asked_for() {
    let server = Scripted::start(|_, _| Answer::new(500, "").into()).await;
    let pod = Pod::new();
    symlink("nowhere", pod.target()).unwrap();
    let error = cloakroom_core::text::chain(&pod.fetch(&server).await.unwrap_err());
    let expected = format!(
        "cannot put fetched files into {path}: {path} is a symbolic link that leads to no folder; remove it, or choose \
         another folder",
        path = pod.target().display()
    );
    assert_eq!((error, server.requests().len()), (expected, 0));
}

// Invariant: two fetches of one resource into one folder both succeed.
#[tokio::test(flavor = "multi_thread")]
async fn two_runs_at_the_same_time_both_succeed_and_fetch_once() {
    let (bytes, jar) = bundle();
    let file = ServedFile::new(bytes, "a");
    let server = Scripted::start(move |_, request| file.answer(request).into()).await;
    let pod = Pod::new();
    let (one, other) = tokio::join!(pod.fetch(&server), pod.fetch(&server));
    let mut was_there = [one.unwrap()[0].was_there, other.unwrap()[0].was_there];
    was_there.sort_unstable();
    assert_eq!(was_there, [false, true]);
    assert_eq!(server.requests().len(), 1);
    assert_eq!(pod.read("app.jar"), jar);
    assert_eq!(all_names(&pod.target()).len(), 3, "{:?}", all_names(&pod.target()));
    assert_eq!(pod.told(), ["retrying: another fetch of it into the same folder is at work"]);
}

#[tokio::test]
async fn a_run_that_waits_for_another_in_vain_says_so_and_leaves_its_files() {
    let server = Scripted::start(|_, _| Answer::new(500, "").into()).await;
    let mut pod = Pod::new();
    pod.options.timeout = Duration::from_millis(300);
    let hidden = pod.target().join(format!(".cloakroom-{ID}"));
    std::fs::create_dir_all(&hidden).unwrap();
    std::fs::write(hidden.join("app.jar"), "half").unwrap();
    let lock = std::fs::File::create(hidden.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let error = pod.fetch(&server).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("another fetch of the bundle (resource {ID}) into ")), "{error}");
    assert!(error.contains("did not end within 300ms"), "{error}");
    assert!(hidden.join("app.jar").exists() && server.requests().is_empty());
}

#[tokio::test]
async fn one_resource_for_two_spellings_of_a_folder_is_fetched_once() {
    let file = ServedFile::new(tgz(&[("a.jar", b"a")]), "a");
    let server = Scripted::start(move |_, request| file.answer(request).into()).await;
    let pod = Pod::new();
    let text = format!(
        "spark.kubernetes.resourceStagingServer.uri={}\n\
         spark.kubernetes.initcontainer.downloadJarsResourceIdentifier={ID}\n\
         spark.kubernetes.initcontainer.downloadJarsSecretLocation={{secret}}\n\
         spark.kubernetes.initcontainer.downloadFilesResourceIdentifier={ID}\n\
         spark.kubernetes.initcontainer.downloadFilesSecretLocation={{secret}}\n\
         spark.kubernetes.mountdependencies.jarsDownloadDir={{target}}\n\
         spark.kubernetes.mountdependencies.filesDownloadDir={{target}}/../jars\n",
        server.url()
    );
    assert_eq!(pod.fetch_properties(&text).await.unwrap().len(), 1);
    assert_eq!((server.requests().len(), pod.names()), (1, vec!["a.jar".to_owned()]));
}
