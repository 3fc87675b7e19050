//! `--dry-run`: prints the objects as YAML on stdout, in the order in which they would be created. It sends nothing.

use std::process::ExitCode;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::show;

use cloakroom_submit::Submission;

/// Prints what would be sent.
pub fn print(submission: &Submission) -> anyhow::Result<ExitCode> {
    let mut text = format!(
        "# Namespace: {}\n# Once the pod {} exists, it becomes the owner of the objects below it.\n",
        submission.namespace, submission.pod_name
    );
    let before = submission.before_pod.iter();
    for object in before.chain([&submission.pod]).chain(&submission.after_pod) {
        text.push_str("---\n");
        text.push_str(&yaml(object)?);
    }
    show(&text)
}

fn yaml(object: &Value) -> anyhow::Result<String> {
    let mut text = serde_saphyr::to_string(&without_secrets(object)).context("cannot write YAML")?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// The object without the data of a Secret, which a terminal or a log should not show. A placeholder stands in its
/// place, so that kubectl can still read the object.
fn without_secrets(object: &Value) -> Value {
    let mut object = object.clone();
    if object["kind"] == "Secret"
        && let Some(data) = object["data"].as_object_mut()
    {
        data.values_mut().for_each(|value| *value = json!(STANDARD.encode("(not shown)")));
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_yaml_and_a_secret_stays_one() {
        let secret = json!({"kind": "Secret", "data": {"keytab": "aHVudGVyMg=="}, "metadata": {"name": "x"}});
        let text = yaml(&secret).unwrap();
        assert!(text.contains("keytab: KG5vdCBzaG93bik") && !text.contains("aHVud"), "{text}");
        let pod = json!({"kind": "Pod", "spec": {"args": ["a: b", "", "1", "true", "x\ny"]}});
        let read: Value = serde_saphyr::from_str(&yaml(&pod).unwrap()).unwrap();
        assert_eq!(read, pod);
    }
}
