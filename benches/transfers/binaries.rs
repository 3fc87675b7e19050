//! The same work by several builds of the program, in turn, to compare C libraries and allocators.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use cloakroom_testing::files::{have, noise};
use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::spread::Spread;

use crate::{lifecycle, memory, nginx};

/// The variable that names the builds: paths, separated by colons.
const BINARIES: &str = "CLOAKROOM_BENCH_BINARIES";
const ROUNDS: usize = 3;
const BUNDLE_BYTES: u64 = 1 << 30;
const AT_ONCE: usize = 32;
/// After this time, memory has been returned to the kernel, or never is.
const CALM: Duration = Duration::from_secs(20);
/// `sysconf(_SC_CLK_TCK)`, the same on every Linux.
const TICK: Duration = Duration::from_millis(10);

pub fn run() {
    let Some(named) = std::env::var_os(BINARIES).filter(|_| have(&["curl"])) else {
        println!("skipped: {BINARIES} names no builds, separated by colons");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bundle");
    noise(&bundle, BUNDLE_BYTES);
    let mut builds: Vec<Build> = std::env::split_paths(&named).map(Build::new).collect();
    for _ in 0..ROUNDS {
        builds.iter_mut().for_each(|build| build.transfer(&bundle));
        builds.iter_mut().for_each(Build::burst);
        builds.iter_mut().for_each(Build::sweep);
    }
    builds.iter().for_each(Build::report);
}

#[derive(Default)]
struct Build {
    binary: PathBuf,
    upload: Spread,
    download: Spread,
    transfer_cpu: Spread,
    burst: Spread,
    burst_cpu: Spread,
    sweep: Spread,
    peaks: Vec<String>,
    left: Vec<String>,
}

impl Build {
    fn new(binary: PathBuf) -> Self {
        Self { binary, ..Self::default() }
    }

    fn serve(&self, folder: &Path, flags: &[&str]) -> Cloakroom {
        let mut command = Command::new(&self.binary);
        command.env_clear().args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--min-free-space",
            "0b",
            "--data-dir",
        ]);
        command.arg(folder).args(flags);
        Cloakroom::start(command)
    }

    fn transfer(&mut self, bundle: &Path) {
        let folder = tempfile::tempdir().unwrap();
        let server = self.serve(folder.path(), &["--no-kubernetes"]);
        cloakroom_testing::files::settle();
        let (up, down) = nginx::ours(&server, bundle);
        self.upload.add(up);
        self.download.add(down);
        self.transfer_cpu.add(cpu(&server));
    }

    fn burst(&mut self) {
        let folder = tempfile::tempdir().unwrap();
        let server = self.serve(folder.path(), &["--no-kubernetes"]);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        cloakroom_testing::files::settle();
        let began = Instant::now();
        runtime.block_on(memory::load(&server, AT_ONCE, AT_ONCE, memory::BUNDLE_BYTES));
        self.burst.add(began.elapsed());
        self.burst_cpu.add(cpu(&server));
        std::thread::sleep(CALM);
        self.peaks.push(memory::peak(&server));
        self.left.push(memory::resident(&server));
    }

    fn sweep(&mut self) {
        let seconds = lifecycle::mean_sweep(|folder, flags| self.serve(folder, flags));
        self.sweep.add(Duration::from_secs_f64(seconds));
    }

    fn report(&self) {
        println!("{}", self.binary.display());
        println!("  upload of 1 GiB      {}\n  download of 1 GiB    {}", self.upload, self.download);
        println!("  CPU time of both     {}", self.transfer_cpu);
        println!("  32 of 256 MiB in, 32 out at once  {}, CPU time {}", self.burst, self.burst_cpu);
        println!(
            "  memory at its peak: {}; {} s later: {}",
            self.peaks.join(", "),
            CALM.as_secs(),
            self.left.join(", ")
        );
        println!("  sweep of 100,000     {}", self.sweep);
    }
}

/// User and system time of a process so far.
pub(super) fn cpu(server: &Cloakroom) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
    // The program's name is in brackets and may contain any character, so fields are counted from the last closing
    // bracket.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u32 = fields[11..13].iter().map(|field| field.parse::<u32>().unwrap()).sum();
    TICK * ticks
}
