//! Adds the init-container, its volumes and the mounts of the files to the spec of a pod.

use std::cmp::Ordering;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::{CERTIFICATE, Fetching, FilesPlace, TICKET};
use crate::plan::fetch_container::{IMAGE_USER, fetch_container};

const NAME: &str = "cloakroom-fetch";
const FILES_VOLUME: &str = "cloakroom-files";
/// The folder of the files in the init-container. It is never that of another mount there, as one of the containers' could be.
const FILES_FOLDER: &str = "/files";
const SECRET_VOLUME: &str = "cloakroom-ticket";
const SECRET_FOLDER: &str = "/run/cloakroom";
/// An empty folder in place of the token of the pod's service account, which the init-container does not need.
const NO_TOKEN_VOLUME: &str = "cloakroom-no-token";
const TOKEN_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A field of the spec, and what is wrong with it.
type Problem = (String, String);

/// Adds the files to the spec of a pod.
pub(super) fn add(spec: &mut Value, place: &FilesPlace, fetching: &Fetching) -> Result<(), Problem> {
    if spec["os"]["name"] == "windows" {
        return Err(problem("os.name", "is windows, and there is no init-container for that"));
    }
    let chosen = chosen(spec, place)?;
    refuse_clashes(spec, place, &chosen)?;
    let init = init_container(spec, &chosen, fetching)?;
    for at in &chosen {
        let container = &mut spec["containers"][*at];
        push(container, "volumeMounts", json!({"name": FILES_VOLUME, "mountPath": place.mount}));
        if place.is_workdir {
            container["workingDir"] = json!(place.mount);
        }
    }
    for volume in [
        json!({"name": FILES_VOLUME, "emptyDir": {}}),
        json!({"name": SECRET_VOLUME, "secret": {"secretName": fetching.secret}}),
        json!({"name": NO_TOKEN_VOLUME, "emptyDir": {}}),
    ] {
        push(spec, "volumes", volume);
    }
    let mut inits = list(spec, "initContainers").to_vec();
    // Those run beside the others, such as the proxy of a mesh, through which the files may have to come.
    let sidecars = inits.iter().take_while(|container| container["restartPolicy"] == "Always").count();
    inits.insert(sidecars, init);
    spec["initContainers"] = json!(inits);
    Ok(())
}

/// The places of the containers that get the files.
fn chosen(spec: &Value, place: &FilesPlace) -> Result<Vec<usize>, Problem> {
    for field in ["initContainers", "volumes"] {
        must_be_list(spec, field, field)?;
    }
    let containers = list(spec, "containers");
    if containers.is_empty() || !containers.iter().all(Value::is_object) {
        return Err(problem("containers", "must be a list with at least one container"));
    }
    if place.containers.is_empty() {
        return Ok((0..containers.len()).collect());
    }
    let named = |name: &String| {
        containers.iter().position(|container| container["name"] == **name).ok_or_else(|| {
            let names: Vec<&str> = containers.iter().filter_map(|one| one["name"].as_str()).collect();
            problem("containers", &format!("has no {name} (--container); it has {}", names.join(", ")))
        })
    };
    let mut chosen = place.containers.iter().map(named).collect::<Result<Vec<_>, _>>()?;
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}

fn refuse_clashes(spec: &Value, place: &FilesPlace, chosen: &[usize]) -> Result<(), Problem> {
    for field in ["initContainers", "containers", "volumes"] {
        let of_ours = |part: &&Value| {
            [NAME, FILES_VOLUME, SECRET_VOLUME, NO_TOKEN_VOLUME].iter().any(|name| part["name"] == *name)
        };
        if let Some(part) = list(spec, field).iter().find(of_ours) {
            let name = part["name"].as_str().unwrap_or_default();
            let why = format!("already has {name}: give the file as it was before files were put into it");
            return Err(problem(field, &why));
        }
    }
    for at in chosen {
        let container = &spec["containers"][*at];
        let field = format!("containers[{at}].volumeMounts");
        must_be_list(container, "volumeMounts", &field)?;
        // Two spellings of a path are equal.
        let is_there = |mount: &Value| {
            mount["mountPath"].as_str().is_some_and(|path| Path::new(path) == Path::new(&place.mount))
        };
        if list(container, "volumeMounts").iter().any(is_there) {
            let why = format!("already has {}: choose another folder (--mount)", place.mount);
            return Err(problem(&field, &why));
        }
    }
    Ok(())
}

fn init_container(spec: &Value, chosen: &[usize], fetching: &Fetching) -> Result<Value, Problem> {
    let mut args = vec![
        "fetch".to_owned(),
        "--writable".to_owned(),
        "--ticket".to_owned(),
        format!("{SECRET_FOLDER}/{TICKET}"),
    ];
    if fetching.has_certificate {
        args.extend(["--ca-file".to_owned(), format!("{SECRET_FOLDER}/{CERTIFICATE}")]);
    }
    args.extend(["--to".to_owned(), FILES_FOLDER.to_owned()]);
    let mounts = [
        json!({"name": FILES_VOLUME, "mountPath": FILES_FOLDER}),
        json!({"name": SECRET_VOLUME, "mountPath": SECRET_FOLDER, "readOnly": true}),
        json!({"name": NO_TOKEN_VOLUME, "mountPath": TOKEN_FOLDER, "readOnly": true}),
    ];
    let resources = Value::Object(resources(spec, chosen));
    let mut init = fetch_container(NAME, Some(&fetching.image), &args, &mounts, &resources);
    for (key, value) in user(spec, chosen)? {
        init["securityContext"][key] = value;
    }
    Ok(init)
}

/// The user and the group of the containers that get the files, so that they own them. For root it is the user of the
/// image, because root may write what others own.
fn user(spec: &Value, chosen: &[usize]) -> Result<Map<String, Value>, Problem> {
    let of = |at: &usize| {
        let container = &spec["containers"][*at]["securityContext"];
        let pod = &spec["securityContext"];
        let either =
            |key: &str| if container[key].is_null() { pod[key].clone() } else { container[key].clone() };
        (either("runAsUser"), either("runAsGroup"))
    };
    let mut users = chosen.iter().map(of);
    let (mut user, group) = users.next().unwrap_or_default();
    if users.any(|other| other != (user.clone(), group.clone())) {
        let why = "run as different users, and the files can belong to one: choose by --container, or let them run as one user";
        return Err(problem("containers", why));
    }
    if user.as_f64() == Some(0.0) {
        user = json!(IMAGE_USER);
    }
    let fields = [("runAsUser", user), ("runAsGroup", group)].into_iter();
    Ok(fields.filter(|(_, id)| !id.is_null()).map(|(key, id)| (key.to_owned(), id)).collect())
}

/// CPU and memory of one of the containers that get the files. Kubernetes counts the larger one of two: the largest init-container,
/// or the containers together. So these cost nothing, and pass every quota that the pod passes.
fn resources(spec: &Value, chosen: &[usize]) -> Map<String, Value> {
    let of = |at: &usize| {
        let all = &spec["containers"][*at]["resources"];
        let mut resources = Map::new();
        for list in ["requests", "limits"] {
            let amounts = ["cpu", "memory"].into_iter().filter(|name| !all[list][name].is_null());
            let amounts: Map<String, Value> =
                amounts.map(|name| (name.to_owned(), all[list][name].clone())).collect();
            if !amounts.is_empty() {
                resources.insert(list.to_owned(), Value::Object(amounts));
            }
        }
        resources
    };
    let size = |resources: &Map<String, Value>| (memory(resources), resources.len());
    let all = chosen.iter().map(of);
    all.max_by(|one, other| size(one).partial_cmp(&size(other)).unwrap_or(Ordering::Equal))
        .unwrap_or_default()
}

/// How much memory a container may have, in bytes, as far as it can be compared.
fn memory(resources: &Map<String, Value>) -> f64 {
    let amount = ["limits", "requests"].iter().find_map(|list| {
        let amount = &resources.get(*list)?["memory"];
        amount.as_str().and_then(bytes).or_else(|| amount.as_f64())
    });
    amount.unwrap_or_default()
}

/// The number of bytes of an amount such as `1.5Gi` or `1e9`.
fn bytes(amount: &str) -> Option<f64> {
    const UNITS: [(&str, i32, i32); 12] = [
        ("Ki", 1024, 1),
        ("Mi", 1024, 2),
        ("Gi", 1024, 3),
        ("Ti", 1024, 4),
        ("Pi", 1024, 5),
        ("Ei", 1024, 6),
        ("k", 1000, 1),
        ("M", 1000, 2),
        ("G", 1000, 3),
        ("T", 1000, 4),
        ("P", 1000, 5),
        ("m", 1000, -1),
    ];
    let of_unit = |(unit, base, power): (&str, i32, i32)| {
        let number: f64 = amount.strip_suffix(unit)?.parse().ok()?;
        Some(number * f64::from(base).powi(power))
    };
    amount.parse().ok().or_else(|| UNITS.into_iter().find_map(of_unit))
}

fn must_be_list(parent: &Value, key: &str, field: &str) -> Result<(), Problem> {
    let is_one = parent[key].is_null() || parent[key].is_array();
    if is_one { Ok(()) } else { Err(problem(field, "must be a list")) }
}

fn list<'a>(parent: &'a Value, key: &str) -> &'a [Value] {
    parent[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn push(parent: &mut Value, key: &str, part: Value) {
    match &mut parent[key] {
        Value::Array(parts) => parts.push(part),
        other => *other = json!([part]),
    }
}

fn problem(field: &str, what: &str) -> Problem {
    (field.to_owned(), what.to_owned())
}
