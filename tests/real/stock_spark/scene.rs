//! A submitter with the one property, a staging server with WebHDFS, and a driver.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cloakroom_testing::api_server::{FakeApiServer, NETWORK_POLICY};
use cloakroom_testing::cluster::{Account, CONFIG_MAP, Cluster as _, POD, SERVICE};
use cloakroom_testing::documentation::block;
use cloakroom_testing::jobs;
use cloakroom_testing::needs::path;
use cloakroom_testing::process::{Cloakroom, output_in_time, stderr};
use cloakroom_testing::tls;
use cloakroom_testing::workspace::Workspace;
use serde_json::Value;

use crate::proxies::programs::{Proxy, REVERSE};

const PAGE: &str = "docs/stock-spark.md";
pub const SPARK_HOMES: &str = "CLOAKROOM_TEST_SPARK_HOMES";

/// A user's folder, the API server, and a staging server whose admin has typed what the page says.
pub struct Scene {
    pub user: Workspace,
    home: PathBuf,
    pub api_server: FakeApiServer,
    pub server: Cloakroom,
    pub key: String,
    /// Where clients reach the server, if it is not there itself.
    pub front: Option<SocketAddr>,
    nginx: Option<Proxy>,
}

impl Scene {
    pub fn new(version: &str) -> Self {
        Self::with(version, &[])
    }

    /// The same behind nginx, which ends TLS, as the page has it.
    pub fn behind_nginx(version: &str) -> Self {
        let mut scene = Self::with(version, &["--trusted-proxies", "127.0.0.1"]);
        let pem = tls::self_signed(scene.user.root(), &["localhost"]);
        std::fs::copy(&pem.cert, scene.user.path("tls.crt")).unwrap();
        let location = block(PAGE, "What it needs", "location")
            .replace("cloakroom.cloakroom:10000", &scene.server.address);
        let listen = format!(
            "listen LISTEN ssl; ssl_certificate {}; ssl_certificate_key {};\n{location}",
            pem.cert.display(),
            pem.key.display()
        );
        let [nginx, ..] = &REVERSE;
        let server = scene.server.address.parse().unwrap();
        let nginx = Proxy::start_with(nginx, server, |text| text.replace("listen LISTEN;", &listen));
        scene.nginx = Some(nginx);
        let trust = block(PAGE, "A private certificate", "keytool");
        shell(scene.user.root(), trust.lines().next().unwrap());
        scene
    }

    fn with(version: &str, more: &[&str]) -> Self {
        let user = Workspace::new();
        let api_server = FakeApiServer::with("spark", &[POD, SERVICE, CONFIG_MAP, NETWORK_POLICY]);
        let home = path(SPARK_HOMES).join(format!("spark-{version}"));
        let make = block(PAGE, "For the admin", "key=");
        let key = shell(user.root(), &format!("{make}\nprintf %s \"$key\""));
        let file = user.path("webhdfs-keys");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(key.len() > 40 && std::fs::read_to_string(&file).unwrap().contains(&key));
        let server =
            user.serve(&[&flags(&user).iter().map(String::as_str).collect::<Vec<_>>(), more].concat());
        Self { user, home, api_server, server, key, front: None, nginx: None }
    }

    /// Another server comes up in place of this one, at the same address and with its data.
    pub fn replace_server(&mut self) {
        let address = self.server.address.parse().unwrap();
        self.server.signal("KILL");
        self.server.wait();
        let flags = flags(&self.user);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        self.server = Cloakroom::serve_at(address, &self.user.path("server"), &flags);
    }

    /// The key goes into the submitter's settings of Hadoop.
    pub fn hide_key(&self) {
        let make = block(PAGE, "A key that is in no path", "mkdir");
        shell(self.user.root(), &format!("key={}\n{make}", self.key));
    }

    /// Where the submitter has further settings of Hadoop.
    fn hadoop_conf(&self) -> PathBuf {
        self.user.path("hadoop-conf")
    }

    fn spark_submit(&self, user: &str, folder: &str, arguments: &[String]) -> Command {
        let mut command = Command::new(self.home.join("bin/spark-submit"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.user.root()).env("LC_ALL", "C.UTF-8").env("HADOOP_USER_NAME", user);
        command.env("JDK_JAVA_OPTIONS", jobs::SHORT_LIVED_JAVA).env("PYSPARK_PYTHON", "python3");
        command.env("SPARK_LOCAL_IP", "127.0.0.1");
        if self.hadoop_conf().exists() {
            command.env("YARN_CONF_DIR", self.hadoop_conf());
        }
        command.args(arguments).current_dir(self.user.path(folder));
        command
    }

    /// The lines of the page for `spark-defaults.conf`.
    fn properties(&self, key: &str) -> String {
        let (lines, address) = match &self.nginx {
            Some(nginx) => (block(PAGE, "A private certificate", "spark."), nginx.address),
            None => {
                let line = block(PAGE, "Stock Spark by one property", "spark.kubernetes.file.upload.path");
                (line, self.front.unwrap_or_else(|| self.server.address.parse().unwrap()))
            }
        };
        lines
            .replace("HOST:PORT", &format!("localhost:{}", address.port()))
            .replace("NAMESPACE", "spark")
            .replace("/token-KEY", &if key.is_empty() { String::new() } else { format!("/{key}") })
    }

    /// Submits with the one property of the page.
    pub fn submit(&self, key: &str, arguments: &[String]) -> Output {
        self.user.write("spark-defaults.conf", self.properties(key));
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
        let mut command = self.spark_submit("ada", "", &all);
        if self.nginx.is_some() {
            let trust = self.user.path("trust.jks");
            command.env("SPARK_SUBMIT_OPTS", format!("-Djavax.net.ssl.trustStore={}", trust.display()));
        }
        output_in_time(&mut command)
    }

    /// The config map of the driver.
    pub fn config_map(&self) -> Value {
        let all = self.api_server.everything_in("spark");
        let name =
            all.iter().find_map(|name| name.strip_prefix("ConfigMap ").filter(|name| name.contains("-drv-")));
        self.api_server.object(CONFIG_MAP, "spark", name.unwrap_or_else(|| panic!("{all:?}"))).unwrap()
    }

    /// What the driver's pod would run, but on this machine and without executors. On the node the same jobs run in pods.
    pub fn driver(&self) -> Command {
        let pod = self.api_server.object(POD, "spark", "driver").unwrap();
        let spec = &pod["spec"]["containers"][0];
        let arguments: Vec<String> = spec["args"].as_array().unwrap().iter().map(text).collect();
        let map = self.config_map();
        let properties = text(&map["data"]["spark.properties"]);
        // Where the pod would have the Secret with the trust store.
        let properties = properties.replace("/etc/cloakroom-ca", &self.user.text(""));
        self.user.write("driver/spark.properties", properties);
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

    /// What `cloakroom ls` lists.
    pub fn listed(&self) -> Vec<Value> {
        let mut ls = self.user.command();
        ls.args(["ls", "-o", "json", "--data-dir", &self.user.text("server")]);
        let output = output_in_time(&mut ls);
        let json: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        json["resources"].as_array().unwrap().clone()
    }
}

/// The property with which Hadoop's client tries again.
pub fn retry() -> String {
    let line = block(PAGE, "What it needs", "spark.hadoop");
    let (name, value) = line.split_once(char::is_whitespace).unwrap();
    format!("{name}={}", value.trim())
}

/// The flags of the page.
fn flags(user: &Workspace) -> Vec<String> {
    let flags = block(PAGE, "For the admin", "serve").replace("FILE", &user.text("webhdfs-keys"));
    flags.split_whitespace().skip(1).map(str::to_owned).collect()
}

fn shell(folder: &Path, lines: &str) -> String {
    let mut shell = Command::new("bash");
    let ran = output_in_time(shell.args(["-euc", lines]).current_dir(folder));
    assert!(ran.status.success(), "{}", stderr(&ran));
    String::from_utf8(ran.stdout).unwrap()
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
