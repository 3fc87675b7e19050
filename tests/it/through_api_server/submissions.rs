//! `cloakroom submit` and `cloakroom stage --for` without an address of the server.

use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_testing::api_server::{FakeApiServer, Fault, NETWORK_POLICY, SECRET, Verb};
use cloakroom_testing::cluster::{CONFIG_MAP, POD, SERVICE};
use cloakroom_testing::documentation::block;
use cloakroom_testing::process::{binary, command, output_in_time, stderr};
use cloakroom_testing::tls;
use serde_json::json;

use super::{Far, KUBE_TOKEN, UPLOAD_TOKEN};

pub const IMAGE: &str = "repo.example/cloakroom:1";
const NAMESPACE: &str = "spark.kubernetes.cloakroom.namespace=cloakroom";
pub const SUBMIT: [&str; 11] = [
    "submit",
    "--deploy-mode",
    "cluster",
    "--class",
    "org.example.App",
    "--conf",
    "spark.kubernetes.container.image=repo.example/spark:4",
    "--conf",
    "spark.kubernetes.submission.waitAppCompletion=false",
    "--conf",
    "spark.kubernetes.driver.pod.name=app-driver",
];
const FOR_SPARK_SUBMIT: [&str; 4] = ["stage", "--for", "spark-submit", "--namespace=default"];

/// A user who may do everything in the namespace `default`, and reach the usual Service.
fn far() -> Far {
    let api_server = FakeApiServer::with("default", &[SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY]);
    let far = Far::of(api_server, &["--fetch-image", IMAGE]);
    let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    far.api_server.grant_rules("ann", Some("default"), everything);
    far
}

impl Far {
    fn here(&self, arguments: &[&str], more: &[&str]) -> Command {
        let mut command = self.user.command();
        command.args(arguments).args(more).env("KUBECONFIG", self.user.path("kubeconfig"));
        command
    }

    fn said(&self, command: &mut Command) -> (Output, String) {
        let output = output_in_time(command);
        let said = stderr(&output);
        for secret in [KUBE_TOKEN, UPLOAD_TOKEN] {
            assert!(!said.contains(secret) && !self.server.log().contains(secret), "{said}");
        }
        (output, said)
    }

    /// What the init-container is told.
    pub fn init_properties(&self) -> String {
        let map = self.named(CONFIG_MAP.kind, "-init-config");
        let map = self.api_server.object(CONFIG_MAP, "default", &map).unwrap();
        map["data"]["download-submitted-files"].as_str().unwrap().replace('\\', "")
    }

    fn named(&self, kind: &str, end: &str) -> String {
        let everything = self.api_server.everything_in("default");
        let found = everything.iter().find(|name| name.starts_with(kind) && name.ends_with(end));
        let found = found.unwrap_or_else(|| panic!("no …{end} in {everything:?}"));
        found.split_once(' ').unwrap().1.to_owned()
    }

    /// How many bundles the server has.
    fn bundles(&self) -> usize {
        let folder = std::fs::read_dir(self.user.path("server/bundles")).unwrap();
        let folders = folder.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        folders.map(|folder| std::fs::read_dir(folder).unwrap().count()).sum()
    }
}

#[test]
fn a_submission_needs_a_kubeconfig_and_one_right_beside_its_own() {
    let far = far().with_the_service();
    let defaults =
        "spark.kubernetes.driver.pod.name app-driver\nspark.kubernetes.submission.waitAppCompletion false\n";
    far.user.write("conf/spark-defaults.conf", defaults);
    let page = block("docs/clients.md", "With a kubeconfig and nothing else", "cloakroom submit");
    let page = page.replace("--kubernetes-namespace spark", "--kubernetes-namespace default");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &page.replace("cloakroom submit", &format!("{} submit", binary().display()))]);
    shell.env_clear().current_dir(far.user.root()).env("KUBECONFIG", far.user.path("kubeconfig"));
    shell.env("SPARK_CONF_DIR", far.user.path("conf")).env("CLOAKROOM_SERVER_NAMESPACE", "cloakroom");
    let (output, said) = far.said(shell.env("CLOAKROOM_UPLOAD_TOKEN_FILE", far.user.path("token")));
    assert!(output.status.success(), "{said}");
    let through =
        "Staging: Staging by the Service cloakroom in the namespace cloakroom, through the API server";
    assert!(said.contains(through), "{said}");
    let pod = far.api_server.object(POD, "default", "app-driver").unwrap();
    assert_eq!(pod["spec"]["initContainers"][0]["image"], IMAGE);
    let properties = far.init_properties();
    let internal = "spark.kubernetes.resourceStagingServer.uri=http://cloakroom.cloakroom.svc:10000";
    assert!(properties.lines().any(|line| line == internal), "{properties}");
    let secret = far.api_server.object(SECRET, "default", &far.named(SECRET.kind, "-init-secret")).unwrap();
    let secret = secret["data"]["downloadSubmittedJarsSecret"].as_str().unwrap();
    let secret = String::from_utf8(STANDARD.decode(secret).unwrap()).unwrap();
    assert!(!said.contains(&secret) && !far.server.log().contains(&secret));

    // As a pod would, which reaches the server by that name.
    let secrets = far.user.path("pod");
    far.user.write("pod/downloadSubmittedJarsSecret", &secret);
    let properties = properties
        .replace("http://cloakroom.cloakroom.svc:10000", &far.server.url(""))
        .replace("/mnt/secrets/spark-init", secrets.to_str().unwrap())
        .replace("/var/spark-data", secrets.to_str().unwrap());
    let properties = far.user.write("pod/init.properties", properties);
    let fetched = output_in_time(command().arg(properties));
    assert!(fetched.status.success(), "{}", stderr(&fetched));
    let jar = std::fs::read(secrets.join("spark-jars/app.jar")).unwrap();
    assert_eq!(jar, std::fs::read(far.user.path("app.jar")).unwrap());
}

#[test]
fn a_token_goes_to_a_server_whose_namespace_is_named() {
    // Without a right to the Service: had it been asked, the error would be another one.
    let far = far();
    let token = format!("spark.kubernetes.cloakroom.uploadTokenFile={}", far.user.path("token").display());
    let mut submit = far.here(&SUBMIT, &["--conf", &token, "app.jar"]);
    let (output, said) = far.said(&mut submit);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("goes only to a server that is named: set `spark.kubernetes.cloakroom.namespace`"),
        "{said}"
    );
    let mut submit = far.here(&SUBMIT, &["app.jar"]);
    let (_, said) = far.said(submit.env("CLOAKROOM_UPLOAD_TOKEN_FILE", far.user.path("token")));
    assert!(
        said.contains("CLOAKROOM_UPLOAD_TOKEN_FILE") && said.contains("or CLOAKROOM_SERVER_NAMESPACE"),
        "{said}"
    );
    assert_eq!(far.bundles(), 0);
}

#[test]
fn what_was_staged_for_a_submission_that_fails_is_released_the_same_way() {
    let far = far().with_the_service();
    far.api_server.fail_some(POD, Verb::Create, 1, usize::MAX, Fault::Status(422));
    let mut submit = far.here(&SUBMIT, &["--conf", NAMESPACE, "app.jar"]);
    let (output, said) = far.said(submit.env("CLOAKROOM_UPLOAD_TOKEN_FILE", far.user.path("token")));
    assert!(!output.status.success() && said.contains("What was staged is released again"), "{said}");
    assert_eq!((far.bundles(), far.api_server.everything_in("default").len()), (0, 0), "{said}");
}

#[test]
fn the_error_without_a_server_names_the_file_and_the_places_searched() {
    let far = far();
    let (output, said) = far.said(&mut far.here(&SUBMIT, &["app.jar"]));
    assert_eq!(output.status.code(), Some(1));
    for part in [
        "app.jar needs a staging server, none is named, and the Service cloakroom in the namespace cloakroom, the usual one",
        "the API server does not let you reach the Service cloakroom in the namespace cloakroom (403",
        "--role=cloakroom-user",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    let elsewhere = ["--conf", "spark.kubernetes.cloakroom.namespace=staging", "app.jar"];
    let (_, said) = far.said(&mut far.here(&SUBMIT, &elsewhere));
    assert!(said.contains("the Service cloakroom in the namespace staging cannot be reached"), "{said}");
    assert!(!said.contains("app.jar is on this machine"), "{said}");
    let bad = ["--conf", "spark.kubernetes.cloakroom.service=a.b", "app.jar"];
    let (_, said) = far.said(&mut far.here(&SUBMIT, &bad));
    assert!(said.contains("cloakroom.service") && said.contains("must be a name in Kubernetes"), "{said}");
    assert_eq!(far.api_server.everything_in("default"), [""; 0]);
}

#[test]
fn files_that_a_secret_holds_need_no_server() {
    let far = far();
    far.user.write("main.py", "print()");
    let (output, said) = far.said(&mut far.here(&SUBMIT, &["main.py"]));
    assert!(output.status.success(), "{said}");
    far.named(SECRET.kind, "-submitted-files");
}

#[test]
fn a_setting_of_the_service_wins_over_the_variable_of_an_address() {
    let far = far().with_the_service();
    let nowhere = "http://127.0.0.1:1";
    let variables =
        [("CLOAKROOM_SERVER", nowhere.to_owned()), ("CLOAKROOM_UPLOAD_TOKEN_FILE", far.user.text("token"))];
    let mut submit = far.here(&SUBMIT, &["--conf", NAMESPACE, "app.jar"]);
    let (output, said) = far.said(submit.envs(variables.clone()));
    assert!(output.status.success(), "{said}");

    let service = "spark.kubernetes.cloakroom.service=cloakroom";
    let both = ["--conf", service, "--conf", "spark.kubernetes.resourceStagingServer.uri=http://h:1"];
    let (output, said) = far.said(far.here(&SUBMIT, &both).args(["--dry-run", "app.jar"]));
    assert!(output.status.success(), "{said}");
    assert!(said.contains("`spark.kubernetes.cloakroom.service` is not used, because"), "{said}");
    let (output, said) =
        far.said(far.here(&SUBMIT, &["--dry-run", "app.jar"]).env("CLOAKROOM_SERVER_NAMESPACE", "staging"));
    assert!(output.status.success(), "{said}");
    let shown = "pods would fetch from http://cloakroom.staging.svc:10000, unless the Service cloakroom in the namespace staging";
    assert!(said.contains(shown), "{said}");
}

#[test]
fn files_for_another_submitter_are_staged_the_same_way() {
    let far = far().with_the_service();
    let flags = ["--server-namespace", "cloakroom", "--context", "far", "--jars", "app.jar"];
    let mut stage = far.here(&FOR_SPARK_SUBMIT, &flags);
    stage.env("CLOAKROOM_UPLOAD_TOKEN_FILE", far.user.path("token"));
    let (output, said) = far.said(stage.env("CLOAKROOM_SERVER", "http://127.0.0.1:1"));
    assert!(output.status.success(), "{said}");
    assert!(said.contains("staging by the Service cloakroom in the namespace cloakroom, through"), "{said}");
    let internal = "resourceStagingServer.uri=http://cloakroom.cloakroom.svc:10000";
    assert!(far.init_properties().contains(internal));
    assert_eq!(far.bundles(), 1);

    // Without a name it is the usual Service, without a token.
    let (_, said) = far.said(&mut far.here(&FOR_SPARK_SUBMIT, &["--dry-run", "--jars", "app.jar"]));
    assert!(said.contains("the Service cloakroom") && said.contains("401 unauthorized"), "{said}");
}

#[test]
fn pods_of_a_server_with_tls_are_given_its_ca_or_the_user_is_warned() {
    let far = far();
    let to = far.address();
    let far = far.with_the_way_by("https:cloakroom:10000", to);
    let ca = tls::self_signed(far.user.root(), &["cloakroom.cloakroom.svc"]).cert;
    let with_token = || {
        let mut submit = far.here(&SUBMIT, &["--conf", NAMESPACE]);
        submit.env("CLOAKROOM_UPLOAD_TOKEN_FILE", far.user.path("token"));
        submit
    };
    let (output, said) = far.said(with_token().arg("app.jar").env("CLOAKROOM_CA_FILE", &ca));
    assert!(output.status.success() && !said.contains("trust only"), "{said}");
    let properties = far.init_properties();
    assert!(
        properties.contains("resourceStagingServer.uri=https://cloakroom.cloakroom.svc:10000"),
        "{properties}"
    );
    let secret = far.api_server.object(SECRET, "default", &far.named(SECRET.kind, "-init-secret")).unwrap();
    assert_eq!(secret["data"]["ssl-certificate"], STANDARD.encode(std::fs::read(ca).unwrap()));

    let known = [
        "spark.kubernetes.driver.pod.name=other-driver",
        "spark.kubernetes.initContainer.image=repo.example/other:1",
        "spark.kubernetes.resourceStagingServer.internal.uri=https://inside.example",
    ];
    let (output, said) =
        far.said(with_token().args(known.iter().flat_map(|known| ["--conf", known])).arg("app.jar"));
    assert!(output.status.success() && !said.contains("trust only"), "{said}");

    let (_, said) = far.said(with_token().arg("app.jar"));
    assert!(said.contains("trust only the CAs of the init-container's image"), "{said}");
}
