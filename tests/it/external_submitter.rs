//! `cloakroom stage --for`: what a stock spark-submit or the Spark operator has to be given is printed, and made, or nothing
//! of it is there.

mod application;
mod leftovers;
mod named;
mod stager;
mod told;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use cloakroom_testing::api_server::{Call, Fault, SECRET, Verb};
use cloakroom_testing::cluster::{CONFIG_MAP, Cluster as _, Kind, SPARK_APPLICATION, kubeconfig, text};
use cloakroom_testing::front::{Front, STOPPING, Turn};
use cloakroom_testing::known::{rights_of, rules_of_submitters};
use cloakroom_testing::process::{Cloakroom, command, output_in_time, stderr};
use cloakroom_testing::tls;
use serde_json::{Value, json};
use stager::Stager;

const IMAGE: &str = "repo.example/cloakroom:1";
const JARS: &str = "local:///var/spark-data/spark-jars";
const FILES: &str = "local:///var/spark-data/spark-files";
const WHOLE: [&str; 9] = [
    "--jars",
    "lib/dep one.jar,local:///opt/x.jar",
    "--files",
    "data.txt,prod.conf#app.conf",
    "--archives",
    "env.tar.gz#env",
    "--py-files",
    "https://h/y.zip?sig=1&x=2",
    "app.jar",
];

/// Of a user with the roles of [`rules`].
const TOKEN: &str = "of-the-stager";

/// Here pods reach the server as this machine does, which is not taken for granted.
fn pods_too(server: &str) -> [String; 2] {
    ["--conf".to_owned(), format!("spark.kubernetes.resourceStagingServer.internal.uri={server}")]
}

/// The rules of the stager's role, and of the one for the operator.
fn rules() -> Value {
    rules_of_submitters(&["stager.yaml", "spark-operator.yaml"])
}

#[test]
fn spark_submit_is_given_a_template_and_what_was_staged_as_local() {
    let stager = Stager::new();
    let output = stager.output("spark-submit", &WHOLE);
    let told = stderr(&output);
    assert!(output.status.success(), "{told}");
    let template = stager.templates("driver")[0].canonicalize().unwrap();
    let expected = [
        r"--conf spark.kubernetes.namespace=demo \".to_owned(),
        format!(r"--conf spark.kubernetes.driver.podTemplateFile={} \", template.display()),
        format!(r"--conf spark.jars={JARS}/dep%20one.jar,{JARS}/app.jar,local:///opt/x.jar \"),
        format!(r"--conf spark.files={FILES}/data.txt,{FILES}/app.conf \"),
        format!(r"--conf spark.archives={FILES}/env.tar.gz#env \"),
        r"--conf spark.submit.pyFiles='https://h/y.zip?sig=1&x=2' \".to_owned(),
        "spark-internal".to_owned(),
    ];
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
    for said in [
        "give --class as well",
        "submit the application before 20",
        "kubectl delete secret,configmap -n demo",
    ] {
        assert!(told.contains(said), "{said} is not in\n{told}");
    }
    assert_eq!(stager.bundles(), 2);
    // As the documentation says it.
    let mut script = Command::new("sh");
    script.args(["-c", r#"args=$(printf %s "$1"); eval "printf '%s\n' $args end""#, "sh", &printed]);
    let words = String::from_utf8(script.output().unwrap().stdout).unwrap();
    assert!(
        words.contains("\nspark.submit.pyFiles=https://h/y.zip?sig=1&x=2\nspark-internal\nend\n"),
        "{words}"
    );
}

#[test]
fn an_absent_server_is_waited_for_before_and_after_it_names_the_image() {
    let stager = Stager::new();
    let address = stager.server.address.parse().unwrap();
    let asked = AtomicUsize::new(0);
    let front = Front::before(address, move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 | 2 => STOPPING,
        _ => Turn::Pass,
    });
    let output = stager.stage_at(&front.url(), "spark-submit", &WHOLE).output().unwrap();
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    let told = format!("{} is being replaced (503 shutting-down): trying again for up to 2m\n", front.url());
    assert_eq!(said.matches(&told).count(), 2, "once for each request: {said}");
    assert_eq!(stager.bundles(), 2, "{said}");
}

// Invariant: a stock spark-submit, and the Spark operator's, find what was staged for them; a failure on the way
// leaves nothing.
#[test]
fn the_template_brings_the_init_container_and_the_files_owner_label() {
    let stager = Stager::new();
    stager.printed("spark-submit", &WHOLE);
    let (template, map, secret) = (stager.template(), stager.only(CONFIG_MAP), stager.only(SECRET));
    let id = text(&template["metadata"]["labels"]["cloakroom-application"]);
    for object in [&map, &secret] {
        assert_eq!(object["metadata"]["labels"]["cloakroom-application"], id);
        assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/managed-by"], "cloakroom");
        assert!(object["metadata"]["name"].as_str().unwrap().starts_with("app-"));
    }
    let init = &template["spec"]["initContainers"][0];
    assert_eq!(init["image"], IMAGE);
    assert_eq!(
        init["args"],
        json!([
            "fetch",
            "/etc/spark-init/spark-init.properties",
            "--spark-properties",
            "/etc/spark-conf/spark.properties",
            "--spark-properties-to",
            "/var/spark-data/spark-conf/spark.properties",
        ])
    );
    let driver = &template["spec"]["containers"][0];
    assert_eq!(driver["name"], "spark-kubernetes-driver");
    assert_eq!(
        driver["volumeMounts"][2],
        json!({
            "name": "spark-driver-properties",
            // With a slash before it, the kubelet would make a folder of it in spark-submit's config map.
            "mountPath": "opt/spark/conf/spark.properties",
            "subPath": "spark.properties",
            "readOnly": true,
        })
    );
    let volumes = template["spec"]["volumes"].to_string();
    for object in [&map, &secret] {
        assert!(volumes.contains(&text(&object["metadata"]["name"])), "{volumes}");
    }
    // The volume that spark-submit adds itself.
    assert!(!volumes.contains("spark-conf-volume-driver"), "{volumes}");
    assert!(init.to_string().contains("spark-conf-volume-driver"), "{init}");
}

#[test]
fn a_template_of_the_users_is_merged_and_one_of_ours_is_refused() {
    let stager = Stager::new();
    let own =
        "spec: {nodeSelector: {a: b}, containers: [{name: sidecar, image: s}, {name: spark, tty: true}]}";
    std::fs::write(stager.path("own.yaml"), own).unwrap();
    let conf = |key: &str, value: &str| format!("spark.kubernetes.driver.podTemplate{key}={value}");
    let (file, name) = (conf("File", "own.yaml"), conf("ContainerName", "spark"));
    let arguments = ["--conf", &file, "--conf", &name, "app.jar"];
    let printed = stager.printed("spark-submit", &arguments);
    assert!(printed.contains(&format!("\n--conf {name} \\\n")), "{printed}");
    let spec = &stager.template()["spec"];
    assert_eq!(spec["nodeSelector"], json!({"a": "b"}));
    assert_eq!(spec["containers"][0], json!({"name": "sidecar", "image": "s"}));
    assert_eq!(spec["containers"][1]["tty"], true);
    assert_eq!(spec["containers"][1]["volumeMounts"].as_array().unwrap().len(), 3);
    let again = conf("File", stager.templates("driver")[0].to_str().unwrap());
    let said = stderr(&stager.output("spark-submit", &["--conf", &again, "--conf", &name, "app.jar"]));
    assert!(said.contains("the pod of the driver has a container spark-init already"), "{said}");
    assert_eq!(stager.bundles(), 1, "nothing more is uploaded: {said}");
}

#[test]
fn a_pipe_as_the_application_is_refused_and_not_waited_for() {
    let stager = Stager::new();
    assert!(Command::new("mkfifo").arg(stager.path("pipe.jar")).status().unwrap().success());
    let output = output_in_time(&mut stager.stage_for("spark-submit", &["pipe.jar"]));
    let said = stderr(&output);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("pipe.jar is a pipe, a socket or a device"), "{said}");
    stager.assert_nothing_is_left(&said);
}

#[test]
fn certificates_that_can_be_read_only_once_are_read_only_once() {
    let stager = Stager::new();
    let pem = tls::signed_by_ca(stager.folder.root(), &["127.0.0.1"]);
    let [cert, key] = [&pem.cert, &pem.key].map(|path| path.to_str().unwrap());
    let flags = ["--fetch-image", IMAGE, "--no-kubernetes", "--tls-cert", cert, "--tls-key", key];
    let secure = Cloakroom::serve(&stager.path("secure"), &flags);
    // As `--ca-file <(…)`.
    let pipe = stager.path("pipe.pem");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let certificates = std::fs::read(&pem.ca).unwrap();
    std::thread::spawn(move || std::fs::write(pipe, certificates).unwrap());
    let more = ["--ca-file", "pipe.pem", "app.jar"];
    let output = output_in_time(&mut stager.stage_at(&secure.url(""), "spark-submit", &more));
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn two_runs_in_one_folder_do_not_meet() {
    let stager = Stager::new();
    let [one, other] = [(), ()].map(|()| stager.printed("spark-submit", &["app.jar"]));
    assert_ne!(one, other);
    assert_eq!(stager.templates("driver").len(), 2);
}

#[test]
fn the_init_container_asks_for_as_much_as_the_driver_and_is_never_root() {
    let stager = Stager::new();
    std::fs::write(stager.path("root.yaml"), "spec: {securityContext: {runAsUser: 0}}").unwrap();
    let settings = [
        "spark.kubernetes.driver.podTemplateFile=root.yaml",
        "spark.driver.memory=2g",
        "spark.kubernetes.driver.request.cores=500m",
        "spark.kubernetes.driver.limit.cores=1",
    ];
    let arguments: Vec<&str> =
        settings.iter().flat_map(|setting| ["--conf", setting]).chain(["app.jar"]).collect();
    stager.printed("spark-submit", &arguments);
    let init = &stager.template()["spec"]["initContainers"][0];
    assert_eq!(
        init["resources"],
        json!({"requests": {"cpu": "500m", "memory": "2432Mi"}, "limits": {"cpu": "1", "memory": "2432Mi"}})
    );
    assert_eq!(init["securityContext"]["runAsUser"], 65532);
}

#[test]
fn settings_of_spark_defaults_count_as_they_do_for_spark_submit() {
    let stager = Stager::new();
    std::fs::create_dir(stager.path("conf")).unwrap();
    std::fs::write(stager.path("own.yaml"), "spec: {priorityClassName: high}").unwrap();
    let defaults = "spark.master local[*]\nspark.jars lib/dep one.jar\n\
                    spark.kubernetes.driver.podTemplateFile own.yaml\n";
    std::fs::write(stager.path("conf/spark-defaults.conf"), defaults).unwrap();
    let output =
        stager.stage_for("spark-submit", &["app.jar"]).env("SPARK_CONF_DIR", "conf").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains(&format!("spark.jars={JARS}/dep%20one.jar,{JARS}/app.jar ")), "{printed}");
    assert_eq!(stager.template()["spec"]["priorityClassName"], "high");
}

#[test]
fn executors_get_a_template_as_well_if_they_are_to_fetch() {
    let stager = Stager::new();
    let arguments = ["--conf", "spark.kubernetes.cloakroom.executorStaging=init", "app.jar"];
    let printed = stager.printed("spark-submit", &arguments);
    let path = stager.templates("executor")[0].canonicalize().unwrap();
    assert!(printed.contains(&format!("spark.kubernetes.executor.podTemplateFile={} ", path.display())));
    let template: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(template["spec"]["initContainers"][0]["image"], IMAGE);
    assert_eq!(template["spec"]["containers"][0]["name"], "spark-kubernetes-executor");
}

#[test]
fn the_operator_gets_application_fields_with_the_label_of_the_files() {
    let stager = Stager::new();
    let printed = stager.printed("spark-operator", &[&["--name", "my-app"], WHOLE.as_slice()].concat());
    let fields: Value = serde_saphyr::from_str(&printed).unwrap();
    let spec = &fields["spec"];
    assert_eq!(spec["mainApplicationFile"], "spark-internal");
    let jar = |name: &str| format!("{JARS}/{name}");
    assert_eq!(
        spec["deps"],
        json!({
            "jars": [jar("dep%20one.jar"), jar("app.jar"), "local:///opt/x.jar"],
            "files": [format!("{FILES}/data.txt"), format!("{FILES}/app.conf")],
            "archives": [format!("{FILES}/env.tar.gz#env")],
            "pyFiles": ["https://h/y.zip?sig=1&x=2"],
        })
    );
    let template = &spec["driver"]["template"];
    assert_eq!(template["spec"]["initContainers"][0]["image"], IMAGE);
    assert_eq!(
        (&template["kind"], &template["metadata"]),
        (&Value::Null, &Value::Null),
        "no label is needed"
    );
    assert_eq!(stager.templates("driver"), Vec::<PathBuf>::new());
}

#[test]
fn the_operators_container_is_the_one_that_sees_the_files() {
    let stager = Stager::new();
    let own = "spec: {containers: [{name: sidecar, image: s}, {name: spark-kubernetes-driver, tty: true}]}";
    std::fs::write(stager.path("own.yaml"), own).unwrap();
    let file = "spark.kubernetes.driver.podTemplateFile=own.yaml";
    let arguments = ["--name", "my-app", "--conf", file, "--files", "data.txt"];
    let fields: Value = serde_saphyr::from_str(&stager.printed("spark-operator", &arguments)).unwrap();
    let containers = &fields["spec"]["driver"]["template"]["spec"]["containers"];
    assert_eq!(containers[0], json!({"name": "sidecar", "image": "s"}));
    assert_eq!(containers[1]["volumeMounts"].as_array().unwrap().len(), 3);
    let other = "spark.kubernetes.driver.podTemplateContainerName=sidecar";
    let said = stderr(&stager.output("spark-operator", &[&arguments[..], &["--conf", other]].concat()));
    assert!(said.contains("the operator takes the container spark-kubernetes-driver"), "{said}");
}

#[test]
fn a_dry_run_prints_what_kubectl_applies_and_asks_no_cluster() {
    let stager = Stager::new();
    let output = stager.output("spark-submit", &[&["--dry-run"], WHOLE.as_slice()].concat());
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    let told = stderr(&output);
    assert!(told.contains("--conf spark.kubernetes.namespace=demo \\\n"), "{told}");
    assert!(
        told.contains("\nspark-internal\n") && told.contains("kubectl delete secret,configmap"),
        "{told}"
    );
    let objects: Vec<Value> = serde_saphyr::from_multiple(&printed).unwrap();
    let kinds: Vec<String> = objects.iter().map(|object| text(&object["kind"])).collect();
    assert_eq!(kinds, ["ConfigMap", "Secret"]);
    assert!(objects.iter().all(|object| object["metadata"]["namespace"] == "demo"));
    assert_eq!(objects[1]["data"].as_object().unwrap().len(), 2, "a ticket for each bundle");
    assert_eq!(stager.api_server.calls(), []);
    assert_eq!(stager.bundles(), 2, "the secret is made of their tickets");
}

#[test]
fn a_failure_at_any_step_leaves_nothing() {
    for (verb, kind, fault, why) in [
        (Verb::Patch, CONFIG_MAP, Fault::Status(403), "the cluster refuses config map app-"),
        (Verb::Patch, SECRET, Fault::Status(403), "the cluster refuses secret app-"),
    ] {
        let stager = Stager::new();
        stager.api_server.fail_for(kind, verb, fault);
        let said = stderr(&stager.output("spark-submit", &WHOLE));
        assert!(said.contains(why) && !said.contains("staged the"), "nothing is uploaded in vain: {said}");
        assert!(said.contains(": ask the cluster's admin ") && !said.contains("pod template"), "{said}");
        stager.assert_nothing_is_left(&said);
    }
    // The first call is the dry run.
    for (kind, fault) in
        [(CONFIG_MAP, Fault::Status(422)), (SECRET, Fault::Status(422)), (SECRET, Fault::LostAnswer)]
    {
        let stager = Stager::new();
        stager.api_server.fail_some(kind, Verb::Patch, 1, usize::MAX, fault);
        let output = stager.output("spark-submit", &WHOLE);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("staged the jars"), "{said}");
        stager.assert_nothing_is_left(&said);
    }
}

#[test]
fn the_role_of_the_stager_is_exactly_what_it_asks_for() {
    let stager = Stager::new();
    stager.printed("spark-submit", &WHOLE);
    stager.api_server.fail_some(SECRET, Verb::Patch, 1, 1, Fault::LostAnswer);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = stager.stage_for("spark-submit", &WHOLE).stdout(Stdio::from(full)).output().unwrap();
    assert!(!output.status.success(), "{}", stderr(&output));
    // With the file of an application, and with that of a schedule.
    stager.api_server.define(SPARK_APPLICATION);
    stager.api_server.define(Kind {
        plural: "scheduledsparkapplications",
        kind: "ScheduledSparkApplication",
        ..SPARK_APPLICATION
    });
    let kind = "apiVersion: sparkoperator.k8s.io/v1beta2\nmetadata: {name: words}\nkind: ";
    for (kind_and_spec, file) in [
        ("SparkApplication\nspec: {mainApplicationFile: app.jar}", "app.yaml"),
        ("ScheduledSparkApplication\nspec: {template: {mainApplicationFile: app.jar}}", "schedule.yaml"),
    ] {
        std::fs::write(stager.path(file), format!("{kind}{kind_and_spec}")).unwrap();
        stager.printed("spark-operator", &["-f", file]);
    }
    let asked: BTreeSet<String> = stager.api_server.calls().iter().flat_map(Call::rights).collect();
    assert_eq!(asked, rights_of(&json!({"rules": rules()})));
}

#[test]
fn what_cannot_be_printed_is_taken_back() {
    let stager = Stager::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = stager.stage_for("spark-submit", &WHOLE).stdout(Stdio::from(full)).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot be printed on stdout"), "{said}");
    stager.assert_nothing_is_left(&said);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_sent() {
    let stager = Stager::new();
    for (submitter, arguments, why) in [
        ("spark-submit", &["app.jar", "data.txt"][..], "--for takes one file"),
        ("spark-submit", &["local:///opt/x.jar"], "there is nothing to stage"),
        ("spark-submit", &["--jars", "missing.jar"], "missing.jar does not exist on this machine"),
        ("spark-submit", &["--files", "data.txt,lib/data.txt"], "lib/data.txt does not exist"),
        ("spark-submit", &["--templates-to", "nowhere", "app.jar"], "--templates-to"),
        ("spark-submit", &["--templates-to", "data.txt", "app.jar"], "--templates-to"),
        ("spark-submit", &["--templates-to", "/proc", "app.jar"], "--templates-to"),
        ("spark-submit", &["--conf", "x=y", "app.jar"], "keys begin with “spark.”"),
        ("spark-submit", &["--conf", "spark.kubernetes.cloakroom.x=y", "app.jar"], "there is no such key"),
        ("spark-submit", &["--master", "yarn", "app.jar"], "k8s://"),
        ("spark-operator", &["app.jar"], "needs -f with the file of the SparkApplication, or --name"),
    ] {
        let output = stager.output(submitter, arguments);
        let said = stderr(&output);
        assert!(!output.status.success() && said.contains(why), "{arguments:?}: {said}");
        stager.assert_nothing_is_left(&said);
        assert_eq!(stager.api_server.calls(), [], "{said}");
    }
    let alone = command().args(["stage", "--namespace", "demo", "--jars", "app.jar"]).output().unwrap();
    assert!(stderr(&alone).contains("--for"), "{}", stderr(&alone));
}

#[test]
fn where_the_server_is_not_there_the_flag_is_named() {
    let stager = Stager::new();
    for arguments in [&["app.jar"][..], &["--fetch-image", IMAGE, "app.jar"]] {
        let arguments = [&["--attempts", "1"], arguments].concat();
        let output = stager.stage_at("http://127.0.0.1:9", "spark-submit", &arguments).output().unwrap();
        let said = stderr(&output);
        assert!(said.contains("check the address (--server)"), "{said}");
        assert!(!said.contains("spark.kubernetes.resourceStagingServer.uri"), "{said}");
        stager.assert_nothing_is_left(&said);
    }
}

#[test]
fn an_owner_that_is_named_is_the_owner() {
    let stager = Stager::new();
    let arguments = ["--label", "job=nightly", "--dry-run", "app.jar"];
    stager.printed("spark-submit", &arguments);
    assert_eq!(stager.template()["metadata"]["labels"], json!({"job": "nightly"}));
    let printed = stager.printed("spark-submit", &["--name", "words", "app.jar"]);
    assert!(printed.contains("--conf spark.kubernetes.driver.pod.name=words "), "{printed}");
}
