//! A real API server: what the fake one of the other tests must do alike, and the scenarios on the real thing.

use std::sync::OnceLock;

use cloakroom_cluster::{Access, ApiServer, ContentSource, Credentials, Given, PropertiesAccess};
use cloakroom_testing::cluster::{Account, Cluster, Next, Object, POD, rights, text};
use cloakroom_testing::control_plane::{ASSETS, ControlPlane, WatchCache};
use cloakroom_testing::needs::{Need, trial};
use cloakroom_testing::scenarios::{kinds, outages, pods, probes};
use cloakroom_testing::tls::of_version_1::{CERTIFICATE, KEY};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::Api;
use kube::api::PostParams;
use libtest_mimic::Trial;
use tokio::runtime::Runtime;
use tokio::sync::{OnceCell, RwLock};

use crate::chart::{helm, installed, notes};

/// One control plane for all of them. Those that disturb the others have it for themselves.
static PLANE: OnceCell<RwLock<ControlPlane>> = OnceCell::const_new();

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().unwrap())
}

async fn plane() -> &'static RwLock<ControlPlane> {
    // It would hold up the first pods of a namespace until a controller has made its default account, which takes up to
    // half a minute after the API server was away.
    let without = &["ServiceAccount"];
    PLANE.get_or_init(async || RwLock::new(ControlPlane::start(without).await)).await
}

/// Ends the control plane's processes.
pub fn stop() {
    if let Some(plane) = PLANE.get() {
        runtime().block_on(async { plane.read().await.end().await });
    }
}

macro_rules! trials {
    ($(shared $shared:path),+; $(helm $helm:path),+; $(alone $alone:path),+; $(helm_alone $helm_alone:path),+ $(,)?) => {
        vec![
            $(real(concat!("api_server::", stringify!($shared)), vec![], || {
                runtime().block_on(async { $shared(&*plane().await.read().await).await });
            }),)+
            $(real(concat!("api_server::", stringify!($helm)), helm::needs(), || {
                runtime().block_on(async { $helm(&*plane().await.read().await).await });
            }),)+
            $(real(concat!("api_server::", stringify!($alone)), vec![], || {
                runtime().block_on(async { $alone(&*plane().await.write().await).await });
            }),)+
            $(real(concat!("api_server::", stringify!($helm_alone)), helm::needs(), || {
                runtime().block_on(async { $helm_alone(&*plane().await.write().await).await });
            }),)+
        ]
    };
}

pub fn trials() -> Vec<Trial> {
    trials![
        shared probes::lists_are_of_what_the_selectors_ask_for,
        shared probes::watches_tell_every_change_since_a_version,
        shared probes::reviews_say_who_it_is_and_what_they_may,
        shared probes::objects_come_and_go,
        shared probes::discovery_names_the_kinds,
        shared the_fake_gives_the_rights_of_the_manifests,
        shared pods::a_resource_goes_after_the_grace_and_not_before,
        shared pods::a_resource_goes_with_its_owners_namespace,
        shared pods::a_finished_pod_keeps_its_resource_for_the_retention,
        shared pods::an_owner_may_come_after_a_trial_download,
        shared pods::a_gated_pod_keeps_its_resource,
        shared kinds::an_owner_may_be_of_any_kind,
        shared kinds::a_kind_that_the_cluster_does_not_have_is_refused,
        shared a_client_certificate_of_version_1_is_taken,
        shared outages::a_restart_deletes_nothing_that_a_pending_pod_waits_for,
        shared outages::an_owner_that_a_dead_watch_does_not_tell_of_keeps_its_resource;
        helm installed::the_real_definitions_accept_what_is_rendered,
        helm installed::helm_installs_upgrades_and_uninstalls_and_the_claim_stays,
        helm installed::a_release_goes_back_to_a_revision_that_ran,
        helm notes::the_notes_lead_to_a_first_job;
        alone probes::rights_are_asked_for,
        alone probes::a_forgotten_version_is_a_410,
        alone outages::without_rights_nothing_goes,
        alone outages::while_the_api_server_is_down_nothing_goes,
        alone outages::an_api_server_may_be_down_at_the_start,
        alone outages::a_watch_that_expired_begins_anew,
        alone a_compacted_version_is_a_410_without_the_watch_cache;
        helm_alone installed::helm_takes_over_what_kustomize_made,
    ]
}

/// A test that shares the control plane with others.
pub fn shared(name: &str, needs: Vec<Need>, test: impl AsyncFnOnce(&ControlPlane) + Send + 'static) -> Trial {
    real(name, needs, || runtime().block_on(async { test(&*plane().await.read().await).await }))
}

fn real(name: &str, mut needs: Vec<Need>, test: impl FnOnce() + Send + 'static) -> Trial {
    needs.push(Need::Path(
        ASSETS,
        "a folder with etcd and kube-apiserver (tests/programs/build-control-plane)",
    ));
    trial(name, &needs, test)
}

/// What the other tests hold the server to.
async fn the_fake_gives_the_rights_of_the_manifests(plane: &ControlPlane) {
    assert_eq!(plane.rules().await, rights());
}

/// `openssl x509 -req` makes such a certificate unless it is told more.
async fn a_client_certificate_of_version_1_is_taken(plane: &ControlPlane) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Given::new(ContentSource::File(path), name)
    };
    let credentials = Credentials {
        ca_cert: plane.ca().map(|path| Given::new(ContentSource::File(path.to_owned()), "its CA")),
        client_cert: Some((file("client.pem", CERTIFICATE), file("client.key", KEY))),
        ..Credentials::default()
    };
    let access = PropertiesAccess {
        url: Given::new(format!("https://{}", plane.address()), "its address"),
        credentials,
        account: None,
        token_file_setting: String::new(),
    };
    let server = ApiServer::connect(&Access::Properties(Box::new(access))).unwrap();
    let review: SelfSubjectReview = Api::all(server.client())
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await
        .unwrap();
    let user = review.status.unwrap().user_info.unwrap();
    assert_eq!(user.username.as_deref(), Some("client-of-version-1"));
}

/// What the past is to etcd itself, and what a watch without the watch cache is told.
async fn a_compacted_version_is_a_410_without_the_watch_cache(plane: &ControlPlane) {
    plane.stop_api_server().await;
    plane.start_api_server(WatchCache::Off).await;
    let admin = plane.api(Account::Admin);
    admin.create_namespace("probe-compaction").await;
    let path = POD.path(Some("probe-compaction"));
    let (_, list) = admin.get(&path).await;
    // etcd keeps the latest version and the one that leads to it.
    for name in ["a", "b"] {
        admin.create(&Object::pod("probe-compaction", name, &[])).await;
    }
    plane.compact().await;
    let since = format!("resourceVersion={}", text(&list["metadata"]["resourceVersion"]));
    let mut watch = admin.watch(&path, &since, "application/json").await;
    let Next::Event(event) = watch.next(cloakroom_testing::wait::BOUND).await else { panic!("no event") };
    assert_eq!((event["type"].as_str(), event["object"]["code"].as_u64()), (Some("ERROR"), Some(410)));
    Cluster::stop(plane).await;
    Cluster::start(plane).await;
}
