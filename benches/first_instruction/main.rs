//! From the start of a submission with 300 MB of local jars to the first instruction of the driver's container, for
//! docs/benchmarks.md: `cargo bench --bench first-instruction`.
//!
//! It uses the node of tests/node, and needs what that needs; also GNU time.

#![expect(clippy::pedantic, reason = "a bench is read for what it measures")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on has nothing to report")]

#[expect(dead_code, reason = "a bench breaks nothing")]
#[path = "../../tests/node/cluster/mod.rs"]
mod cluster;
#[path = "../../tests/node/images.rs"]
mod images;
mod run;
#[expect(dead_code, reason = "a bench sits at the node")]
#[path = "../../tests/node/shell.rs"]
mod shell;
#[path = "../../tests/node/world.rs"]
mod world;

use cloakroom_testing::needs;
use libtest_mimic::Arguments;

use run::{Bench, Figures, Way};

const ROUNDS: usize = 5;

fn main() {
    let missing = needs::missing(&world::needs());
    if !missing.is_empty() || !cloakroom_testing::files::have(&["time", "sync"]) {
        println!("skipped: {}", missing.join("; "));
        return;
    }
    if world::is_wanted(&Arguments::from_args()) {
        std::process::exit(world::run_this_program_inside());
    }
    let bench = Bench::prepare();
    println!("{} jars, {:.1} MB, {ROUNDS} rounds", bench.jars.len(), bench.bytes as f64 / 1e6);
    let mut all = Way::ALL.map(|way| (way, Figures::default()));
    for _ in 0..ROUNDS {
        for (way, figures) in &mut all {
            figures.add(way.run(&bench));
        }
    }
    for (way, figures) in all {
        println!("{}:\n{figures}", way.name());
    }
    println!("the server's peak memory: {:.1} MiB", bench.server_peak_mib());
    drop(bench);
    cluster::end();
}
