//! Texts that YAML takes for something else unless they are quoted.

use serde_json::{Value, json};

use super::helm::Helm;

/// Stands for a text that YAML takes for nothing else.
const PLAIN: &str = "zq7x";

/// Stays where a pattern, or Helm itself, takes no dash.
const KEPT: &str = "zq8y";

/// Renders the chart with a plain text and with an odd one. Apart from that text, both must be equal.
pub fn odd_texts(helm: &Helm) {
    for text in ["1234", "true", "1e3", "0x10", "-"] {
        let takes_it = text != "-";
        for values in [with_claim_and_ingress, with_class_and_gateway] {
            let rendered = |text: &str| {
                let name = if takes_it { text } else { KEPT };
                let file = tempfile::NamedTempFile::new().unwrap();
                std::fs::write(file.path(), values(text, name).to_string()).unwrap();
                let helm = helm.release(name).in_namespace(name);
                let rendered = helm.render(&[file.path().to_str().unwrap().to_owned()], &[]);
                Value::from(rendered.objects().to_vec())
            };
            let (expected, odd) = (replaced(&rendered(PLAIN), text), rendered(text));
            for (expected, odd) in expected.as_array().unwrap().iter().zip(odd.as_array().unwrap()) {
                assert_eq!(odd, expected, "{text}");
            }
        }
    }
}

/// A number or a boolean becomes the text that was meant. A null leaves the entry out.
pub fn odd_values(helm: &Helm) {
    let rendered = |value: &Value| {
        let entries = json!({"a": value});
        let values = json!({
            "service": {"annotations": entries},
            "ingress": {"enabled": true, "host": "cloakroom.example.com", "annotations": entries},
            "monitoring": {"enabled": true, "labels": entries},
            "serviceAccount": {"annotations": entries},
            "nodeSelector": entries,
            "podLabels": entries,
            "podAnnotations": entries,
            "extraEnv": [{"name": "A", "value": value}],
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), values.to_string()).unwrap();
        let files = ["ci/base-values.yaml".to_owned(), file.path().to_str().unwrap().to_owned()];
        Value::from(helm.render(&files, &[]).objects().to_vec())
    };
    for (value, text) in
        [(json!(1_234_567), "1234567"), (json!(-1.5), "-1.5"), (json!(true), "true"), (json!(false), "false")]
    {
        let expected = rendered(&json!(text));
        assert_eq!(rendered(&value), expected);
        assert_eq!(expected.to_string().matches(&format!("\"a\":\"{text}\"")).count(), 8, "{expected}");
    }
    let nothing = rendered(&Value::Null).to_string();
    assert!(!nothing.contains("\"a\":") && !nothing.contains("\"null\""), "{nothing}");
}

fn replaced(value: &Value, text: &str) -> Value {
    match value {
        Value::String(found) => Value::from(found.replace(PLAIN, text)),
        Value::Array(all) => all.iter().map(|value| replaced(value, text)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), replaced(value, text)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

fn common(text: &str, name: &str) -> Value {
    json!({
        "image": {"repository": format!("example/{name}"), "tag": name},
        "imagePullSecrets": [{"name": text}],
        "tokens": {"existingSecret": text},
        "namespaces": [name],
        "service": {"annotations": {"a": text}},
        "monitoring": {"enabled": true, "labels": {"a": text}, "namespace": name},
        "extraEnv": [{"name": "CLOAKROOM_LOG", "value": text}],
        "extraArgs": [text],
        "priorityClassName": text,
        "nodeSelector": {"a": text},
        "podLabels": {"a": text},
        "podAnnotations": {"a": text},
    })
}

fn with_claim_and_ingress(text: &str, name: &str) -> Value {
    let mut values = common(text, name);
    values["persistence"] = json!({"existingClaim": text});
    values["tls"] = json!({"existingSecret": text});
    let annotations = json!({"a": text});
    values["ingress"] = json!({
        "enabled": true, "host": name, "className": text, "tlsSecret": text, "annotations": annotations,
    });
    values
}

fn with_class_and_gateway(text: &str, name: &str) -> Value {
    let mut values = common(text, name);
    values["fullnameOverride"] = json!(name);
    // There a dash is the empty class.
    values["persistence"] = json!({"storageClassName": name});
    values["tls"] = json!({"certManager": {"issuerRef": {"name": text, "kind": text}, "dnsNames": [text]}});
    values["gateway"] = json!({"enabled": true, "host": name, "parentRefs": [{"name": text}]});
    values
}
