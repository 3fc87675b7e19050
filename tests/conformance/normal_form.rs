//! What is random in a run gets a name: ids, times, ports, folders. Names are numbered in the order in which they
//! first appear, so that two places with the same id still have the same name.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::api_server::Call;
use crate::properties;

/// The names that were given in one run.
pub struct NormalForm {
    literals: Vec<(String, &'static str)>,
    names: BTreeMap<String, String>,
    counts: BTreeMap<&'static str, usize>,
    shuffled_local_dirs: bool,
}

impl NormalForm {
    /// Spark puts several local directories into a random order: with `shuffled_local_dirs` they are sorted.
    pub fn new(literals: Vec<(String, &'static str)>, shuffled_local_dirs: bool) -> Self {
        Self { literals, names: BTreeMap::new(), counts: BTreeMap::new(), shuffled_local_dirs }
    }

    pub fn call(&mut self, mut call: Call) -> Call {
        split_properties(&mut call.body);
        read_template(&mut call.body);
        if self.shuffled_local_dirs {
            sort_local_dirs(&mut call.body);
        }
        self.value(&mut call.body);
        // A colon may be written either way in a path (RFC 3986, section 3.3).
        call.path = self.text(&call.path.replace("%3A", ":"));
        for value in call.query.values_mut() {
            *value = self.text(value);
        }
        // The client of Spark 3.5 says the character set as well, which is the only one that JSON has.
        call.content_type = call.content_type.map(|found| found.replace("; charset=utf-8", ""));
        call
    }

    pub fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                for (name, field) in fields.iter_mut() {
                    match name.as_str() {
                        "spark.app.submitTime" => time(field),
                        _ => self.value(field),
                    }
                }
            }
            _ => {}
        }
    }

    pub fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (literal, name) in &self.literals {
            text = text.replace(literal, name);
        }
        let mut normal = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let word_ends = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            if let Some((kind, length)) = random(rest, word_ends) {
                normal.push_str(&self.name(kind, &rest[..length]));
                rest = &rest[length..];
                continue;
            }
            let next = rest[word_ends..].chars().next().map_or(0, char::len_utf8);
            normal.push_str(&rest[..word_ends + next]);
            rest = &rest[word_ends + next..];
        }
        normal
    }

    fn name(&mut self, kind: &'static str, random: &str) -> String {
        if let Some(name) = self.names.get(random) {
            return name.clone();
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let name = format!("<{kind}-{count}>");
        self.names.insert(random.to_owned(), name.clone());
        name
    }
}

/// Whether a random word begins here, of which kind, and how long it is.
fn random(text: &str, word_ends: usize) -> Option<(&'static str, usize)> {
    let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let word = &text[..word_ends];
    if word == "spark" && text.get(5..6) == Some("-") {
        let id = text.get(6..38).filter(|id| is_hex(id))?;
        let goes_on = text[38..].starts_with(|c: char| c.is_ascii_alphanumeric());
        return (!goes_on && !id.is_empty()).then_some(("app", 38));
    }
    if word.len() == 16 && is_hex(word.strip_prefix('x').unwrap_or(word)) {
        return Some(("id", 16));
    }
    if word.len() == 8 && is_hex(word) {
        let uuid = text.get(..36)?;
        let lengths: Vec<_> = uuid.split('-').filter(|part| is_hex(part)).map(str::len).collect();
        // The server's own uids are always the same.
        let is_random =
            lengths == [8, 4, 4, 4, 12] && !uuid.starts_with("00000000") && !uuid.starts_with("11111111");
        return is_random.then_some(("uuid", 36));
    }
    None
}

fn time(value: &mut Value) {
    if value.as_str().is_some_and(|text| text.len() == 13 && text.bytes().all(|byte| byte.is_ascii_digit())) {
        *value = "<time>".into();
    }
}

/// Java writes properties in the order of a hash map: they become a map, escapes and all.
fn split_properties(body: &mut Value) {
    let Some(text) = body.pointer_mut("/data/spark.properties") else { return };
    if let Some(properties) = text.as_str().and_then(properties::split) {
        *text = Value::Object(Map::from_iter(properties));
    }
}

/// The executors' template: two texts of the same pod are the same. A template that is no map stays a text.
fn read_template(body: &mut Value) {
    let Some(text) = body.pointer_mut("/data/podspec-configmap-key") else { return };
    let pod = text.as_str().and_then(|text| serde_saphyr::from_str::<Value>(text).ok());
    if let Some(mut pod) = pod.filter(Value::is_object) {
        remove_nulls(&mut pod);
        *text = pod;
    }
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

/// The local directories of the driver's container, in the environment and as mounts.
fn sort_local_dirs(body: &mut Value) {
    let Some(containers) = body.pointer_mut("/spec/containers").and_then(Value::as_array_mut) else { return };
    for container in containers {
        for variable in container["env"].as_array_mut().into_iter().flatten() {
            if let ("SPARK_LOCAL_DIRS", Some(value)) =
                (variable["name"].as_str().unwrap_or_default(), variable["value"].as_str())
            {
                let mut folders: Vec<_> = value.split(',').collect();
                folders.sort_unstable();
                variable["value"] = folders.join(",").into();
            }
        }
        let mounts = container["volumeMounts"].as_array_mut().into_iter().flatten();
        let mounts: Vec<_> = mounts.filter(|mount| is_local_dir(mount)).collect();
        let mut folders: Vec<_> = mounts.iter().map(|mount| mount["mountPath"].clone()).collect();
        folders.sort_by_key(Value::to_string);
        for (mount, folder) in mounts.into_iter().zip(folders) {
            mount["mountPath"] = folder;
        }
    }
}

fn is_local_dir(mount: &Value) -> bool {
    mount["name"].as_str().is_some_and(|name| name.starts_with("spark-local-dir-"))
}
