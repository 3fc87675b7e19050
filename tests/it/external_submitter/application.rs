//! `cloakroom stage --for spark-operator -f app.yaml`: the SparkApplication comes out with what was staged in it, beside the objects
//! that it needs.

use std::io::Write as _;

use super::*;

/// As a user has it: an image, an account, a volume for the webhook, and files of the machine.
const APPLICATION: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: other, namespace: demo}
data: {'on': 'yes'}
---
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: words, namespace: demo, labels: {team: a}}
spec:
  type: Scala
  mode: cluster
  sparkVersion: 4.3.0
  image: repo.example/spark:4.3.0
  mainClass: org.example.Words
  mainApplicationFile: app.jar
  arguments: ['2026-11-22', '0755', 'no']
  volumes: [{name: own, emptyDir: {}}]
  deps:
    jars: [lib/dep one.jar, 'local:///opt/x.jar']
    files: ['prod.conf#app.conf']
    packages: ['a:b:1']
  driver:
    memory: 2g
    serviceAccount: spark
    volumeMounts: [{name: own, mountPath: /own}]
    template: {spec: {nodeSelector: {disk: ssd}}}
  executor: {instances: 2}
";

#[test]
fn a_second_run_sends_only_what_changed() {
    let stager = Stager::new();
    stager.folder.write("app.jar", cloakroom_testing::noise::noise(2 << 20));
    let said = |more: &[&str]| {
        let mut command = stager.stage_for("spark-submit", &[more, &["--dry-run", "app.jar"]].concat());
        let output = command.env("HOME", stager.folder.root()).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    assert!(!said(&[]).contains("travel"));
    assert!(said(&[]).contains(" of it travelled: the server had the rest since "));
    assert!(!said(&["--no-reuse"]).contains("travel"));
}

impl Stager {
    /// With an application's file and a cluster that knows the kind.
    fn with_application() -> Self {
        let stager = Self::new();
        stager.api_server.define(SPARK_APPLICATION);
        std::fs::write(stager.path("app.yaml"), APPLICATION).unwrap();
        stager
    }

    fn merge(&self, more: &[&str]) -> Output {
        let mut command = command();
        command.current_dir(self.folder.root()).env("KUBECONFIG", self.path("kubeconfig"));
        command.args(["stage", "--for", "spark-operator", "--server", &self.server.url("")]);
        command.args(pods_too(&self.server.url(""))).args(more).output().unwrap()
    }

    /// The documents that are printed.
    fn documents(&self, more: &[&str]) -> Vec<Value> {
        documents_of(&self.merge(more))
    }
}

fn documents_of(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", stderr(output));
    serde_saphyr::from_multiple(std::str::from_utf8(&output.stdout).unwrap()).unwrap()
}

fn kinds(documents: &[Value]) -> Vec<String> {
    documents.iter().map(|document| text(&document["kind"])).collect()
}

// Invariant: the file of a SparkApplication keeps its fields; if staging would have to change one, it is refused with
// the field's name.
#[test]
fn the_application_keeps_its_fields_and_gets_what_was_staged() {
    let stager = Stager::with_application();
    let output = stager.merge(&["-f", "app.yaml", "--files", "data.txt,prod.conf#app.conf"]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains(r#""on": "yes""#), "a word that kubectl would take for a boolean: {printed}");
    assert!(printed.contains("mode: cluster\n") && !printed.contains("- no\n"), "{printed}");
    let documents = documents_of(&output);
    assert_eq!(kinds(&documents), ["ConfigMap", "ConfigMap", "Secret", "SparkApplication"]);
    assert_eq!(documents[0]["data"], json!({"on": "yes"}));
    let before: Vec<Value> = serde_saphyr::from_multiple(APPLICATION).unwrap();
    let (before, after) = (&before[1], &documents[3]);
    assert_eq!(after["metadata"], before["metadata"]);
    let (old, new) = (before["spec"].as_object().unwrap(), after["spec"].as_object().unwrap());
    for (field, value) in
        old.iter().filter(|(field, _)| !["deps", "driver", "mainApplicationFile"].contains(&field.as_str()))
    {
        assert_eq!(new[field], *value, "{field}");
    }
    assert_eq!(new["mainApplicationFile"], "spark-internal");
    let jar = |name: &str| format!("{JARS}/{name}");
    assert_eq!(
        new["deps"],
        json!({
            "jars": [jar("dep%20one.jar"), jar("app.jar"), "local:///opt/x.jar"],
            "files": [format!("{FILES}/app.conf"), format!("{FILES}/data.txt")],
            "packages": ["a:b:1"],
        })
    );
    let driver = &new["driver"];
    assert_eq!(driver["volumeMounts"], old["driver"]["volumeMounts"]);
    let pod = &driver["template"]["spec"];
    assert_eq!(pod["nodeSelector"], json!({"disk": "ssd"}));
    assert_eq!(pod["initContainers"][0]["image"], IMAGE);
    assert_eq!(pod["initContainers"][0]["resources"]["limits"]["memory"], "2432Mi", "the driver's own");
    assert_eq!(pod["containers"][0]["name"], "spark-kubernetes-driver");
    let volumes = pod["volumes"].to_string();
    for object in &documents[1..3] {
        assert!(volumes.contains(&text(&object["metadata"]["name"])), "{volumes}");
        assert_eq!(object["metadata"]["namespace"], "demo");
    }
    assert_eq!(stager.bundles(), 2);
    assert_eq!(stager.api_server.everything_in("demo"), [""; 0], "kubectl makes them");
}

#[test]
fn the_objects_belong_to_the_application_where_it_is_there() {
    let stager = Stager::with_application();
    let output = stager.merge(&["-f", "app.yaml"]);
    assert!(
        stderr(&output).contains(
            "once the SparkApplication is gone, remove them with “kubectl delete secret,configmap -n demo -l"
        ),
        "{}",
        stderr(&output)
    );
    for object in &documents_of(&output)[1..3] {
        assert_eq!(object["metadata"]["ownerReferences"], Value::Null);
    }
    stager.api_server.create(SPARK_APPLICATION, "demo", "words", &[]);
    let uid = text(&stager.api_server.object(SPARK_APPLICATION, "demo", "words").unwrap()["metadata"]["uid"]);
    let output = stager.merge(&["-f", "app.yaml"]);
    assert!(
        stderr(&output).contains("they belong to the SparkApplication that exists already"),
        "{}",
        stderr(&output)
    );
    for object in &documents_of(&output)[1..3] {
        assert_eq!(
            object["metadata"]["ownerReferences"],
            json!([{"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": "words", "uid": uid}])
        );
    }
}

#[test]
fn a_forbidden_application_is_warned_of_and_a_dry_run_looks_for_none() {
    let stager = Stager::with_application();
    stager.api_server.fail_for(SPARK_APPLICATION, Verb::Get, Fault::Status(403));
    let output = stager.merge(&["-f", "app.yaml"]);
    let said = stderr(&output);
    assert!(
        said.contains("warning: cannot find out whether the SparkApplication words exists already"),
        "{said}"
    );
    assert_eq!(kinds(&documents_of(&output)).len(), 4);
    stager.api_server.forget_calls();
    assert_eq!(stager.documents(&["-f", "app.yaml", "--dry-run"]).len(), 4);
    assert_eq!(stager.api_server.calls(), []);
    stager.api_server.heal();
    stager.api_server.fail_for(SPARK_APPLICATION, Verb::Get, Fault::Status(401));
    let bundles = stager.bundles();
    let said = stderr(&stager.merge(&["-f", "app.yaml"]));
    assert!(said.contains("401") && stager.bundles() == bundles, "nothing is uploaded in vain: {said}");
    for status in [422, 500] {
        stager.api_server.heal();
        stager.api_server.fail_for(SPARK_APPLICATION, Verb::Get, Fault::Status(status));
        let said = stderr(&stager.merge(&["-f", "app.yaml"]));
        assert!(said.contains(" words in namespace demo could not be read: "), "{said}");
        assert!(!said.contains("could not be created") && !said.contains("does not accept"), "{said}");
    }
}

#[test]
fn json_and_stdin_do_as_well_and_the_name_chooses() {
    let stager = Stager::with_application();
    let documents: Vec<Value> = serde_saphyr::from_multiple(APPLICATION).unwrap();
    let mut other = documents[1].clone();
    other["metadata"] = json!({"name": "letters"});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [documents[1], other]}).to_string();
    std::fs::write(stager.path("list.json"), &list).unwrap();
    let printed = stager.documents(&["-f", "list.json", "--name", "letters", "-n", "demo"]);
    assert_eq!(kinds(&printed), ["SparkApplication", "ConfigMap", "Secret", "SparkApplication"]);
    assert_eq!(printed[0], documents[1], "the other one is as it was");
    assert_eq!(printed[3]["metadata"], json!({"name": "letters", "namespace": "demo"}));
    let mut command = command();
    command.current_dir(stager.folder.root()).env("KUBECONFIG", stager.path("kubeconfig"));
    command.args(["stage", "--for", "spark-operator", "--server", &stager.server.url(""), "-f", "-"]);
    command.args(pods_too(&stager.server.url("")));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(APPLICATION.as_bytes()).unwrap();
    assert_eq!(kinds(&documents_of(&child.wait_with_output().unwrap())).len(), 4);
}

#[test]
fn a_file_that_contradicts_the_rest_is_refused_before_anything_is_sent() {
    let stager = Stager::with_application();
    let own = |file: &'static str, from: &str, to: &str| {
        std::fs::write(stager.path(file), APPLICATION.replacen(from, to, 1)).unwrap();
        vec!["-f", file]
    };
    for (arguments, why) in [
        (vec!["-f", "nowhere.yaml"], "cannot read nowhere.yaml (-f)"),
        (vec!["-f", "app.yaml", "-n", "other"], "metadata.namespace is demo, and --namespace is other"),
        (
            vec!["-f", "app.yaml", "lib/dep one.jar"],
            "spec.mainApplicationFile is app.jar, and lib/dep one.jar is given",
        ),
        (
            vec!["-f", "app.yaml", "--conf", "spark.driver.memory=1g"],
            "app.yaml, spec.driver.memory: `spark.driver.memory` is `2g`: --conf says something else",
        ),
        (vec!["-f", "app.yaml", "--name", "letters"], "has no application letters in it"),
        (
            own("clash.yaml", "{name: own, emptyDir", "{name: download-files, emptyDir"),
            "clash.yaml: spec.volumes[0].name is download-files",
        ),
        (
            own("wrong.yaml", "memory: 2g", "memory: lots"),
            "wrong.yaml, spec.driver.memory: `spark.driver.memory` is `lots`",
        ),
    ] {
        let said = stderr(&stager.merge(&arguments));
        assert!(said.contains(why), "{arguments:?}: {said}");
        stager.assert_nothing_is_left(&said);
    }
    let said = stderr(&stager.output("spark-submit", &["-f", "app.yaml"]));
    assert!(said.contains("it goes with --for spark-operator"), "{said}");
    let printed = stager.merge(&["-f", "app.yaml"]).stdout;
    std::fs::write(stager.path("merged.yaml"), printed).unwrap();
    let said = stderr(&stager.merge(&["-f", "merged.yaml", "app.jar"]));
    assert!(!said.is_empty() && stager.bundles() == 2, "what was merged is not merged again: {said}");
}

#[test]
fn what_cannot_be_printed_is_released() {
    let stager = Stager::with_application();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output =
        stager.stage_for("spark-operator", &["-f", "app.yaml"]).stdout(Stdio::from(full)).output().unwrap();
    let said = stderr(&output);
    assert!(said.contains("cannot be printed on stdout"), "{said}");
    stager.assert_nothing_is_left(&said);
}
