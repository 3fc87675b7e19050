//! 1 GiB of real jars from folder to folder: `stage` and `fetch`, compared with tar and curl with and without gzip.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cloakroom_testing::files::{have, settle, time};
use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::spread::{Spread, ratio};

const JARS: &str = "CLOAKROOM_TEST_SPARK_JARS";
const INPUT_BYTES: u64 = 1 << 30;
const ROUNDS: usize = 5;

pub fn run() {
    let Some(jars) = std::env::var_os(JARS).map(PathBuf::from) else {
        println!("skipped: {JARS} does not name a folder of jars");
        return;
    };
    if !have(&["curl", "tar", "gzip", "sync"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input");
    let bytes = fill(&input, &jars);
    let server = Cloakroom::serve(&folder.path().join("data"), &["--min-free-space", "0b"]);
    let (mut ours, mut gzip, mut plain) = (Spread::default(), Spread::default(), Spread::default());
    for _ in 0..ROUNDS {
        ours.add(journey(folder.path(), |to| with_cloakroom(&server, &input, to)));
        plain.add(journey(folder.path(), |to| with_tar(&server, &input, to, "")));
        gzip.add(journey(folder.path(), |to| with_tar(&server, &input, to, "z")));
    }
    for (name, spread) in [
        ("stage + fetch", &ours),
        ("tar cz | curl -T -, curl | tar xz", &gzip),
        ("the same without z", &plain),
    ] {
        let rate = bytes as f64 / 1e6 / spread.median().as_secs_f64();
        println!(
            "{name}: {spread}, {rate:.0} MB/s, stage + fetch is {:.2} times as fast",
            ratio(&ours, spread)
        );
    }
}

/// Copies jars under new names until they have enough bytes.
fn fill(input: &Path, jars: &Path) -> u64 {
    std::fs::create_dir(input).unwrap();
    let mut bytes = 0;
    for round in 0.. {
        for entry in std::fs::read_dir(jars).unwrap() {
            let path = entry.unwrap().path();
            if !path.is_file() {
                continue;
            }
            let name = format!("{round}-{}", path.file_name().unwrap().to_str().unwrap());
            bytes += std::fs::copy(&path, input.join(name)).unwrap();
            if bytes >= INPUT_BYTES {
                return bytes;
            }
        }
    }
    bytes
}

fn journey(folder: &Path, run: impl FnOnce(&Path) -> Duration) -> Duration {
    let to = folder.join("output");
    settle();
    let took = run(&to);
    std::fs::remove_dir_all(&to).unwrap();
    took
}

fn with_cloakroom(server: &Cloakroom, input: &Path, to: &Path) -> Duration {
    let binary = env!("CARGO_BIN_EXE_cloakroom");
    let url = server.url("");
    time(&format!(
        "cd {input}; {binary} stage --quiet --server {url} --namespace demo --label app=demo -- *.jar > ../ticket; \
         sed -E 's/.*\"resourceSecret\":\"([^\"]*)\".*/\\1/' ../ticket > ../secret; \
         id=$(sed -E 's/.*\"resourceId\":\"([^\"]*)\".*/\\1/' ../ticket); \
         {binary} fetch --server {url} --id $id --secret-file ../secret --to {to} 2> /dev/null",
        input = input.display(),
        to = to.display(),
    ))
}

fn with_tar(server: &Cloakroom, input: &Path, to: &Path, gzip: &str) -> Duration {
    let url = server.url("/api/v1/resources/?namespace=demo&label=app=demo");
    time(&format!(
        "cd {input}; mkdir {to}; tar c{gzip} *.jar | curl -sS --fail -T - -o ../ticket '{url}'; \
         secret=$(sed -E 's/.*\"resourceSecret\":\"([^\"]*)\".*/\\1/' ../ticket); \
         url=$(sed -E 's/.*\"url\":\"([^\"]*)\".*/\\1/' ../ticket); \
         curl -sS --fail -H \"Authorization: Bearer $secret\" $url | tar x{gzip} -C {to}",
        input = input.display(),
        to = to.display(),
    ))
}
