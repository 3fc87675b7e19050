//! The chart's whole life on a node.

use cloakroom_testing::documentation::block;

use super::Journey;
use super::deploy::server;
use super::release::Release;
use crate::shell::{At, laptop, run, start, until};

pub const JOURNEY: Journey =
    Journey("a_release_of_the_chart_keeps_what_was_staged_through_upgrade_removal_and_return", release);

fn release() {
    server();
    let chart = Release { name: "chart", port: 31001, values: String::new() };
    chart.prepare();
    let install = chart.install();
    let said = laptop(&install);
    assert!(
        said.stdout.contains("Clients reach it at https://NODE:31001, with the address of any node."),
        "{}",
        said.stdout
    );
    assert!(!said.stdout.contains("ContainerCreating"), "the Secrets are there: {}", said.stdout);
    laptop(&format!("head -c 5000000 /dev/urandom >chart.bin\n{}", chart.stage("chart.bin")));
    let comes_back = || laptop(&chart.fetch("chart.bin"));
    comes_back();
    chart.counts();
    let listed = laptop("kubectl exec -n chart deploy/chart-cloakroom -- cloakroom ls").stdout;
    assert!(listed.contains("Deployment/app.kubernetes.io/instance=chart"), "{listed}");
    let upgrade = |value: &str| {
        format!("{install} --set extraEnv[0].name=CLOAKROOM_MAX_TOTAL_SIZE,extraEnv[0].value={value}")
    };
    let test = chart.in_its_words(&block("charts/cloakroom/README.md", "Install", "helm test"));
    assert!(laptop(&test).stdout.contains("Phase:          Succeeded"), "with the token of all");
    laptop(&upgrade("1GiB"));
    comes_back();
    let environment = laptop(
        "kubectl get deploy -n chart chart-cloakroom -o jsonpath='{..env[?(@.name==\"CLOAKROOM_MAX_TOTAL_SIZE\")].value}'",
    );
    assert_eq!(environment.stdout, "1GiB");
    laptop(&format!("{} --set uploadAuth=kubernetes", upgrade("1GiB")));
    assert!(laptop(&test).stdout.contains("Phase:          Succeeded"), "with a token of the cluster");
    let left = laptop("kubectl get pods,sa,role,rolebinding -n chart -o name").stdout;
    assert!(!left.contains("-test"), "{left}");
    laptop(&upgrade("1GiB"));
    a_bad_upgrade_ends_by_itself(&chart);
    laptop("helm uninstall chart -n chart --wait --timeout 90s");
    until("the pod is gone", || laptop("kubectl get pods -n chart -o name").stdout.is_empty());
    let left = laptop("kubectl get all,pvc,networkpolicy,sa -n chart -o name").stdout;
    assert_eq!(left, "persistentvolumeclaim/chart-cloakroom\nserviceaccount/default\n");
    let roles = run(At::Laptop, "kubectl get clusterrole,clusterrolebinding -o name | grep chart").stdout;
    assert_eq!(roles, "");
    laptop(&install);
    comes_back();
    laptop("helm uninstall chart -n chart && kubectl delete namespace chart --wait=false");
}

/// The pod says why, and Helm brings back what ran before.
fn a_bad_upgrade_ends_by_itself(chart: &Release) {
    let [upgrade, describe] = ["helm upgrade", "kubectl describe"]
        .map(|line| chart.in_its_words(&block("docs/run.md", "When an upgrade fails", line)));
    // With the values of this release alone, and with less patience than an admin has.
    let upgrade =
        upgrade.replace("-f values.yaml", "--reuse-values").replace("--timeout 2m", "--timeout 30s");
    let upgrading = start(&format!("{upgrade} --set-json 'extraArgs=[\"--no-such-flag\"]'"));
    until("the pod says why", || laptop(&describe).stdout.contains("unexpected argument '--no-such-flag'"));
    assert_ne!(upgrading.end().code, Some(0));
    laptop(&chart.fetch("chart.bin"));
}
