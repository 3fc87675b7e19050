//! Files for any pod: an init-container in a Pod or in the pods of a Job fetches them. Nothing here reads or sends anything.

mod merging;
#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::plan::external_submitter::operator::{FileError, namespace, objects};
use crate::plan::external_submitter::{MANAGED_BY, MANAGER};
use cloakroom_core::resource::{Owner, OwnerError, OwnerKind, POD};

const JOB: &str = "Job";

/// The label of the Pod or Job that the staged files live for, and of the Secret with their ticket.
pub const FILES_LABEL: &str = "cloakroom-files";

/// The annotation of the Secret with the Pod or Job that it is for, such as `Job train`.
pub const FILES_OF: &str = "cloakroom-files-of";

/// The keys of the Secret.
const TICKET: &str = "ticket.json";
const CERTIFICATE: &str = "ca.pem";

/// The longest part of the object's name in that of its Secret. The rest of Kubernetes' 253 characters is for its end.
const LONGEST_NAME: usize = 200;

/// Why no files can be put into what a file describes. Nothing was sent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PodFileError {
    /// It cannot be read.
    #[error(transparent)]
    Syntax(#[from] FileError),
    /// Nothing in it has pods that files can be put into.
    #[error(
        "{file} has no Pod and no Job of batch/v1 in it{has}: files go into the pods of these two kinds; for a Spark application \
         use --for spark-operator"
    )]
    NoPods {
        file: String,
        /// What it has.
        has: String,
    },
    /// There are several, and `--name` is not set.
    #[error("{file} has {} Pods and Jobs in it: choose one by --name ({})", names.len(), names.join(", "))]
    SeveralPods { file: String, names: Vec<String> },
    /// None has the name of `--name`.
    #[error("{file} has no Pod and no Job {name} in it (--name); it has {}", names.join(", "))]
    NoPodsOfName { file: String, name: String, names: Vec<String> },
    /// A field that is wrong, or that the files would have to change.
    #[error("{file}: {field} {problem}")]
    PodField { file: String, field: String, problem: String },
}

/// All objects of a file. Files are staged for one of them, a Pod or a Job.
#[derive(Debug, Clone, PartialEq)]
pub struct PodFile {
    file: String,
    objects: Vec<Value>,
    at: usize,
}

/// Where the files go.
#[derive(Debug, Clone)]
pub struct FilesPlace {
    /// The folder of the files in the containers.
    pub mount: String,
    /// Whether that is the working directory of the containers.
    pub is_workdir: bool,
    /// The containers that get the files; empty for all.
    pub containers: Vec<String>,
}

/// What fetches the files in the pods.
#[derive(Debug, Clone)]
pub struct Fetching {
    pub namespace: String,
    /// The value of [`FILES_OF`].
    pub of: String,
    /// The value of [`FILES_LABEL`].
    pub id: String,
    pub image: String,
    /// The name of the Secret.
    pub secret: String,
    /// Whether the Secret has a CA, beside the ticket.
    pub has_certificate: bool,
}

impl PodFile {
    /// Reads YAML or JSON with one document or several, as kubectl does. `name` chooses among Pods and Jobs.
    pub fn parse(file: &str, text: &str, name: Option<&str>) -> Result<Self, PodFileError> {
        let objects = objects(file, text)?;
        let at = chosen(file, &objects, name)?;
        let read = Self { file: file.to_owned(), objects, at };
        read.check()?;
        Ok(read)
    }

    /// `Pod` or `Job`.
    pub fn kind(&self) -> &'static str {
        if self.object()["kind"] == JOB { JOB } else { POD }
    }

    /// The namespace: the object's own, or `given` (`--namespace`).
    pub fn namespace(&self, given: Option<&str>) -> Result<String, PodFileError> {
        let namespace = namespace(self.object(), given);
        namespace.map_err(|problem| self.refuse("metadata.namespace", problem))
    }

    /// The owner of the files: the object, by a label that stands on it. A Job owns them also while it is suspended.
    pub fn owner(&self, namespace: &str, id: &str) -> Result<Owner, OwnerError> {
        let kind = OwnerKind::named(self.kind())?;
        Owner::new(kind, namespace, [(FILES_LABEL.to_owned(), id.to_owned())], None)
    }

    /// Whether it has a name, so that applying the same again changes nothing. Of one with `generateName`, each is another.
    pub fn has_name(&self) -> bool {
        self.name("name").is_some()
    }

    /// A name for the Secret: for the same files the same, unless each object is another.
    pub fn secret_name(&self, id: &str, resource_id: &str) -> String {
        let end = if self.has_name() { id } else { resource_id };
        let name = self.name("name").or_else(|| self.name("generateName")).unwrap_or_default();
        let name: String = name.chars().take(LONGEST_NAME).collect();
        let end: String = end.chars().take(8).collect();
        format!("{}-{}-files-{end}", name.trim_end_matches(['-', '.']), self.kind().to_lowercase())
    }

    /// The kind and the name, such as `Job train`.
    pub fn called(&self) -> String {
        let name = self.name("name").or_else(|| self.name("generateName")).unwrap_or_default();
        format!("{} {name}", self.kind())
    }

    fn name(&self, key: &str) -> Option<&str> {
        self.object()["metadata"][key].as_str().filter(|name| !name.is_empty())
    }

    /// All objects of the file, with the init-container in the one that gets the files. `secret` stands before that one, because
    /// `kubectl apply` creates in order.
    pub fn with_files(
        &self,
        place: &FilesPlace,
        fetching: &Fetching,
        secret: Option<Value>,
    ) -> Result<Vec<Value>, PodFileError> {
        let mut objects = self.objects.clone();
        let object = &mut objects[self.at];
        object["metadata"]["namespace"] = json!(fetching.namespace);
        object["metadata"]["labels"][FILES_LABEL] = json!(fetching.id);
        let mut spec = self.spec().clone();
        merging::add(&mut spec, place, fetching)
            .map_err(|(field, problem)| self.refuse(format!("{}.{field}", self.spec_field()), problem))?;
        *(if self.kind() == JOB { &mut object["spec"]["template"]["spec"] } else { &mut object["spec"] }) =
            spec;
        objects.splice(self.at..self.at, secret);
        Ok(objects)
    }

    fn object(&self) -> &Value {
        &self.objects[self.at]
    }

    fn spec(&self) -> &Value {
        let spec = &self.object()["spec"];
        if self.kind() == JOB { &spec["template"]["spec"] } else { spec }
    }

    fn spec_field(&self) -> &'static str {
        if self.kind() == JOB { "spec.template.spec" } else { "spec" }
    }

    fn check(&self) -> Result<(), PodFileError> {
        let metadata = &self.object()["metadata"];
        if ["name", "generateName"].iter().all(|key| self.name(key).is_none()) {
            return Err(self.refuse("metadata.name", "is missing: the Secret of the files is named after it"));
        }
        if metadata["labels"].get(FILES_LABEL).is_some() {
            let why =
                format!("has {FILES_LABEL} already: give the file as it was before files were put into it");
            return Err(self.refuse("metadata.labels", why));
        }
        if !(metadata["namespace"].is_null() || metadata["namespace"].is_string()) {
            return Err(self.refuse("metadata.namespace", "must be a text"));
        }
        for (field, value) in [("metadata.labels", &metadata["labels"]), (self.spec_field(), self.spec())] {
            let may_be_missing = field == "metadata.labels";
            if !(value.is_object() || may_be_missing && value.is_null()) {
                return Err(self.refuse(field, "must be a map with fields"));
            }
        }
        Ok(())
    }

    fn refuse(&self, field: impl Into<String>, problem: impl Into<String>) -> PodFileError {
        PodFileError::PodField { file: self.file.clone(), field: field.into(), problem: problem.into() }
    }
}

/// The Secret with a ticket, and with the certificates that the pods trust.
pub fn secret(fetching: &Fetching, ticket: &str, certificate: Option<&str>) -> Value {
    let mut data = json!({TICKET: STANDARD.encode(ticket)});
    if let Some(certificate) = certificate {
        data[CERTIFICATE] = json!(STANDARD.encode(certificate));
    }
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": fetching.secret,
            "namespace": fetching.namespace,
            "labels": {MANAGED_BY: MANAGER, FILES_LABEL: fetching.id},
            "annotations": {FILES_OF: fetching.of},
        },
        "data": data,
    })
}

/// The index of the Pod or Job that gets the files. Other objects may stand beside it, unless they make pods: a user
/// could believe that those pods get the files too.
fn chosen(file: &str, objects: &[Value], name: Option<&str>) -> Result<usize, PodFileError> {
    let kind = |object: &Value| object["kind"].as_str().unwrap_or_default().to_owned();
    let is_one = |object: &Value| {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        matches!((version, &*kind(object)), ("v1", POD) | ("batch/v1", JOB))
    };
    let called = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let file = file.to_owned();
    let all: Vec<usize> = (0..objects.len()).filter(|at| is_one(&objects[*at])).collect();
    let names = || all.iter().map(|at| called(&objects[*at])).collect();
    let mut matching = all.iter().filter(|at| name.is_none_or(|name| called(&objects[**at]) == name));
    let at = match (matching.next(), matching.next(), name) {
        (Some(at), None, _) => *at,
        (None, ..) if all.is_empty() => {
            let described = |object: &Value| match (kind(object), object["apiVersion"].as_str()) {
                (kind, Some(version)) => format!("{kind} of {version}"),
                (kind, None) => format!("{kind} without an apiVersion"),
            };
            let kinds: Vec<String> =
                objects.iter().filter(|object| !kind(object).is_empty()).map(described).collect();
            let has = if kinds.is_empty() { String::new() } else { format!(", but {}", kinds.join(", ")) };
            return Err(PodFileError::NoPods { file, has });
        }
        (None, _, Some(name)) => {
            return Err(PodFileError::NoPodsOfName { file, name: name.to_owned(), names: names() });
        }
        _ => return Err(PodFileError::SeveralPods { file, names: names() }),
    };
    let makes_pods = |object: &&Value| !is_one(object) && has_template(&object["spec"]);
    match objects.iter().find(makes_pods) {
        Some(other) => Err(PodFileError::PodField {
            file,
            field: format!("the {} {}", kind(other), called(other)),
            problem: "makes pods too, which would not get the files: take it out, and apply it by itself"
                .to_owned(),
        }),
        None => Ok(at),
    }
}

/// Whether a spec has a template of pods, at any depth.
fn has_template(spec: &Value) -> bool {
    match spec {
        Value::Object(fields) => {
            fields.get("containers").is_some_and(Value::is_array) || fields.values().any(has_template)
        }
        Value::Array(items) => items.iter().any(has_template),
        _ => false,
    }
}
