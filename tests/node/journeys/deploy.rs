//! The server is deployed by the README's words, from a laptop in another network.

use std::sync::OnceLock;

use cloakroom_testing::documentation::output::is_shown;
use cloakroom_testing::documentation::{Shown, block, blocks};

use super::Journey;
use crate::cluster::{NODE_ADDRESS, cluster};
use crate::shell::{At, laptop, run, until};
use crate::{example, world};

// Invariant: the commands of the pages work on a real node, from another network, with the shipped roles.
pub const JOURNEYS: &[Journey] = &[Journey("the_readmes_deploy_works_word_for_word", readme)];

/// After the journeys of [`super::reach`].
pub const AT_A_NODE: Journey = Journey("clients_without_a_kubeconfig_reach_a_port_of_the_node", at_a_node);

/// Where the examples of the documentation reach the server from outside.
pub const SERVER: &str = "https://10.99.0.1:31000";

/// How long used resources are kept after their owner has gone; in [`server`].
pub const GRACE_SECONDS: u64 = 10;

/// What the README's chapters said, command by command.
pub fn deployed() -> &'static str {
    static SAID: OnceLock<String> = OnceLock::new();
    SAID.get_or_init(|| {
        cluster();
        let home = world::folder().join("home");
        example::prepare(&home);
        std::fs::write(home.join("hello.txt"), "hello\n").unwrap();
        // The image is there already. Helm has a journey of its own.
        let others = ["docker build", "ctr ", "helm "];
        let typed =
            commands().into_iter().filter(|command| !others.iter().any(|other| command.starts_with(other)));
        let script: Vec<String> = typed.map(|command| command.replace("APISERVER", NODE_ADDRESS)).collect();
        assert!(script.len() >= 7, "{script:#?}");
        let ran = laptop(&script.join("\n"));
        format!("{}{}", ran.stdout, ran.stderr)
    })
}

/// What the page said of clients without a kubeconfig, for the same server.
fn reached_at_a_node() -> &'static str {
    static SAID: OnceLock<String> = OnceLock::new();
    SAID.get_or_init(|| {
        deployed();
        let typed = ["openssl", "export CLOAKROOM_SERVER"]
            .map(|beginning| block("docs/deploy.md", "With kustomize", beginning));
        let ran = laptop(&format!("NODE={NODE_ADDRESS}\n{}", typed.join("\n")));
        format!("{}{}", ran.stdout, ran.stderr)
    })
}

/// The commands of the README's chapters, in their order.
pub fn commands() -> Vec<String> {
    let deploy =
        blocks("README.md").into_iter().filter(|block| block.is_in("Deploy") || block.is_in("Submit"));
    deploy.flat_map(|block| block.commands()).map(|shown| shown.command).collect()
}

fn readme() {
    let said = deployed();
    for line in [
        "deployment.apps/cloakroom created",
        "deployment \"cloakroom\" successfully rolled out",
        "Staging by the Service cloakroom in the namespace cloakroom, through the API server",
        "Application count with application ID",
        "counted 10000",
    ] {
        assert!(said.contains(line), "no “{line}” in:\n{said}");
    }
    let list = block("docs/administer.md", "Administer", "kubectl exec");
    let listed = laptop(&list).stdout;
    assert!(listed.contains("Pod/spark-app-selector="), "{listed}");
    let secrets = laptop("kubectl get secrets -n cloakroom -o name").stdout;
    assert_eq!(secrets, "", "the server needs no Secret");
    submission_to_try();
}

/// Another submission, as the page to try shows it, and what is left of it.
fn submission_to_try() {
    const PAGE: &str = "docs/try.md";
    let of_cluster = |beginning| {
        let text = block(PAGE, "Submit", beginning);
        let shown = blocks(PAGE).into_iter().find(|block| block.text == text).unwrap();
        shown.commands()
    };
    for Shown { command, output } in of_cluster("$ cloakroom submit --deploy-mode cluster") {
        let ran = laptop(&command);
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(is_shown(&output.join("\n"), &told), "{output:#?}\n\nis not\n\n{told}");
    }
    let [Shown { command, output }] = &of_cluster("$ kubectl exec")[..] else { panic!("one command") };
    until("the files are gone", || laptop(command).stdout.contains("orphaned"));
    let told = laptop(command).stdout;
    assert!(is_shown(&output.join("\n"), &told), "{output:#?}\n\nis not\n\n{told}");
}

/// And the deployed server is the one of all later journeys.
fn at_a_node() {
    let list = block("docs/administer.md", "Administer", "kubectl exec");
    let said = reached_at_a_node();
    for line in ["secret/cloakroom-tls created", "deployment.apps/cloakroom configured", "staging 1 file, "] {
        assert!(said.contains(line), "no “{line}” in:\n{said}");
    }
    let listed = laptop(&list).stdout;
    assert!(listed.contains("Pod/app=demo"), "{listed}");
}

/// That server, with times that tests can wait for. Each namespace may have drivers by `kubectl apply -k`.
pub fn server() {
    static CONFIGURED: OnceLock<()> = OnceLock::new();
    CONFIGURED.get_or_init(|| {
        reached_at_a_node();
        laptop(&format!(
            "kubectl set env deployment/cloakroom -n cloakroom CLOAKROOM_ORPHAN_GRACE={GRACE_SECONDS}s \
                 CLOAKROOM_CLEANUP_INTERVAL=1s
             kubectl rollout status deployment/cloakroom -n cloakroom --timeout=90s"
        ));
        until("the server answers", answers);
    });
}

/// Whether the server answers on its node port.
pub fn answers() -> bool {
    run(At::Laptop, &format!("curl -sf -m 2 --cacert tls.crt {SERVER}/api/v1")).code == Some(0)
}
