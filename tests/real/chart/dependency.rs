//! The chart below another one.

use std::collections::BTreeSet;
use std::process::Command;

use cloakroom_testing::documentation::block;
use cloakroom_testing::known;
use serde_json::json;

use super::comparison;
use super::helm::{Helm, chart};
use crate::manifests::wiring;

pub fn aliases(helm: &Helm) {
    let folder = tempfile::tempdir().unwrap();
    let of_page = block("charts/cloakroom/README.md", "In a chart of your own", "dependencies:");
    let of_page = &known::parse(&of_page)[0]["dependencies"][0];
    let under = |alias: &str| {
        let mut dependency = of_page.clone();
        dependency["alias"] = alias.into();
        dependency["condition"] = format!("{alias}.enabled").into();
        dependency
    };
    let dependencies = [of_page.clone(), under("blue"), under("greenOne"), under("red_two"), under("off")];
    let parent =
        json!({"apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": dependencies});
    std::fs::write(folder.path().join("Chart.yaml"), parent.to_string()).unwrap();
    let charts = folder.path().join("charts");
    std::fs::create_dir(&charts).unwrap();
    assert!(Command::new("cp").arg("-r").arg(chart()).arg(&charts).status().unwrap().success());
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
    std::fs::write(folder.path().join("values.yaml"), all.to_string()).unwrap();
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
