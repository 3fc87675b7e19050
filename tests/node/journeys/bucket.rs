//! A server without a volume, whose bundles and ledger are in a bucket: what happens to its pod and to its node fails no client.

use cloakroom_testing::needs::Need;
use cloakroom_testing::s3_gateway::{ACCESS_KEY, BUCKET, S3Gateway, SECRET_KEY};
use cloakroom_testing::tls;

use super::Journey;
use super::deploy::server;
use super::release::{self, Release};
use crate::cluster::{NODE, NODE_ADDRESS};
use crate::shell::{At, Background, laptop, run, start, until};
use crate::world;

pub const JOURNEY: Journey =
    Journey("a_server_with_a_bucket_outlives_its_pod_its_folder_and_its_node", bucket);

const NAME: &str = "bucket";

/// How often its pod is killed. By hand, give a larger number.
const KILLS: &str = "CLOAKROOM_TEST_KILLS";
const DEFAULT_KILLS: u32 = 3;

pub fn needs() -> Vec<Need> {
    release::needs().into_iter().chain(S3Gateway::needs()).collect()
}

fn bucket() {
    server();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let of_the_store = world::folder().join("store");
    std::fs::create_dir(&of_the_store).unwrap();
    let certificate = tls::signed_by_ca(&of_the_store, &[NODE_ADDRESS]);
    let address = NODE_ADDRESS.parse().unwrap();
    let gateway = runtime.block_on(S3Gateway::start_with_tls_on(address, &certificate));
    let release = Release { name: NAME, port: 31002, values: values(&gateway) };
    release.prepare();
    laptop(&format!(
        "kubectl create secret generic cloakroom-store -n {NAME} --from-literal=AWS_ACCESS_KEY_ID={ACCESS_KEY} \
             --from-literal=AWS_SECRET_ACCESS_KEY={SECRET_KEY}
         kubectl create secret generic store-ca -n {NAME} --from-file=ca.crt={}
         {}",
        certificate.ca.display(),
        release.install()
    ));
    laptop(&format!("head -c 200000000 /dev/urandom >bucket.bin\n{}", release.stage("bucket.bin")));
    let claims = laptop(&format!("kubectl get pvc -n {NAME} -o name"));
    assert_eq!(claims.stdout, "", "there is a volume");
    let kills = std::env::var(KILLS).map_or(DEFAULT_KILLS, |kills| kills.parse().unwrap());
    for _ in 0..kills {
        std::thread::scope(|scope| {
            // Its files are on their way when the pod is killed, or its driver waits for them.
            scope.spawn(|| release.counts());
            a_killed_pod(&release);
        });
    }
    a_drained_node(&release);
    let objects = std::fs::read_dir(gateway.objects().join("cloakroom/blobs")).unwrap().count();
    assert!(objects >= 1, "the bundles are elsewhere");
    laptop(&format!("helm uninstall {NAME} -n {NAME} && kubectl delete namespace {NAME} --wait=false"));
}

fn values(gateway: &S3Gateway) -> String {
    let (url, port) = (gateway.url(), gateway.address().port());
    format!(
        ",store.url=s3://{BUCKET}/cloakroom,store.endpoint={url},store.existingSecret=cloakroom-store,store.caSecret=store-ca,\
         networkPolicy.storePorts[0]={port}"
    )
}

/// An upload and a download, of which one at least is on its way when this returns.
fn transfers(release: &Release) -> Vec<Background> {
    let again = "cp -n bucket.bin again.bin";
    let transfers =
        vec![start(&format!("{again}\n{}", release.stage("again.bin"))), start(&release.fetch("bucket.bin"))];
    let metrics = format!(
        "kubectl get --raw /api/v1/namespaces/{NAME}/services/{NAME}-cloakroom-operations:10001/proxy/metrics \
             | grep '^cloakroom_transfers_in_flight' | grep -qv ' 0$'"
    );
    until("one is on its way", || run(At::Laptop, &metrics).code == Some(0));
    transfers
}

/// Its folder goes with it.
fn a_killed_pod(release: &Release) {
    let running = transfers(release);
    laptop(&format!(
        "kubectl delete pod -n {NAME} -l app.kubernetes.io/name=cloakroom --wait=false --grace-period=0 --force"
    ));
    for ran in running.into_iter().map(Background::end) {
        let took = ran.ok().took;
        eprintln!("node: a transfer whose server was killed took {:.1} s", took.as_secs_f64());
    }
}

fn a_drained_node(release: &Release) {
    let running = transfers(release);
    laptop(&format!("kubectl drain {NODE} --ignore-daemonsets --delete-emptydir-data --force --timeout=60s"));
    laptop(&format!("kubectl uncordon {NODE}"));
    for ran in running.into_iter().map(Background::end) {
        ran.ok();
    }
    laptop(&release.fetch("bucket.bin"));
}
