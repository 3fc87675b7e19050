//! What differs between two renderings, apart from what is Helm's own.

use std::collections::{BTreeMap, BTreeSet};

use cloakroom_core::resource::OwnerKinds;
use cloakroom_testing::known::{list, rights_of, text};
use serde_json::Value;

use crate::manifests::rendered::Rendered;

/// Labels by which Helm knows its releases, and the annotation by which it leaves the claim.
const HELMS_OWN: [&str; 5] = [
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
    "helm.sh/resource-policy",
];

/// Every difference in words; none if both make the same objects.
pub fn differences(chart: &Rendered, kustomize: &Rendered) -> Vec<String> {
    let (chart, kustomize) = (comparable(chart), comparable(kustomize));
    let names: BTreeSet<_> = chart.keys().chain(kustomize.keys()).collect();
    let mut differences = Vec::new();
    for name in names {
        match (chart.get(name), kustomize.get(name)) {
            (Some(_), None) => differences.push(format!("{name} is the chart's alone")),
            (None, _) => differences.push(format!("{name} is missing in the chart")),
            (Some(one), Some(other)) => {
                differences.extend(first_difference(name, one, other));
            }
        }
    }
    differences
}

/// Kind, namespace and name.
pub fn name_of(object: &Value) -> String {
    let metadata = &object["metadata"];
    format!("{} {}/{}", text(&object["kind"]), metadata["namespace"], text(&metadata["name"]))
}

/// Without the Namespace: with Helm it is the admin's to make.
fn comparable(rendered: &Rendered) -> BTreeMap<String, Value> {
    let objects = rendered.objects().iter().filter(|object| object["kind"] != "Namespace");
    let objects = objects.map(|object| (name_of(object), normal(object)));
    let count = objects.clone().count();
    let by_name: BTreeMap<_, _> = objects.collect();
    assert_eq!(by_name.len(), count, "an object is there twice");
    by_name
}

fn normal(object: &Value) -> Value {
    let mut object = object.clone();
    strip(&mut object);
    if object["metadata"]["annotations"] == serde_json::json!({}) {
        object["metadata"].as_object_mut().unwrap().remove("annotations");
    }
    // What the API server takes where no type is named.
    if object["kind"] == "Service" && object["spec"]["type"] == "ClusterIP" {
        object["spec"].as_object_mut().unwrap().remove("type");
    }
    if text(&object["kind"]).ends_with("Role") {
        object["rules"] = serde_json::json!(rights_of(&object));
    }
    if let Some(env) = object.pointer_mut("/spec/template/spec/containers/0/env") {
        // The chart always says them, because its role is made of the same list.
        env.as_array_mut().unwrap().retain(|pair| !says_the_default_kinds(pair));
    }
    object
}

fn says_the_default_kinds(pair: &Value) -> bool {
    let kinds = |text: &str| text.split(',').map(str::to_owned).collect::<BTreeSet<_>>();
    pair["name"] == "CLOAKROOM_OWNER_KINDS" && kinds(text(&pair["value"])) == kinds(OwnerKinds::DEFAULT)
}

/// Takes away what is Helm's own, and the order of what has names.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !HELMS_OWN.contains(&key.as_str()));
            fields.values_mut().for_each(strip);
        }
        Value::Array(elements) => {
            elements.iter_mut().for_each(strip);
            if elements.iter().all(|element| element["name"].is_string()) {
                elements.sort_by_key(|element| text(&element["name"]).to_owned());
            }
        }
        _ => {}
    }
}

/// Where two values differ first, and how.
fn first_difference(at: &str, one: &Value, other: &Value) -> Option<String> {
    match (one, other) {
        (Value::Object(fields), Value::Object(others)) => {
            let keys: BTreeSet<_> = fields.keys().chain(others.keys()).collect();
            keys.into_iter().find_map(|key| first_difference(&format!("{at}/{key}"), &one[key], &other[key]))
        }
        (Value::Array(_), Value::Array(_)) if list(one).len() == list(other).len() => {
            let pairs = list(one).iter().zip(list(other)).enumerate();
            pairs.into_iter().find_map(|(index, (a, b))| first_difference(&format!("{at}/{index}"), a, b))
        }
        _ => (one != other).then(|| format!("{at}: the chart has {one}, kustomize {other}")),
    }
}
