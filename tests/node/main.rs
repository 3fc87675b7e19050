//! The journeys of users on a real node: kubelet, scheduler, kube-proxy, containerd and cluster DNS, all in namespaces of this
//! process's own.
//!
//! What a test needs beyond Rust it finds, or it is skipped with a line on stderr that says what is missing. With
//! `CLOAKROOM_TESTS_REQUIRE=all`, as in CI, what is missing is a failure. The tests share one node and disturb it, so they run
//! one after the other.
//!
//! With `CLOAKROOM_TEST_NODE_KEEP=yes` the node stays after the tests, for trying things by hand, until it is interrupted. Its
//! namespaces are those of the process `tests/node/init` (`nsenter --target PID --net --mount --pid`), kubectl and an admin's
//! kubeconfig are in the folder that it names.

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
