//! Label and field selectors, as far as this project's lists and watches use them.

use serde_json::Value;

use super::EVENT;
use crate::cluster::{Kind, NAMESPACE, POD};

/// The label selector and the field selector of a request.
#[derive(Debug, Clone, Default)]
pub struct Selectors {
    labels: Vec<Labels>,
    fields: Vec<Field>,
}

#[derive(Debug, Clone)]
enum Labels {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

#[derive(Debug, Clone)]
struct Field {
    path: String,
    value: String,
    is_equal: bool,
}

impl Selectors {
    /// An error is the message of the API server's 400.
    pub fn parse(kind: &Kind, labels: &str, fields: &str) -> Result<Self, String> {
        Ok(Self {
            labels: requirements(labels).into_iter().map(label).collect::<Result<_, _>>()?,
            fields: requirements(fields)
                .into_iter()
                .map(|text| field(kind, text))
                .collect::<Result<_, _>>()?,
        })
    }

    pub fn match_object(&self, object: &Value) -> bool {
        self.labels.iter().all(|labels| labels.holds(&object["metadata"]["labels"]))
            && self.fields.iter().all(|field| field.holds(object))
    }
}

impl Labels {
    fn holds(&self, labels: &Value) -> bool {
        let value = |key: &str| labels.get(key).and_then(Value::as_str);
        match self {
            Self::In(key, values) => value(key).is_some_and(|value| values.iter().any(|one| one == value)),
            // An object without the label passes `!=` and `notin`.
            Self::NotIn(key, values) => value(key).is_none_or(|value| values.iter().all(|one| one != value)),
            Self::Exists(key) => value(key).is_some(),
            Self::Absent(key) => value(key).is_none(),
        }
    }
}

impl Field {
    fn holds(&self, object: &Value) -> bool {
        let found = self.path.split('.').fold(object, |value, step| &value[step]);
        (found.as_str().unwrap_or_default() == self.value) == self.is_equal
    }
}

/// Splits at commas outside parentheses.
fn requirements(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn label(text: &str) -> Result<Labels, String> {
    let one = |value: &str| vec![value.trim_start_matches('=').trim().to_owned()];
    let key = |text: &str| {
        let key = text.trim();
        let is_key = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        if !key.is_empty() && key.chars().all(is_key) {
            Ok(key.to_owned())
        } else {
            Err(format!("unable to parse requirement: found '{key}', expected: identifier"))
        }
    };
    if let Some((name, value)) = text.split_once("!=") {
        return Ok(Labels::NotIn(key(name)?, one(value)));
    }
    if let Some((name, value)) = text.split_once('=') {
        return Ok(Labels::In(key(name)?, one(value)));
    }
    if let Some((left, values)) = text.split_once('(') {
        let values = values.trim_end_matches(')').split(',').map(|value| value.trim().to_owned()).collect();
        return match left.trim().rsplit_once(' ') {
            Some((name, "in")) => Ok(Labels::In(key(name)?, values)),
            Some((name, "notin")) => Ok(Labels::NotIn(key(name)?, values)),
            _ => Err(format!("unable to parse requirement: {text}")),
        };
    }
    match text.strip_prefix('!') {
        Some(name) => Ok(Labels::Absent(key(name)?)),
        None => Ok(Labels::Exists(key(text)?)),
    }
}

fn field(kind: &Kind, text: &str) -> Result<Field, String> {
    let (path, value, is_equal) = match (text.split_once("!="), text.split_once('=')) {
        (Some((path, value)), _) => (path, value, false),
        (None, Some((path, value))) => (path, value.trim_start_matches('='), true),
        (None, None) => return Err(format!("invalid selector: '{text}'; can't understand '{text}'")),
    };
    let is_known = match path {
        "metadata.name" | "metadata.namespace" => true,
        "status.phase" => *kind == POD || *kind == NAMESPACE,
        "spec.nodeName" | "spec.restartPolicy" => *kind == POD,
        "involvedObject.uid" => *kind == EVENT,
        _ => false,
    };
    if is_known {
        Ok(Field { path: path.to_owned(), value: value.to_owned(), is_equal })
    } else {
        Err(format!("field label not supported: {path}"))
    }
}
