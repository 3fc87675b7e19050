use serde_json::{Value, json};

use super::*;

const HEAD: &str = "apiVersion: sparkoperator.k8s.io/v1beta2\nkind: SparkApplication\nmetadata: {name: words, namespace: demo}\n";

fn parse(spec: &str) -> ApplicationFile {
    ApplicationFile::parse("app.yaml", &format!("{HEAD}spec: {spec}\n"), None).unwrap()
}

/// What staging adds.
fn added() -> Value {
    json!({
        "mainApplicationFile": "local:///staged/app.jar",
        "mainClass": "of.the.Manifest",
        "deps": {"jars": ["local:///staged/dep.jar"]},
        "driver": {"template": {"spec": {
            "containers": [{
                "name": "spark-kubernetes-driver",
                "volumeMounts": [{"name": "download-files", "mountPath": "/var/files"}],
            }],
            "initContainers": [{"name": "spark-init", "securityContext": {"runAsNonRoot": true}}],
            "volumes": [{"name": "download-files", "emptyDir": {}}],
        }}},
    })
}

fn merged(spec: &str) -> Result<Value, String> {
    let merged = parse(spec).merged_with(added(), "demo").map_err(|error| error.to_string())?;
    Ok(merged.application()["spec"].clone())
}

#[test]
fn what_was_staged_stands_beside_what_is_there() {
    let spec = merged(
        "{type: Scala, mainApplicationFile: app.jar, deps: {jars: [dep.jar], packages: ['a:b:1']}, driver: {cores: 2,
          template: {metadata: {labels: {a: b}}, spec: {nodeSelector: {disk: ssd},
            containers: [{name: sidecar, image: s}, {name: spark-kubernetes-driver, env: [{name: A, value: b}],
              volumeMounts: [{name: own, mountPath: /own}]}],
            initContainers: [{name: first, image: f}], volumes: [{name: own, emptyDir: {}}]}}}}",
    )
    .unwrap();
    assert_eq!(
        spec,
        json!({
            "type": "Scala",
            "mainApplicationFile": "local:///staged/app.jar",
            "mainClass": "of.the.Manifest",
            "deps": {"jars": ["local:///staged/dep.jar"], "packages": ["a:b:1"]},
            "driver": {"cores": 2, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
                "nodeSelector": {"disk": "ssd"},
                "containers": [
                    {"name": "sidecar", "image": "s"},
                    {
                        "name": "spark-kubernetes-driver",
                        "env": [{"name": "A", "value": "b"}],
                        "volumeMounts": [
                            {"name": "own", "mountPath": "/own"},
                            {"name": "download-files", "mountPath": "/var/files"},
                        ],
                    },
                ],
                "initContainers": [
                    {"name": "first", "image": "f"},
                    {"name": "spark-init", "securityContext": {"runAsNonRoot": true}},
                ],
                "volumes": [{"name": "own", "emptyDir": {}}, {"name": "download-files", "emptyDir": {}}],
            }}},
        })
    );
}

#[test]
fn a_class_of_the_users_counts_and_no_executor_is_made_up() {
    let spec = merged("{mainClass: mine.Main}").unwrap();
    assert_eq!(spec["mainClass"], "mine.Main");
    assert_eq!(spec.get("executor"), None);
}

#[test]
fn what_would_have_to_give_way_is_refused_by_its_field() {
    for (spec, field) in [
        (
            "{driver: {template: {spec: {volumes: [{name: x}, {name: download-files}]}}}}",
            "spec.driver.template.spec.volumes[1].name is download-files",
        ),
        (
            "{driver: {template: {spec: {initContainers: [{name: spark-init}]}}}}",
            "spec.driver.template.spec.initContainers[0].name is spark-init",
        ),
        (
            "{driver: {template: {spec: {containers: [{name: spark-kubernetes-driver,
                volumeMounts: [{name: own, mountPath: /var/files/}]}]}}}}",
            "spec.driver.template.spec.containers[0].volumeMounts[0].mountPath is /var/files",
        ),
        (
            "{driver: {template: {spec: {containers: [{name: spark}]}}}}",
            "spec.driver.template.spec.containers has no container spark-kubernetes-driver",
        ),
        ("{volumes: [{name: download-files}]}", "spec.volumes[0].name is download-files"),
        (
            "{driver: {initContainers: [{name: spark-init}]}}",
            "spec.driver.initContainers[0].name is spark-init",
        ),
        ("{driver: {sidecars: [{name: spark-init}]}}", "spec.driver.sidecars[0].name is spark-init"),
        (
            "{driver: {volumeMounts: [{name: own, mountPath: /var/files}]}}",
            "spec.driver.volumeMounts[0].mountPath is /var/files",
        ),
        (
            "{driver: {configMaps: [{name: own, path: /var/files}]}}",
            "spec.driver.configMaps[0].path is /var/files",
        ),
    ] {
        let refused = merged(spec).unwrap_err();
        assert!(refused.starts_with(&format!("app.yaml: {field}")), "{refused}");
    }
}

#[test]
fn the_init_container_of_a_root_driver_runs_as_the_user_of_its_image() {
    for spec in [
        "{driver: {podSecurityContext: {runAsUser: 0}}}",
        "{driver: {template: {spec: {securityContext: {runAsUser: 0}}}}}",
    ] {
        let spec = merged(spec).unwrap();
        let init = &spec["driver"]["template"]["spec"]["initContainers"][0];
        assert_eq!(init["securityContext"]["runAsUser"], 65532);
    }
}

#[test]
fn the_settings_are_those_that_the_operator_makes_of_the_file() {
    let file = parse(
        "{sparkConf: {spark.driver.memory: 3g, spark.ui.port: '4050'}, imagePullPolicy: Always, memoryOverheadFactor: '0.3',
          deps: {jars: [a.jar, 'local:///b.jar']}, driver: {memory: 2g, cores: 2, coreRequest: 500m, coreLimit: '2',
          memoryOverhead: 1g, envVars: {A: b}}, executor: {envVars: {C: d}}}",
    );
    let settings: Vec<String> = file
        .settings()
        .unwrap()
        .into_iter()
        .map(|FileSetting { key, value, field }| format!("{key}={value} {field}"))
        .collect();
    assert_eq!(
        settings,
        [
            "spark.driver.memory=3g spec.sparkConf[spark.driver.memory]",
            "spark.ui.port=4050 spec.sparkConf[spark.ui.port]",
            "spark.kubernetes.container.image.pullPolicy=Always spec.imagePullPolicy",
            "spark.kubernetes.memoryOverheadFactor=0.3 spec.memoryOverheadFactor",
            "spark.driver.memory=2g spec.driver.memory",
            "spark.driver.memoryOverhead=1g spec.driver.memoryOverhead",
            "spark.driver.cores=2 spec.driver.cores",
            "spark.kubernetes.driver.request.cores=500m spec.driver.coreRequest",
            "spark.kubernetes.driver.limit.cores=2 spec.driver.coreLimit",
            "spark.kubernetes.driverEnv.A=b spec.driver.envVars.A",
            "spark.executorEnv.C=d spec.executor.envVars.C",
            "spark.jars=a.jar,local:///b.jar spec.deps.jars",
        ]
    );
}

#[test]
fn settings_that_have_a_field_are_refused() {
    for (key, instead) in [
        ("spark.jars", "spec.deps.jars"),
        ("spark.submit.pyFiles", "spec.deps.pyFiles"),
        ("spark.kubernetes.driver.podTemplateFile", "spec.driver.template"),
    ] {
        let refused = parse(&format!("{{sparkConf: {{{key}: x}}}}")).settings().unwrap_err().to_string();
        assert!(
            refused.contains(&format!("spec.sparkConf[{key}] has no effect beside {instead}")),
            "{refused}"
        );
    }
}

#[test]
fn a_file_without_one_application_is_refused() {
    let read = |text: &str, name: Option<&str>| {
        ApplicationFile::parse("app.yaml", text, name).map_err(|error| error.to_string())
    };
    let two = format!("{HEAD}spec: {{}}\n---\n{}spec: {{}}\n", HEAD.replace("words", "letters"));
    for (text, name, why) in [
        ("kind: [", None, "cannot be read as YAML or JSON"),
        (
            "kind: Pod\nkind: Job\n",
            None,
            "app.yaml cannot be read as YAML or JSON: the key `kind` is there twice in one map, the second time in line 2",
        ),
        ("kind: Pod", None, "has no SparkApplication"),
        ("- a\n- b", None, "has no SparkApplication"),
        (
            "apiVersion: spark.apache.org/v1\nkind: SparkApplication",
            None,
            "is for Apache's Spark operator (its apiVersion is spark.apache.org/v1)",
        ),
        (&two, None, "has 2 applications in it: choose one by --name (words, letters)"),
        (&two, Some("other"), "has no application other in it (--name); it has words, letters"),
        (&HEAD.replace("v1beta2", "v1beta1"), None, "apiVersion is sparkoperator.k8s.io/v1beta1"),
        (&HEAD.replace("name: words, ", ""), None, "metadata.name is missing"),
        (HEAD, None, "spec is missing"),
        (&format!("{HEAD}spec: {{deps: [x]}}"), None, "spec.deps must be a map with fields"),
    ] {
        let refused = read(text, name).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    assert_eq!(read(&two, Some("letters")).unwrap().name(), "letters");
}

#[test]
fn numbers_are_read_as_kubectl_reads_them() {
    let file = parse("{volumes: [{name: a, secret: {defaultMode: 0440}}]}");
    assert_eq!(file.application()["spec"]["volumes"][0]["secret"]["defaultMode"], 0o440);
}

#[test]
fn every_run_of_a_schedule_is_the_owner() {
    let text = "apiVersion: sparkoperator.k8s.io/v1beta2\nkind: ScheduledSparkApplication\nmetadata: {name: nightly}\n\
                spec: {schedule: '@daily', template: {driver: {cores: 1}}}";
    let file = ApplicationFile::parse("-", text, None).unwrap();
    let owner = file.owner("demo").unwrap();
    assert_eq!(owner.kind().as_str(), "SparkApplication.sparkoperator.k8s.io");
    assert_eq!(owner.labels().collect::<Vec<_>>(), [("sparkoperator.k8s.io/scheduled-app-name", "nightly")]);
    let merged = file.merged_with(added(), "demo").unwrap();
    assert_eq!(merged.application()["metadata"]["namespace"], "demo");
    assert_eq!(merged.application()["spec"]["schedule"], "@daily");
    assert_eq!(merged.application()["spec"]["template"]["mainApplicationFile"], "local:///staged/app.jar");
}
