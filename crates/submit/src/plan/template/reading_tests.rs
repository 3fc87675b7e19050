use serde_json::json;

use super::*;
use cloakroom_spark::Origin;

fn pod(text: &str) -> Result<Map<String, Value>, String> {
    parse_pod(text, SparkVersion::read(&SparkConf::default()).unwrap().0)
}

/// Lines in a spec, each with the observed result of Spark 4.3.
#[test]
fn scalars_are_what_kubernetes_has_there_quoted_or_not() {
    for (spec, expected) in [
        ("hostNetwork: \"true\"", json!({"hostNetwork": true})),
        ("hostNetwork: True", json!({"hostNetwork": true})),
        ("hostNetwork: null", json!({})),
        ("priority: \"5\"", json!({"priority": 5})),
        ("priority: +5", json!({"priority": 5})),
        ("priority: 010", json!({"priority": 10})),
        ("terminationGracePeriodSeconds: 0777", json!({"terminationGracePeriodSeconds": 777})),
        (
            "securityContext: {fsGroup: \"1\", supplementalGroups: [\"1\", 2, 03]}",
            json!({"securityContext": {"fsGroup": 1, "supplementalGroups": [1, 2, 3]}}),
        ),
        ("securityContext: {}", json!({"securityContext": {}})),
        ("overhead: {cpu: 1, memory: 1e3}", json!({"overhead": {"cpu": "1", "memory": "1000.0"}})),
        ("nodeSelector: {}", json!({})),
        (
            "volumes: [{name: a, emptyDir: {sizeLimit: 1e9}}, {name: b, emptyDir: }]",
            json!({"volumes": [{"name": "a", "emptyDir": {"sizeLimit": "1.0E9"}}, {"name": "b"}]}),
        ),
    ] {
        assert_eq!(pod(&format!("spec:\n  {spec}\n")).unwrap()["spec"], expected, "{spec}");
    }
}

/// The results were observed with Spark 4.3.
#[test]
fn texts_keep_their_spelling_and_numbers_are_written_as_java_writes_them() {
    for (written, expected) in [
        ("True", json!("True")),
        ("true", json!("true")),
        ("yes", json!("yes")),
        ("0x10", json!("0x10")),
        ("0o17", json!("0o17")),
        ("007", json!("007")),
        ("1_000", json!("1_000")),
        ("1:30", json!("1:30")),
        ("~", json!("~")),
        ("Null", json!("Null")),
        ("null", json!(null)),
        ("", json!(null)),
        ("\"\"", json!("")),
        (".5", json!(".5")),
        ("+1", json!("+1")),
        ("-0", json!("0")),
        ("12345678901234567890", json!("12345678901234567890")),
        ("1.10", json!("1.1")),
        ("1.", json!("1.0")),
        ("1e9", json!("1.0E9")),
        ("1E+5", json!("100000.0")),
        ("-1.5e-3", json!("-0.0015")),
        ("0.00001", json!("1.0E-5")),
        ("\"1.10\"", json!("1.10")),
        ("!!str 1.10", json!("1.10")),
        ("!!int \"7\"", json!("7")),
        ("&anchor 0x10", json!("0x10")),
        ("2024-01-01", json!("2024-01-01")),
    ] {
        // Letters of two bytes come before it, so offsets in bytes and in letters differ.
        let text = format!(
            "# äöü\n---\nmetadata:\n  labels: {{a: {written}, b: x}}\n  annotations:\n    a: {written} # ä\nspec: {{}}\n"
        );
        let expected = json!({"labels": {"a": expected, "b": "x"}, "annotations": {"a": expected}});
        assert_eq!(pod(&text).unwrap()["metadata"], expected, "{written}");
    }
}

#[test]
fn fields_that_kubernetes_does_not_have_are_read_as_yaml() {
    let text = "spec: {future: {a: True, b: 007, c: ~, d: null, e: true, f: \"5\", g: [~, 5], h: [], i: 0x5, j: 1.5}}";
    let expected = json!({"future": {
        "a": "True", "b": "007", "c": "~", "d": null, "e": true, "f": "5", "g": ["~", 5], "h": [], "i": "0x5", "j": 1.5,
    }});
    assert_eq!(pod(text).unwrap()["spec"], expected);
}

#[test]
fn ports_stay_numbers_or_names() {
    let text = "spec: {containers: [{args: [~, null, 1e9, \"\"], livenessProbe: {httpGet: {port: \"8080\"}}, \
                readinessProbe: {httpGet: {port: 8080}}, startupProbe: {httpGet: {port: http}}}]}";
    let expected = json!({"containers": [{
        "args": ["~", null, "1.0E9", ""],
        "livenessProbe": {"httpGet": {"port": "8080"}},
        "readinessProbe": {"httpGet": {"port": 8080}},
        "startupProbe": {"httpGet": {"port": "http"}},
    }]});
    assert_eq!(pod(text).unwrap()["spec"], expected);
}

#[test]
fn modes_may_be_octal_since_spark_4() {
    for (mode, new, old) in [
        ("0444", Some(292), Some(444)),
        ("\"0400\"", Some(256), Some(400)),
        ("0o17", Some(15), None),
        ("444", Some(444), Some(444)),
        ("08", Some(8), Some(8)),
        ("0", Some(0), Some(0)),
        ("0x10", None, None),
        ("1e2", None, None),
    ] {
        let text = format!(
            "spec: {{volumes: [{{secret: {{defaultMode: {mode}}}}}, {{configMap: {{items: [{{mode: {mode}}}]}}}}]}}"
        );
        for (version, expected) in [("4.3.0", new), ("3.5.9", old)] {
            let mut conf = SparkConf::default();
            conf.set(&keys::CLOAKROOM_SPARK_VERSION, version, Origin::Conf);
            let pod = parse_pod(&text, SparkVersion::read(&conf).unwrap().0);
            let expected = expected.map(|mode| {
                json!({"volumes": [{"secret": {"defaultMode": mode}}, {"configMap": {"items": [{"mode": mode}]}}]})
            });
            assert_eq!(pod.ok().map(|pod| pod["spec"].clone()), expected, "{mode} {version}");
        }
    }
}

#[test]
fn in_json_numbers_keep_their_spelling_where_texts_belong() {
    let text = "{\"spec\": {\"hostname\": 1.10, \"priority\": \"5\", \"nodeSelector\": {\"a\": 1e9}}}";
    let expected = json!({"hostname": "1.10", "priority": 5, "nodeSelector": {"a": "1e9"}});
    assert_eq!(pod(text).unwrap()["spec"], expected);
}

#[test]
fn what_kubernetes_cannot_have_there_is_refused_with_its_place() {
    for (spec, problem) in [
        ("hostNetwork: yes", "`spec.hostNetwork` in line 2 is `yes`: it must be true or false"),
        ("hostNetwork: 1", "`spec.hostNetwork` in line 2 is `1`: it must be true or false"),
        ("hostNetwork: \"\"", "`spec.hostNetwork` in line 2 is ``: it must be true or false"),
        ("priority: abc", "`spec.priority` in line 2 is `abc`: it must be a whole number"),
        ("priority: 0x10", "`spec.priority` in line 2 is `0x10`: it must be a whole number"),
        (
            "priority: 99999999999",
            "`spec.priority` in line 2 is `99999999999`: it must be a number of 32 bits",
        ),
        (
            "securityContext: {runAsUser: 1e3}",
            "`spec.securityContext.runAsUser` in line 2 is `1000.0`: it must be a whole number",
        ),
        (
            "securityContext: {supplementalGroups: [1, null]}",
            "`spec.securityContext.supplementalGroups[1]` in line 2 is `null`: it must be a whole number",
        ),
        ("priority: ~", "`spec.priority` in line 2 is `~`: it must be a whole number"),
        ("hostname: [a]", "`spec.hostname` in line 2 is a list: it must be a text"),
        ("nodeSelector: ~", "`spec.nodeSelector` in line 2 is `~`: it must be a map"),
        ("volumes: {name: a}", "`spec.volumes` in line 2 is a map: it must be a list"),
        (
            "containers:\n  - livenessProbe: {httpGet: {port: true}}",
            "`spec.containers[0].livenessProbe.httpGet.port` in line 3 is `true`: it must be a number or a name",
        ),
        (
            "containers: [{resources: {limits: {cpu: \"\"}}}]",
            "`spec.containers[0].resources.limits.cpu` in line 2 is ``: it must be a quantity, such as 500m or 2Gi",
        ),
    ] {
        assert_eq!(pod(&format!("spec:\n  {spec}\n")).unwrap_err(), problem);
    }
}

#[test]
fn anchors_and_merge_keys_are_followed() {
    let text =
        "metadata:\n  labels: &labels {a: True, c: &c 1.0}\n  annotations: {<<: *labels, b: *c}\nspec: {}\n";
    let expected =
        json!({"labels": {"a": "True", "c": "1.0"}, "annotations": {"a": "True", "c": "1.0", "b": "1.0"}});
    assert_eq!(pod(text).unwrap()["metadata"], expected);
}

#[test]
fn a_bomb_of_aliases_is_refused() {
    let mut bomb = "spec: {}\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb = format!("{bomb}a{level}: &a{level} [{aliases}]\n");
    }
    let refused = pod(&bomb).unwrap_err();
    assert!(refused.starts_with("its YAML cannot be read: "), "{refused}");
}

#[test]
fn values_in_json_have_lines_and_keep_their_spelling() {
    let typed = pod("{\n\"spec\": {\n\"priority\": \"x\"}} and more").unwrap_err();
    assert_eq!(typed, "`spec.priority` in line 3 is `x`: it must be a whole number");
    let labels = "{\"metadata\": {\"labels\": {\"a\": -0, \"b\": 1e9, \"c\": \"\\ud83d\\ude00\\/\"}}, \"spec\": {\"priority\": -0}} x";
    let expected =
        json!({"metadata": {"labels": {"a": "-0", "b": "1e9", "c": "\u{1f600}/"}}, "spec": {"priority": 0}});
    assert_eq!(pod(labels).map(Value::Object), Ok(expected));
}

#[test]
fn what_begins_with_a_brace_is_json_and_nothing_else() {
    for text in [
        "{\"spec\": {\"containers\": [],}}",
        "{spec: {}}",
        "{'spec': {}}",
        "{\n# yaml\n\"spec\": {}}",
        "{\n// one\n\"metadata\": {},\n\"spec\": {}}",
        "{ /* two */ \"spec\": {}}",
        "{\"spec\": {\"priority\": 010}}",
        "{",
    ] {
        let refused = pod(text).unwrap_err();
        assert!(
            refused.starts_with("it begins with `{`, so it is JSON, which has no comments"),
            "{text}: {refused}"
        );
    }
    let deep = format!("{{\"spec\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let refused = pod(&deep).unwrap_err();
    assert!(refused.ends_with("in line 1 a value is in more than 100 others"), "{refused}");
    let twice = pod("{\"spec\": {\"a\": 1,\n\"a\": 2}}").unwrap_err();
    assert!(twice.contains("the key `a` is there twice in one map, the second time in line 2"), "{twice}");
}

#[test]
fn a_template_that_was_not_rendered_is_told_as_that() {
    for (text, line) in [
        ("{{- if .Values.on }}\nspec: {}\n{{- end }}\n", "line 1 has `{{`"),
        ("spec:\n  {% if on %}\n  hostname: a\n", "line 2 has `{%`"),
        ("spec:\n  priority: {{ priority }}\n", "line 2 has `{{`"),
    ] {
        let refused = pod(text).unwrap_err();
        assert!(refused.starts_with(line) && refused.contains("render it first"), "{text}: {refused}");
    }
    assert!(pod("metadata: {labels: {a: \"{{APP_ID}}\"}}\nspec: {}").is_ok());
    let other = pod("metadata: {labels: {a: \"{{APP_ID}}\"}}\nspec: [").unwrap_err();
    assert!(!other.contains("render"), "{other}");
}
