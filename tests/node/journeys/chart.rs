//! The chart's whole life on a node, beside the server of the manifests.

use cloakroom_testing::documentation::block;
use cloakroom_testing::needs::{Need, path};

use super::Journey;
use super::deploy::{commands, server};
use crate::cluster::{CHART_TOOLS, NODE_ADDRESS, make_volume};
use crate::shell::{At, laptop, run, start, until};
use crate::world;

pub const JOURNEY: Journey =
    Journey("a_release_of_the_chart_keeps_what_was_staged_through_upgrade_removal_and_return", release);

/// What it takes beside a node.
pub fn needs() -> Vec<Need> {
    let mut needs = world::needs();
    needs.push(Need::Below(CHART_TOOLS, "helm-4".to_owned()));
    needs
}

/// With a port of the node of its own, and a certificate and tokens as the chart's notes say.
fn release() {
    server();
    let folder = world::folder();
    make_volume(&folder, "chart", "chart");
    std::os::unix::fs::symlink(path(CHART_TOOLS).join("helm-4"), folder.join("bin/helm")).unwrap();
    // The README's own command, for another namespace, port and volume.
    let install = of_this_release(&block("README.md", "Deploy", "$ printf").replace("$ ", ""));
    let install =
        format!("{install} --timeout 90s --set service.nodePort=31001,persistence.storageClassName=chart");
    let said = laptop(&format!(
        "kubectl create namespace chart
         kubectl label namespace chart pod-security.kubernetes.io/enforce=restricted
         openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=chart -keyout chart.key -out chart.crt -addext subjectAltName=IP:{NODE_ADDRESS}
         kubectl create secret tls tls -n chart --cert=chart.crt --key=chart.key
         kubectl create secret generic cloakroom-tokens -n chart --from-file=upload-token --from-literal=admin-token=\"$(openssl rand -base64 32)\"
         {install}"
    ));
    assert!(
        said.stdout.contains("Clients reach it at https://NODE:31001, with the address of any node."),
        "{}",
        said.stdout
    );
    assert!(!said.stdout.contains("ContainerCreating"), "the Secrets are there: {}", said.stdout);
    laptop(&format!(
        "head -c 5000000 /dev/urandom >chart.bin
         cloakroom stage --server https://{NODE_ADDRESS}:31001 --ca-file chart.crt --token-file upload-token --namespace chart --kind Deployment \
             --label app.kubernetes.io/instance=chart chart.bin >chart.json
         jq -r .resourceSecret chart.json >chart.secret"
    ));
    comes_back();
    counts();
    let listed = laptop("kubectl exec -n chart deploy/chart-cloakroom -- cloakroom ls").stdout;
    assert!(listed.contains("Deployment/app.kubernetes.io/instance=chart"), "{listed}");
    let upgrade = |value: &str| {
        format!("{install} --set extraEnv[0].name=CLOAKROOM_MAX_TOTAL_SIZE,extraEnv[0].value={value}")
    };
    laptop(&upgrade("1GiB"));
    comes_back();
    let environment = laptop(
        "kubectl get deploy -n chart chart-cloakroom -o jsonpath='{..env[?(@.name==\"CLOAKROOM_MAX_TOTAL_SIZE\")].value}'",
    );
    assert_eq!(environment.stdout, "1GiB");
    a_bad_upgrade_ends_by_itself();
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

/// A line of a page, for this release.
fn of_this_release(line: &str) -> String {
    let line = line.replacen(" cloakroom ", " chart ", 1).replace("-n cloakroom", "-n chart");
    line.replace("existingSecret: cloakroom-tls", "existingSecret: tls")
}

/// The pod says why, and Helm brings back what ran before.
fn a_bad_upgrade_ends_by_itself() {
    let [upgrade, describe] = ["helm upgrade", "kubectl describe"]
        .map(|line| of_this_release(&block("docs/run.md", "When an upgrade fails", line)));
    // With the values of this release alone, and with less patience than an admin has.
    let upgrade =
        upgrade.replace("-f values.yaml", "--reuse-values").replace("--timeout 2m", "--timeout 30s");
    let upgrading = start(&format!("{upgrade} --set-json 'extraArgs=[\"--no-such-flag\"]'"));
    until("the pod says why", || laptop(&describe).stdout.contains("unexpected argument '--no-such-flag'"));
    assert_ne!(upgrading.end().code, Some(0));
    comes_back();
}

/// The ticket's bundle is there, byte for byte.
fn comes_back() {
    laptop(&format!(
        "to=$(mktemp -d)
         cloakroom fetch --server https://{NODE_ADDRESS}:31001 --ca-file chart.crt --id $(jq -r .resourceId chart.json) --secret-file chart.secret --to $to
         cmp chart.bin $to/chart.bin
         rm -r $to"
    ));
}

/// The README's job runs, with its files from this server.
fn counts() {
    let submit = commands().into_iter().find(|command| command.starts_with("cloakroom submit")).unwrap();
    let done = laptop(&format!(
        "export CLOAKROOM_SERVER=https://{NODE_ADDRESS}:31001 CLOAKROOM_CA_FILE=chart.crt CLOAKROOM_UPLOAD_TOKEN_FILE=upload-token
         {} --conf spark.kubernetes.driver.pod.name=from-the-chart count.py
         kubectl logs -n spark from-the-chart
         kubectl delete pod -n spark from-the-chart",
        submit.replace("APISERVER", NODE_ADDRESS).strip_suffix("count.py").unwrap()
    ));
    assert!(done.stdout.contains("counted 10000"), "{}", done.stdout);
}
