//! Names of files that travel: which of them Spark accepts, and the messages about entries that are no files.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use cloakroom_spark::MainResource;
use serde_json::json;

use super::{PlanCase, object};

const JARS: &str = "file:///var/spark-data/spark-jars";
const FILES: &str = "file:///var/spark-data/spark-files";

fn staged() -> PlanCase {
    PlanCase::new()
        .with("spark.kubernetes.resourceStagingServer.uri", "http://staging.example:31000/")
        .with("spark.kubernetes.initContainer.image", "repo.example/cloakroom:1")
}

fn fetching() -> PlanCase {
    staged().with("spark.kubernetes.cloakroom.fetchRemote", "true")
}

#[tokio::test]
async fn jars_with_names_that_spark_cannot_find_are_renamed_with_a_warning() {
    let case = staged()
        .with_file("lib/a[1].jar", "1")
        .with_file("lib/a{1}.jar", "2")
        .with_file("lib/co:lon,back\\slash?.jar", "3")
        .with_file("lib/fine %#;&'\"$*ü✓.jar", "4")
        .with("spark.jars", "lib/a[1].jar,lib/*.jar");
    let submission = case.submission().await;
    assert_eq!(
        submission.properties()["spark.jars"],
        format!(
            "{JARS}/a_1_.jar,{JARS}/a_1_-1.jar,{JARS}/co_lon_back_slash_.jar,\
             {JARS}/fine%20%25%23%3B%26%27%22%24%2A%C3%BC%E2%9C%93.jar"
        )
    );
    let warnings = submission.warnings;
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(
        warnings[0]
            .ends_with("/lib/a[1].jar becomes a_1_.jar, because Spark cannot take [ ] in the name of a file"),
        "{warnings:?}"
    );
    assert!(warnings[1].ends_with("a_1_-1.jar, because something else is called a_1_.jar"), "{warnings:?}");
}

#[tokio::test]
async fn a_jar_gets_the_name_behind_its_hash() {
    let case = staged()
        .with_file("a/x.jar", "1")
        .with_file("b/x.jar", "2")
        .with("spark.jars", "a/x.jar#y.jar,b/x.jar,a/x.jar")
        .with_resource(MainResource::Java("a/x.jar".to_owned()));
    let submission = case.submission().await;
    let expected = format!("{JARS}/y.jar,{JARS}/x.jar,{JARS}/x-1.jar");
    assert_eq!(submission.properties()["spark.jars"], expected);
    assert_eq!(
        submission.container()["args"].as_array().unwrap().last().unwrap(),
        &format!("{JARS}/x-1.jar")
    );
    assert_eq!(submission.warnings.len(), 1, "{:?}", submission.warnings);
}

#[tokio::test]
async fn other_names_that_spark_cannot_take_are_refused_with_a_way_to_rename() {
    let case = || staged().with_file("a[1].txt", "").with_file("e{1}.zip", "").with_file("m:1.py", "");
    for (case, problem) in [
        (
            case().with("spark.files", "a[1].txt"),
            "cannot be called “a[1].txt” in the pod: Spark cannot take [ ] in the name of a file: give another name behind #",
        ),
        (
            case().with("spark.submit.pyFiles", "./m:1.py"),
            "cannot take : in the name of a file: give another name",
        ),
        (case().with("spark.files", "a[1].txt#b?"), "cannot take ? in the name of a file: give another name"),
        (
            case().with("spark.archives", "e{1}.zip#e"),
            "cannot take { } in the name of a file: rename the archive",
        ),
        (
            case().with_resource(MainResource::Python("./m:1.py".to_owned())),
            "in the name of a file: rename it",
        ),
        (
            fetching().with("spark.files", "https://h/a%5B1%5D.txt?sig=hush"),
            "https://h/a%5B1%5D.txt: cannot be called “a[1].txt” in the pod: Spark cannot take [ ] in the name of a file: what \
             the init-container fetches keeps its name",
        ),
        (
            fetching().with("spark.jars", "https://h/a%3F.jar?sig=hush"),
            "Spark cannot take ? in the name of a file",
        ),
    ] {
        let message = case.refusal().await;
        assert!(message.contains(problem) && !message.contains("hush"), "{message}");
    }
    let renamed = case().with("spark.files", "a[1].txt#b.txt").submission().await;
    assert_eq!(renamed.properties()["spark.files"], format!("{FILES}/b.txt"));
}

#[tokio::test]
async fn an_archive_cannot_be_unpacked_over_the_working_directory() {
    for name in ["", ".", "..", "../f", "e/f", "my env", "a[1]", "a#b"] {
        for archive in ["env.tar.gz", "https://h/env.tar.gz?sig=hush"] {
            let case =
                fetching().with_file("env.tar.gz", "").with("spark.archives", &format!("{archive}#{name}"));
            let message = case.refusal().await;
            let problem = format!("env.tar.gz: cannot be unpacked as “{name}”: ");
            assert!(message.replace("gz cannot", "gz: cannot").contains(&problem), "{message}");
            assert!(!message.contains("hush"), "{message}");
        }
    }
    let left = staged().with("spark.archives", "local:///x.tgz#..").submission().await;
    assert_eq!(left.properties()["spark.archives"], "local:///x.tgz#..");
}

#[tokio::test]
async fn two_remote_files_of_one_name_are_refused_with_a_way_out_that_works() {
    for (key, one, other) in [
        ("spark.jars", "https://one/x.jar?sig=hush", "https://other/x.jar?sig=hush"),
        ("spark.files", "https://one/x.txt?sig=hush", "https://other/x.txt?sig=hush"),
    ] {
        let message = fetching().with(key, &format!("{one},{other}")).refusal().await;
        let (one, other) = (&one[..one.len() - 9], &other[..other.len() - 9]);
        let name = &one["https://one/".len()..];
        let expected = format!(
            "`{key}`: {other}: would be {name} in the driver's working directory, as {one} is: what the init-container \
             fetches keeps its name, so download it and give it as a local file, which may have another name"
        );
        assert_eq!(message, expected);
    }
    let message = fetching().with("spark.jars", "https://h/x.jar?sig=hush#y.jar").refusal().await;
    assert!(
        message.ends_with("https://h/x.jar: keeps its name when it is fetched: leave #y.jar out"),
        "{message}"
    );
    let with_local = fetching().with_file("x.txt", "").with("spark.files", "https://h/x.txt,x.txt");
    let message = with_local.refusal().await;
    assert!(message.contains("give the one of this machine another name"), "{message}");
}

#[tokio::test]
async fn a_url_that_was_divided_or_taken_for_a_path_is_explained_and_not_shown() {
    let rule = "in a URL a comma must be written %2C, and a blank %20";
    let case = || fetching().with_file("b/c", "");
    for (list, begins) in [
        ("https://h/x.jar?sig=a,b", "spark.jars: entry 2 stands behind a URL, and is taken for a file"),
        ("https://h/x.jar?sig=a,hush&x", "spark.jars: entry 2 stands behind a URL, and is taken for a file"),
        ("https://u:p,hush@h/x.jar", "spark.jars: entry 2 stands behind a URL, and is taken for a file"),
        ("https://h/x,y.jar?sig=hush", "spark.jars: y.jar matches no file of this machine; if it belongs to"),
        (
            "file:/cwd/https:/u:hush@h/a%20b.jar%3Fsig=hush",
            "spark.jars: https://h/a b.jar is taken for a file of this machine, because it is no URL as it stands",
        ),
    ] {
        let message = case().with("spark.jars", list).refusal().await;
        assert!(message.starts_with(begins) && message.ends_with(rule), "{message}");
        assert!(!message.contains("hush"), "{message}");
    }
    let message = case().with("spark.jars", "https://h/x.jar?sig=hush,https://?y").refusal().await;
    assert!(message.starts_with("`spark.jars`: entry 2: `https://` names no host"), "{message}");
}

#[tokio::test]
async fn what_is_there_and_no_file_is_not_called_missing() {
    let case = staged().with_file("file", "");
    let at = |name: &str| case.folder().join(name);
    symlink("loop", at("loop")).unwrap();
    symlink("nothing", at("dangling")).unwrap();
    let _socket = UnixListener::bind(at("socket")).unwrap();
    let mut case = case;
    for (name, problem) in [
        ("loop", "cannot be read: Too many levels of symbolic links"),
        ("dangling", "is a link to something that does not exist"),
        ("socket", "is a pipe, a socket or a device: write its content into a file first"),
        ("/dev/null", "is a pipe, a socket or a device"),
        ("file/x", "does not exist on this machine"),
    ] {
        case = case.with("spark.files", name);
        let message = case.refusal().await;
        assert!(message.starts_with(&format!("spark.files: {name} {problem}")), "{message}");
    }
}

#[tokio::test]
async fn a_hash_that_is_not_what_it_seems_is_explained() {
    let case = || staged().with_file("h#sh.jar", "").with_file("a b.txt", "").with_file("env.tgz", "");
    let at = |case: &PlanCase, name: &str| format!("{}/{name}", case.folder().display());
    let case = case().with("spark.files", "h#sh.jar");
    let expected = format!(
        "spark.files: h does not exist on this machine, but {} is there: in the name of a file # is written %23, as \
         file://{}",
        at(&case, "h#sh.jar"),
        at(&case, "h%23sh.jar"),
    );
    assert_eq!(case.refusal().await, expected);
    // The arguments of spark-submit have this form if there is a blank.
    let path = format!("file:{}", at(&case, "a%20b.txt%23c.txt"));
    let case = case.with("spark.files", &path);
    let end = format!("is there: with a blank in it, write file://{}", at(&case, "a%20b.txt#c.txt"));
    assert!(case.refusal().await.ends_with(&end), "{}", case.refusal().await);
    let path = format!("file:{}", at(&case, "env.tgz%23my%20env"));
    let case = case.without("spark.files").with("spark.archives", &path);
    assert!(case.refusal().await.ends_with("/env.tgz is there: a name behind # has no blanks"));
}

#[tokio::test]
async fn a_key_of_a_secret_is_never_the_name_of_another_file() {
    let case = PlanCase::new()
        .with_file("a b", "1")
        .with_file("ünï", "2")
        .with_file("file-1", "3")
        .with_file("..x", "4")
        .with("spark.files", "a b,ünï,file-1");
    let submission = case.submission().await;
    let items = json!([
        {"key": "file-0", "path": "a b"}, {"key": "file-2", "path": "ünï"}, {"key": "file-1", "path": "file-1"}
    ]);
    assert_eq!(submission.volume("submitted-files").0["secret"]["items"], items);
    assert_eq!(object(&submission, "-submitted-files")["data"].as_object().unwrap().len(), 3);
    let message = case.with("spark.files", "..x").refusal().await;
    assert!(
        message.contains("cannot be called “..x” in a secret, where no name begins with .."),
        "{message}"
    );
}

#[tokio::test]
async fn folders_in_the_pod_hide_nothing_of_sparks_and_do_not_nest() {
    let prefix = "spark.kubernetes.mountdependencies.";
    let case = || staged().with_file("a.jar", "").with("spark.jars", "a.jar");
    for folder in [
        "/opt",
        "/opt/spark/",
        "/opt//spark/./work-dir",
        "/opt/spark/work-dir/x",
        "/opt/spark/conf",
        "/opt/spark/jars",
        "/opt/spark/jars/x",
    ] {
        for key in ["jarsDownloadDir", "filesDownloadDir"] {
            let message = case().with(&format!("{prefix}{key}"), folder).refusal().await;
            assert!(message.contains("it would hide what Spark itself has in /opt/spark"), "{message}");
        }
    }
    for (jars, files, problem) in [
        ("/a", "/a/b", "is a folder that this one is in"),
        ("/a//b", "/a", "is a folder in this one"),
        ("/a/./b", "/a/b/", "is the same folder"),
        ("/a[1]", "/b", "the characters : , * ? [ ] { }"),
        ("/./", "/b", "it must be an absolute path"),
    ] {
        let case = case().with(&format!("{prefix}jarsDownloadDir"), jars);
        let message = case.with(&format!("{prefix}filesDownloadDir"), files).refusal().await;
        assert!(message.contains(problem), "{message}");
    }
    let apart = case().with(&format!("{prefix}jarsDownloadDir"), "/opt/spark/staged");
    apart.with(&format!("{prefix}filesDownloadDir"), "/opt/sparkling").submission().await;
}

#[tokio::test]
async fn what_no_config_map_can_hold_is_refused_before_anything_is_sent() {
    let jar = |at: usize| format!("local:///opt/application/libraries/of/it/library-{at:05}.jar");
    let jars = (0..25_000).map(jar).collect::<Vec<_>>().join(",");
    let message = PlanCase::new().with("spark.jars", &jars).refusal().await;
    assert!(message.starts_with("the config map spark-drv-"), "{message}");
    let end = "and at most 1048576 are allowed: the lists of files are too long: pack the files into an archive \
               (--archives)";
    assert!(message.ends_with(end), "{message}");
    let message = PlanCase::new().with("spark.my.setting", &"x".repeat(1 << 20)).refusal().await;
    assert!(message.contains("make the settings smaller"), "{message}");
    PlanCase::new().with("spark.my.setting", &"x".repeat((1 << 20) - 10_000)).submission().await;
}
