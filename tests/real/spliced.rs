//! Bundles that are put together in a bucket.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::front::{Front, Turn};
use cloakroom_testing::needs::trial;
use cloakroom_testing::noise::noise;
use cloakroom_testing::process::{Cloakroom, output_in_time, stderr};
use cloakroom_testing::s3_gateway::S3Gateway;
use libtest_mimic::Trial;

use crate::buckets::{Bucket, run, stage_command};

/// More than one part of an upload.
const JAR_BYTES: usize = 6 << 20;

macro_rules! trials {
    ($needs:expr; $($test:ident),+ $(,)?) => {
        vec![$(trial(concat!("spliced::", stringify!($test)), &$needs, || run($test))),+]
    };
}

pub fn trials() -> Vec<Trial> {
    trials![
        S3Gateway::needs();
        a_bundle_is_put_together_over_a_connection_that_breaks,
        a_source_whose_object_is_gone_costs_one_whole_upload,
        splices_with_little_memory_do_not_wait_for_each_other,
    ]
}

/// Jars of which no two are the same.
fn jars(bucket: &Bucket) -> Vec<PathBuf> {
    let jar = |number: usize| {
        let path = bucket.folder.path().join(format!("{number}.jar"));
        std::fs::write(&path, noise(JAR_BYTES + number)).unwrap();
        path
    };
    (0..3).map(jar).collect()
}

fn command(bucket: &Bucket, server: &Cloakroom, jars: &[PathBuf], flags: &[&str]) -> Command {
    let mut command = stage_command(server, &jars[0]);
    command.args(&jars[1..]).args(flags).env("HOME", bucket.folder.path());
    command
}

fn staged(mut command: Command) -> (Ticket, String) {
    let output = output_in_time(&mut command);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    (serde_json::from_slice(&output.stdout).unwrap(), said)
}

fn assert_spliced(bucket: &Bucket, server: &Cloakroom, jars: &[PathBuf]) {
    let (ticket, said) = staged(command(bucket, server, jars, &[]));
    assert!(said.contains(" of it travelled: "), "{said}");
    let (whole, _) = staged(command(bucket, server, jars, &["--no-reuse"]));
    assert_eq!((ticket.size_bytes, ticket.sha256), (whole.size_bytes, whole.sha256));
}

async fn a_bundle_is_put_together_over_a_connection_that_breaks(bucket: Bucket) {
    let reads = AtomicUsize::new(0);
    let front = Front::before(bucket.gateway.address(), move |line| {
        let is_read = line.starts_with("GET ") && line.contains("/blobs/");
        match is_read && reads.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            true => Turn::Cut { after: 1 << 20 },
            false => Turn::Pass,
        }
    });
    let (server, jars) = (Cloakroom::start(bucket.command(&front.url(), &[])), jars(&bucket));
    staged(command(&bucket, &server, &jars, &[]));
    std::fs::write(&jars[1], noise(JAR_BYTES + 100)).unwrap();
    assert_spliced(&bucket, &server, &jars);
    assert_eq!(bucket.objects().len(), 3);
}

async fn a_source_whose_object_is_gone_costs_one_whole_upload(bucket: Bucket) {
    let (server, jars) = (bucket.serve(), jars(&bucket));
    let (first, _) = staged(command(&bucket, &server, &jars, &[]));
    let [object] = &bucket.objects()[..] else { panic!("{:?}", bucket.objects()) };
    std::fs::remove_file(bucket.gateway.objects().join("cloakroom/blobs").join(object)).unwrap();
    let (second, said) = staged(command(&bucket, &server, &jars, &[]));
    assert_eq!(second.sha256, first.sha256);
    assert!(!said.contains("again") && !said.contains("warning"), "{said}");
    assert_eq!(bucket.objects().len(), 1);
}

/// A splice takes the memory for reading before that for writing.
async fn splices_with_little_memory_do_not_wait_for_each_other(bucket: Bucket) {
    let flags = ["--store-memory", "16MiB", "--max-resource-size", "64MiB"];
    let server = Cloakroom::start(bucket.command(&bucket.gateway.url(), &flags));
    let jars = jars(&bucket);
    let (first, _) = staged(command(&bucket, &server, &jars, &[]));
    let stagers: Vec<_> = (0..4)
        .map(|_| {
            let command = command(&bucket, &server, &jars, &[]);
            std::thread::spawn(move || staged(command))
        })
        .collect();
    for stager in stagers {
        let (ticket, said) = stager.join().unwrap();
        assert_eq!(ticket.sha256, first.sha256);
        assert!(said.contains(" of it travelled: ") && !said.contains("again"), "{said}");
    }
}
