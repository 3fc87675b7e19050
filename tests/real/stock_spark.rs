//! Stock spark-submit, which knows the server by one property: it uploads, and a driver reads.

mod scene;

use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use cloakroom_testing::front::{Front, Turn};
use cloakroom_testing::jobs::{self, EXIT_CODE, Job};
use cloakroom_testing::needs::{Need, path, trial};
use cloakroom_testing::process::{ended_in_time, output_in_time, stderr};
use cloakroom_testing::wait::until_true;
use libtest_mimic::Trial;
use serde_json::Value;

use scene::{SPARK_HOMES, Scene, retry, text};

const VERSIONS: [&str; 2] = ["4.3.0", "3.5.9"];

/// The name of a test, and its function.
type Test = (&'static str, fn(&str));

pub fn trials() -> Vec<Trial> {
    let needs = [
        Need::Path(SPARK_HOMES, "a folder with spark-4.3.0 and spark-3.5.9"),
        Need::Program("java"),
        Need::Program("javac"),
        Need::Program("python3"),
        Need::Program("openssl"),
        Need::Program("nginx"),
    ];
    let tests: [Test; 5] = [
        ("needs_one_property_for_java", |version| a_job(&Scene::new(version), version, Job::Java)),
        ("needs_three_properties_behind_nginx_for_python", |version| {
            a_job(&Scene::behind_nginx(version), version, Job::Python);
        }),
        ("shows_why_an_upload_is_refused", refused),
        ("can_have_its_key_in_no_path", in_a_header),
        ("goes_on_reading_from_a_server_that_is_replaced", replaced),
    ];
    let of = |version: &'static str| {
        let needs = &needs;
        tests
            .map(|(name, test)| trial(&format!("stock_spark_{version}_{name}"), needs, move || test(version)))
    };
    VERSIONS.into_iter().flat_map(of).collect()
}

fn a_job(scene: &Scene, version: &str, job: Job) {
    jobs::prepare(&path(SPARK_HOMES).join(format!("spark-{version}")), &scene.user.path("jobs"));
    let submitted = scene.submit(&scene.key, &job.arguments(|file| format!("jobs/{file}")));
    assert!(submitted.status.success(), "{}", stderr(&submitted));
    // The laptop is shut.
    std::fs::remove_dir_all(scene.user.path("jobs")).unwrap();
    let driven = output_in_time(&mut scene.driver());
    let log = String::from_utf8_lossy(&driven.stdout);
    let seen = log.lines().filter(|line| line.starts_with("seen by driver: hello task ")).count();
    assert_eq!(seen, 1 + jobs::TASKS, "{log}\n{}", stderr(&driven));
    assert_eq!(driven.status.code(), Some(EXIT_CODE), "{}", stderr(&driven));
    let listed = scene.listed();
    assert_eq!(listed.len(), job.files().len());
    for resource in &listed {
        assert_eq!(
            (resource["owner"]["kind"].as_str(), resource["keptBecause"].as_str()),
            (Some("none"), Some("read-recently")),
            "{resource}"
        );
        assert_eq!(
            resource["uploadedBy"], "upload-key:spark",
            "uploads need no key on this machine, but this one had it"
        );
    }
    nothing_is_shown(scene, &[&submitted, &driven]);
}

/// Neither key nor folder is in what the server shows.
fn nothing_is_shown(scene: &Scene, spark: &[&Output]) {
    let folders: Vec<String> = spark
        .iter()
        .flat_map(|output| {
            stderr(output)
                .split("spark-upload-")
                .skip(1)
                .map(|rest| rest[..36].to_owned())
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(!folders.is_empty());
    let mut curl = Command::new("curl");
    let metrics = output_in_time(curl.args(["-sS", &scene.server.url("/metrics")]));
    let shown = [
        scene.server.log(),
        String::from_utf8_lossy(&metrics.stdout).into_owned(),
        serde_json::to_string(&scene.listed()).unwrap(),
    ];
    for shown in shown {
        assert!(
            !shown.contains(&scene.key) && folders.iter().all(|folder| !shown.contains(folder)),
            "{shown}"
        );
    }
}

/// An upload comes before the pod, so nothing is left in the cluster.
fn refused(version: &str) {
    let scene = Scene::new(version);
    scene.user.write("app.py", "print('never')\n");
    let wrong = scene.key.replace(|c: char| c.is_ascii_digit(), "x");
    let output = scene.submit(&wrong, &["app.py".to_owned()]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("this is no upload key of this namespace, or no longer one: ask the admin"),
        "{said}"
    );
    // Spark's driver would not find it.
    scene.user.write("my app.txt", "words");
    let output = scene.submit(&scene.key, &["--files", "my app.txt", "app.py"].map(str::to_owned));
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("rename the file, without blanks"), "{said}");
    assert_eq!(scene.api_server.everything_in("spark"), Vec::<String>::new());
    assert_eq!(scene.listed(), Vec::<Value>::new());
}

/// Nothing that the submitter leaves in the cluster has the key.
fn in_a_header(version: &str) {
    let scene = Scene::new(version);
    scene.user.write("app.py", "print('never')\n");
    scene.hide_key();
    let output = scene.submit("", &["app.py".to_owned()]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    let listed = scene.listed();
    assert_eq!((listed.len(), text(&listed[0]["uploadedBy"])), (1, "upload-key:spark".to_owned()));
    let map = scene.config_map();
    let hex =
        String::from_utf8(std::fs::read(scene.user.path("hadoop-conf/core-site.xml")).unwrap()).unwrap();
    let hex = hex.split("X-Cloakroom-Key-").nth(1).unwrap().split('<').next().unwrap().to_owned();
    for shown in [said, map.to_string(), scene.server.log()] {
        assert!(!shown.contains(&scene.key) && !shown.contains(&hex), "{shown}");
    }
}

/// The server goes while the driver reads the application. With the page's property it asks the next one for the rest.
fn replaced(version: &str) {
    let mut scene = Scene::new(version);
    let reads = Arc::new(Mutex::new(Vec::new()));
    let front = Front::before(scene.server.address.parse().unwrap(), {
        let reads = Arc::clone(&reads);
        move |line| {
            if !line.starts_with("GET ") || !line.contains("step=2") {
                return Turn::Pass;
            }
            let mut reads = reads.lock().unwrap_or_else(PoisonError::into_inner);
            reads.push(line.to_owned());
            if reads.len() == 1 { Turn::Hold { after: 1 << 20 } } else { Turn::Pass }
        }
    });
    scene.front = Some(front.address());
    // Its last line is at the end of more than a connection holds.
    scene.user.write("app.py", format!("{}print('read to its', 'end')\n", "# a comment\n".repeat(1 << 20)));
    let submitted = scene.submit(&scene.key, &["--conf".to_owned(), retry(), "app.py".to_owned()]);
    assert!(submitted.status.success(), "{}", stderr(&submitted));
    let driver = scene.driver().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(until_true("the application is half read", || front.is_holding()));
    scene.replace_server();
    front.let_go();
    let driven = ended_in_time(driver);
    let said = String::from_utf8_lossy(&driven.stdout);
    assert!(driven.status.success() && said.contains("read to its end"), "{said}{}", stderr(&driven));
    let reads = reads.lock().unwrap();
    let goes_on = reads.iter().skip(1).any(|line| line.contains("offset=") && !line.contains("offset=0"));
    assert!(goes_on, "{reads:?}");
}
