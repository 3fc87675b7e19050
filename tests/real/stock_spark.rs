//! Stock spark-submit, which knows the server by one property: it uploads, and a driver reads.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use cloakroom_testing::api_server::{FakeApiServer, NETWORK_POLICY};
use cloakroom_testing::cluster::{Account, CONFIG_MAP, Cluster as _, POD, SERVICE};
use cloakroom_testing::documentation::block;
use cloakroom_testing::jobs::{self, EXIT_CODE, Job};
use cloakroom_testing::needs::{Need, path, trial};
use cloakroom_testing::process::{Cloakroom, output_in_time, stderr};
use cloakroom_testing::workspace::Workspace;
use libtest_mimic::Trial;
use serde_json::Value;

const PAGE: &str = "docs/stock-spark.md";
const SPARK_HOMES: &str = "CLOAKROOM_TEST_SPARK_HOMES";
const VERSIONS: [&str; 2] = ["4.3.0", "3.5.9"];

pub fn trials() -> Vec<Trial> {
    let needs = [
        Need::Path(SPARK_HOMES, "a folder with spark-4.3.0 and spark-3.5.9"),
        Need::Program("java"),
        Need::Program("javac"),
        Need::Program("python3"),
        Need::Program("openssl"),
    ];
    let jobs = VERSIONS.into_iter().flat_map(|version| [Job::Java, Job::Python].map(|job| (version, job)));
    let jobs = jobs.map(|(version, job)| {
        let name = format!("stock_spark_{version}_needs_one_property_for_{}", job.name());
        trial(&name, &needs, move || a_job(version, job))
    });
    let refusals = VERSIONS.map(|version| {
        let name = format!("stock_spark_{version}_shows_why_an_upload_is_refused");
        trial(&name, &needs, move || refused(version))
    });
    let hidden = VERSIONS.map(|version| {
        let name = format!("stock_spark_{version}_can_have_its_key_in_no_path");
        trial(&name, &needs, move || in_a_header(version))
    });
    jobs.chain(refusals).chain(hidden).collect()
}

/// A user's folder, the API server, and a staging server whose admin has typed what the page says.
struct Scene {
    user: Workspace,
    home: PathBuf,
    api_server: FakeApiServer,
    server: Cloakroom,
    key: String,
}

impl Scene {
    fn new(version: &str) -> Self {
        let user = Workspace::new();
        let make = block(PAGE, "For the admin", "key=");
        let mut shell = Command::new("bash");
        shell.args(["-euc", &format!("{make}\nprintf %s \"$key\"")]).current_dir(user.root());
        let made = output_in_time(&mut shell);
        let file = user.path("webhdfs-keys");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let key = String::from_utf8(made.stdout).unwrap();
        assert!(key.len() > 40 && std::fs::read_to_string(&file).unwrap().contains(&key));
        let flags = block(PAGE, "For the admin", "serve").replace("FILE", &user.text("webhdfs-keys"));
        let flags: Vec<&str> = flags.split_whitespace().skip(1).collect();
        let server = user.serve(&flags);
        let api_server = FakeApiServer::with("spark", &[POD, SERVICE, CONFIG_MAP, NETWORK_POLICY]);
        let home = path(SPARK_HOMES).join(format!("spark-{version}"));
        Self { user, home, api_server, server, key }
    }

    /// Where the submitter has further settings of Hadoop.
    fn hadoop_conf(&self) -> PathBuf {
        self.user.path("hadoop-conf")
    }

    fn spark_submit(&self, user: &str, folder: &str, arguments: &[String]) -> Output {
        let mut command = Command::new(self.home.join("bin/spark-submit"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.user.root()).env("LC_ALL", "C.UTF-8").env("HADOOP_USER_NAME", user);
        command.env("JDK_JAVA_OPTIONS", jobs::SHORT_LIVED_JAVA).env("PYSPARK_PYTHON", "python3");
        command.env("SPARK_LOCAL_IP", "127.0.0.1");
        if self.hadoop_conf().exists() {
            command.env("YARN_CONF_DIR", self.hadoop_conf());
        }
        output_in_time(command.args(arguments).current_dir(self.user.path(folder)))
    }

    /// Submits with the one property of the page.
    fn submit(&self, key: &str, arguments: &[String]) -> Output {
        let property = block(PAGE, "Stock Spark by one property", "spark.kubernetes.file.upload.path");
        let port = self.server.address.rsplit_once(':').unwrap().1;
        let property = property
            .replace("HOST:PORT", &format!("localhost:{port}"))
            .replace("NAMESPACE", "spark")
            .replace("/token-KEY", &if key.is_empty() { String::new() } else { format!("/{key}") });
        self.user.write("spark-defaults.conf", property);
        let master = format!("k8s://http://{}", self.api_server.address());
        let token = self.api_server.token(Account::Admin);
        let mut all: Vec<String> =
            ["--master", &master, "--deploy-mode", "cluster", "--properties-file", "spark-defaults.conf"]
                .map(str::to_owned)
                .into();
        for (name, value) in [
            ("namespace", "spark"),
            ("container.image", "repo.example/spark:4"),
            ("driver.pod.name", "driver"),
            ("submission.waitAppCompletion", "false"),
            ("authenticate.submission.oauthToken", token.as_str()),
        ] {
            all.extend(["--conf".to_owned(), format!("spark.kubernetes.{name}={value}")]);
        }
        all.extend_from_slice(arguments);
        self.spark_submit("ada", "", &all)
    }

    /// The config map of the driver.
    fn config_map(&self) -> Value {
        let all = self.api_server.everything_in("spark");
        let name =
            all.iter().find_map(|name| name.strip_prefix("ConfigMap ").filter(|name| name.contains("-drv-")));
        self.api_server.object(CONFIG_MAP, "spark", name.unwrap_or_else(|| panic!("{all:?}"))).unwrap()
    }

    /// What the driver's pod would run, but on this machine and without executors. On the node the same jobs run in pods.
    fn drive(&self) -> Output {
        let pod = self.api_server.object(POD, "spark", "driver").unwrap();
        let spec = &pod["spec"]["containers"][0];
        let arguments: Vec<String> = spec["args"].as_array().unwrap().iter().map(text).collect();
        let map = self.config_map();
        self.user.write("driver/spark.properties", text(&map["data"]["spark.properties"]));
        let of_the_driver = arguments.iter().position(|argument| argument == "--properties-file").unwrap();
        let mut all: Vec<String> =
            ["--master", "local[2]", "--deploy-mode", "client", "--properties-file", "spark.properties"]
                .map(str::to_owned)
                .into();
        for here in [
            "spark.driver.host=127.0.0.1",
            "spark.driver.bindAddress=127.0.0.1",
            "spark.driver.port=0",
            "spark.blockManager.port=0",
            "spark.ui.enabled=false",
        ] {
            all.extend(["--conf".to_owned(), here.to_owned()]);
        }
        all.extend_from_slice(&arguments[of_the_driver + 2..]);
        // In a pod Spark puts the files into the working folder, too.
        self.user.write("driver/words.txt", "words of a file\n");
        self.spark_submit("spark", "driver", &all)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn a_job(version: &str, job: Job) {
    let scene = Scene::new(version);
    jobs::prepare(&scene.home, &scene.user.path("jobs"));
    let submitted = scene.submit(&scene.key, &job.arguments(|file| format!("jobs/{file}")));
    assert!(submitted.status.success(), "{}", stderr(&submitted));
    // The laptop is shut.
    std::fs::remove_dir_all(scene.user.path("jobs")).unwrap();
    let driven = scene.drive();
    let log = String::from_utf8_lossy(&driven.stdout);
    let seen = log.lines().filter(|line| line.starts_with("seen by driver: hello task ")).count();
    assert_eq!(seen, 1 + jobs::TASKS, "{log}\n{}", stderr(&driven));
    assert_eq!(driven.status.code(), Some(EXIT_CODE), "{}", stderr(&driven));
    let listed = listed(&scene.user);
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
    nothing_is_shown(&scene, &[&submitted, &driven]);
}

fn listed(user: &Workspace) -> Vec<Value> {
    let mut ls = user.command();
    ls.args(["ls", "-o", "json", "--data-dir", &user.text("server")]);
    let output = output_in_time(&mut ls);
    let json: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    json["resources"].as_array().unwrap().clone()
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
        serde_json::to_string(&listed(&scene.user)).unwrap(),
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
    assert_eq!(listed(&scene.user), Vec::<Value>::new());
}

/// Nothing that the submitter leaves in the cluster has the key.
fn in_a_header(version: &str) {
    let scene = Scene::new(version);
    scene.user.write("app.py", "print('never')\n");
    let make = block(PAGE, "A key that is in no path", "mkdir");
    let mut shell = Command::new("bash");
    shell.args(["-euc", &format!("key={}\n{make}", scene.key)]).current_dir(scene.user.root());
    assert!(output_in_time(&mut shell).status.success());
    let output = scene.submit("", &["app.py".to_owned()]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    let listed = listed(&scene.user);
    assert_eq!((listed.len(), text(&listed[0]["uploadedBy"])), (1, "upload-key:spark".to_owned()));
    let map = scene.config_map();
    let hex =
        String::from_utf8(std::fs::read(scene.user.path("hadoop-conf/core-site.xml")).unwrap()).unwrap();
    let hex = hex.split("X-Cloakroom-Key-").nth(1).unwrap().split('<').next().unwrap().to_owned();
    for shown in [said, map.to_string(), scene.server.log()] {
        assert!(!shown.contains(&scene.key) && !shown.contains(&hex), "{shown}");
    }
}
