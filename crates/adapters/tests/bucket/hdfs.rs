//! HDFS, whose bytes are at other hosts than its names, and whose errors have other kinds.

use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cloakroom_adapters::bucket::{BucketOptions, BucketStore, Pool};
use cloakroom_core::client::Client;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::resource::BlobKey;
use cloakroom_core::text::chain;
use cloakroom_storage::log::LogStore as _;
use cloakroom_storage::store::{Begun, BlobStore as _, StoreError};
use cloakroom_testing::front::{Front, Turn};
use cloakroom_testing::hdfs::{Hdfs, TEAM, USER};
use cloakroom_testing::needs::{Need, trial};
use cloakroom_testing::scripted::closed_port;
use futures_util::TryStreamExt as _;
use libtest_mimic::Trial;
use serde_json::Value;

use super::refusals::exposition;
use super::{download, first, new_key, noise, store_at, store_with_pool, upload};

/// Several pieces, in one block.
const SIZE: usize = 3 << 20;

const STANDBY: Turn = Turn::Answer(
    403,
    "application/json",
    r#"{"RemoteException":{"exception":"StandbyException","message":"this is the other one\n\tat java.lang.Thread"}}"#,
);

pub fn trials() -> Vec<Trial> {
    let mut needs = Hdfs::needs();
    needs.push(Need::Program("curl"));
    let run = |name, test: fn()| trial(name, &needs, test);
    vec![
        run("hdfs::the_active_namenode_is_found", || block_on(the_active_namenode_is_found())),
        run("hdfs::datanodes_that_are_away_are_left_out", || {
            block_on(datanodes_that_are_away_are_left_out());
        }),
        run("hdfs::a_namenode_that_hangs_is_passed_over_and_counted", || {
            block_on(a_namenode_that_hangs_is_passed_over_and_counted());
        }),
        run("hdfs::uploads_that_pause_keep_no_download_out", || {
            block_on(uploads_that_pause_keep_no_download_out());
        }),
        run("hdfs::each_refusal_has_its_kind_and_its_words", || {
            block_on(each_refusal_has_its_kind_and_its_words());
        }),
        run("hdfs::answers_that_get_lost_are_confirmed", || block_on(answers_that_get_lost_are_confirmed())),
        run("hdfs::a_rename_that_was_not_done_is_noticed", || {
            block_on(a_rename_that_was_not_done_is_noticed());
        }),
        run("hdfs::a_download_goes_on_where_it_broke", || block_on(a_download_goes_on_where_it_broke())),
        run("hdfs::an_upload_whose_end_gets_lost_fails_and_leaves_nothing", || {
            block_on(an_upload_whose_end_gets_lost_fails_and_leaves_nothing());
        }),
        run("hdfs::leftovers_of_uploads_go_with_a_later_list", || {
            block_on(leftovers_of_uploads_go_with_a_later_list());
        }),
    ]
}

fn block_on(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

/// A store at these namenodes.
fn store_of(namenodes: &str, folder: &str, user: &str) -> BucketStore {
    let options = BucketOptions { user: Some(user.to_owned()), ..BucketOptions::default() };
    store_at(&format!("webhdfs://{namenodes}/{TEAM}/{folder}"), options, &[], &Metrics::new())
}

/// A store, and a proxy before its namenode.
fn behind(
    hdfs: &Hdfs,
    folder: &str,
    script: impl Fn(&str) -> Turn + Send + Sync + 'static,
) -> (BucketStore, Front) {
    let front = Front::before(hdfs.namenode().parse().unwrap(), script);
    (store_of(&host(&front), folder, USER), front)
}

/// The host and the port of a proxy.
fn host(front: &Front) -> String {
    front.url().replace("http://", "")
}

async fn assert_stored(store: &BucketStore, key: BlobKey) {
    let bytes = noise(SIZE);
    upload(store, key, None, &bytes).await.unwrap();
    assert!(download(store, key, SIZE as u64).await.unwrap() == bytes);
}

async fn the_active_namenode_is_found() {
    let hdfs = Hdfs::shared();
    let standby = Front::before(hdfs.namenode().parse().unwrap(), |_| STANDBY);
    let away = format!("127.0.0.1:{}", closed_port());
    let store = store_of(&format!("{away},{},{}", host(&standby), hdfs.namenode()), "active", USER);
    store.probe().await.unwrap();
    assert_stored(&store, new_key()).await;
    let only_standby = store_of(&host(&standby), "active", USER);
    let with_one_away = store_of(&format!("{away},{}", host(&standby)), "active", USER);
    for (store, why) in [
        (only_standby, "the store answered StandbyException: this is the other one"),
        (with_one_away, "the store cannot be reached: Connection refused (os error 111)"),
    ] {
        let failure = store.facts(new_key()).await.unwrap_err();
        assert!(matches!(failure, StoreError::Unavailable(_)), "{failure:?}");
        assert!(chain(&failure).ends_with(why), "{}", chain(&failure));
    }
}

/// The script of a namenode that names a datanode that is away for the first `times` calls of `operation`.
fn away(times: usize, operation: &'static str) -> impl Fn(&str) -> Turn + Send + Sync + 'static {
    let answer = format!(r#"{{"Location":"http://127.0.0.1:{}/webhdfs/v1/a"}}"#, closed_port());
    let turn = Turn::Answer(200, "application/json", answer.leak());
    let seen = AtomicUsize::new(0);
    move |line| {
        let is_one = line.contains(operation) && seen.fetch_add(1, Ordering::Relaxed) < times;
        if is_one { turn } else { Turn::Pass }
    }
}

async fn datanodes_that_are_away_are_left_out() {
    for operation in ["op=CREATE", "op=OPEN"] {
        let (left_out, script) = (Arc::new(AtomicUsize::new(0)), away(5, operation));
        let counted = Arc::clone(&left_out);
        let (store, _front) = behind(Hdfs::shared(), "away", move |line| {
            let is_left_out = line.contains(operation) && line.contains("excludedatanodes=127.0.0.1");
            counted.fetch_add(usize::from(is_left_out), Ordering::Relaxed);
            script(line)
        });
        assert_stored(&store, new_key()).await;
        assert!(left_out.load(Ordering::Relaxed) > 0, "{operation}");
    }
    let (store, _front) = behind(Hdfs::shared(), "away", away(usize::MAX, "op=CREATE"));
    let failure = upload(&store, new_key(), None, &noise(SIZE)).await.unwrap_err();
    let said = chain(&failure);
    assert!(matches!(failure, StoreError::Unavailable(_)), "{said}");
    assert!(said.contains("the store named the datanode 127.0.0.1:") && said.contains("refused"), "{said}");
}

/// A namenode that takes connections and never answers.
async fn a_namenode_that_hangs_is_passed_over_and_counted() {
    let (hangs, metrics) = (TcpListener::bind("127.0.0.1:0").unwrap(), Metrics::new());
    let namenodes = format!("{},{}", hangs.local_addr().unwrap(), Hdfs::shared().namenode());
    let options = BucketOptions { user: Some(USER.to_owned()), ..BucketOptions::default() };
    let store = store_at(&format!("webhdfs://{namenodes}/{TEAM}/hangs"), options, &[], &metrics);
    assert_eq!(store.facts(new_key()).await.unwrap(), None);
    let counted = exposition(&metrics);
    let expected = "cloakroom_store_requests_total{call=\"head\",outcome=\"unavailable\"} 1";
    assert!(counted.contains(expected), "{counted}");
}

/// The memory of the pool is for downloads.
async fn uploads_that_pause_keep_no_download_out() {
    let options = || BucketOptions { user: Some(USER.to_owned()), ..BucketOptions::default() };
    let location = format!("webhdfs://{}/{TEAM}/pauses", Hdfs::shared().namenode());
    let store = store_with_pool(&location, options(), Pool::new(512 << 10), &[], &Metrics::new());
    let key = new_key();
    assert_stored(&store, key).await;
    let mut paused = Vec::new();
    for _ in 0..3 {
        let Begun { mut writer, .. } = store.begin(new_key(), None, &Client::Server).await.unwrap();
        writer.write(noise(4)).await.unwrap();
        paused.push(writer);
    }
    let fetched = tokio::time::timeout(Duration::from_secs(20), download(&store, key, SIZE as u64));
    assert!(fetched.await.unwrap().unwrap() == noise(SIZE));
}

async fn each_refusal_has_its_kind_and_its_words() {
    let hdfs = Hdfs::start();
    let store = store_of(hdfs.namenode(), "refusals", USER);
    let key = new_key();
    assert_stored(&store, key).await;

    let failure = upload(&store_of(hdfs.namenode(), "refusals", "ann"), new_key(), None, &noise(4)).await;
    let said = chain(&failure.unwrap_err());
    assert!(said.contains("the store does not allow it") && said.contains("user=ann"), "{said}");

    let (with_kerberos, _front) =
        behind(&hdfs, "refusals", |_| Turn::Answer(401, "text/html", "<html>Authentication required</html>"));
    let failure = with_kerberos.check().await.unwrap_err();
    let said = chain(&failure);
    assert!(matches!(failure, StoreError::Denied(_)) && said.contains("wants Kerberos"), "{said}");

    hdfs.set_safe_mode(true);
    assert!(download(&store, key, SIZE as u64).await.is_ok());
    let failure = upload(&store, new_key(), None, &noise(4)).await.unwrap_err();
    let said = chain(&failure);
    assert!(matches!(failure, StoreError::Unavailable(_)) && said.contains("SafeModeException: "), "{said}");
    assert!(!said.contains("\tat "), "{said}");
    hdfs.set_safe_mode(false);

    hdfs.set_quota(1 << 20);
    let failure = upload(&store, new_key(), None, &noise(4)).await.unwrap_err();
    let said = chain(&failure);
    assert!(matches!(failure, StoreError::Full { .. }) && said.contains("quota"), "{said}");
}

async fn answers_that_get_lost_are_confirmed() {
    let lost = first(2, |line| line.contains("op=RENAME"), Turn::LoseAnswer);
    let (store, _front) = behind(Hdfs::shared(), "lost", lost);
    for _ in 0..2 {
        assert_stored(&store, new_key()).await;
    }
    let lost = first(2, |line| line.contains("op=RENAME"), Turn::LoseAnswer);
    let (store, _front) = behind(Hdfs::shared(), "lost-stamp", lost);
    let stamp = "form-1 00000000000000ab 1 7 0 1-0 serves".parse().unwrap();
    let next = "form-1 00000000000000ab 2 8 0 1-0 serves".parse().unwrap();
    assert!(store.replace_stamp(None, stamp).await.unwrap());
    assert!(store.replace_stamp(Some(stamp), next).await.unwrap());
    assert!(!store.replace_stamp(Some(stamp), next).await.unwrap());
    assert_eq!(store.stamp().await.unwrap(), Some(next));
}

async fn a_rename_that_was_not_done_is_noticed() {
    let done = |line: &str| {
        if line.contains("op=RENAME") { Turn::Answer(200, "text/plain", "") } else { Turn::Pass }
    };
    let (store, _front) = behind(Hdfs::shared(), "renames", done);
    let key = new_key();
    let failure = upload(&store, key, None, &noise(4)).await.unwrap_err();
    assert!(matches!(failure, StoreError::Unavailable(_)), "{failure:?}");
    assert_eq!(store.facts(key).await.unwrap(), None);
    let stamp = "form-1 00000000000000ab 1 7 0 1-0 serves".parse().unwrap();
    assert!(store.replace_stamp(None, stamp).await.is_err());
    assert_eq!(store.stamp().await.unwrap(), None);
}

/// A store whose namenode names, once for this operation on `key`, a proxy before the datanode. That has this turn for each request.
fn with_a_datanode_behind(
    folder: &str,
    key: BlobKey,
    operation: &str,
    path: &str,
    turn: Turn,
) -> (BucketStore, [Front; 2]) {
    let namenode = Hdfs::shared().namenode();
    let method = if operation == "OPEN" { "GET" } else { "PUT" };
    let url = format!(
        "http://{namenode}/webhdfs/v1/{TEAM}/{folder}/{path}?op={operation}&user.name={USER}&noredirect=true"
    );
    let answer = Command::new("curl").args(["--silent", "--request", method, &url]).output().unwrap();
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let place = answer["Location"].as_str().unwrap();
    let datanode = place.split('/').nth(2).unwrap();
    let front = Front::before(datanode.parse().unwrap(), move |_| turn);
    let answer = format!(r#"{{"Location":"{}"}}"#, place.replace(datanode, &host(&front)));
    let (answer, wanted, was_told) = (&*answer.leak(), format!("{key}"), AtomicBool::new(false));
    let operation = format!("op={operation}&");
    let (store, other) = behind(Hdfs::shared(), folder, move |line| {
        let is_it = line.contains(&wanted) && line.contains(&operation);
        if is_it && !was_told.swap(true, Ordering::Relaxed) {
            Turn::Answer(200, "application/json", answer)
        } else {
            Turn::Pass
        }
    });
    (store, [front, other])
}

async fn a_download_goes_on_where_it_broke() {
    let (key, bytes) = (new_key(), noise(SIZE));
    upload(&store_of(Hdfs::shared().namenode(), "cut", USER), key, None, &bytes).await.unwrap();
    let path = format!("blobs/{key}");
    let (store, [front, _]) =
        with_a_datanode_behind("cut", key, "OPEN", &path, Turn::Cut { after: SIZE / 2 });
    assert!(download(&store, key, SIZE as u64).await.unwrap() == bytes);
    assert!(front.passed_bytes() > 0);
}

async fn an_upload_whose_end_gets_lost_fails_and_leaves_nothing() {
    let key = new_key();
    let path = format!("incoming/{key}/file");
    let (store, _fronts) = with_a_datanode_behind("end", key, "CREATE", &path, Turn::LoseAnswer);
    let failure = upload(&store, key, None, &noise(SIZE)).await.unwrap_err();
    assert!(matches!(failure, StoreError::Unavailable(_)), "{failure:?}");
    assert_eq!(store.facts(key).await.unwrap(), None);
    store.abort(key, None).await.unwrap();
    assert_eq!(Hdfs::shared().names(&format!("{TEAM}/end/incoming")), [] as [&str; 0]);
}

async fn leftovers_of_uploads_go_with_a_later_list() {
    let hdfs = Hdfs::shared();
    let store = store_of(hdfs.namenode(), "left", USER);
    let (old, young) = (new_key(), new_key());
    for key in [old, young] {
        let Begun { writer, .. } = store.begin(key, None, &Client::Server).await.unwrap();
        drop(writer);
    }
    let eight_days = Duration::from_secs(8 * 24 * 3600);
    let then = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - eight_days;
    hdfs.touch(&format!("/{TEAM}/left/incoming/{old}"), then.as_secs());
    let listed: Vec<_> = store.list().try_collect().await.unwrap();
    assert_eq!(listed, []);
    assert_eq!(hdfs.names(&format!("{TEAM}/left/incoming")), [young.to_string()]);
}
