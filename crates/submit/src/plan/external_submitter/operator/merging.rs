//! Adds the staged files to the application. The user's fields stay as they are. If staging would have to change one,
//! the file is refused with the path of that field.
//!
//! Everything goes into `driver.template` (and `executor.template`), which works without the operator's webhook. The
//! webhook, if it is installed, adds fields beside the template to the same pod (`driver.volumeMounts`,
//! `driver.initContainers` and others). It finds the pod by the label
//! `sparkoperator.k8s.io/launched-by-spark-operator`. So those fields must not have our names either.

use serde_json::{Value, json};

use super::document::{ApplicationFile, FileError};
use super::{ExternalSubmission, fields};
use crate::plan::fetch_container::IMAGE_USER;

/// Lists that are merged element by element, each with the field that identifies an element. Kubernetes merges them by
/// the same fields.
const KEYED: [(&str, &str); 5] = [
    ("containers", "name"),
    ("initContainers", "name"),
    ("volumes", "name"),
    ("env", "name"),
    ("volumeMounts", "mountPath"),
];

impl ApplicationFile {
    /// The file with the staged files in its application.
    pub(in crate::plan) fn merged(&self, external: &ExternalSubmission) -> Result<Self, FileError> {
        let unwritable = |error: serde_json::Error| self.refuse(self.spec_field(), error.to_string());
        self.merged_with(fields(external).map_err(unwritable)?, &external.namespace)
    }

    /// The file with `added` merged into the application's `spec`.
    pub(super) fn merged_with(&self, mut added: Value, namespace: &str) -> Result<Self, FileError> {
        for who in ["driver", "executor"] {
            self.check_webhook(who, &added[who]["template"]["spec"])?;
            if let Some(pod) = added.pointer_mut(&format!("/{who}/template/spec")) {
                self.without_root(who, pod);
            }
        }
        let mut spec = self.spec().clone();
        self.replace_files(&mut spec, &mut added);
        self.merge(&mut spec, added, self.spec_field())?;
        let mut merged = self.clone();
        merged.replace(namespace, spec);
        Ok(merged)
    }

    /// Replaces the lists of files and the application's own file: the new values include all entries of the old ones.
    fn replace_files(&self, spec: &mut Value, added: &mut Value) {
        let Some(added) = added.as_object_mut() else { return };
        if let Some(file) = added.remove("mainApplicationFile") {
            spec["mainApplicationFile"] = file;
        }
        if let Some(Value::Object(lists)) = added.remove("deps") {
            for (name, list) in lists {
                spec["deps"][name] = list;
            }
        }
        if self.at("mainClass").is_some() {
            // The user's class wins over the one in the jar's manifest, as `--class` does for spark-submit.
            added.remove("mainClass");
        }
    }

    fn merge(&self, there: &mut Value, added: Value, field: &str) -> Result<(), FileError> {
        match (there, added) {
            (there, added) if there.is_null() => *there = added,
            (Value::Object(there), Value::Object(added)) => {
                for (key, value) in added {
                    let below = format!("{field}.{key}");
                    self.merge(there.entry(key).or_insert(Value::Null), value, &below)?;
                }
            }
            (Value::Array(there), Value::Array(added)) => {
                let list = field.rsplit('.').next().unwrap_or_default();
                let Some((_, key)) = KEYED.iter().find(|(name, _)| *name == list) else {
                    return self.same(&json!(there), &json!(added), field);
                };
                for element in added {
                    self.add(there, element, key, field)?;
                }
            }
            (there, added) => self.same(there, &added, field)?,
        }
        Ok(())
    }

    /// Adds an element to a list. If the list has Spark's container, our fields are merged into it. Any other element
    /// with the same identity must be equal.
    fn add(&self, list: &mut Vec<Value>, element: Value, key: &str, field: &str) -> Result<(), FileError> {
        let is_container = field.ends_with(".containers");
        let Some(at) = list.iter().position(|other| identity(other, key) == identity(&element, key)) else {
            if is_container && !list.is_empty() {
                let problem = format!(
                    "has no container {}, which is the one that the operator takes: give Spark's container that name",
                    identity(&element, key)
                );
                return Err(self.refuse(field, problem));
            }
            list.push(element);
            return Ok(());
        };
        let there = format!("{field}[{at}]");
        if is_container {
            return self.merge(&mut list[at], element, &there);
        }
        if list[at] == element {
            return Ok(());
        }
        Err(self.taken(&format!("{there}.{key}"), &identity(&element, key)))
    }

    fn same(&self, there: &Value, added: &Value, field: &str) -> Result<(), FileError> {
        if there == added {
            return Ok(());
        }
        let problem = format!(
            "is {there}, and the staged files need {added}: remove the field, or choose another value"
        );
        Err(self.refuse(field, problem))
    }

    fn taken(&self, field: &str, name: &str) -> FileError {
        let problem = format!(
            "is {name}, which the init-container that fetches the staged files needs for itself: give yours another one, and start \
             from the file as it was before anything was merged into it"
        );
        self.refuse(field, problem)
    }

    /// Refuses fields that the webhook adds to the pod if our template has the same names or paths.
    fn check_webhook(&self, who: &str, pod: &Value) -> Result<(), FileError> {
        let containers = list(pod, "containers").chain(list(pod, "initContainers"));
        let names: Vec<String> = containers.map(|container| identity(container, "name")).collect();
        let volumes: Vec<String> = list(pod, "volumes").map(|volume| identity(volume, "name")).collect();
        let of_spark = list(pod, "containers").flat_map(|container| list(container, "volumeMounts"));
        let paths: Vec<String> = of_spark.map(|mount| identity(mount, "mountPath")).collect();
        for (path, key, ours) in [
            ("volumes".to_owned(), "name", &volumes),
            (format!("{who}.initContainers"), "name", &names),
            (format!("{who}.sidecars"), "name", &names),
            (format!("{who}.volumeMounts"), "mountPath", &paths),
            (format!("{who}.configMaps"), "path", &paths),
            (format!("{who}.secrets"), "path", &paths),
        ] {
            let theirs = self.at(&path).and_then(Value::as_array).into_iter().flatten();
            for (at, element) in theirs.enumerate() {
                let name = identity(element, key);
                if ours.contains(&name) {
                    return Err(self.taken(&format!("{}[{at}].{key}", self.field(&path)), &name));
                }
            }
        }
        Ok(())
    }

    /// Gives the init-container its own user if the pod runs as root.
    fn without_root(&self, who: &str, pod: &mut Value) {
        let contexts = [format!("{who}.podSecurityContext"), format!("{who}.template.spec.securityContext")];
        let is_root =
            contexts.iter().any(|path| self.at(path).is_some_and(|context| context["runAsUser"] == 0));
        let containers = pod.get_mut("initContainers").and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter(|_| is_root) {
            container["securityContext"]["runAsUser"] = json!(IMAGE_USER);
        }
    }
}

fn list<'a>(parent: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    parent.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// The value that identifies an element. Paths are compared without slashes at their ends.
fn identity(element: &Value, key: &str) -> String {
    let text = element[key].as_str().unwrap_or_default();
    if ["mountPath", "path"].contains(&key) {
        format!("/{}", text.trim_matches('/'))
    } else {
        text.to_owned()
    }
}
