use serde_json::{Value, json};

use super::{Fetching, FilesPlace, PodFile, secret};

const JOB: &str = "apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: ml}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      initContainers:
      - {name: mesh, restartPolicy: Always}
      - {name: migrate}
      containers:
      - name: main
        securityContext: {runAsUser: 1000, runAsGroup: 1000}
        resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 2Gi, nvidia.com/gpu: 1}}
      - name: helper
        securityContext: {runAsUser: 1000, runAsGroup: 1000}
        resources: {limits: {memory: 500M}}
";

const POD: &str =
    "{apiVersion: v1, kind: Pod, metadata: {generateName: run-}, spec: {containers: [{name: a}]}}";

fn place() -> FilesPlace {
    FilesPlace { mount: "/job".to_owned(), is_workdir: false, containers: Vec::new() }
}

fn fetching() -> Fetching {
    Fetching {
        namespace: "ml".to_owned(),
        of: "Job train".to_owned(),
        id: "abc".to_owned(),
        image: "cloakroom:1".to_owned(),
        secret: "train-files-5de4f9b9".to_owned(),
        has_certificate: false,
    }
}

fn given(text: &str, place: &FilesPlace) -> Result<Vec<Value>, String> {
    let file = PodFile::parse("job.yaml", text, None).map_err(|error| error.to_string())?;
    let namespace = file.namespace(Some("ml")).map_err(|error| error.to_string())?;
    assert_eq!(namespace, "ml");
    file.with_files(place, &fetching(), Some(json!({"kind": "Secret"}))).map_err(|error| error.to_string())
}

#[test]
fn a_job_gets_an_init_container_its_volumes_and_its_label() {
    let objects = given(JOB, &FilesPlace { is_workdir: true, ..place() }).unwrap();
    let [secret, job] = &objects[..] else { panic!("{objects:?}") };
    assert_eq!(secret["kind"], "Secret");
    assert_eq!(
        job["metadata"],
        json!({"name": "train", "namespace": "ml", "labels": {"cloakroom-files": "abc"}})
    );
    assert_eq!(job["spec"]["suspend"], true);
    let spec = &job["spec"]["template"]["spec"];
    let inits: Vec<&str> =
        spec["initContainers"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(inits, ["mesh", "cloakroom-fetch", "migrate"]);
    assert_eq!(
        spec["initContainers"][1],
        json!({
            "name": "cloakroom-fetch",
            "image": "cloakroom:1",
            "args": ["fetch", "--writable", "--ticket", "/run/cloakroom/ticket.json", "--to", "/files"],
            "volumeMounts": [
                {"name": "cloakroom-files", "mountPath": "/files"},
                {"name": "cloakroom-ticket", "mountPath": "/run/cloakroom", "readOnly": true},
                {"name": "cloakroom-no-token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true},
            ],
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": true,
                "runAsNonRoot": true,
                "runAsUser": 1000,
                "runAsGroup": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
        })
    );
    for container in spec["containers"].as_array().unwrap() {
        assert_eq!(container["volumeMounts"], json!([{"name": "cloakroom-files", "mountPath": "/job"}]));
        assert_eq!(container["workingDir"], "/job");
    }
    assert_eq!(
        spec["volumes"][1],
        json!({"name": "cloakroom-ticket", "secret": {"secretName": "train-files-5de4f9b9"}})
    );
}

#[test]
fn a_pod_gets_them_too_and_what_it_has_stays() {
    let objects = given(POD, &place()).unwrap();
    let pod = &objects[1];
    assert_eq!(
        pod["metadata"],
        json!({"generateName": "run-", "namespace": "ml", "labels": {"cloakroom-files": "abc"}})
    );
    let init = &pod["spec"]["initContainers"][0];
    assert_eq!(init["resources"], json!({}));
    assert_eq!(init["securityContext"].get("runAsUser"), None);
    assert_eq!(pod["spec"]["containers"][0].get("workingDir"), None);
    let file = PodFile::parse("-", POD, None).unwrap();
    assert_eq!((file.kind(), file.has_name()), ("Pod", false));
    assert_eq!(file.secret_name("0123456789", "5de4f9b9-23fd"), "run-pod-files-5de4f9b9");
    let job = PodFile::parse("-", JOB, None).unwrap();
    assert_eq!(job.secret_name("0123456789", "5de4f9b9-23fd"), "train-job-files-01234567");
}

#[test]
fn only_the_chosen_containers_get_the_files() {
    let chosen = FilesPlace { containers: vec!["helper".to_owned()], ..place() };
    let objects = given(JOB, &chosen).unwrap();
    let spec = &objects[1]["spec"]["template"]["spec"];
    assert_eq!(spec["containers"][0].get("volumeMounts"), None);
    assert!(spec["containers"][1].get("volumeMounts").is_some());
    assert_eq!(spec["initContainers"][1]["resources"], json!({"limits": {"memory": "500M"}}));
}

#[test]
fn the_files_belong_to_the_user_of_the_containers_and_never_to_root() {
    for (pod, container, expected) in [
        ("{}", "{}", json!([null, null])),
        ("{runAsUser: 7}", "{}", json!([7, null])),
        ("{runAsUser: 7, runAsGroup: 8}", "{runAsUser: 9}", json!([9, 8])),
        ("{runAsUser: 0}", "{}", json!([65532, null])),
        ("{}", "{runAsUser: 0, runAsGroup: 0}", json!([65532, 0])),
        ("{}", "{runAsUser: 0.0}", json!([65532, null])),
    ] {
        let text = format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: a}}, spec: {{securityContext: {pod}, containers: [{{name: a, \
             securityContext: {container}}}]}}}}"
        );
        let objects = given(&text, &place()).unwrap();
        let security = &objects[1]["spec"]["initContainers"][0]["securityContext"];
        assert_eq!(json!([security["runAsUser"], security["runAsGroup"]]), expected, "{pod} {container}");
    }
}

#[test]
fn what_cannot_have_files_is_refused_by_its_field() {
    let pod = |spec: &str| format!("{{apiVersion: v1, kind: Pod, metadata: {{name: a}}, spec: {spec}}}");
    let of_one = pod("{containers: [{name: a, volumeMounts: [{name: x, mountPath: /./job/}]}]}");
    let two_users = pod(
        "{containers: [{name: a, securityContext: {runAsUser: 1}}, {name: b, securityContext: {runAsUser: 2}}]}",
    );
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: []}}}}";
    let twice = given(POD, &place()).unwrap()[1].to_string();
    for (text, said) in [
        ("kind: ConfigMap", "no Pod and no Job of batch/v1 in it, but ConfigMap without an apiVersion"),
        ("", "no Pod and no Job of batch/v1 in it: "),
        ("{apiVersion: batch/v1beta1, kind: Job}", "but Job of batch/v1beta1"),
        (&format!("{POD}\n---\n{deployment}"), "the Deployment web makes pods too"),
        (&format!("{POD}\n---\n{JOB}"), "has 2 Pods and Jobs in it: choose one by --name"),
        ("{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}]}}", "metadata.name is missing"),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: [b]}, spec: {}}",
            "metadata.labels must be a map",
        ),
        (
            "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {}}",
            "spec.template.spec must be a map",
        ),
        (&pod("{}"), "spec.containers must be a list"),
        (&pod("{containers: [a]}"), "spec.containers must be a list"),
        (&pod("{containers: [{name: a}], volumes: {name: b}}"), "spec.volumes must be a list"),
        (&pod("{containers: [{name: a}], initContainers: b}"), "spec.initContainers must be a list"),
        (
            &pod("{containers: [{name: a, volumeMounts: {name: b}}]}"),
            "spec.containers[0].volumeMounts must be a list",
        ),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: 1}, spec: {}}",
            "metadata.namespace must be a text",
        ),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {cloakroom-files: b}}, spec: {}}",
            "metadata.labels has cloakroom-files already",
        ),
        (&pod("{os: {name: windows}, containers: [{name: a}]}"), "spec.os.name is windows"),
        (&of_one, "spec.containers[0].volumeMounts already has /job: choose another folder (--mount)"),
        (&two_users, "spec.containers run as different users"),
        (&twice, "metadata.labels has cloakroom-files already"),
        (&pod("{containers: [{name: cloakroom-fetch}]}"), "spec.containers already has cloakroom-fetch"),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {containers: [{name: a}]}}",
            "metadata.namespace is b",
        ),
        ("a: &a [x]\nb: *nothing", "cannot be read as YAML or JSON"),
    ] {
        let refused = given(text, &place()).unwrap_err();
        assert!(refused.starts_with("job.yaml") && refused.contains(said), "{said}: {refused}");
    }
    let unknown = FilesPlace { containers: vec!["other".to_owned()], ..place() };
    assert_eq!(
        given(JOB, &unknown).unwrap_err(),
        "job.yaml: spec.template.spec.containers has no other (--container); it has main, helper"
    );
}

#[test]
fn anchors_are_read_bombs_are_refused_and_large_documents_stay_whole() {
    let anchored =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: &name a}\nspec: {containers: [{name: *name}]}";
    assert_eq!(given(anchored, &place()).unwrap()[1]["spec"]["containers"][0]["name"], "a");
    let level =
        |level: usize| format!("l{level}: &l{level} [{}]", vec![format!("*l{}", level - 1); 9].join(", "));
    let levels = (1..30).map(level).collect::<Vec<_>>().join(
        "
",
    );
    let bomb = format!("l0: &l0 [x]\n{levels}\nkind: Pod");
    assert!(
        given(&bomb, &place())
            .unwrap_err()
            .contains("cannot be read as YAML or JSON: it has too many aliases")
    );
    let large = "x".repeat(10 << 20);
    let pod = POD.replace("generateName: run-", &format!("name: a, annotations: {{a: {large}}}"));
    assert_eq!(given(&pod, &place()).unwrap()[1]["metadata"]["annotations"]["a"], large);
}

#[test]
fn objects_without_pods_stay_as_they_are() {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}});
    let objects = given(&format!("{account}\n---\n{JOB}"), &place()).unwrap();
    let kinds: Vec<&str> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!((&objects[0], &kinds[..]), (&account, &["ServiceAccount", "Secret", "Job"][..]));
}

#[test]
fn the_secret_has_the_ticket_and_perhaps_a_certificate() {
    let with = Fetching { has_certificate: true, ..fetching() };
    let made = secret(&with, "{}", Some("-----BEGIN"));
    assert_eq!(made["data"], json!({"ticket.json": "e30=", "ca.pem": "LS0tLS1CRUdJTg=="}));
    assert_eq!(made["metadata"]["labels"]["cloakroom-files"], "abc");
    let file = PodFile::parse("-", POD, None).unwrap();
    let objects = file.with_files(&place(), &with, None).unwrap();
    assert_eq!(objects.len(), 1);
    let args = &objects[0]["spec"]["initContainers"][0]["args"];
    assert_eq!(args[4], "--ca-file");
}
