//! What is added to the spec of a pod: the init-container, its volumes, and the mounts of the files.

use serde_json::{Map, Value, json};

use super::{CERTIFICATE, Fetching, FilesPlace, TICKET};

const NAME: &str = "cloakroom-fetch";
const FILES_VOLUME: &str = "cloakroom-files";
/// The folder of the files in the init-container. It is never that of another mount there, as one of the containers' could be.
const FILES_FOLDER: &str = "/files";
const SECRET_VOLUME: &str = "cloakroom-ticket";
const SECRET_FOLDER: &str = "/run/cloakroom";
/// An empty folder in place of the token of the pod's service account, which the init-container does not need.
const NO_TOKEN_VOLUME: &str = "cloakroom-no-token";
const TOKEN_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The user id of this program's image (the Dockerfile's `USER`).
const IMAGE_USER: u32 = 65532;

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
        let is_there = |mount: &Value| {
            mount["mountPath"].as_str().is_some_and(|path| path.trim_end_matches('/') == place.mount)
        };
        if list(container, "volumeMounts").iter().any(is_there) {
            let field = format!("containers[{at}].volumeMounts");
            let why = format!("already has {}: choose another folder (--mount)", place.mount);
            return Err(problem(&field, &why));
        }
    }
    Ok(())
}

/// The init-container, as the restricted pod security standard requires it.
fn init_container(spec: &Value, chosen: &[usize], fetching: &Fetching) -> Result<Value, Problem> {
    let mut args = vec!["fetch".to_owned(), "--ticket".to_owned(), format!("{SECRET_FOLDER}/{TICKET}")];
    if fetching.has_certificate {
        args.extend(["--ca-file".to_owned(), format!("{SECRET_FOLDER}/{CERTIFICATE}")]);
    }
    args.extend(["--to".to_owned(), FILES_FOLDER.to_owned()]);
    let mut security = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
        "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    for (key, value) in user(spec, chosen)? {
        security[key] = value;
    }
    let mut init = json!({
        "name": NAME,
        "image": fetching.image,
        "args": args,
        "volumeMounts": [
            {"name": FILES_VOLUME, "mountPath": FILES_FOLDER},
            {"name": SECRET_VOLUME, "mountPath": SECRET_FOLDER, "readOnly": true},
            {"name": NO_TOKEN_VOLUME, "mountPath": TOKEN_FOLDER, "readOnly": true},
        ],
        // The end of its log then stands in the pod's status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": security,
    });
    let resources = resources(spec, chosen);
    if !resources.is_empty() {
        init["resources"] = Value::Object(resources);
    }
    Ok(init)
}

/// The user and the group of the containers that get the files, so that they own them. For root it is the user of the image, because
/// root may write what others own.
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
    if user == 0 {
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
    chosen
        .iter()
        .map(of)
        .max_by_key(|resources| (memory(resources), !resources.is_empty()))
        .unwrap_or_default()
}

/// How much memory a container may have, as far as it can be compared.
fn memory(resources: &Map<String, Value>) -> u64 {
    let amount = ["limits", "requests"].iter().find_map(|list| {
        let amount = &resources.get(*list)?["memory"];
        amount.as_str().map(str::to_owned).or_else(|| amount.as_u64().map(|bytes| bytes.to_string()))
    });
    amount.and_then(|amount| bytes(&amount)).unwrap_or_default()
}

/// The whole number of bytes of an amount such as `2Gi` or `500M`.
fn bytes(amount: &str) -> Option<u64> {
    let digits = amount.find(|char: char| !char.is_ascii_digit()).unwrap_or(amount.len());
    let (number, unit) = amount.split_at(digits);
    let factor = match unit {
        "" => 1,
        "k" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
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
