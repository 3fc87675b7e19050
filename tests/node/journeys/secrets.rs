//! No secret is in a log of a container, an event, a metric or a config map, whatever journey was made.

use crate::shell::{At, laptop, run, until};

/// All secrets that this laptop has, one a line: tokens, and those of tickets.
const SECRETS: &str = "{ cat upload-token; jq -r '.resourceSecret // empty' ./*.json; \
     kubectl get secret cloakroom-tokens -n cloakroom -o jsonpath='{.data.admin-token}' | base64 -d; \
     kubectl get secrets -A -o json | jq -r '.items[].data // {} | to_entries[] | select(.key | test(\"download.*Secret\")) | .value | @base64d'; } \
     | sort -u | grep . >secrets";

/// Where they must not be. The logs are the kubelet's, of all containers that are still known.
const PLACES: &str = "cp -r /var/log/pods seen
     kubectl get events,configmaps,pods -A -o json >seen/objects
     kubectl get --raw /api/v1/namespaces/cloakroom/services/cloakroom-operations:10001/proxy/metrics >seen/metrics";

/// Fails with the places, never with the secret. A journey may end while the server is on its way back: a kubelet that starts again
/// says of each pod that it is not ready until it has looked.
pub fn are_nowhere() {
    laptop(SECRETS);
    until("the server's metrics are read", || {
        run(At::Node, &format!("rm -rf seen; {PLACES}")).code == Some(0)
    });
    let found = run(At::Node, "grep -rlFf secrets seen || true").stdout;
    assert_eq!(found, "", "a secret of “secrets” is there");
}
