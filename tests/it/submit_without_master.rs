//! `cloakroom submit` without a master: the kubeconfig's context names the API server.

use std::process::Output;

use cloakroom_testing::api_server::{EVENT, FakeApiServer, NETWORK_POLICY, SECRET};
use cloakroom_testing::cluster::{Account, CONFIG_MAP, Cluster as _, POD, SERVICE, kubeconfig};
use cloakroom_testing::process::stderr;
use cloakroom_testing::workspace::Workspace;
use serde_json::{Value, json};

const JAR: &str = "local:///opt/app.jar";
const DRIVER: &str = "spark-pi-driver";
const CONTEXT: &str = "spark.kubernetes.context";

/// A user whose home has a kubeconfig for a cluster.
struct User {
    api_server: FakeApiServer,
    folder: Workspace,
}

impl User {
    fn new() -> Self {
        let api_server =
            FakeApiServer::with("default", &[SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY, EVENT]);
        Self { api_server, folder: Workspace::new() }.with_kubeconfig(|_| {})
    }

    /// Changes the kubeconfig, whose one context is `test`.
    fn with_kubeconfig(self, change: impl FnOnce(&mut Value)) -> Self {
        let token = self.api_server.token(Account::Admin);
        let text = kubeconfig(None, self.api_server.address(), &token);
        let mut config: Value = serde_json::from_str(&text).unwrap();
        change(&mut config);
        self.folder.write(".kube/config", config.to_string());
        self
    }

    fn run(&self, more: &[&str]) -> Output {
        self.folder.command().arg("submit").args(more).output().unwrap()
    }

    fn submit(&self, settings: &[(&str, &str)], more: &[&str]) -> Output {
        let pod_name = ("spark.kubernetes.driver.pod.name", DRIVER);
        let image = ("spark.kubernetes.container.image", "repo.example/spark:4");
        let no_wait = ("spark.kubernetes.submission.waitAppCompletion", "false");
        let settings: Vec<String> = [&[pod_name, image, no_wait][..], settings]
            .concat()
            .iter()
            .flat_map(|(key, value)| ["--conf".to_owned(), format!("{key}={value}")])
            .collect();
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        self.run(&[&["--deploy-mode", "cluster", "--class", "A"][..], &settings, more, &[JAR]].concat())
    }

    /// The end of the line that names the API server and this context; a verb stands before it.
    fn told(&self, context: &str) -> String {
        format!(" http://{} of the context “{context}”\n", self.api_server.address())
    }

    fn driver(&self) -> Option<Value> {
        self.api_server.object(POD, "default", DRIVER)
    }
}

#[test]
fn the_current_context_names_the_api_server_and_is_told_in_one_line() {
    let user = User::new();
    let printed = user.submit(&[], &["--dry-run"]);
    let said = stderr(&printed);
    assert!(said.contains(&format!("these are the objects for{}", user.told("test"))), "{said}");
    let objects = String::from_utf8(printed.stdout).unwrap();
    assert!(objects.contains("spark.master=k8s"), "{objects}");
    assert!(user.driver().is_none());
    let said = stderr(&user.submit(&[], &[]));
    assert_eq!(said.matches(&format!("submitting to{}", user.told("test"))).count(), 1, "{said}");
    assert!(user.driver().is_some(), "{said}");
    for job in ["--status", "--kill"] {
        let done = user.run(&[job, &format!("default:{DRIVER}")]);
        let said = stderr(&done);
        assert_eq!(done.status.code(), Some(0), "{said}");
        assert!(said.contains(&format!("asking{}", user.told("test"))), "{said}");
    }
    assert!(user.driver().is_none());
}

#[test]
fn another_context_is_taken_if_the_setting_names_it() {
    let user = User::new().with_kubeconfig(|config| {
        config["contexts"][0]["name"] = "prod".into();
        let gone = json!({"name": "test", "context": {"cluster": "gone", "user": "test"}});
        config["contexts"].as_array_mut().unwrap().push(gone);
    });
    let said = stderr(&user.submit(&[(CONTEXT, "prod")], &[]));
    assert!(said.contains(&format!("submitting to{}", user.told("prod"))), "{said}");
    assert!(user.driver().is_some(), "{said}");
}

#[test]
fn without_a_context_the_missing_master_is_refused_with_both_ways_out() {
    let elsewhere = Workspace::new();
    let without_current = User::new().with_kubeconfig(|config| config["current-context"] = "".into());
    let without_any = User { folder: elsewhere, ..User::new() };
    for user in [without_current, without_any] {
        let refused = user.submit(&[], &[]);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        for part in ["`spark.master` is not set: give --master; write k8s://", "or choose a context"] {
            assert!(said.contains(part), "no “{part}” in {said}");
        }
        assert_eq!(user.api_server.calls().len(), 0);
    }
}

#[test]
fn a_context_or_credentials_that_lead_to_no_api_server_are_refused() {
    let user = User::new();
    let token = ("spark.kubernetes.authenticate.submission.oauthToken", "hunter2");
    for (setting, says) in [
        ((CONTEXT, "nowhere"), "it has no context “nowhere”; it has “test”"),
        (token, "no API server is named for the credentials of spark.kubernetes.authenticate.submission."),
    ] {
        let refused = user.submit(&[setting], &[]);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains(says) && !said.contains("hunter2"), "{said}");
        assert!(!said.contains("submitting to"), "{said}");
    }
    assert_eq!(user.api_server.calls().len(), 0);
}

#[test]
fn the_namespace_of_the_context_counts_where_none_is_set() {
    let user =
        User::new().with_kubeconfig(|config| config["contexts"][0]["context"]["namespace"] = "team-a".into());
    let printed = |settings: &[(&str, &str)], more: &[&str]| {
        let printed = user.submit(settings, &[&["--dry-run"][..], more].concat());
        (String::from_utf8(printed.stdout.clone()).unwrap(), stderr(&printed))
    };
    let (objects, said) = printed(&[], &[]);
    assert!(objects.starts_with("# Namespace: team-a\n"), "{objects}");
    assert!(objects.contains("spark.kubernetes.namespace=team-a"), "{objects}");
    assert!(said.contains("of the context “test”, in its namespace team-a\n"), "{said}");
    let of_master = format!("k8s://http://{}", user.api_server.address());
    for (settings, more, namespace) in [
        (&[("spark.kubernetes.namespace", "other")][..], &[][..], "other"),
        (&[], &["-n", "other"], "other"),
        (&[], &["--namespace=other"], "other"),
        (&[], &["--kubernetes-namespace", "other"], "other"),
        (&[], &["--master", &of_master], "default"),
    ] {
        let (objects, said) = printed(settings, more);
        assert!(objects.starts_with(&format!("# Namespace: {namespace}\n")), "{more:?}: {objects}");
        assert!(!said.contains("team-a"), "{more:?}: {said}");
    }
    for (job, answer) in [("--status", "Application not found."), ("--kill", "Application not found.")] {
        let said = stderr(&user.run(&[job, DRIVER]));
        assert!(said.contains("in its namespace team-a\n") && said.contains(answer), "{said}");
    }
}
