//! The documents of an application's file. Files are staged for one of them.

use serde_json::{Value, json};

use crate::plan::yaml_reason;
use cloakroom_core::resource::{Owner, OwnerError, OwnerKind};

/// The operator's API group.
const GROUP: &str = "sparkoperator.k8s.io";
/// The end of the API group of Apache's own operator.
const APACHE: &str = ".apache.org/";
/// The only version of the API that has `driver.template`.
const VERSION: &str = "v1beta2";
const APPLICATION: &str = "SparkApplication";
const SCHEDULED: &str = "ScheduledSparkApplication";
/// The operator puts this label on each run of a schedule. Its value is the schedule's name.
const SCHEDULED_LABEL: &str = "sparkoperator.k8s.io/scheduled-app-name";

/// Why files cannot be staged for an application's file. Nothing was sent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// Neither YAML nor JSON.
    #[error("{file} cannot be read as YAML or JSON: {problem}")]
    Syntax { file: String, problem: String },
    /// No document is an application.
    #[error(
        "{file} has no SparkApplication and no ScheduledSparkApplication of {} in it: give the file that describes the \
         application",
        GROUP
    )]
    NoApplication { file: String },
    /// The application is for another operator, which has a kind of the same name.
    #[error(
        "{file} is for Apache's Spark operator (its apiVersion is {version}), and files are staged for Kubeflow's here \
         ({}): write local:///… or addresses that pods can read",
        GROUP
    )]
    OtherOperator { file: String, version: String },
    /// There are several applications, and `--name` is not set.
    #[error("{file} has {} applications in it: choose one by --name ({})", names.len(), names.join(", "))]
    SeveralApplications { file: String, names: Vec<String> },
    /// No application has the name of `--name`.
    #[error("{file} has no application {name} in it (--name); it has {}", names.join(", "))]
    NotNamed { file: String, name: String, names: Vec<String> },
    /// A field that is wrong, or that staging would have to change.
    #[error("{file}: {field} {problem}")]
    Field { file: String, field: String, problem: String },
}

/// All documents of a file. Files are staged for one of them, the application.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplicationFile {
    file: String,
    documents: Vec<Value>,
    at: usize,
}

impl ApplicationFile {
    /// Reads YAML or JSON with one document or several, as kubectl does. `name` chooses among applications.
    pub fn parse(file: &str, text: &str, name: Option<&str>) -> Result<Self, FileError> {
        let documents = objects(file, text)?;
        let at = chosen(file, &documents, name)?;
        let read = Self { file: file.to_owned(), documents, at };
        read.check()?;
        Ok(read)
    }

    fn check(&self) -> Result<(), FileError> {
        let application = self.application();
        let version = application["apiVersion"].as_str().unwrap_or_default();
        if version != format!("{GROUP}/{VERSION}") {
            let problem = format!("is {version}: only {GROUP}/{VERSION} has pod templates");
            return Err(self.refuse("apiVersion", problem));
        }
        if self.name().is_empty() {
            let problem = "is missing: the staged files live as long as the application of that name";
            return Err(self.refuse("metadata.name", problem));
        }
        if !self.spec().is_object() {
            return Err(self.refuse(self.spec_field(), "is missing: it describes the application"));
        }
        for part in ["deps", "driver", "executor", "driver.template", "executor.template"] {
            if self.at(part).is_some_and(|value| !value.is_object()) {
                return Err(self.refuse(self.field(part), "must be a map with fields"));
            }
        }
        Ok(())
    }

    /// The file's path as it was given, for messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The application as it is in the file.
    pub fn application(&self) -> &Value {
        &self.documents[self.at]
    }

    /// `metadata.name` of the application. [`Self::parse`] refuses an empty one.
    pub fn name(&self) -> &str {
        self.application()["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// `SparkApplication` or `ScheduledSparkApplication`.
    pub fn kind(&self) -> &str {
        self.application()["kind"].as_str().unwrap_or_default()
    }

    /// The application's namespace: its own, or `given` (`--namespace`).
    pub fn namespace(&self, given: Option<&str>) -> Result<String, FileError> {
        let namespace = namespace(self.application(), given);
        namespace.map_err(|problem| self.refuse("metadata.namespace", problem))
    }

    /// The owner of the files: the application, or all runs of a schedule.
    pub fn owner(&self, namespace: &str) -> Result<Owner, OwnerError> {
        let kind = OwnerKind::parse(&format!("{APPLICATION}.{GROUP}"))?;
        if self.kind() == SCHEDULED {
            let label = (SCHEDULED_LABEL.to_owned(), self.name().to_owned());
            Owner::new(kind, namespace, [label], None)
        } else {
            Owner::new(kind, namespace, [], Some(self.name()))
        }
    }

    /// The `ownerReferences` of an object that Kubernetes deletes together with the application of this unique id.
    pub fn owner_reference(&self, uid: &str) -> Value {
        json!([{
            "apiVersion": self.application()["apiVersion"],
            "kind": self.kind(),
            "name": self.name(),
            "uid": uid,
        }])
    }

    /// All documents, with `objects` before the application: `kubectl apply` creates them first.
    pub fn with_objects(&self, objects: Vec<Value>) -> Vec<Value> {
        let mut documents = self.documents.clone();
        documents.splice(self.at..self.at, objects);
        documents
    }

    pub(super) fn spec(&self) -> &Value {
        let spec = &self.application()["spec"];
        if self.kind() == SCHEDULED { &spec["template"] } else { spec }
    }

    /// The path of the application's `spec` in its document, for messages.
    pub(super) fn spec_field(&self) -> &'static str {
        if self.kind() == SCHEDULED { "spec.template" } else { "spec" }
    }

    pub(super) fn replace(&mut self, namespace: &str, spec: Value) {
        let is_scheduled = self.kind() == SCHEDULED;
        let application = &mut self.documents[self.at];
        application["metadata"]["namespace"] = json!(namespace);
        let place = &mut application["spec"];
        *(if is_scheduled { &mut place["template"] } else { place }) = spec;
    }

    pub(super) fn refuse(&self, field: impl Into<String>, problem: impl Into<String>) -> FileError {
        FileError::Field { file: self.file.clone(), field: field.into(), problem: problem.into() }
    }
}

/// An object's namespace: its own, or `given` (`--namespace`). If both are set, they must be equal. An error says what is
/// wrong with `metadata.namespace`.
pub fn namespace(object: &Value, given: Option<&str>) -> Result<String, String> {
    match (object["metadata"]["namespace"].as_str(), given) {
        (Some(own), Some(given)) if own != given => Err(format!("is {own}, and --namespace is {given}")),
        (Some(namespace), _) | (None, Some(namespace)) => Ok(namespace.to_owned()),
        (None, None) => Err("is missing: write it there, or give --namespace".to_owned()),
    }
}

/// The objects of a file in YAML or JSON with one document or several, as kubectl reads them.
pub fn objects(file: &str, text: &str) -> Result<Vec<Value>, FileError> {
    // To kubectl `0440` is an octal number (YAML 1.1), as in modes of files.
    let options = serde_saphyr::options! { legacy_octal_numbers: true, with_snippet: false };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| FileError::Syntax { file: file.to_owned(), problem: yaml_reason::reason(&error) })?;
    Ok(documents.into_iter().flat_map(items).collect())
}

/// The objects of a document. `kubectl get` prints several objects as one `List`. An empty document has none.
fn items(mut document: Value) -> Vec<Value> {
    let is_list = document.get("kind").is_some_and(|kind| kind == "List");
    match document.get_mut("items").filter(|_| is_list).map(Value::take) {
        Some(Value::Array(items)) => items,
        _ if document.is_null() => Vec::new(),
        _ => vec![document],
    }
}

fn chosen(file: &str, documents: &[Value], name: Option<&str>) -> Result<usize, FileError> {
    let is_application = |document: &Value| {
        let version = document["apiVersion"].as_str().unwrap_or_default();
        let kind = document["kind"].as_str().unwrap_or_default();
        version.split('/').next() == Some(GROUP) && [APPLICATION, SCHEDULED].contains(&kind)
    };
    let called = |document: &Value| document["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let file = file.to_owned();
    let all: Vec<usize> = (0..documents.len()).filter(|at| is_application(&documents[*at])).collect();
    let names = || all.iter().map(|at| called(&documents[*at])).collect();
    let mut matching = all.iter().filter(|at| name.is_none_or(|name| called(&documents[**at]) == name));
    match (matching.next(), matching.next(), name) {
        (Some(at), None, _) => Ok(*at),
        (None, ..) if all.is_empty() => {
            let mut versions = documents.iter().filter_map(|document| document["apiVersion"].as_str());
            match versions.find(|version| version.contains(APACHE)) {
                Some(version) => Err(FileError::OtherOperator { file, version: version.to_owned() }),
                None => Err(FileError::NoApplication { file }),
            }
        }
        (None, _, Some(name)) => Err(FileError::NotNamed { file, name: name.to_owned(), names: names() }),
        _ => Err(FileError::SeveralApplications { file, names: names() }),
    }
}
