//! A pod's volumes as folders: emptyDir, config maps, secrets, and projections with a token of the service account.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::environment::field;
use super::objects::{Objects, items};
use super::waiting::Waiting;
use crate::cluster::text;

/// Content and mode by path in the volume.
type Files = BTreeMap<String, (Vec<u8>, u32)>;

/// The mode of files whose spec names none.
const MODE: u32 = 0o644;

/// Makes a volume below `folder`; its files belong to `group` if the pod has an fsGroup.
pub async fn make(
    volume: &Value,
    pod: &Value,
    objects: &Objects,
    folder: &Path,
    group: Option<u32>,
) -> Result<PathBuf, Waiting> {
    if !volume["hostPath"].is_null() {
        return Ok(PathBuf::from(text(&volume["hostPath"]["path"])));
    }
    let place = folder.join(text(&volume["name"]));
    if volume["emptyDir"].is_null() {
        let files = files(volume, pod, objects).await?;
        if !place.exists() {
            for nested in nested_mount_points(&text(&volume["name"]), pod) {
                std::fs::create_dir_all(place.join(nested)).unwrap();
            }
            write(&place, files, group);
        }
    } else if !place.exists() {
        std::fs::create_dir_all(&place).unwrap();
        let mode = if group.is_some() { 0o2777 } else { 0o777 };
        own(&place, group, mode);
    }
    Ok(place)
}

async fn files(volume: &Value, pod: &Value, objects: &Objects) -> Result<Files, Waiting> {
    let mut files = Files::new();
    let sources = &volume["projected"]["sources"];
    let default_mode = |source: &Value| source["defaultMode"].as_u64().map_or(MODE, |mode| mode as u32);
    if sources.is_array() {
        let mode = default_mode(&volume["projected"]);
        for source in items(sources) {
            add(&mut files, source, mode, pod, objects).await?;
        }
    } else {
        let mode =
            default_mode(if volume["secret"].is_null() { &volume["configMap"] } else { &volume["secret"] });
        add(&mut files, volume, mode, pod, objects).await?;
    }
    Ok(files)
}

/// Adds the files of one source, which is a volume or a part of a projection.
async fn add(
    files: &mut Files,
    source: &Value,
    mode: u32,
    pod: &Value,
    objects: &Objects,
) -> Result<(), Waiting> {
    if !source["configMap"].is_null() || !source["secret"].is_null() {
        return add_object(files, source, mode, objects).await;
    }
    if !source["serviceAccountToken"].is_null() {
        let account = text(&pod["spec"]["serviceAccountName"]);
        let token = objects.token(&account, pod).await;
        let token = token.ok_or_else(|| mount_failed(format!("no token for service account {account}")))?;
        files.insert(text(&source["serviceAccountToken"]["path"]), (token.into_bytes(), MODE));
        return Ok(());
    }
    assert!(!source["downwardAPI"].is_null(), "the runner does not know this kind of volume: {source}");
    for item in items(&source["downwardAPI"]["items"]) {
        let value = field(&text(&item["fieldRef"]["fieldPath"]), pod);
        files.insert(text(&item["path"]), (value.into_bytes(), mode));
    }
    Ok(())
}

async fn add_object(files: &mut Files, source: &Value, mode: u32, objects: &Objects) -> Result<(), Waiting> {
    let (plural, source) = if source["configMap"].is_null() {
        ("secrets", &source["secret"])
    } else {
        ("configmaps", &source["configMap"])
    };
    // The field is `secretName` in a secret volume, and `name` in a projection.
    let name = text(if source["name"].is_null() { &source["secretName"] } else { &source["name"] });
    let Some(object) = objects.get(plural, &name).await else {
        let is_optional = source["optional"] == true;
        return if is_optional {
            Ok(())
        } else {
            Err(mount_failed(format!("{plural} \"{name}\" not found")))
        };
    };
    let contents = contents(plural, &object);
    if source["items"].is_null() {
        files.extend(contents.into_iter().map(|(key, bytes)| (key, (bytes, mode))));
        return Ok(());
    }
    for item in items(&source["items"]) {
        let key = text(&item["key"]);
        let missing = || mount_failed(format!("{plural} \"{name}\" has no key {key}"));
        let bytes = contents.get(&key).ok_or_else(missing)?.clone();
        let mode = item["mode"].as_u64().map_or(mode, |mode| mode as u32);
        files.insert(text(&item["path"]), (bytes, mode));
    }
    Ok(())
}

fn mount_failed(message: String) -> Waiting {
    Waiting::new("ContainerCreating", message)
}

fn contents(plural: &str, object: &Value) -> BTreeMap<String, Vec<u8>> {
    let pairs = |field: &str| object[field].as_object().cloned().unwrap_or_default();
    let decoded = |value: &Value| STANDARD.decode(text(value)).unwrap();
    if plural == "secrets" {
        return pairs("data").iter().map(|(key, value)| (key.clone(), decoded(value))).collect();
    }
    let plain = pairs("data").into_iter().map(|(key, value)| (key, text(&value).into_bytes()));
    let binary = pairs("binaryData").into_iter().map(|(key, value)| (key, decoded(&value)));
    plain.chain(binary).collect()
}

/// The folders that the kubelet makes in a volume of files for nested mounts, before it writes the files
/// (`getNestedMountpoints` in `pkg/volume/util/nested_volumes.go` of Kubernetes 1.34). It compares the paths of each
/// container as they are written, so a relative path is never below an absolute one.
fn nested_mount_points(volume: &str, pod: &Value) -> Vec<String> {
    let spec = &pod["spec"];
    let mut nested = Vec::new();
    for container in items(&spec["initContainers"]).chain(items(&spec["containers"])) {
        let path = |mount: &Value| cleaned(&text(&mount["mountPath"]));
        let mut all: Vec<String> = items(&container["volumeMounts"]).map(path).collect();
        all.sort();
        let own = items(&container["volumeMounts"]).filter(|mount| mount["name"] == *volume).map(path);
        for own in own.map(|path| format!("{path}/")) {
            let mut found: Vec<&str> = Vec::new();
            for inner in all.iter().filter_map(|path| path.strip_prefix(&own)) {
                if !found.iter().any(|outer| inner.starts_with(&format!("{outer}/"))) {
                    found.push(inner);
                }
            }
            nested.extend(found.into_iter().map(str::to_owned));
        }
    }
    nested
}

/// Go's `filepath.Clean`.
fn cleaned(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match (part, parts.last()) {
            ("..", Some(&last)) if last != ".." => {
                parts.pop();
            }
            ("..", None) if is_absolute => {}
            _ => parts.push(part),
        }
    }
    match (is_absolute, parts.join("/")) {
        (true, path) => format!("/{path}"),
        (false, path) if path.is_empty() => ".".to_owned(),
        (false, path) => path,
    }
}

/// A mount path as the kubelet passes it on to the container runtime (`MakeAbsolutePath`).
pub fn absolute(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { cleaned(&format!("/{path}")) }
}

/// Writes files as the kubelet does: each name is a link into the folder `..data`, which is a link itself, so that all
/// files are exchanged at once. If a mount point has the name already, it stays a folder.
fn write(place: &Path, files: Files, group: Option<u32>) {
    let version = place.join("..version");
    std::fs::create_dir_all(&version).unwrap();
    std::os::unix::fs::symlink("..version", place.join("..data")).unwrap();
    for (path, (bytes, mode)) in files {
        let file = version.join(&path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, bytes).unwrap();
        own(&file, group, if group.is_some() { mode | 0o440 } else { mode });
        let first = path.split('/').next().unwrap();
        if place.join(first).symlink_metadata().is_err() {
            std::os::unix::fs::symlink(format!("..data/{first}"), place.join(first)).unwrap();
        }
    }
}

fn own(path: &Path, group: Option<u32>, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    if group.is_some() {
        std::os::unix::fs::chown(path, None, group).unwrap();
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
