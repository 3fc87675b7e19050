//! The arguments of the driver's container (`DriverCommandFeatureStep`).
//!
//! There is no `command`: the entrypoint of Spark's images reads `driver` and starts spark-submit in client mode.

use serde_json::json;

use super::{Context, Feature, Reader, conf_volume};
use crate::plan::error::PlanError;
use crate::plan::spec::{DriverSpec, append};
use cloakroom_spark::{MainResource, keys};

const PYTHON: &str = "PYSPARK_PYTHON";
const DRIVER_PYTHON: &str = "PYSPARK_DRIVER_PYTHON";

/// Python's variables: the name in the pod, the keys that set it, then the submitting machine's variables that set it.
/// The first one that is set wins.
const PYTHONS: [(&str, &[&str], &[&str]); 2] = [
    (PYTHON, &[keys::PYTHON.name()], &[PYTHON]),
    (DRIVER_PYTHON, &[keys::DRIVER_PYTHON.name(), keys::PYTHON.name()], &[DRIVER_PYTHON, PYTHON]),
];

pub(super) struct Command {
    arguments: Vec<String>,
    /// Python's variables that are set.
    pythons: Vec<(&'static str, String)>,
    /// The kind of the application.
    kind: &'static str,
}

impl Command {
    pub fn new(from: &Reader) -> Self {
        let of = from.arguments;
        let mut arguments = vec!["driver".to_owned()];
        if let Some(user) = &of.proxy_user {
            arguments.extend(["--proxy-user".to_owned(), user.clone()]);
        }
        arguments.extend(["--properties-file".to_owned(), format!("{}/spark.properties", conf_volume::PATH)]);
        arguments.extend(["--class".to_owned(), of.main_class.clone(), from.dependencies.resource.clone()]);
        arguments.extend(of.arguments.iter().cloned());
        let is_python = matches!(of.resource, MainResource::Python(_));
        let pythons = PYTHONS.into_iter().filter(|_| is_python).filter_map(|(variable, keys, variables)| {
            let configured = keys.iter().find_map(|key| from.conf.get(key));
            let of_machine = || variables.iter().find_map(|name| from.machine.submitter.variables.get(*name));
            Some((variable, configured.or_else(|| of_machine().map(String::as_str))?.to_owned()))
        });
        Self { arguments, pythons: pythons.collect(), kind: of.resource.kind() }
    }
}

impl Feature for Command {
    fn add(self: Box<Self>, _: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
        // Each argument is sent verbatim. Spark does not escape `$(NAME)` either, so Kubernetes expands it.
        append(&mut spec.container, "args", self.arguments.into_iter().map(|argument| json!(argument)));
        for (variable, python) in self.pythons {
            spec.add_variable(variable, &python);
        }
        spec.set_property(&keys::RESOURCE_TYPE, self.kind);
        Ok(())
    }
}
