//! The Helm chart makes what kustomize makes, and says what is wrong with its values.

mod choices;
mod comparison;
mod dependency;
pub mod helm;
pub mod installed;
mod meanings;
pub mod notes;
mod texts;

use std::collections::BTreeSet;
use std::path::Path;

use cloakroom_testing::documentation::block;
use cloakroom_testing::known::{list, text};
use cloakroom_testing::needs::trial;
use libtest_mimic::Trial;
use serde_json::Value;

use crate::manifests::{combined, everything, of_the_page, render, render_own, rendered::Rendered, wiring};
use comparison::differences;
use helm::{Helm, values_of};

/// Each is made with both versions of Helm.
type Test = fn(&Helm);

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, Test); 21] = [
        ("chart_is_accepted_by_a_strict_lint_with_the_values_of_every_overlay", lint),
        ("chart_without_values_is_told_what_is_missing_by_lint", lint_without_values),
        ("chart_makes_what_kustomize_makes_for_the_base_and_every_overlay", overlays),
        ("chart_makes_what_kustomize_makes_for_combinations", combinations),
        ("chart_makes_what_the_kustomization_of_the_operations_page_makes", as_the_page_says),
        ("chart_links_each_alert_to_its_section_of_the_run_page", runbooks),
        ("chart_shows_planted_differences_from_kustomize", planted_differences),
        ("chart_uses_every_value", choices::every_value),
        ("chart_gives_the_server_its_credentials_in_each_cloud", choices::clouds),
        ("chart_says_what_is_wrong_with_values_in_one_sentence_each", choices::wrong_values),
        ("chart_refuses_a_kubernetes_that_is_too_old", old_kubernetes),
        ("chart_keeps_two_releases_apart", two_releases),
        ("chart_is_a_dependency_with_a_condition_and_several_aliases", dependency::aliases),
        ("chart_takes_global_values_and_null_from_a_parent", dependency::global_values),
        ("chart_takes_every_text_as_a_text", texts::odd_texts),
        ("chart_takes_numbers_and_booleans_as_texts_where_it_needs_texts", texts::odd_values),
        ("chart_takes_null_as_if_a_value_were_absent", meanings::null),
        ("chart_opens_the_ports_in_the_addresses_of_the_store", meanings::store_ports),
        ("chart_has_the_empty_class_for_a_dash", meanings::empty_class),
        ("chart_listens_for_ipv6_where_the_service_has_it", meanings::address_families),
        ("chart_gives_the_rights_to_the_account_of_the_pod", meanings::account),
    ];
    let both = |(name, test): (&'static str, Test)| {
        Helm::VERSIONS.map(|version| {
            trial(&format!("{version}: {name}"), &helm::needs(), move || test(&Helm::new(version)))
        })
    };
    tests.into_iter().flat_map(both).collect()
}

/// The image of [`combined`].
const IMAGE: &[&str] = &["image.repository=registry.example.com/cloakroom", "image.tag=1.2.3"];

fn lint(helm: &Helm) {
    for overlay in everything() {
        let output = helm.chart(&["lint", "--strict"], &[values_of(&overlay)], &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

/// Lint goes on where a template fails on purpose, and must find nothing else.
fn lint_without_values(helm: &Helm) {
    let output = helm.chart(&["lint"], &[], &[]);
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap()).concat();
    assert!(
        said.contains("image.repository is missing: ") && said.contains("image.digest is missing: "),
        "{said}"
    );
    assert!(!said.contains("[ERROR]"), "{said}");
}

fn overlays(helm: &Helm) {
    for overlay in everything() {
        let chart = helm.render(&[values_of(&overlay)], &[]);
        assert_eq!(differences(&chart, &render(&overlay)), Vec::<String>::new(), "{}", overlay.display());
    }
}

/// These values' files are of overlays with one upload token.
const BY_USER: &[&str] = &["uploadAuth=kubernetes"];

fn combinations(helm: &Helm) {
    // The component alone, for clients that know no upload token: the overlay has TLS as well.
    let nodeport: &[&str] = &["service.type=NodePort"];
    for (components, values) in [
        (
            &["bucket", "nodeport", "ingress", "gateway", "tls", "monitoring", "accept-cluster-tokens"][..],
            BY_USER,
        ),
        (&["nodeport", "tls", "monitoring"], BY_USER),
        (&["nodeport", "tls", "upload-auth-token", "admin-token"], &[]),
        (&["namespaced", "ingress", "monitoring"], BY_USER),
        (&["namespaced", "accept-cluster-tokens", "admin-token"], BY_USER),
        (&["gateway", "tls"], &[]),
        (&["webhdfs", "tls", "admin-token"], &[]),
        (&["nodeport"], nodeport),
        (&["nodeport", "accept-cluster-tokens"], nodeport),
    ] {
        let has = |component| components.contains(&component);
        let files = components.iter().filter(|component| **component != "nodeport" || has("tls"));
        let files: Vec<_> = files.map(|component| format!("ci/{component}-values.yaml")).collect();
        let chart = helm.render(&files, &[IMAGE, values].concat());
        let mut kustomize = combined(components);
        if has("ingress") && has("tls") {
            // What manifests/components/ingress/ingress.yaml has people add by hand.
            let mut annotations = kustomize.one("Ingress", "cloakroom")["metadata"]["annotations"].clone();
            annotations["nginx.ingress.kubernetes.io/backend-protocol"] = "HTTPS".into();
            kustomize.set("Ingress", "cloakroom", "/metadata/annotations", annotations);
        }
        assert_eq!(differences(&chart, &kustomize), Vec::<String>::new(), "{components:?}");
        assert_eq!(wiring::complaints(&chart), Vec::<String>::new(), "{components:?}");
    }
}

fn old_kubernetes(helm: &Helm) {
    let files = [values_of(Path::new("base"))];
    let made_for = |version| helm.chart(&["template", "--kube-version", version], &files, &[]);
    let said = String::from_utf8(made_for("1.24.17").stderr).unwrap();
    assert!(said.contains("chart requires kubeVersion: >=1.25.0-0"), "{said}");
    for version in ["1.25.0", "v1.30.4-gke.1348001"] {
        let made = made_for(version);
        assert!(made.status.success(), "{version}: {}", String::from_utf8_lossy(&made.stderr));
    }
}

/// The page has one example in both forms.
fn as_the_page_says(helm: &Helm) {
    let values = block("docs/deploy.md", "With Helm", "image:");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, values).unwrap();
    let chart = helm.render(&[file.to_str().unwrap().to_owned()], &[]);
    assert_eq!(differences(&chart, &render_own(&of_the_page())), Vec::<String>::new());
}

/// The page's address is a value. Without it the alerts are those of the manifests.
fn runbooks(helm: &Helm) {
    let files = ["ci/monitoring-values.yaml".to_owned()];
    let alerts = |values: &[&str]| -> Vec<Value> {
        let rendered = helm.render(&files, values);
        let groups = list(&rendered.one("PrometheusRule", "cloakroom")["spec"]["groups"]);
        groups.iter().flat_map(|group| list(&group["rules"])).cloned().collect()
    };
    let page = std::fs::read_to_string(helm::project().join("docs/run.md")).unwrap();
    let linked = alerts(&["monitoring.runbookUrl=https://git.example.com/run.md"]);
    assert!(linked.len() > 10, "{linked:?}");
    for alert in linked {
        let name = text(&alert["alert"]);
        let section = format!("https://git.example.com/run.md#{}", name.to_lowercase());
        assert_eq!(alert["annotations"]["runbook_url"], section);
        assert!(page.contains(&format!("\n### {name}\n")), "docs/run.md has no section {name}");
    }
    assert!(alerts(&[]).iter().all(|alert| alert["annotations"]["runbook_url"].is_null()));
}

/// One thing changed at a time.
fn planted_differences(helm: &Helm) {
    let files = ["bucket", "nodeport", "ingress", "gateway", "monitoring", "accept-cluster-tokens"]
        .map(|component| format!("ci/{component}-values.yaml"));
    let good = helm.render(&files, BY_USER);
    assert_eq!(differences(&good, &good), Vec::<String>::new());
    for (kind, name, pointer, value) in wiring::PLANTED {
        let mut other = good.clone();
        other.set(kind, name, pointer, serde_json::from_str(value).unwrap());
        assert_eq!(differences(&good, &other).len(), 1, "{kind} {name} {pointer} = {value}");
    }
    let without = Rendered::new(good.of_kind("Service").cloned().collect());
    assert!(differences(&good, &without).len() > 5 && differences(&without, &good).len() > 5);
}

/// In one namespace or in two of one cluster.
fn two_releases(helm: &Helm) {
    let files: Vec<_> = ["nodeport", "monitoring", "accept-cluster-tokens"]
        .map(|component| format!("ci/{component}-values.yaml"))
        .into();
    let [one, other] = ["one", "other"].map(|name| helm.release(name).render(&files, BY_USER));
    let names = |rendered: &Rendered| -> BTreeSet<String> {
        rendered.objects().iter().map(comparison::name_of).collect()
    };
    assert!(names(&one).is_disjoint(&names(&other)));
    assert_eq!(names(&one).len(), names(&other).len());
    let selector = &one.one("Deployment", "one-cloakroom")["spec"]["selector"]["matchLabels"];
    let labels = &other.one("Deployment", "other-cloakroom")["spec"]["template"]["metadata"]["labels"];
    let services = one.of_kind("Service").map(|service| &service["spec"]["selector"]);
    let policies = one.of_kind("NetworkPolicy").map(|policy| &policy["spec"]["podSelector"]["matchLabels"]);
    for selector in services.chain(policies).chain([selector]) {
        assert!(!wiring::selects(selector, labels), "{selector} selects {labels}");
    }
}
