//! The Helm chart's files agree with each other, with the manifests and with the program. What shows only when it is rendered is in
//! tests/real/chart.rs.
//!
//! `CLOAKROOM_TEST_REFRESH=yes cargo test --test it chart::` writes anew what is made of other files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cloakroom_testing::known::{parse, text};
use serde_json::Value;

#[test]
fn the_charts_alerts_and_dashboard_are_those_of_the_manifests() {
    for name in ["alerts.yaml", "cloakroom.json"] {
        let source = project().join("manifests/components/monitoring").join(name);
        must_be(&format!("files/{name}"), &std::fs::read_to_string(source).unwrap());
    }
}

#[test]
fn the_charts_page_has_every_value_with_its_default() {
    let defaults = &parse(&read("values.yaml"))[0];
    let mut table = "| value | default | meaning |\n|---|---|---|\n".to_owned();
    for (name, meaning) in commented() {
        let pointer = format!("/{}", name.replace('.', "/"));
        let default = shown(defaults.pointer(&pointer).unwrap(), &schema_of(&name).unwrap());
        writeln!(table, "| `{name}` | {default} | {meaning} |").unwrap();
    }
    let page = read("README.md");
    let (before, rest) = page.split_once("\n## Values\n\n").unwrap();
    let after = rest.split_once("\n## ").map(|(_, after)| format!("\n## {after}")).unwrap_or_default();
    must_be("README.md", &format!("{before}\n## Values\n\n{table}{after}"));
}

#[test]
fn values_that_are_null_have_the_defaults_of_the_file_of_values() {
    let mut defaults = parse(&read("values.yaml"))[0].clone();
    take_open_maps(&mut defaults, &schema());
    must_be("files/defaults.json", &format!("{}\n", serde_json::to_string_pretty(&defaults).unwrap()));
    for entry in std::fs::read_dir(chart().join("templates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let template = read(&format!("templates/{name}"));
        let is_complete = template.starts_with("{{- include \"cloakroom.complete\" . }}\n");
        assert_eq!(is_complete, !name.starts_with('_'), "{name}");
    }
}

#[test]
fn every_value_has_the_same_description_in_values_yaml_and_its_schema() {
    let commented = commented();
    for (name, meaning) in &commented {
        let schema = schema_of(name).unwrap_or_else(|| panic!("values.schema.json does not know {name}"));
        assert_eq!(text(&schema["description"]), meaning, "{name}");
    }
    let mut known = Vec::new();
    add_names(&schema(), "", &mut known);
    // The first is for a parent chart.
    known.retain(|name| name != "enabled" && !name.contains("issuerRef."));
    let mut described: Vec<_> = commented.into_iter().map(|(name, _)| name).collect();
    described.sort();
    known.sort();
    assert_eq!(described, known, "values.yaml, values.schema.json");
}

#[test]
fn nothing_but_known_values_is_accepted_at_any_level() {
    fn closed(schema: &Value, at: &str) {
        if let Some(properties) = schema["properties"].as_object() {
            // A parent chart has other global values for its other charts.
            assert_eq!(schema["additionalProperties"], at == ".global", "{at}");
            properties.iter().for_each(|(key, inner)| closed(inner, &format!("{at}.{key}")));
        }
    }
    closed(&schema(), "");
}

#[test]
fn the_chart_has_the_programs_version() {
    let chart = &parse(&read("Chart.yaml"))[0];
    for field in ["version", "appVersion"] {
        assert_eq!(chart[field], env!("CARGO_PKG_VERSION"), "{field}");
    }
}

/// Holds a file of the chart against what it must be, or writes it.
fn must_be(name: &str, expected: &str) {
    let is = std::fs::read_to_string(chart().join(name)).unwrap_or_default();
    if is != expected && std::env::var("CLOAKROOM_TEST_REFRESH").is_ok_and(|refresh| refresh == "yes") {
        std::fs::write(chart().join(name), expected).unwrap();
        return;
    }
    let differs = is.lines().zip(expected.lines()).find(|(is, expected)| is != expected);
    assert!(
        is == expected,
        "charts/cloakroom/{name} is not what it is made of: {differs:?}; write it anew with \
         CLOAKROOM_TEST_REFRESH=yes cargo test --test it chart::"
    );
}

/// Names of values in the order of values.yaml, each with the comment above it. What is inside of a value that the schema leaves
/// open is a part of its default.
fn commented() -> Vec<(String, String)> {
    let mut path: Vec<String> = Vec::new();
    let mut comment: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for line in read("values.yaml").lines() {
        let trimmed = line.trim_start();
        let depth = (line.len() - trimmed.len()) / 2;
        if let Some(words) = trimmed.strip_prefix("# ") {
            comment.push(words.to_owned());
            continue;
        }
        if let Some((key, _)) = trimmed.split_once(':') {
            path.truncate(depth);
            path.push(key.to_owned());
            let name = path.join(".");
            if schema_of(&name).is_some() {
                assert!(!comment.is_empty(), "{name} has no comment in values.yaml");
                found.push((name, comment.join(" ")));
            }
        }
        comment.clear();
    }
    assert!(found.len() > 50, "values.yaml is read wrong");
    found
}

/// A default as a table can show it.
fn shown(default: &Value, schema: &Value) -> String {
    let text = default.to_string();
    let is_empty = text == "{}";
    if schema["properties"].is_object() && !is_empty {
        // A section: its values follow.
        String::new()
    } else if text.len() > 40 {
        "see `values.yaml`".to_owned()
    } else {
        format!("`{text}`")
    }
}

fn add_names(schema: &Value, at: &str, names: &mut Vec<String>) {
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        let name = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        add_names(inner, &name, names);
        names.push(name);
    }
}

/// Takes away what may have any entries. In such maps null removes an entry.
fn take_open_maps(values: &mut Value, schema: &Value) {
    let values = values.as_object_mut().unwrap();
    values.retain(|key, value| !value.is_object() || schema["properties"][key]["properties"].is_object());
    for (key, value) in values.iter_mut().filter(|(_, value)| value.is_object()) {
        take_open_maps(value, &schema["properties"][key]);
    }
}

/// The schema of one value.
fn schema_of(name: &str) -> Option<Value> {
    schema().pointer(&format!("/properties/{}", name.replace('.', "/properties/"))).cloned()
}

fn schema() -> Value {
    serde_json::from_str(&read("values.schema.json")).unwrap()
}

fn read(name: &str) -> String {
    std::fs::read_to_string(chart().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn chart() -> PathBuf {
    project().join("charts/cloakroom")
}

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
