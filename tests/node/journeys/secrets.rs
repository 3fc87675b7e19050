//! No secret is in a log of a container, an event, a metric or a config map, whatever journey was made.

use super::jobs::home;
use crate::shell::{At, laptop, run, until};
use crate::world;

/// All secrets that this laptop has, one a line: tokens, those of tickets, and what journeys put into files `*.secret`. The server
/// makes a further one in its volume.
const SECRETS: &str = "{ find . -maxdepth 1 -name upload-token -exec cat {} +; \
     find . -maxdepth 2 -name '*.secret' -exec cat {} +; \
     find . -maxdepth 1 -name '*.json' -exec jq -r '.resourceSecret? // empty' {} +; \
     kubectl get secrets -A -o json | jq -r '.items[].data // {} | to_entries[] | select(.key | test(\"download.*Secret\")) | .value | @base64d'; } \
     | sort -u | grep . >secrets";

/// A token that somebody requested of the API server. Here nobody has it any more, so its form is looked for.
const REQUESTED: &str = "grep -rlE 'eyJhbGciO[A-Za-z0-9_-]{20,}[.]eyJ[A-Za-z0-9_-]{20,}[.]' seen || true";

/// Where they must not be. The logs are the kubelet's, of all containers that are still known; `told` is what journeys kept.
const PLACES: &str = "cp -r /var/log/pods seen
     kubectl get events,configmaps,pods -A -o json >seen/objects
     kubectl get --raw /api/v1/namespaces/cloakroom/services/cloakroom-operations:10001/proxy/metrics >seen/metrics
     ! test -d told || cp -r told seen/told";

/// Keeps what was told on the laptop where no secret may be.
pub fn keep(name: &str, told: &str) {
    let folder = home().join("told");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), told).unwrap();
}

/// Fails with the places, never with the secret. A journey may end while the server is on its way back: a kubelet that starts again
/// says of each pod that it is not ready until it has looked.
pub fn are_nowhere() {
    laptop(SECRETS);
    let volumes = world::folder().join("volumes");
    let made = format!("head -qn 1 {}/*/admin-token >>secrets", volumes.display());
    until("the server has made an admin token", || run(At::Node, &made).code == Some(0));
    until("the server's metrics are read", || {
        let audit = format!("cp {} seen/audit", world::folder().join("audit.log").display());
        run(At::Node, &format!("rm -rf seen; {PLACES}\n{audit}")).code == Some(0)
    });
    let found = run(At::Node, "grep -rlFf secrets seen || true").stdout;
    assert_eq!(found, "", "a secret of “secrets” is there");
    assert_eq!(run(At::Node, REQUESTED).stdout, "", "a requested token is there");
}
