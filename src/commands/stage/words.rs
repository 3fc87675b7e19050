//! What `cloakroom stage --for` prints: on stdout what is to be given to the submitter, on stderr what to know about it.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::templates::Templates;
use crate::cli::SubmitterChoice;
use crate::commands::tell;

use cloakroom::spark::keys;
use cloakroom::submit::plan::handover::{FOUND_IN_JARS, Handover, LABEL};

/// What the submitter is to be given.
pub fn given(
    choice: SubmitterChoice,
    handover: &Handover,
    templates: Option<&Templates>,
) -> anyhow::Result<String> {
    match choice {
        SubmitterChoice::SparkSubmit => Ok(arguments(handover, templates)),
        SubmitterChoice::SparkOperator => fields(handover),
    }
}

/// Objects for kubectl.
pub fn documents(handover: &Handover, objects: &[Value]) -> anyhow::Result<String> {
    let mut text = String::new();
    for object in objects {
        let mut object = object.clone();
        object["metadata"]["namespace"] = json!(handover.namespace);
        text += "---\n";
        text += &yaml(&object)?;
    }
    Ok(text)
}

/// Writes to stdout. Whoever asked must get it, so a reader that is gone is a failure.
pub fn show(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
}

/// A document of YAML.
pub fn yaml(value: &Value) -> anyhow::Result<String> {
    let mut text = serde_saphyr::to_string(value).context("cannot write YAML")?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Arguments of spark-submit, the application behind all options: lines that a shell takes as one command.
fn arguments(handover: &Handover, templates: Option<&Templates>) -> String {
    let file = |path: &Path| path.display().to_string();
    let mut settings = vec![(keys::NAMESPACE.name(), handover.namespace.clone())];
    settings.extend(handover.pod_name.iter().map(|name| (keys::DRIVER_POD_NAME.name(), name.clone())));
    if let Some(templates) = templates {
        settings.push((keys::DRIVER_POD_TEMPLATE.name(), file(&templates.driver)));
        if let Some(executor) = &templates.executor {
            settings.push((keys::EXECUTOR_POD_TEMPLATE.name(), file(executor)));
        }
    }
    settings.extend(handover.containers.iter().cloned());
    settings.extend(handover.lists.iter().cloned());
    let options = settings.iter().map(|(key, value)| format!("--conf {key}={}", quoted(value)));
    let application = handover.application.iter().map(|application| quoted(application));
    options.chain(application).collect::<Vec<_>>().join(" \\\n") + "\n"
}

/// For a POSIX shell.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./#-".contains(c);
    if argument.chars().all(is_plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

/// The part of a `SparkApplication` (v1beta2) that says the same. Its `driver.template` needs no webhook.
fn fields(handover: &Handover) -> anyhow::Result<String> {
    let mut spec = Map::new();
    if let Some(application) = &handover.application {
        spec.insert("mainApplicationFile".to_owned(), json!(application));
    }
    if let Some(class) = &handover.main_class {
        spec.insert("mainClass".to_owned(), json!(class));
    }
    let fields = [
        (keys::JARS, "jars"),
        (keys::FILES, "files"),
        (keys::ARCHIVES, "archives"),
        (keys::PY_FILES, "pyFiles"),
    ];
    let field =
        |key: &str| fields.iter().find(|(list, _)| **list == *key).map(|(_, field)| (*field).to_owned());
    let entries = |value: &str| json!(value.split(',').collect::<Vec<_>>());
    let deps: Map<String, Value> =
        handover.lists.iter().filter_map(|(key, value)| Some((field(key)?, entries(value)))).collect();
    if !deps.is_empty() {
        spec.insert("deps".to_owned(), Value::Object(deps));
    }
    spec.insert("driver".to_owned(), json!({"template": template(handover.driver.clone())}));
    if let Some(text) = &handover.executor {
        spec.insert("executor".to_owned(), json!({"template": template(serde_json::from_str(text)?)}));
    }
    yaml(&json!({"spec": spec}))
}

/// A pod as a `PodTemplateSpec`, which is no object of its own.
fn template(mut pod: Map<String, Value>) -> Map<String, Value> {
    pod.retain(|key, _| ["metadata", "spec"].contains(&key.as_str()));
    pod
}

/// What earlier runs had left, by the names of their secrets.
pub fn say_removed(namespace: &str, removed: &[String]) {
    let names = removed.join(", ");
    tell(&format!(
        "removed from namespace {namespace} what earlier runs had left there, because the server has deleted their files: \
         the secrets {names}, and their config maps"
    ));
}

/// What to know, and what is left to do.
pub fn explain(handover: &Handover, choice: SubmitterChoice, are_made: bool, expires_at: Option<Timestamp>) {
    let namespace = &handover.namespace;
    let names = handover.objects.names().join(" and ");
    let made = if are_made { "made" } else { "not made yet:" };
    tell(&format!(
        "{made} {names} in namespace {namespace}; nothing owns them: once the application has ended, remove them with \
         “kubectl delete secret,configmap -n {namespace} -l {LABEL}={}”",
        handover.id
    ));
    if let Some(expires_at) = expires_at {
        let who = match choice {
            SubmitterChoice::SparkSubmit => "submit the application",
            SubmitterChoice::SparkOperator => "apply the SparkApplication",
        };
        tell(&format!("{who} before {expires_at}: what nobody collects is cleared away then"));
    }
    if handover.application.as_deref() == Some(FOUND_IN_JARS) {
        let hint = match (choice, &handover.main_class) {
            (SubmitterChoice::SparkSubmit, Some(class)) => format!("give --class {class} as well"),
            (SubmitterChoice::SparkSubmit, None) => "give --class as well".to_owned(),
            (SubmitterChoice::SparkOperator, None) => "give mainClass as well".to_owned(),
            (SubmitterChoice::SparkOperator, Some(_)) => return,
        };
        tell(&format!("{hint}: spark-submit cannot look into the jar"));
    }
}
