//! Adds the init-container to a pod or to a pod template. The pod may already have parts of the same names. Spark takes
//! only one template, so ours is merged into the user's.

use serde_json::{Map, Value, json};

use crate::plan::error::PlanError;
use crate::plan::fetch_container::IMAGE_USER;
use crate::plan::spec::append;
use crate::plan::template::parse_pod;
use cloakroom_spark::SparkConf;
use cloakroom_spark::keys::{Key, VolumeKeys};
use cloakroom_spark::version::SparkVersion;

/// The settings and names of one pod template: the driver's or the executors'.
pub(in crate::plan) struct TemplateKeys {
    /// `driver` or `executors`, for messages.
    pub whose: &'static str,
    /// The settings of this pod's volumes.
    pub volumes: &'static VolumeKeys,
    /// The setting that names the template's file.
    pub file: Key<String>,
    /// The setting that names Spark's container in the template.
    pub container: Key<String>,
    /// Spark's name for that container if the template has none.
    pub default_name: &'static str,
}

/// The parts that are added to a pod or to a template.
pub(in crate::plan) struct Additions {
    pub init_container: Value,
    pub volumes: Vec<Value>,
    /// For Spark's container.
    pub mounts: Vec<Value>,
}

impl Additions {
    /// Refuses a pod that already has a part with one of our names. The API server would refuse it too, but later, and
    /// for executors only in the driver's log.
    pub fn check(
        &self,
        whose: &'static str,
        spec: &Map<String, Value>,
        container: &Map<String, Value>,
    ) -> Result<(), PlanError> {
        let clash = |what: String| Err(PlanError::Clash { whose, what });
        let names = |part: &Value| part["name"].as_str().unwrap_or_default().to_owned();
        let own = names(&self.init_container);
        if list(spec, "initContainers").chain(list(spec, "containers")).any(|part| names(part) == own) {
            return clash(format!("container {own}"));
        }
        let volumes: Vec<String> = self.volumes.iter().map(names).collect();
        if let Some(name) = list(spec, "volumes").map(names).find(|name| volumes.contains(name)) {
            return clash(format!("volume {name}"));
        }
        let paths: Vec<String> = self.mounts.iter().map(path).collect();
        let taken = list(container, "volumeMounts").map(path).find(|path| paths.contains(path));
        taken.map_or(Ok(()), |path| clash(format!("volume mount at {path}")))
    }

    /// The same check for volumes of settings, which Spark adds to the template later.
    fn check_settings(&self, conf: &SparkConf, keys: &TemplateKeys) -> Result<(), PlanError> {
        let clash = |what: String| Err(PlanError::Clash { whose: keys.whose, what });
        for (rest, value) in conf.prefixed(keys.volumes.mount_path.prefix()) {
            let mut parts = rest.splitn(3, '.').skip(1);
            let (name, option) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            if self.volumes.iter().any(|volume| volume["name"] == name) {
                return clash(format!("volume {name}"));
            }
            let mounted = absolute(value);
            if option == "mount.path" && self.mounts.iter().any(|mount| path(mount) == mounted) {
                return clash(format!("volume mount at {mounted}"));
            }
        }
        Ok(())
    }

    /// Gives the init-container its own user if the pod runs as root.
    pub fn without_root_of(mut self, spec: &Map<String, Value>) -> Self {
        let is_root = spec.get("securityContext").is_some_and(|context| context["runAsUser"] == 0);
        if is_root {
            self.init_container["securityContext"]["runAsUser"] = json!(IMAGE_USER);
        }
        self
    }
}

fn list<'a>(parent: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a Value> {
    parent.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn path(mount: &Value) -> String {
    absolute(mount["mountPath"].as_str().unwrap_or_default())
}

/// A path in one spelling. The kubelet takes a relative mount path from the root.
fn absolute(path: &str) -> String {
    format!("/{}", path.trim_matches('/'))
}

/// The user's template as Spark reads it, or an empty pod if there is none.
pub(in crate::plan) fn parsed(
    conf: &SparkConf,
    keys: &TemplateKeys,
    text: Option<&str>,
) -> Result<Map<String, Value>, PlanError> {
    let Some(text) = text else { return Ok(Map::new()) };
    parse_pod(text, SparkVersion::read(conf)?.0).map_err(|problem| conf.refuse(&keys.file, problem).into())
}

/// The template with our additions behind the user's parts.
pub(in crate::plan) fn merged(
    conf: &SparkConf,
    keys: &TemplateKeys,
    mut pod: Map<String, Value>,
    additions: Additions,
) -> Result<Map<String, Value>, PlanError> {
    pod.insert("apiVersion".to_owned(), json!("v1"));
    pod.insert("kind".to_owned(), json!("Pod"));
    let mut spec = match pod.remove("spec") {
        Some(Value::Object(spec)) => spec,
        _ => Map::new(),
    };
    let additions = additions.without_root_of(&spec);
    additions.check_settings(conf, keys)?;
    mount(conf, keys, &mut spec, &additions)?;
    append(&mut spec, "initContainers", [additions.init_container]);
    append(&mut spec, "volumes", additions.volumes);
    pod.insert("spec".to_owned(), Value::Object(spec));
    Ok(pod)
}

/// Adds the mounts to Spark's container. Spark takes the container that the setting names, else the first one, else a
/// new one. If the named one is missing, Spark would warn and take the first one; here it is refused.
fn mount(
    conf: &SparkConf,
    keys: &TemplateKeys,
    spec: &mut Map<String, Value>,
    additions: &Additions,
) -> Result<(), PlanError> {
    let mut containers = match spec.get("containers").cloned() {
        Some(Value::Array(containers)) => containers,
        _ => Vec::new(),
    };
    if containers.is_empty() {
        let name = conf.get(&keys.container).unwrap_or(keys.default_name);
        containers.push(json!({"name": name}));
    }
    let named = |name: &str| containers.iter().position(|container| container["name"] == name);
    let at = match conf.get(&keys.container) {
        Some(name) => named(name).ok_or_else(|| {
            conf.refuse(&keys.container, format!("the pod template of `{}` has no such container", keys.file))
        })?,
        None => 0,
    };
    if let Some(Value::Object(container)) = containers.get_mut(at) {
        additions.check(keys.whose, spec, container)?;
        append(container, "volumeMounts", additions.mounts.clone());
    }
    spec.insert("containers".to_owned(), Value::Array(containers));
    Ok(())
}
