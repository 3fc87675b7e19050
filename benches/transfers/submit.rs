//! `cloakroom submit` compared with real spark-submit: a minimal application on the same API server, without waiting
//! for its end.
//!
//! Needs `CLOAKROOM_TEST_SPARK_HOMES` (a folder with `spark-4.3.0`, as `.ci/run` makes it), Java, bash and GNU time.

use std::path::{Path, PathBuf};
use std::process::Command;

use axum::Router;
use axum::body::Bytes;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

const SPARK: &str = "spark-4.3.0/bin/spark-submit";
const SPARK_RUNS: u32 = 5;
/// One run of `cloakroom submit` is too short for GNU time, which counts hundredths of a second.
const OUR_RUNS: u32 = 200;

/// Times and memory of one submission.
struct Cost {
    wall_ms: f64,
    cpu_ms: f64,
    peak_mib: f64,
}

pub fn run() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let master = format!("k8s://http://{}", listener.local_addr().unwrap());
    runtime.spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    let ours = cost(Path::new(env!("CARGO_BIN_EXE_cloakroom")), &["submit"], &master, OUR_RUNS);
    println!("cloakroom submit, {OUR_RUNS} runs: {ours}");
    let Some(spark) = spark() else { return };
    cost(&spark, &[], &master, 1);
    let theirs = cost(&spark, &[], &master, SPARK_RUNS);
    println!("spark-submit 4.3.0, {SPARK_RUNS} runs: {theirs}");
    println!(
        "times less: wall {:.0}, CPU {:.0}, memory {:.1}",
        theirs.wall_ms / ours.wall_ms,
        theirs.cpu_ms / ours.cpu_ms,
        theirs.peak_mib / ours.peak_mib
    );
}

fn spark() -> Option<PathBuf> {
    let homes = std::env::var_os("CLOAKROOM_TEST_SPARK_HOMES").map(PathBuf::from);
    let found = homes.map(|homes| homes.join(SPARK)).filter(|path| path.exists());
    if found.is_none() {
        println!("no spark-submit to compare with: CLOAKROOM_TEST_SPARK_HOMES has no {SPARK}");
    }
    found
}

/// An API server that accepts every object.
async fn answer(method: Method, body: Bytes) -> Response {
    let mut object: Value = serde_json::from_slice(&body).unwrap_or_default();
    object["metadata"]["uid"] = json!("56713405-3125-48f1-ad63-da487293cb41");
    let status = if method == Method::POST { StatusCode::CREATED } else { StatusCode::OK };
    (status, [(header::CONTENT_TYPE, "application/json")], object.to_string()).into_response()
}

/// The mean of several runs, and the largest peak of memory.
fn cost(program: &Path, first: &[&str], master: &str, runs: u32) -> Cost {
    let report = tempfile::NamedTempFile::new().unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new("time");
    command.args(["-f", "%e %U %S %M", "-o"]).arg(report.path());
    command.args(["bash", "-c", "for i in $(seq $0); do \"$@\" 2>/dev/null || exit 1; done"]);
    command.arg(runs.to_string()).arg(program).args(first);
    command.args([
        "--master",
        master,
        "--deploy-mode",
        "cluster",
        "--class",
        "org.apache.spark.examples.SparkPi",
    ]);
    command.args(["--conf", "spark.kubernetes.container.image=repo.example/spark:4"]);
    command.args(["--conf", "spark.kubernetes.submission.waitAppCompletion=false"]);
    command.arg("local:///opt/spark/examples/jars/spark-examples.jar");
    command.env("HOME", home.path()).env_remove("KUBECONFIG").env_remove("SPARK_CONF_DIR");
    assert!(
        command.status().is_ok_and(|status| status.success()),
        "GNU time is missing, or a submission failed"
    );
    let text = std::fs::read_to_string(report.path()).unwrap();
    let [wall, user, system, peak_kib] =
        text.split_whitespace().map(|word| word.parse::<f64>().unwrap()).collect::<Vec<_>>()[..]
    else {
        panic!("GNU time said: {text}");
    };
    let per_run = 1000.0 / f64::from(runs);
    Cost { wall_ms: wall * per_run, cpu_ms: (user + system) * per_run, peak_mib: peak_kib / 1024.0 }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "wall {:.1} ms, CPU {:.1} ms, peak memory {:.1} MiB",
            self.wall_ms, self.cpu_ms, self.peak_mib
        )
    }
}
