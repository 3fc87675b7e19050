//! From the start of a submission with 300 MB of local jars to the first instruction of the driver's container, for
//! docs/benchmarks.md: `cargo bench --bench first-instruction`.
//!
//! It uses a real API server, and the pod runner of tests/runs in place of a node. It needs what those tests need: root
//! for namespaces, `KUBEBUILDER_ASSETS`, `CLOAKROOM_TEST_SPARK_HOMES` with spark-4.3.0; also GNU time.

#![expect(clippy::pedantic, reason = "a bench is read for what it measures")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on has nothing to report")]

mod bench;
mod run;

use bench::BenchCluster;
use run::{Figures, Way};

const ROUNDS: usize = 5;

fn main() {
    if !cloakroom_testing::files::have(&["time", "setpriv", "unshare", "sync"]) {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let bench = BenchCluster::prepare().await;
        println!("{} jars, {:.1} MB, {ROUNDS} rounds", bench.jars.len(), bench.bytes as f64 / 1e6);
        let mut all = Way::ALL.map(|way| (way, Figures::default()));
        for _ in 0..ROUNDS {
            for (way, figures) in &mut all {
                figures.add(way.run(&bench).await);
            }
        }
        for (way, figures) in all {
            println!("{}:\n{figures}", way.name());
        }
        println!("the server's peak memory: {:.1} MiB", bench.server_peak_mib());
    });
    runtime.shutdown_background();
}
