//! Command lines and pod templates of the conformance sets.

use std::path::Path;
use std::{fs, io};

use serde_json::Value;

const BASE: &[&str] =
    &["--master", "k8s://https://127.0.0.1:6443", "--deploy-mode", "cluster", "--class", "a.B"];

/// The content of the sets.
#[derive(Default)]
pub struct Sets {
    /// One argument a line.
    pub command_lines: Vec<Vec<u8>>,
    /// YAML.
    pub templates: Vec<Vec<u8>>,
}

/// Reads every set of a folder.
pub fn read(folder: &Path) -> io::Result<Sets> {
    let mut sets = Sets::default();
    for file in fs::read_dir(folder)? {
        let text = fs::read_to_string(file?.path())?;
        let documents: Vec<Value> = serde_saphyr::from_str(&text).map_err(io::Error::other)?;
        for set in &documents {
            sets.command_lines.push(command_line(set).into_bytes());
            sets.templates.extend(templates(set));
        }
    }
    Ok(sets)
}

fn command_line(set: &Value) -> String {
    let settings = set["conf"].as_object().into_iter().flatten();
    let settings = settings.flat_map(|(key, value)| {
        ["--conf".to_owned(), format!("{key}={}", value.as_str().unwrap_or_default())]
    });
    let base = words(&set["base"]).unwrap_or_else(|| BASE.iter().map(|&word| word.to_owned()).collect());
    let application = words(&set["app"]).unwrap_or_else(|| vec!["local:///a.jar".to_owned()]);
    let line =
        base.into_iter().chain(words(&set["args"]).unwrap_or_default()).chain(settings).chain(application);
    line.collect::<Vec<_>>().join("\n").replace("{master}", "k8s://https://127.0.0.1:6443")
}

fn words(list: &Value) -> Option<Vec<String>> {
    Some(list.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

fn templates(set: &Value) -> impl Iterator<Item = Vec<u8>> {
    let files = set["files"].as_object().into_iter().flatten();
    let templates = files.filter(|(name, _)| name.ends_with(".yaml"));
    templates.filter_map(|(_, text)| text.as_str()).map(|text| text.as_bytes().to_vec())
}
