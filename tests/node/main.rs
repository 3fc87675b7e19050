//! The journeys of users on a real node: kubelet, scheduler, kube-proxy, containerd and cluster DNS, all in this
//! process's own namespaces.
//!
//! If a test lacks something beyond Rust, it is skipped, and a line on stderr says what is missing. With
//! `CLOAKROOM_TEST_REQUIRE=all`, as in CI, it fails instead. The tests share one node and disturb it, so they run one
//! after the other.
//!
//! With `CLOAKROOM_TEST_NODE_KEEP=yes` the node stays after the tests until you interrupt it, so that you can try
//! things by hand. Its namespaces are those of the process `tests/node/init` (`nsenter --target PID --net --mount
//! --pid`). kubectl and an admin's kubeconfig are in the folder that the last line of the output names.

#![expect(clippy::pedantic, clippy::unwrap_used, reason = "tests are read for what they check")]

mod cluster;
mod example;
mod images;
mod journeys;
mod shell;
mod world;

use libtest_mimic::Arguments;

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    if world::is_wanted(&arguments) {
        std::process::exit(world::run_this_program_inside());
    }
    let trials = journeys::trials();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if std::env::var("CLOAKROOM_TEST_NODE_KEEP").is_ok_and(|keep| keep == "yes") {
        eprintln!("node: it stays, with its files in {}", world::folder().display());
        std::thread::park();
    }
    cluster::end();
    conclusion.exit();
}
