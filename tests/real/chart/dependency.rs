//! The chart below another one.

use std::collections::BTreeSet;
use std::process::Command;

use cloakroom_testing::documentation::block;
use cloakroom_testing::known::{self, list};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::comparison;
use super::helm::{Helm, chart};
use crate::manifests::wiring;

pub fn aliases(helm: &Helm) {
    let of_page = dependency();
    let under = |alias: &str| {
        let mut dependency = of_page.clone();
        dependency["alias"] = alias.into();
        dependency["condition"] = format!("{alias}.enabled").into();
        dependency
    };
    let dependencies = [of_page.clone(), under("blue"), under("greenOne"), under("red_two"), under("off")];
    let values = |is_enabled: bool| {
        let monitoring = json!({"enabled": true, "labels": {"release": "p"}, "namespace": "monitoring"});
        json!({
            "enabled": is_enabled, "image": {"repository": "cloakroom", "tag": "0.1.0"}, "uploadAuth": "kubernetes",
            "monitoring": monitoring,
        })
    };
    let all = json!({
        "global": {"any": "thing"},
        "cloakroom": values(true), "blue": values(true), "greenOne": values(true), "red_two": values(true), "off": values(false),
    });
    let folder = parent(&dependencies, &all);
    // The longest name of a release, which has to be cut.
    let long = "p".repeat(53);
    for release in ["shop", "blue-green-cloakroom", &long] {
        let rendered = helm.release(release).render_other(folder.path());
        let names: Vec<_> = rendered.objects().iter().map(comparison::name_of).collect();
        let distinct: BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        let deployments: Vec<_> = rendered.of_kind("Deployment").collect();
        assert_eq!(deployments.len(), 4, "one is not enabled");
        let is_valid = |name: &String| name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
        let named = deployments.iter().map(|object| object["metadata"]["name"].as_str().unwrap().to_owned());
        assert!(named.clone().all(|name| is_valid(&name)), "{:?}", named.collect::<Vec<_>>());
        for (one, of_one) in deployments.iter().enumerate() {
            for (other, of_other) in deployments.iter().enumerate() {
                let selector = &of_one["spec"]["selector"]["matchLabels"];
                let labels = &of_other["spec"]["template"]["metadata"]["labels"];
                assert_eq!(wiring::selects(selector, labels), one == other, "{selector}, {labels}");
            }
        }
    }
}

pub fn global_values(helm: &Helm) {
    let values = json!({
        "global": {
            "imageRegistry": "registry.example.com/", "storageClass": "fast", "any": "thing",
            "imagePullSecrets": ["registry", {"name": "other"}, {"name": "own"}],
        },
        "cloakroom": {
            "image": {"repository": "team/cloakroom", "tag": "0.1.0"}, "imagePullSecrets": [{"name": "own"}],
            "tls": null, "store": null, "persistence": null,
        },
        "second": {
            "image": {"repository": "localhost:5000/cloakroom", "tag": "0.1.0"},
            "persistence": {"storageClassName": "slow"}, "service": null,
        },
    });
    let of_page = dependency();
    let mut second = of_page.clone();
    second["alias"] = "second".into();
    let folder = parent(&[of_page, second], &values);
    let rendered = helm.render_other(folder.path());
    for (name, image, secrets, class) in [
        ("cloakroom", "registry.example.com/team/cloakroom:0.1.0", &["own", "registry", "other"][..], "fast"),
        ("cloakroom-second", "localhost:5000/cloakroom:0.1.0", &["registry", "other", "own"], "slow"),
    ] {
        let pod = &rendered.one("Deployment", name)["spec"]["template"]["spec"];
        assert_eq!(pod["containers"][0]["image"], image);
        let fetches = json!({"name": "CLOAKROOM_FETCH_IMAGE", "value": image});
        assert!(list(&pod["containers"][0]["env"]).contains(&fetches), "{pod}");
        let secrets: Vec<_> = secrets.iter().map(|name| json!({"name": name})).collect();
        assert_eq!(pod["imagePullSecrets"], Value::from(secrets));
        let claim = rendered.one("PersistentVolumeClaim", name);
        assert_eq!(claim["spec"]["storageClassName"], class);
        assert_eq!(rendered.one("Service", name)["spec"]["type"], "ClusterIP");
    }
}

/// The chart as the page has it below another one.
fn dependency() -> Value {
    let of_page = block("charts/cloakroom/README.md", "In a chart of your own", "dependencies:");
    known::parse(&of_page)[0]["dependencies"][0].clone()
}

/// A chart that has others, with values for them.
fn parent(dependencies: &[Value], values: &Value) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let parent =
        json!({"apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": dependencies});
    std::fs::write(folder.path().join("Chart.yaml"), parent.to_string()).unwrap();
    std::fs::write(folder.path().join("values.yaml"), values.to_string()).unwrap();
    let charts = folder.path().join("charts");
    std::fs::create_dir(&charts).unwrap();
    assert!(Command::new("cp").arg("-r").arg(chart()).arg(&charts).status().unwrap().success());
    folder
}
