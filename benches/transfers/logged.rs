//! A server whose ledger is in a bucket that answers 30 ms late: what each change waits for, how long another server takes to go
//! on, and how many writes the bucket is paid for.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cloakroom_testing::needs::missing;
use cloakroom_testing::process::{Cloakroom, command};
use cloakroom_testing::s3_gateway::{ACCESS_KEY, BUCKET, S3Gateway, SECRET_KEY};
use cloakroom_testing::spread::Spread;
use futures_util::{StreamExt as _, stream};
use reqwest::Client;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use crate::{lifecycle, memory};

const LATENCY: Duration = Duration::from_millis(30);
const ROUNDS: usize = 20;
const SMALL_BYTES: usize = 4 << 10;
const AT_ONCE: usize = 16;
const MANY: usize = 400;
const STARTS: usize = 5;
const MINUTE: Duration = Duration::from_mins(1);
const PER_MINUTE: u32 = 100;

pub fn run() {
    let missing = missing(&S3Gateway::needs());
    if !missing.is_empty() {
        println!("skipped: it needs versitygw (CLOAKROOM_TEST_VERSITYGW): {missing:?}");
        return;
    }
    tokio::runtime::Runtime::new().unwrap().block_on(measure());
}

async fn measure() {
    let gateway = S3Gateway::start().await;
    let far = distant(gateway.address()).await;
    let client = Client::builder().no_proxy().tls_backend_preconfigured(memory::no_roots()).build().unwrap();
    let begun = Instant::now();
    let (server, folder) = serve(far);
    println!("start with an empty prefix: {:.2} s", begun.elapsed().as_secs_f64());
    transfers(&client, &server).await;
    writes(&client, &server).await;
    takeovers(&client, (server, folder), far).await;
    rows(&gateway, far).await;
}

/// A port whose answers are those of `server`, a little later.
async fn distant(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(server).await.unwrap();
            client.set_nodelay(true).unwrap();
            server.set_nodelay(true).unwrap();
            let ((mut asks, hears), (answers, mut takes)) = (client.into_split(), server.into_split());
            tokio::spawn(async move { copy(&mut asks, &mut takes).await });
            tokio::spawn(late(answers, hears));
        }
    });
    address
}

async fn late(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let (sender, mut pieces) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            let due = tokio::time::Instant::now() + LATENCY;
            if sender.send((due, buffer[..read].to_vec())).is_err() {
                break;
            }
        }
    });
    while let Some((due, piece)) = pieces.recv().await {
        sleep_until(due).await;
        if to.write_all(&piece).await.is_err() {
            break;
        }
    }
}

/// A server, with its data directory, which is a cache.
fn serve(bucket: SocketAddr) -> (Cloakroom, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut serve = command();
    serve.args(["serve", "--listen", "127.0.0.1:0", "--store-allow-http", "--no-kubernetes", "--data-dir"]);
    serve.arg(folder.path().join("data")).args(["--store-endpoint", &format!("http://{bucket}")]);
    serve.args(["--store", &format!("s3://{BUCKET}/cloakroom")]);
    serve.env("AWS_ACCESS_KEY_ID", ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
    (Cloakroom::start(serve), folder)
}

async fn upload(client: &Client, server: &Cloakroom) -> (String, String) {
    let url = server.url("/api/v1/resources?namespace=demo&label=app%3Ddemo");
    let body = Bytes::from(vec![7; SMALL_BYTES]);
    let answer = client.post(url).body(body).send().await.unwrap().error_for_status().unwrap();
    let ticket: serde_json::Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    let text = |name: &str| ticket[name].as_str().unwrap().to_owned();
    (text("resourceId"), text("resourceSecret"))
}

async fn download(client: &Client, server: &Cloakroom, (id, secret): &(String, String)) {
    let answer = client.get(server.url(&format!("/api/v1/resources/{id}"))).bearer_auth(secret);
    let bytes = answer.send().await.unwrap().error_for_status().unwrap().bytes().await.unwrap();
    assert_eq!(bytes.len(), SMALL_BYTES);
}

async fn transfers(client: &Client, server: &Cloakroom) {
    let [mut up, mut first, mut later] = [(); 3].map(|()| Spread::default());
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let ticket = upload(client, server).await;
        up.add(begun.elapsed());
        for spread in [&mut first, &mut later] {
            let begun = Instant::now();
            download(client, server, &ticket).await;
            spread.add(begun.elapsed());
            // A use of the same second is not noted.
            tokio::time::sleep(Duration::from_millis(1100)).await;
        }
    }
    println!("upload of 4 KiB: {up}\nits first download: {first}\nlater ones: {later}");
    let begun = Instant::now();
    stream::iter(0..MANY).for_each_concurrent(AT_ONCE, async |_| drop(upload(client, server).await)).await;
    println!("{MANY} uploads of 4 KiB, {AT_ONCE} at once: {:.2} s", begun.elapsed().as_secs_f64());
}

/// How many writes the bucket has answered.
async fn puts(client: &Client, server: &Cloakroom) -> u64 {
    let metrics = client.get(server.url("/metrics")).send().await.unwrap().text().await.unwrap();
    let puts = metrics.lines().filter(|line| line.starts_with("cloakroom_store_requests_total{call=\"put\""));
    puts.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

async fn writes(client: &Client, server: &Cloakroom) {
    let before = puts(client, server).await;
    tokio::time::sleep(MINUTE).await;
    let idle = puts(client, server).await;
    let mut ticks = tokio::time::interval(MINUTE / PER_MINUTE);
    for _ in 0..PER_MINUTE {
        ticks.tick().await;
        upload(client, server).await;
    }
    let busy = puts(client, server).await;
    println!("writes in a minute: {} idle, {} with {PER_MINUTE} uploads", idle - before, busy - idle);
}

/// A server is killed with its folder; the time until the next one has staged a file.
async fn takeovers(client: &Client, (mut server, mut folder): (Cloakroom, TempDir), bucket: SocketAddr) {
    let mut spread = Spread::default();
    for _ in 0..STARTS {
        let killed = Instant::now();
        server.kill();
        drop(folder);
        (server, folder) = serve(bucket);
        upload(client, &server).await;
        spread.add(killed.elapsed());
    }
    println!("killed with its folder, until the next one has taken an upload: {spread}");
    server.signal("TERM");
    assert!(server.wait().success());
}

/// The start with many rows, after a server that has stopped.
async fn rows(gateway: &S3Gateway, bucket: SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    lifecycle::fill(folder.path()).await;
    let full = std::fs::read(folder.path().join("ledger.db")).unwrap();
    let copies = gateway.objects().join("cloakroom/ledger");
    let newest = |folder: &Path| {
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let epoch = |name: &str| name.split_once('-').unwrap().0.parse::<u64>().unwrap();
        names.map(|name| name.into_string().unwrap()).max_by_key(|name| epoch(name)).unwrap()
    };
    // What was staged before becomes strays.
    std::fs::write(copies.join(newest(&copies)), &full).unwrap();
    let mut spread = Spread::default();
    for _ in 0..STARTS {
        let begun = Instant::now();
        let (mut server, _folder) = serve(bucket);
        spread.add(begun.elapsed());
        server.signal("TERM");
        assert!(server.wait().success());
    }
    println!("start with 100,000 rows ({} MiB), the last server has stopped: {spread}", full.len() >> 20);
}
