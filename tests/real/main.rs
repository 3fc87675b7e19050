//! The journeys with real input: Spark's own jars, curl, kubespark's client libraries, the image's root file system,
//! kubectl, Ray, another version of the program.
//!
//! If a test lacks something beyond Rust, it is skipped, and a line on stderr says what is missing. With
//! `CLOAKROOM_TEST_REQUIRE=all`, as in CI, it fails instead.

#![expect(clippy::pedantic, clippy::unwrap_used, reason = "tests are read for what they check")]

mod another_cluster;
mod api_server;
mod buckets;
mod chart;
mod clouds;
mod files_for_pods;
mod image;
mod in_front;
mod kubeconfigs;
mod limits;
mod logged;
mod manifests;
mod old_client;
mod pages;
mod proxies;
mod ray;
mod read_only;
mod spark_jars;
mod spliced;
mod stock_spark;
mod through_api_server;
mod try_it;
mod upload_tokens;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let trials: Vec<Trial> = [
        try_it::trials(),
        pages::trials(),
        proxies::trials(),
        limits::trials(),
        buckets::trials(),
        logged::trials(),
        spliced::trials(),
        stock_spark::trials(),
        clouds::trials(),
        ray::trials(),
        read_only::trials(),
        spark_jars::trials(),
        old_client::trials(),
        image::trials(),
        in_front::trials(),
        kubeconfigs::trials(),
        manifests::trials(),
        chart::trials(),
        api_server::trials(),
        files_for_pods::trials(),
        another_cluster::trials(),
        through_api_server::trials(),
        upload_tokens::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    api_server::stop();
    conclusion.exit();
}
