//! The pod runner by itself: what a pod's spec says is what its processes get, and what they do is what its status says.

use std::sync::Arc;

use cloakroom_testing::cluster::{Api, Next, text};
use cloakroom_testing::process::{Cloakroom, command, stderr};
use cloakroom_testing::wait::{BOUND, until};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::shared::{CLOAKROOM, MACHINE, SharedCluster};

pub fn trials(shared: &Arc<SharedCluster>) -> Vec<Trial> {
    vec![
        shared.trial("a_pod_runs_its_containers_in_order_and_says_how_they_ended", in_order),
        shared.trial("a_failed_init_container_is_the_end_of_its_pod", failed_init),
        shared.trial("a_pod_waits_for_a_config_map_and_says_so", late_config_map),
        shared.trial("a_deleted_pod_is_asked_to_end_and_then_gone", deleted),
        shared.trial("a_deleted_pod_that_does_not_listen_is_killed_when_its_grace_is_over", deaf),
        shared.trial("a_pod_that_takes_too_much_memory_is_killed_and_says_so", out_of_memory),
        shared.trial("an_image_that_is_not_there_is_said", no_image),
        shared.trial("an_init_container_of_this_project_brings_what_was_staged", init_container),
        shared.trial("a_mount_below_a_config_map_is_a_folder_in_it_unless_it_is_relative", nested_mounts),
        shared.trial("what_the_runner_cannot_do_fails_the_pod", unknown_volume),
    ]
}

fn shell(name: &str, script: &str) -> Value {
    json!({"name": name, "image": MACHINE, "command": ["sh", "-c", script]})
}

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
    pod["spec"]["restartPolicy"] = "Never".into();
    pod
}

async fn create(api: &Api, namespace: &str, pod: &Value) {
    let (status, answer) = api.post(&format!("/api/v1/namespaces/{namespace}/pods"), pod).await;
    assert_eq!(status, 201, "{answer}");
}

async fn in_order(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let api = cluster.namespace("in-order").await;
    let mounts = json!([{"name": "shared", "mountPath": "/var/shared"}]);
    let mut first =
        shell("first", "echo one >/var/shared/steps; echo 'all is laid out' >/dev/termination-log");
    let mut second = shell("second", "echo two $NUMBER >>/var/shared/steps; id -u >>/var/shared/steps");
    second["env"] = json!([{"name": "N", "value": "2"}, {"name": "NUMBER", "value": "$(N)$$(N)$(M)"}]);
    second["securityContext"] = json!({"runAsUser": 1234});
    let mut main =
        shell("main", "cat /var/shared/steps; hostname; grep $HOSTNAME /etc/hosts; echo $IP; exit 3");
    main["env"] = json!([{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]);
    first["volumeMounts"] = mounts.clone();
    second["volumeMounts"] = mounts.clone();
    main["volumeMounts"] = mounts;
    // As the first container's umask would have it, only root could add to its file.
    first["command"][2] = format!("umask 0; {}", text(&first["command"][2])).into();
    let spec = json!({"initContainers": [first, second], "containers": [main],
                      "volumes": [{"name": "shared", "emptyDir": {}}]});
    create(&api, "in-order", &pod("steps", spec)).await;
    let status = cluster.ended("in-order", "steps").await["status"].clone();
    assert_eq!(status["phase"], "Failed", "{status:#}");
    let ended = |list: &str, index: usize| status[list][index]["state"]["terminated"].clone();
    assert_eq!(text(&ended("initContainerStatuses", 0)["message"]).trim(), "all is laid out");
    assert_eq!(ended("initContainerStatuses", 1)["reason"], "Completed");
    assert_eq!(ended("containerStatuses", 0)["exitCode"], 3);
    let address = text(&status["podIP"]);
    let expected = format!("one\ntwo 2$(N)$(M)\n1234\nsteps\n{address} steps\n{address}\n");
    assert_eq!(cluster.runner.log("in-order", "steps", "main"), expected);
}

async fn failed_init(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let api = cluster.namespace("failed-init").await;
    let mut init = shell("init", "echo no such server; exit 5");
    init["terminationMessagePolicy"] = "FallbackToLogsOnError".into();
    let spec = json!({"initContainers": [init], "containers": [shell("main", "echo started")]});
    create(&api, "failed-init", &pod("half", spec)).await;
    let status = cluster.ended("failed-init", "half").await["status"].clone();
    assert_eq!(status["phase"], "Failed");
    let ended = &status["initContainerStatuses"][0]["state"]["terminated"];
    assert_eq!((&ended["exitCode"], &ended["message"]), (&json!(5), &json!("no such server")));
    assert_eq!(status["containerStatuses"][0]["state"]["waiting"]["reason"], "PodInitializing");
    assert_eq!(cluster.runner.log("failed-init", "half", "main"), "");
}

async fn late_config_map(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let api = cluster.namespace("late").await;
    let mut main =
        shell("main", "cat /etc/settings/renamed; ls /etc/settings; stat -L -c %a /etc/settings/renamed");
    main["volumeMounts"] = json!([{"name": "settings", "mountPath": "/etc/settings"}]);
    let items = json!([{"key": "given", "path": "renamed", "mode": 0o400}]);
    let volume = json!({"name": "settings", "configMap": {"name": "settings", "items": items}});
    create(&api, "late", &pod("patient", json!({"containers": [main], "volumes": [volume]}))).await;
    until("the missing config map is an event", async || {
        let (_, events) = api.get("/api/v1/namespaces/late/events").await;
        let mut events = events["items"].as_array().unwrap().iter();
        events.any(|event| event["reason"] == "FailedMount" && text(&event["message"]).contains("settings"))
    })
    .await;
    let map = json!({"metadata": {"name": "settings"}, "data": {"given": "a value\n", "other": ""}});
    api.post("/api/v1/namespaces/late/configmaps", &map).await;
    assert_eq!(cluster.ended("late", "patient").await["status"]["phase"], "Succeeded");
    assert_eq!(cluster.runner.log("late", "patient", "main"), "a value\nrenamed\n400\n");
}

async fn deleted(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let api = cluster.namespace("deleted").await;
    let script = "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.1; done";
    create(&api, "deleted", &pod("busy", json!({"containers": [shell("main", script)]}))).await;
    let log = || cluster.runner.log("deleted", "busy", "main");
    until("it runs", async || log() == "ready\n").await;
    api.delete("/api/v1/namespaces/deleted/pods/busy").await;
    until("it is gone", async || api.get("/api/v1/namespaces/deleted/pods/busy").await.0 == 404).await;
    assert_eq!(log(), "ready\nasked\n");
}

/// The kubelet's last report comes before the pod is gone.
async fn deaf(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let api = cluster.namespace("deaf").await;
    let script = "trap 'echo asked' TERM; echo ready; while :; do sleep 0.1; done";
    let mut deaf = pod("deaf", json!({"containers": [shell("main", script)]}));
    deaf["spec"]["terminationGracePeriodSeconds"] = 1.into();
    create(&api, "deaf", &deaf).await;
    let log = || cluster.runner.log("deaf", "deaf", "main");
    until("it runs", async || log() == "ready\n").await;
    let path = "/api/v1/namespaces/deaf/pods/deaf";
    let (_, seen) = api.get(path).await;
    let since = format!("resourceVersion={}", text(&seen["metadata"]["resourceVersion"]));
    let mut watch = api.watch("/api/v1/namespaces/deaf/pods", &since, "application/json").await;
    api.delete(path).await;
    let last = loop {
        let Next::Event(event) = watch.next(BOUND).await else { panic!("the watch ended before the pod") };
        if event["type"] == "DELETED" {
            break event["object"].clone();
        }
    };
    assert_eq!(last["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 137, "{last:#}");
    assert_eq!(log(), "ready\nasked\n");
}

async fn out_of_memory(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let api = cluster.namespace("memory").await;
    let script = "trap '' TERM; echo ready; while :; do sleep 0.1; done";
    create(&api, "memory", &pod("greedy", json!({"containers": [shell("main", script)]}))).await;
    until("it runs", async || cluster.runner.log("memory", "greedy", "main") == "ready\n").await;
    cluster.runner.out_of_memory("memory", "greedy");
    let pod = cluster.ended("memory", "greedy").await;
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&ended["reason"], &ended["exitCode"]), (&json!("OOMKilled"), &json!(137)));
}

async fn no_image(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let api = cluster.namespace("no-image").await;
    let mut main = shell("main", "true");
    main["image"] = "cloakroom.test/nothing".into();
    create(&api, "no-image", &pod("lost", json!({"containers": [main]}))).await;
    until("it is said", async || {
        let (_, pod) = api.get("/api/v1/namespaces/no-image/pods/lost").await;
        pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ErrImagePull"
    })
    .await;
}

/// The kubelet's rule. The second container sees the volume elsewhere.
async fn nested_mounts(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let api = cluster.namespace("nested").await;
    let map = json!({"metadata": {"name": "settings"}, "data": {"one": "a file\n", "other": "another\n"}});
    api.post("/api/v1/namespaces/nested/configmaps", &map).await;
    let volumes =
        json!([{"name": "settings", "configMap": {"name": "settings"}}, {"name": "own", "emptyDir": {}}]);
    let settings = |path: &str| json!({"name": "settings", "mountPath": path});
    for (name, path, expected) in [
        ("absolute", "/etc/settings/one", "one: directory\nother: regular file\n"),
        ("unclean", "/etc//settings/./more/one", "more: directory\none: regular file\nother: regular file\n"),
        ("relative", "etc/settings/one", "one: regular file\nother: regular file\n"),
    ] {
        let own = json!({"name": "own", "mountPath": path, "subPath": "own"});
        let mut look = shell("look", "cd /mnt/settings; echo mine >/own/own; stat -L -c '%n: %F' *");
        look["volumeMounts"] = json!([settings("/mnt/settings"), {"name": "own", "mountPath": "/own"}]);
        let mut main = shell("main", "cat /etc/settings/one");
        main["volumeMounts"] = json!([settings("/etc/settings"), own]);
        let spec = json!({"initContainers": [look], "containers": [main], "volumes": volumes});
        create(&api, "nested", &pod(name, spec)).await;
        cluster.ended("nested", name).await;
        assert_eq!(cluster.runner.log("nested", name, "look"), expected, "{name}");
        if name == "relative" {
            assert_eq!(cluster.runner.log("nested", name, "main"), "mine\n");
        }
    }
}

async fn unknown_volume(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let api = cluster.namespace("unknown").await;
    let volume = json!({"name": "v", "nfs": {"server": "nowhere", "path": "/"}});
    let spec = json!({"containers": [shell("main", "true")], "volumes": [volume]});
    create(&api, "unknown", &pod("odd", spec)).await;
    let status = cluster.ended("unknown", "odd").await["status"].clone();
    assert!(text(&status["message"]).contains("does not know this kind of volume"), "{status:#}");
}

/// By the original's contract, in this project's image.
async fn init_container(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let api = cluster.namespace("contract").await;
    let folder = tempfile::tempdir().unwrap();
    let server = Cloakroom::serve(&folder.path().join("data"), &[]);
    std::fs::write(folder.path().join("app.jar"), "a jar").unwrap();
    let owner = ["--namespace", "contract", "--label", "app=main"];
    let mut staging = command();
    staging.args(["stage", "--server", &server.url("")]).args(owner).arg(folder.path().join("app.jar"));
    let output = staging.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let ticket: Value = serde_json::from_slice(&output.stdout).unwrap();
    let settings = format!(
        "spark.kubernetes.resourceStagingServer.uri={}\n\
         spark.kubernetes.initcontainer.downloadJarsResourceIdentifier={}\n\
         spark.kubernetes.initcontainer.downloadJarsSecretLocation=/mnt/secrets/spark-init/jars\n",
        server.url(""),
        text(&ticket["resourceId"]),
    );
    let map = json!({"metadata": {"name": "init"}, "data": {"download-submitted-files": settings}});
    api.post("/api/v1/namespaces/contract/configmaps", &map).await;
    let secret = json!({"metadata": {"name": "init"}, "stringData": {"jars": ticket["resourceSecret"]}});
    api.post("/api/v1/namespaces/contract/secrets", &secret).await;
    create(&api, "contract", &pod("main", fetching())).await;
    let status = cluster.ended("contract", "main").await["status"].clone();
    assert_eq!(status["phase"], "Succeeded", "{status:#} {:#?}", cluster.runner.logs("contract"));
    assert_eq!(cluster.runner.log("contract", "main", "main"), "a jar");
}

fn fetching() -> Value {
    let jars = json!({"name": "jars", "mountPath": "/var/spark-data/spark-jars"});
    let properties = json!([{"key": "download-submitted-files", "path": "spark-init.properties"}]);
    let mut main = shell("main", "cat /var/spark-data/spark-jars/app.jar");
    main["securityContext"] = json!({"runAsUser": 185});
    main["volumeMounts"] = json!([jars]);
    json!({
        "initContainers": [{
            "name": "spark-init",
            "image": CLOAKROOM,
            "args": ["/etc/spark-init/spark-init.properties"],
            "securityContext": {"readOnlyRootFilesystem": true},
            "volumeMounts": [
                jars,
                {"name": "properties", "mountPath": "/etc/spark-init"},
                {"name": "secret", "mountPath": "/mnt/secrets/spark-init"},
            ],
        }],
        "containers": [main],
        "volumes": [
            {"name": "jars", "emptyDir": {}},
            {"name": "properties", "configMap": {"name": "init", "items": properties}},
            {"name": "secret", "secret": {"secretName": "init"}},
        ],
    })
}
