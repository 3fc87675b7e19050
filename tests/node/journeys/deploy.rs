//! The server is deployed by the README's words, from a laptop in another network.

use std::sync::OnceLock;

use cloakroom_testing::documentation::{block, blocks};

use super::Journey;
use crate::cluster::{NODE_ADDRESS, cluster};
use crate::shell::{laptop, until};
use crate::{example, world};

pub const JOURNEYS: &[Journey] = &[Journey("the_readmes_deploy_works_word_for_word", readme)];

/// Where the examples of the documentation reach the server from outside.
pub const SERVER: &str = "https://10.99.0.1:31000";

/// How long used resources are kept after their owner has gone; in [`server`].
pub const GRACE_SECONDS: u64 = 10;

/// What the README's chapter said, command by command.
fn deployed() -> &'static str {
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
        assert!(script.len() >= 10, "{script:#?}");
        let ran = laptop(&format!("NODE={NODE_ADDRESS}\n{}", script.join("\n")));
        format!("{}{}", ran.stdout, ran.stderr)
    })
}

/// The commands of the README's chapter, in their order.
pub fn commands() -> Vec<String> {
    let deploy = blocks("README.md").into_iter().filter(|block| block.is_in("Deploy"));
    deploy.flat_map(|block| block.commands()).map(|shown| shown.command).collect()
}

fn readme() {
    let said = deployed();
    for line in [
        "secret/cloakroom-tls created",
        "deployment.apps/cloakroom created",
        "deployment \"cloakroom\" successfully rolled out",
        "staging 1 file, ",
        "Application count with application ID",
        "counted 10000",
    ] {
        assert!(said.contains(line), "no “{line}” in:\n{said}");
    }
    let listed = laptop(&block("docs/administer.md", "Administer", "kubectl exec")).stdout;
    assert!(listed.contains("Pod/app=demo"), "{listed}");
}

/// The README's server, with times that tests can wait for. Each namespace may have drivers by `kubectl apply -k`.
pub fn server() {
    static CONFIGURED: OnceLock<()> = OnceLock::new();
    CONFIGURED.get_or_init(|| {
        deployed();
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
    crate::shell::run(crate::shell::At::Laptop, &format!("curl -sf -m 2 --cacert tls.crt {SERVER}/api/v1"))
        .code
        == Some(0)
}
