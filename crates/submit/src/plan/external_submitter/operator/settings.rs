//! The fields of an application's file as Spark's settings, as far as staging needs them. The operator makes
//! spark-submit's arguments of them in the same way (`buildSparkSubmitArgs` in its `submission.go`).

use serde_json::Value;

use super::LISTS;
use super::document::{ApplicationFile, FileError};
use cloakroom_spark::keys;

/// Fields below `spec`, each with the setting that the operator makes of it. Such a field wins over `sparkConf`.
const FIELDS: [(&str, &str); 11] = [
    ("imagePullPolicy", keys::CONTAINER_IMAGE_PULL_POLICY.name()),
    ("memoryOverheadFactor", keys::MEMORY_OVERHEAD_FACTOR.name()),
    ("driver.memory", keys::DRIVER_MEMORY.name()),
    ("driver.memoryOverhead", keys::DRIVER_MEMORY_OVERHEAD.name()),
    ("driver.cores", keys::DRIVER_CORES.name()),
    ("driver.coreRequest", keys::DRIVER_REQUEST_CORES.name()),
    ("driver.coreLimit", keys::DRIVER_LIMIT_CORES.name()),
    ("executor.memory", keys::EXECUTOR_MEMORY.name()),
    ("executor.cores", keys::EXECUTOR_CORES.name()),
    ("executor.coreRequest", keys::EXECUTOR_REQUEST_CORES.name()),
    ("executor.coreLimit", keys::EXECUTOR_LIMIT_CORES.name()),
];

/// Settings with a field of their own. The operator lets the field replace the setting, so `sparkConf` must not have
/// them.
const INSTEAD: [(&str, &str); 6] = [
    (keys::JARS.name(), "deps.jars"),
    (keys::FILES.name(), "deps.files"),
    (keys::ARCHIVES.name(), "deps.archives"),
    (keys::PY_FILES.name(), "deps.pyFiles"),
    (keys::DRIVER_POD_TEMPLATE.name(), "driver.template"),
    (keys::EXECUTOR_POD_TEMPLATE.name(), "executor.template"),
];

/// A setting, and the field that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSetting {
    pub key: String,
    /// The value as the operator writes it into an argument.
    pub value: String,
    /// The whole path of the field, for messages.
    pub field: String,
}

impl ApplicationFile {
    /// The settings, in the order in which the operator adds them. The last one of a key wins.
    pub fn settings(&self) -> Result<Vec<FileSetting>, FileError> {
        let mut settings = Vec::new();
        for (key, value) in self.map("sparkConf") {
            let field = self.field(&format!("sparkConf[{key}]"));
            if let Some((_, instead)) = INSTEAD.iter().find(|(replaced, _)| replaced == key) {
                let problem = format!("has no effect beside {}: write it there", self.field(instead));
                return Err(self.refuse(field, problem));
            }
            settings.extend(text(value).map(|value| FileSetting { key: key.clone(), value, field }));
        }
        for (path, key) in FIELDS {
            let value = self.at(path).and_then(text);
            let field = self.field(path);
            settings.extend(value.map(|value| FileSetting { key: key.to_owned(), value, field }));
        }
        for (path, family) in [("driver.envVars", keys::DRIVER_ENV), ("executor.envVars", keys::EXECUTOR_ENV)]
        {
            settings.extend(self.map(path).filter_map(|(name, value)| {
                let (key, field) =
                    (format!("{}{name}", family.prefix()), self.field(&format!("{path}.{name}")));
                Some(FileSetting { key, value: text(value)?, field })
            }));
        }
        for (key, list) in LISTS {
            let (key, field) = (key.name().to_owned(), self.field(&format!("deps.{list}")));
            let value = self.list(list)?.join(",");
            settings.extend((!value.is_empty()).then_some(FileSetting { key, value, field }));
        }
        Ok(settings)
    }

    /// `mainApplicationFile`, unchanged.
    pub fn main_file(&self) -> Option<&str> {
        self.at("mainApplicationFile").and_then(Value::as_str)
    }

    /// The whole path of a field below the application's `spec`.
    pub fn field(&self, path: &str) -> String {
        format!("{}.{path}", self.spec_field())
    }

    pub(super) fn at(&self, path: &str) -> Option<&Value> {
        path.split('.').try_fold(self.spec(), |value, key| value.get(key)).filter(|value| !value.is_null())
    }

    fn map(&self, path: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.at(path).and_then(Value::as_object).into_iter().flatten()
    }

    /// A list below `deps`. The operator joins the entries with commas as well, so an entry with a comma counts as two.
    fn list(&self, name: &str) -> Result<Vec<&str>, FileError> {
        let Some(value) = self.at(&format!("deps.{name}")) else { return Ok(Vec::new()) };
        let entries = value.as_array().and_then(|entries| entries.iter().map(Value::as_str).collect());
        entries.ok_or_else(|| {
            self.refuse(self.field(&format!("deps.{name}")), "must be a list of paths and addresses")
        })
    }
}

/// A scalar as the operator writes it into an argument. Lists and maps are no settings.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_so) => Some(is_so.to_string()),
        _ => None,
    }
}
