//! Numbers and booleans where Kubernetes has texts: Spark's library turns them into texts, an API server refuses them.

use serde_json::{Map, Value};

/// Maps of a pod whose values are texts.
const MAPS: [&str; 2] = ["labels", "annotations"];
/// Lists of containers.
const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Permissions of files in volumes.
const MODES: [&str; 2] = ["defaultMode", "mode"];

/// Makes a pod of it as Spark's library sends it: texts where texts belong, and no empty entries.
pub(super) fn settle(pod: &mut Map<String, Value>) {
    if let Some(Value::Object(metadata)) = pod.get_mut("metadata") {
        for map in MAPS {
            values_to_text(metadata.get_mut(map));
        }
    }
    if let Some(Value::Object(spec)) = pod.get_mut("spec") {
        values_to_text(spec.get_mut("nodeSelector"));
        for volume in items(spec.get_mut("volumes")) {
            to_text(volume.pointer_mut("/emptyDir/sizeLimit"));
            settle_modes(volume);
        }
        for list in CONTAINERS {
            items(spec.get_mut(list)).for_each(settle_container);
        }
    }
    pod.values_mut().for_each(without_nothing);
}

fn settle_container(container: &mut Value) {
    for list in ["/args", "/command"] {
        items(container.pointer_mut(list)).for_each(|item| to_text(Some(item)));
    }
    for variable in items(container.pointer_mut("/env")) {
        to_text(variable.pointer_mut("/value"));
    }
    for map in ["/resources/limits", "/resources/requests"] {
        values_to_text(container.pointer_mut(map));
    }
}

/// `0644` is octal to YAML 1.1, and so to `kubectl` and Spark; YAML 1.2 has a text there.
fn settle_modes(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let octal = value.as_str().filter(|text| text.starts_with('0'));
                let mode = octal.and_then(|text| u32::from_str_radix(text, 8).ok());
                match mode.filter(|_| MODES.contains(&name.as_str())) {
                    Some(mode) => *value = mode.into(),
                    None => settle_modes(value),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(settle_modes),
        _ => {}
    }
}

fn items(list: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    list.and_then(Value::as_array_mut).into_iter().flatten()
}

fn values_to_text(map: Option<&mut Value>) {
    for value in map.and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        to_text(Some(value));
    }
}

fn to_text(value: Option<&mut Value>) {
    if let Some(value) = value.filter(|value| value.is_number() || value.is_boolean()) {
        *value = Value::String(value.to_string());
    }
}

/// Takes away entries that say nothing: nulls and empty lists.
fn without_nothing(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
            map.values_mut().for_each(without_nothing);
        }
        Value::Array(list) => list.iter_mut().for_each(without_nothing),
        _ => {}
    }
}
