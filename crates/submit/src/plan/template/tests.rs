use cloakroom_core::text::is_unfit;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn pod(text: &str) -> Result<Map<String, Value>, String> {
    parse_pod(text, SparkVersion::read(&SparkConf::default()).unwrap().0)
}

fn parse(text: &str) -> Result<Value, String> {
    Ok(parse_document(text)?.into_value().unwrap_or_default())
}

fn split(text: &str, name: Option<&str>) -> Result<PodTemplate, (&'static str, String)> {
    PodTemplate::split(pod(text).unwrap(), name)
}

/// The result was observed with Spark 4.3.
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
fn a_template_without_the_named_container_is_refused_with_its_names() {
    let refused = split("spec: {containers: [{name: a}, {name: b}]}", Some("c")).unwrap_err();
    assert_eq!(
        refused,
        (
            keys::DRIVER_TEMPLATE_CONTAINER.name(),
            "the pod template has no such container; it has: a, b".to_owned()
        )
    );
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
        ("just text", "one Pod in YAML or JSON"),
        ("- spec", "one Pod in YAML or JSON"),
        ("kind: Pod", "a pod with a spec"),
        ("spec:", "a pod with a spec"),
        ("spec: {containers: {}}", "`spec.containers` in line 1 is a map: it must be a list"),
        ("spec: {containers: [a]}", "`spec.containers[0]` in line 1 is `a`: it must be a map"),
        (
            "kind: Deployment\nspec: {}",
            "it must have `kind: Pod` and `apiVersion: v1`, and it has `Deployment` and `v1`",
        ),
        ("kind: pod\nspec: {}", "and it has `pod` and `v1`"),
        ("spec: {}\n---\nspec: {}\n", "one document in it, and it has 2"),
        ("spec: [", "its YAML cannot be read: "),
        (
            "spec:\n  priority: 1\n  priority: 2\n",
            "its YAML cannot be read: the key `priority` is there twice in one map, the second time in line 3: remove",
        ),
        ("spec: \"\u{202e}\u{200b}", "its YAML cannot be read: "),
    ] {
        let refused = pod(text).unwrap_err();
        assert!(refused.contains(problem) && !refused.contains(is_unfit), "{text}: {refused}");
    }
}

/// Trees as in pods, with numbers that are the same in YAML and JSON.
fn trees() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~\u{e9}\u{1f600}]{0,8}".prop_map(Value::from),
        prop::sample::select(vec![
            "null", "~", "0644", "1.50", "yes", "0x10", "- a", "a: b", "#", "---", "*a"
        ])
        .prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z0-9~-]{1,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_as_json_or_as_yaml_is_read_as_it_was(tree in trees()) {
        let tree = json!({"spec": tree});
        prop_assert_eq!(parse(&tree.to_string()), Ok(tree.clone()));
        prop_assert_eq!(parse(&serde_json::to_string_pretty(&tree).unwrap()), Ok(tree.clone()));
        let yaml = serde_saphyr::to_string(&tree).unwrap();
        prop_assert_eq!(parse(&yaml), Ok(tree), "{}", yaml);
    }

    #[test]
    fn unknown_fields_stay_in_a_pod_and_empty_known_ones_are_left_out(tree in trees()) {
        let text = json!({"spec": {"containers": [], "tolerations": [], "unknown": tree}}).to_string();
        prop_assert_eq!(Value::Object(pod(&text).unwrap()), json!({"spec": {"unknown": tree}}));
    }

    #[test]
    fn any_text_is_a_pod_or_refused_on_one_line(text in "(spec:\n|  |- |[a-c]: |&a |\\*a|\\[|\\]|\\{|\\}|,|\"|\n|!!str |<<: |[0-9x.]){0,24}") {
        if let Err(refused) = pod(&text) {
            prop_assert!(!refused.is_empty() && !refused.contains('\n'), "{}", refused);
        }
    }
}
