//! Measures the figures of docs/benchmarks.md. `cargo bench --bench transfers` runs all scenarios, or only those that
//! you name.
//!
//! Everything is on loopback and on one disk, and compared programs run in interleaved pairs. If a program (nginx,
//! curl, tar) or the folder of jars (`CLOAKROOM_TEST_SPARK_JARS`) is missing, the scenario says so.

#![expect(clippy::pedantic, reason = "a bench is read for what it measures")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on has nothing to report")]

mod binaries;
mod bucket;
mod durable;
mod forms;
mod lifecycle;
mod logged;
mod memory;
mod nginx;
mod reuse;
mod stage_fetch;
mod startup;
mod submit;

const SCENARIOS: [(&str, fn()); 12] = [
    ("startup", startup::run),
    ("memory", memory::run),
    ("lifecycle", lifecycle::run),
    ("nginx", nginx::run),
    ("durable", durable::run),
    ("bucket", bucket::run),
    ("logged", logged::run),
    ("forms", forms::run),
    ("stage-fetch", stage_fetch::run),
    ("reuse", reuse::run),
    ("submit", submit::run),
    ("binaries", binaries::run),
];

fn main() {
    // Cargo adds flags of its own, such as --bench.
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for (name, run) in SCENARIOS {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            println!("== {name}");
            run();
        }
    }
}
