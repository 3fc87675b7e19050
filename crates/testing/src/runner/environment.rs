//! A container's environment: values from the pod, config maps and secrets, and `$(NAME)`, which arguments may contain
//! too.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::objects::{Objects, items};
use super::waiting::Waiting;
use crate::cluster::text;

/// Names and values. If a name occurs twice, the later value counts.
pub type Environment = Vec<(String, String)>;

/// Adds the variables of a container's spec.
pub async fn extend(
    environment: &mut Environment,
    container: &Value,
    pod: &Value,
    objects: &Objects,
) -> Result<(), Waiting> {
    assert!(container["envFrom"].is_null(), "the runner does not know envFrom");
    for variable in items(&container["env"]) {
        let value = if variable["valueFrom"].is_null() {
            Some(expand(&text(&variable["value"]), environment))
        } else {
            referred(&variable["valueFrom"], pod, objects).await?
        };
        environment.extend(value.map(|value| (text(&variable["name"]), value)));
    }
    Ok(())
}

/// The value of a reference; `None` if it is optional and absent.
async fn referred(source: &Value, pod: &Value, objects: &Objects) -> Result<Option<String>, Waiting> {
    let (kind, reference) = source.as_object().and_then(|source| source.iter().next()).unwrap();
    let plural = match kind.as_str() {
        "fieldRef" => return Ok(Some(field(&text(&reference["fieldPath"]), pod))),
        "configMapKeyRef" => "configmaps",
        "secretKeyRef" => "secrets",
        other => panic!("the runner does not know {other} in an environment"),
    };
    let (name, key) = (text(&reference["name"]), text(&reference["key"]));
    let object = objects.get(plural, &name).await;
    let value = object.and_then(|object| {
        let value = object["data"][&key].as_str()?.to_owned();
        let is_text = plural == "configmaps";
        Some(if is_text { value } else { String::from_utf8(STANDARD.decode(value).unwrap()).unwrap() })
    });
    if value.is_some() || reference["optional"] == true {
        return Ok(value);
    }
    Err(Waiting::new("CreateContainerConfigError", format!("{plural} \"{name}\" with key {key} not found")))
}

/// A field of a pod, as the downward API gives it.
pub fn field(path: &str, pod: &Value) -> String {
    let of_map = |map: &str| {
        let key = path.strip_prefix(map)?.strip_prefix("['")?.strip_suffix("']")?;
        Some(text(&pod["metadata"][&map["metadata.".len()..]][key]))
    };
    if let Some(value) = of_map("metadata.labels").or_else(|| of_map("metadata.annotations")) {
        return value;
    }
    let pointer = format!("/{}", path.replace('.', "/"));
    let value = pod.pointer(&pointer).unwrap_or_else(|| panic!("the runner does not know the field {path}"));
    text(value)
}

/// Replaces `$(NAME)` by the value of a defined variable; `$$` means one `$`.
pub fn expand(text: &str, environment: &Environment) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        rest = &rest[at..];
        let name = rest.strip_prefix("$(").and_then(|after| after.split_once(')'));
        if let Some(after) = rest.strip_prefix("$$") {
            expanded.push('$');
            rest = after;
        } else if let Some((name, after)) = name {
            let value = environment.iter().rev().find(|(known, _)| known == name);
            let unknown = format!("$({name})");
            expanded.push_str(value.map_or(&unknown, |(_, value)| value));
            rest = after;
        } else {
            expanded.push('$');
            rest = &rest[1..];
        }
    }
    expanded + rest
}
