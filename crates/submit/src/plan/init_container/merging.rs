//! The init-container in a pod, which may have parts of the same names already, and in a pod template: there is only one
//! template, so the user's is merged with ours.

use serde_json::{Map, Value, json};

use crate::plan::error::PlanError;
use crate::plan::spec::append;
use crate::plan::template::parse_pod;
use cloakroom_spark::SparkConf;
use cloakroom_spark::keys::{Key, VolumeKeys};
use cloakroom_spark::version::SparkVersion;

/// The user of this program's image.
const NOBODY: u32 = 65532;

/// Whose template it is.
pub(in crate::plan) struct TemplateKeys {
    /// Whose pod.
    pub whose: &'static str,
    /// Its volumes by settings.
    pub volumes: &'static VolumeKeys,
    /// The setting that names the file.
    pub file: Key<String>,
    /// The setting that names the container which Spark takes.
    pub container: Key<String>,
    /// What Spark calls that container where no template does.
    pub default_name: &'static str,
}

/// What is added to a template.
pub(in crate::plan) struct Additions {
    pub init_container: Value,
    pub volumes: Vec<Value>,
    /// Of the container that Spark takes.
    pub mounts: Vec<Value>,
}

impl Additions {
    /// Refuses a pod that has a part of ours already: no API server takes it, and of an executor's nobody would hear.
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

    /// The same for volumes that Spark adds by settings.
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

    /// The init-container is nobody in particular, also where its pod is root: Kubernetes refuses to start it otherwise.
    pub fn without_root_of(mut self, spec: &Map<String, Value>) -> Self {
        let is_root = spec.get("securityContext").is_some_and(|context| context["runAsUser"] == 0);
        if is_root {
            self.init_container["securityContext"]["runAsUser"] = json!(NOBODY);
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

/// Two spellings of one path are one; a relative one begins at the root for the kubelet.
fn absolute(path: &str) -> String {
    format!("/{}", path.trim_matches('/'))
}

/// The user's template, as Spark reads it; an empty one where there is none.
pub(in crate::plan) fn parsed(
    conf: &SparkConf,
    keys: &TemplateKeys,
    text: Option<&str>,
) -> Result<Map<String, Value>, PlanError> {
    let Some(text) = text else { return Ok(Map::new()) };
    parse_pod(text, SparkVersion::of(conf)?.0).map_err(|problem| conf.refuse(&keys.file, problem).into())
}

/// The template with our additions behind what is there.
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

/// In the container that Spark takes: the named one, else the first, else one of its own.
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
