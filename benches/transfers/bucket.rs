//! A server whose bundles are in a bucket, compared with s5cmd, which puts the same bytes there itself. Both use the same
//! gateway on this machine. The clients of the server are curl processes.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use cloakroom_testing::dist;
use cloakroom_testing::files::{have, noise, settle, time};
use cloakroom_testing::needs::missing;
use cloakroom_testing::process::{self, Cloakroom};
use cloakroom_testing::s3_gateway::{ACCESS_KEY, BUCKET, S3Gateway, SECRET_KEY};
use cloakroom_testing::spread::{Spread, ratio};

use crate::memory;

const ROUNDS: usize = 7;
const LARGE_BYTES: u64 = 1 << 30;
const SMALL_BYTES: u64 = 4 << 10;
const SMALL_FILES: usize = 400;
const SMALL_AT_ONCE: usize = 16;
const TRANSFERS: usize = 64;
/// Of those transfers. The gateway copies parts together, so they need twice their size on the disk.
const BUNDLE_BYTES: usize = 64 << 20;

pub fn run() {
    let missing = missing(&S3Gateway::needs());
    if !missing.is_empty() || !have(&["curl", "s5cmd"]) {
        println!("skipped: it needs versitygw (CLOAKROOM_TEST_VERSITYGW), curl and s5cmd: {missing:?}");
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let gateway = runtime.block_on(S3Gateway::start());
    let folder = tempfile::tempdir().unwrap();
    noise(&folder.path().join("large"), LARGE_BYTES);
    let server = serve(process::command(), &gateway, &folder.path().join("data"));
    let mut uploads = String::new();
    for number in 0..SMALL_FILES {
        let file = folder.path().join(format!("small-{number}"));
        noise(&file, SMALL_BYTES);
        writeln!(uploads, "url = {:?}\nupload-file = {file:?}\noutput = /dev/null", upload_url(&server))
            .unwrap();
    }
    std::fs::write(folder.path().join("uploads"), uploads).unwrap();
    let mut tasks = tasks(folder.path(), &server, &gateway);
    for _ in 0..ROUNDS {
        for task in &mut tasks {
            settle();
            task.ours.add(time(&task.with_cloakroom));
            settle();
            task.theirs.add(time(&task.with_s5cmd));
        }
    }
    for Task { what, ours, theirs, .. } in &tasks {
        println!(
            "{what}: cloakroom {ours}, s5cmd {theirs}, s5cmd's time over cloakroom's {:.2}",
            ratio(ours, theirs)
        );
    }
    println!("peak memory of the server so far: {}", memory::peak(&server));
    for (uploads, downloads) in [(TRANSFERS, 0), (0, TRANSFERS), (TRANSFERS, TRANSFERS)] {
        let folder = tempfile::tempdir().unwrap();
        // That of the image has another allocator than the one that cargo builds.
        let server = serve(Command::new(dist::binary()), &gateway, folder.path());
        runtime.block_on(memory::load(&server, uploads, downloads, BUNDLE_BYTES));
        println!(
            "peak memory with {uploads} uploads and {downloads} downloads at once: {}",
            memory::peak(&server)
        );
    }
}

fn serve(mut serve: Command, gateway: &S3Gateway, data: &Path) -> Cloakroom {
    serve.env_clear().args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--ops-listen",
        "127.0.0.1:0",
        "--store-allow-http",
    ]);
    serve.arg("--data-dir").arg(data).args(["--store-endpoint", &gateway.url()]);
    serve.args(["--store", &format!("s3://{BUCKET}/{}", data.file_name().unwrap().to_str().unwrap())]);
    serve.env("AWS_ACCESS_KEY_ID", ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
    Cloakroom::start(serve)
}

fn upload_url(server: &Cloakroom) -> String {
    server.url("/api/v1/resources/x?namespace=demo&label=app%3Ddemo")
}

/// The same work by both.
struct Task {
    what: &'static str,
    with_cloakroom: String,
    with_s5cmd: String,
    ours: Spread,
    theirs: Spread,
}

fn tasks(folder: &Path, server: &Cloakroom, gateway: &S3Gateway) -> Vec<Task> {
    let (at, url) = (folder.display(), upload_url(server));
    let field = |name: &str| format!("$(sed -E 's/.*\"{name}\":\"([^\"]*)\".*/\\1/' {at}/ticket)");
    let s5cmd = format!(
        "AWS_ACCESS_KEY_ID={ACCESS_KEY} AWS_SECRET_ACCESS_KEY={SECRET_KEY} AWS_REGION=us-east-1 s5cmd --log error \
         --endpoint-url {} --numworkers {SMALL_AT_ONCE}",
        gateway.url()
    );
    let copy = format!("s3://{BUCKET}/copies");
    let task = |what, with_cloakroom, with_s5cmd| Task {
        what,
        with_cloakroom,
        with_s5cmd,
        ours: Spread::default(),
        theirs: Spread::default(),
    };
    vec![
        task(
            "upload of 1 GiB",
            format!("curl -sS --fail -o {at}/ticket -T {at}/large '{url}'"),
            format!("{s5cmd} cp {at}/large {copy}/large"),
        ),
        task(
            "download of 1 GiB",
            format!(
                "curl -sS --fail -o {at}/fetched -H \"Authorization: Bearer {}\" {}",
                field("resourceSecret"),
                field("url")
            ),
            format!("{s5cmd} cp {copy}/large {at}/fetched"),
        ),
        task(
            "400 uploads of 4 KiB, 16 at once",
            format!(
                "curl --no-progress-meter --fail --parallel --parallel-max {SMALL_AT_ONCE} --config {at}/uploads"
            ),
            format!("{s5cmd} cp '{at}/small-*' {copy}/"),
        ),
    ]
}
