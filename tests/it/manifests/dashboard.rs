//! The dashboard: its first panels are the limits, and each panel shows the values that its title promises.

use std::collections::BTreeSet;

use cloakroom_core::metrics::Limited;
use cloakroom_testing::known::{list, text};
use serde_json::Value;

use super::{alerts, manifests};

#[test]
fn the_dashboard_begins_with_the_limits_that_refuse_transfers() {
    let panels = panels();
    assert_eq!(panels[0]["title"], "Limits");
    let first: Vec<_> = panels[1..].iter().take_while(|panel| panel["type"] != "row").collect();
    let shown: BTreeSet<_> = first.iter().flat_map(|panel| limits_of(panel)).collect();
    for of in [Limited::Disk, Limited::TotalSize, Limited::Resources, Limited::Uploads, Limited::Downloads] {
        assert!(shown.contains(of.as_str()), "{} is not among {shown:?}", of.as_str());
    }
    let known = |name: &String| Limited::ALL.iter().any(|of| of.as_str() == name);
    for panel in &panels {
        let unknown: Vec<_> = limits_of(panel).into_iter().filter(|name| !known(name)).collect();
        assert!(unknown.is_empty(), "{}: there is no limit {unknown:?}", panel["title"]);
    }
}

#[test]
fn the_panel_of_the_version_shows_its_text() {
    let version = panel("Version");
    assert_eq!(version["options"]["textMode"], "name");
    assert_eq!(version["targets"][0]["legendFormat"], "{{version}}");
}

#[test]
fn dashboard_and_alert_count_the_same_watches_as_not_ready() {
    let alerts = alerts();
    let alert = alerts.iter().find(|alert| alert["alert"] == "CloakroomOwnersNotWatched").unwrap();
    let matcher = |expression: &Value| {
        let (_, behind) = text(expression).split_once("state!~").unwrap();
        behind.split('}').next().unwrap().to_owned()
    };
    let panel = panel("Watches not ready");
    assert_eq!(matcher(&panel["targets"][0]["expr"]), matcher(&alert["expr"]));
}

#[test]
fn no_two_panels_have_the_same_id_or_place() {
    let (mut ids, mut places) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels() {
        let title = text(&panel["title"]);
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}");
        let [x, y, width, height] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        assert!(x + width <= 24, "{title}");
        for place in (x..x + width).flat_map(|column| (y..y + height).map(move |line| (column, line))) {
            assert!(places.insert(place), "{title} is over another panel");
        }
    }
}

/// The names in `of=~"one|other"` of a panel, without patterns.
fn limits_of(panel: &Value) -> Vec<String> {
    let expressions = list(&panel["targets"]).iter().map(|target| text(&target["expr"]));
    let names = expressions.filter_map(|expression| expression.split("of=~\"").nth(1)?.split('"').next());
    let names = names.flat_map(|names| names.split('|')).filter(|name| !name.contains('*'));
    names.map(str::to_owned).collect()
}

fn panel(title: &str) -> Value {
    panels().into_iter().find(|panel| panel["title"] == title).unwrap()
}

fn panels() -> Vec<Value> {
    let path = manifests().join("components/monitoring/cloakroom.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    list(&dashboard["panels"]).to_vec()
}
