//! Start, processor time and memory of this process. Prometheus' own client libraries use the same names.

use std::fmt;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rustix::time::{ClockId, clock_gettime};

/// Looks at this process for each exposition.
#[derive(Debug)]
pub(super) struct Process {
    /// The time of the start. It is kept, because a change of the clock must not look like a restart.
    started: Timestamp,
}

impl Process {
    /// The process of which this is the beginning.
    pub(super) fn starting_now() -> Self {
        Self { started: Timestamp::now() }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut put = |name, help, metric: &dyn EncodeMetric| {
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
        };
        let started = self.started.as_duration().as_secs_f64();
        put("process_start_time_seconds", "Start of the process.", &ConstGauge::new(started))?;
        put(
            "process_cpu_seconds",
            "Processor time that the process used.",
            &ConstCounter::new(cpu_seconds()),
        )?;
        resident_bytes().map_or(Ok(()), |bytes| {
            put("process_resident_memory_bytes", "Memory that the process occupies.", &ConstGauge::new(bytes))
        })
    }
}

/// The processor time of all threads, in user code and in the kernel.
#[expect(clippy::cast_precision_loss, reason = "exact for 200 million years")]
fn cpu_seconds() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// The memory of this process that is not swapped out; `None` where the kernel does not tell.
fn resident_bytes() -> Option<u64> {
    resident(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_from_the_kernels_words() {
        let status = "Name:\tcloakroom\nVmHWM:\t   20000 kB\nVmRSS:\t   17408 kB\nThreads:\t4\n";
        assert_eq!(resident(status), Some(17_408 * 1024));
        assert_eq!(resident("Name:\tkthreadd\n"), None);
    }

    #[test]
    fn work_of_this_process_counts_as_processor_time() {
        let before = cpu_seconds();
        let has_counted = (0..1_000_000).any(|_| {
            std::hint::black_box(resident_bytes());
            cpu_seconds() - before > 0.02
        });
        assert!(has_counted, "{before}");
        assert!(resident_bytes().unwrap() > 1024 * 1024);
    }
}
