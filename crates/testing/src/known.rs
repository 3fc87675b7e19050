//! What tests compare manifests with: flags, defaults and rights from the code, and helpers for their YAML.

use std::collections::BTreeSet;

use cloakroom_core::resource::OwnerKinds;
use serde_json::Value;

use crate::process;

/// Every document of a YAML text.
pub fn parse(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The text of a value that must be text.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a text"))
}

/// The elements of a list; none where there is no list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The text of `cloakroom serve --help`.
pub fn help() -> String {
    String::from_utf8(process::run(&["serve", "--help"]).stdout).unwrap()
}

/// The environment names of the flags of `cloakroom serve`.
pub fn environment_names() -> BTreeSet<String> {
    let help = help();
    let names = help.split("[env: ").skip(1).filter_map(|rest| rest.split(['=', ']']).next());
    let names: BTreeSet<_> = names.map(str::to_owned).collect();
    assert!(names.len() > 20, "the help is read wrong: {help}");
    names
}

/// The default of a flag, from the help.
pub fn default_of(flag: &str) -> String {
    let help = help();
    let (_, after) = help.split_once(&format!("{flag} <")).unwrap();
    let (_, value) = after.split_once("[default: ").unwrap();
    value.split(']').next().unwrap().to_owned()
}

/// What the API server must allow for the default owner kinds, as `group/resource verb`. The server lists and watches
/// owners, and reads an owner with a name again before a deletion.
pub fn rights_for_owner_kinds() -> BTreeSet<String> {
    let kinds = OwnerKinds::DEFAULT.split(',');
    kinds
        .flat_map(|name| {
            let (kind, group) = name.split_once('.').unwrap_or_else(|| (name, group_of(name)));
            let resource = format!("{group}/{}s", kind.to_lowercase());
            ["get", "list", "watch"].map(|verb| format!("{resource} {verb}"))
        })
        .collect()
}

/// The API group of a built-in kind, which its name leaves out.
fn group_of(kind: &str) -> &'static str {
    match kind {
        "Pod" => "",
        "Deployment" | "StatefulSet" => "apps",
        "Job" => "batch",
        other => panic!("which API group is {other} in?"),
    }
}

/// The rules of all roles in these files of manifests/submitter.
pub fn rules_of_submitters(files: &[&str]) -> Value {
    let folder = crate::project().join("manifests/submitter");
    let documents = files.iter().flat_map(|file| parse(&std::fs::read_to_string(folder.join(file)).unwrap()));
    let roles = documents.filter(|document| document["kind"] == "Role");
    roles.flat_map(|role| list(&role["rules"]).to_vec()).collect()
}

/// The rights of a Role or ClusterRole, as `group/resource verb`, with ` of NAME` if it names objects.
pub fn rights_of(role: &Value) -> BTreeSet<String> {
    let mut rights = BTreeSet::new();
    for rule in list(&role["rules"]) {
        let of_names: Vec<String> = match list(&rule["resourceNames"]) {
            [] => vec![String::new()],
            names => names.iter().map(|name| format!(" of {}", text(name))).collect(),
        };
        for group in list(&rule["apiGroups"]) {
            for resource in list(&rule["resources"]) {
                for verb in list(&rule["verbs"]) {
                    let right = format!("{}/{} {}", text(group), text(resource), text(verb));
                    rights.extend(of_names.iter().map(|of_name| format!("{right}{of_name}")));
                }
            }
        }
    }
    rights
}
