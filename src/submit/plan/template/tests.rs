use serde_json::json;

use super::*;

fn pod(text: &str) -> Result<Map<String, Value>, String> {
    parse_pod(text, SparkVersion::of(&SparkConf::default()).unwrap().0)
}

fn split(text: &str, name: Option<&str>) -> Result<PodTemplate, (&'static str, String)> {
    PodTemplate::split(pod(text).unwrap(), name)
}

/// What Spark 4.3 was seen to make of this template.
#[test]
fn scalars_become_texts_where_kubernetes_has_texts() {
    let pod = pod("metadata:\n  labels: {n: 1, b: true}\n  annotations: {x: 1.50, y: yes}\n\
         spec:\n  hostNetwork: false\n  tolerations: []\n  containers:\n  - name: a\n    env:\n    \
         - {name: A, value: 5}\n    - {name: B, value: true}\n    - {name: C, value: yes}\n    \
         - {name: D, value: 010}\n    - {name: E, value: null}\n    args: [1, on]\n    \
         resources: {limits: {cpu: 2, nvidia.com/gpu: 1, memory: 1.5Gi}}\n    unknown: {a: [1, x]}\n  \
         volumes:\n  - name: v\n    emptyDir: {sizeLimit: 1024}\n  - name: w\n    emptyDir:\n");
    let expected = json!({
        "metadata": {"labels": {"n": "1", "b": "true"}, "annotations": {"x": "1.5", "y": "yes"}},
        "spec": {
            "hostNetwork": false,
            "containers": [{
                "name": "a",
                "env": [
                    {"name": "A", "value": "5"},
                    {"name": "B", "value": "true"},
                    {"name": "C", "value": "yes"},
                    {"name": "D", "value": "010"},
                    {"name": "E"},
                ],
                "args": ["1", "on"],
                "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": "1", "memory": "1.5Gi"}},
                "unknown": {"a": [1, "x"]},
            }],
            "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1024"}}, {"name": "w"}],
        },
    });
    assert_eq!(Value::Object(pod.unwrap()), expected);
}

#[test]
fn permissions_are_octal_when_they_begin_with_a_zero() {
    let pod = pod(
        "spec: {volumes: [{name: v, configMap: {name: c, defaultMode: 0644, items: [{key: k, path: p, mode: 0400}]}}, \
         {name: \"0644\", secret: {defaultMode: 420}}]}",
    );
    let items = json!([{"key": "k", "path": "p", "mode": 256}]);
    let expected = json!([
        {"name": "v", "configMap": {"name": "c", "defaultMode": 420, "items": items}},
        {"name": "0644", "secret": {"defaultMode": 420}},
    ]);
    assert_eq!(pod.unwrap()["spec"]["volumes"], expected);
}

#[test]
fn the_named_container_is_taken_out_and_the_first_one_without_a_name() {
    let text = "spec: {containers: [{name: a}, {name: b}], priorityClassName: high}";
    for (name, taken, left) in [(None, "a", "b"), (Some("b"), "b", "a")] {
        let template = split(text, name).unwrap();
        assert_eq!(Value::Object(template.container), json!({"name": taken}));
        let spec = json!({"containers": [{"name": left}], "priorityClassName": "high"});
        assert_eq!(Value::Object(template.spec), spec);
    }
}

#[test]
fn a_template_without_the_named_container_is_refused_with_the_names_that_it_has() {
    let refused = split("spec: {containers: [{name: a}, {name: b}]}", Some("c")).unwrap_err();
    assert_eq!(refused, (CONTAINER, "the pod template has no such container; it has: a, b".to_owned()));
}

#[test]
fn without_containers_there_is_a_fresh_one() {
    for text in ["spec: {containers: []}", "spec: {}", "{\"kind\": \"Pod\", \"spec\": {}}"] {
        assert!(split(text, None).unwrap().container.is_empty(), "{text}");
    }
    let nothing = PodTemplate::split(Map::new(), Some("a")).unwrap();
    assert_eq!(Value::Object(nothing.pod), json!({"apiVersion": "v1", "kind": "Pod"}));
}

#[test]
fn what_is_not_one_pod_is_refused() {
    for (text, problem) in [
        ("", "one document in it, and it has 0"),
        ("just text", "a pod in YAML or JSON"),
        ("- spec", "a pod in YAML or JSON"),
        ("kind: Pod", "a pod with a spec"),
        ("spec:", "a pod with a spec"),
        ("spec: {containers: {}}", "`spec.containers` in line 1 is a map: it must be a list"),
        ("spec: {containers: [a]}", "`spec.containers[0]` in line 1 is `a`: it must be a map"),
        ("kind: Deployment\nspec: {}", "it is a Deployment"),
        ("spec: {}\n---\nspec: {}\n", "one document in it, and it has 2"),
        ("spec: [", "its YAML cannot be read: "),
    ] {
        let refused = pod(text).unwrap_err();
        assert!(refused.contains(problem) && !refused.contains('\n'), "{text}: {refused}");
    }
}
