//! The network: a bridge that the node and the laptop are on, and routes for pods.

use std::process::Command;

/// The node's address; the laptop reaches it, and node ports on it.
pub const NODE_ADDRESS: &str = "10.99.0.1";

/// The laptop's network namespace, as a file.
pub const LAPTOP: &str = "/run/laptop";

/// The addresses of pods.
pub const PODS: &str = "10.244.0.0/24";

/// Run by the shell, step by step. The laptop has no route to pods and Services: to it there is the node's address only.
const SCRIPT: &str = "
    ip link add lan type bridge
    ip address add 10.99.0.1/24 dev lan
    ip link set lan up
    touch /run/laptop
    unshare --net=/run/laptop true
    ip link add laptop type veth peer name eth0 netns /run/laptop
    ip link set laptop master lan up
    nsenter --net=/run/laptop sh -ec 'ip link set lo up; ip address add 10.99.0.2/24 dev eth0; ip link set eth0 up'
    echo 1 >/proc/sys/net/ipv4/ip_forward
";

/// Makes it; once, in the namespaces of [`crate::world`].
pub fn make() {
    let output = Command::new("sh").args(["-ec", SCRIPT]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
