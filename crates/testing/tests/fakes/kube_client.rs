//! What `kube::runtime` makes of it.

use std::time::Duration;

use cloakroom_testing::api_server::{FakeApiServer, Verb};
use cloakroom_testing::cluster::{Account, Cluster};
use futures_util::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, PartialObjectMeta};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{self, Event, InitialListStrategy, watcher};
use kube::{Api, Client, Config, ResourceExt as _};

const BOUND: Duration = Duration::from_secs(20);

async fn client(server: &FakeApiServer) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig(Account::Cloakroom, server.address())).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

async fn next(
    stream: &mut (impl Stream<Item = watcher::Result<Event<PartialObjectMeta<Pod>>>> + Unpin),
) -> String {
    match tokio::time::timeout(BOUND, stream.next()).await.unwrap().unwrap() {
        Ok(Event::Init) => "init".to_owned(),
        Ok(Event::InitApply(pod)) => format!("init {}", pod.name_any()),
        Ok(Event::InitDone) => "init done".to_owned(),
        Ok(Event::Apply(pod)) => format!("apply {} {:?}", pod.name_any(), pod.labels().values()),
        Ok(Event::Delete(pod)) => format!("delete {}", pod.name_any()),
        Err(watcher::Error::WatchError(status)) => format!("error {}", status.code),
        Err(error) => format!("failed: {error}"),
    }
}

#[tokio::test]
async fn a_watcher_lists_once_and_follows_what_happens() {
    let server = FakeApiServer::start();
    for name in ["a", "b", "c"] {
        server.create_pod("demo", name, &[("app", "demo")]);
    }
    let api: Api<PartialObjectMeta<Pod>> = Api::all(client(&server).await);
    let config =
        watcher::Config::default().fields("status.phase!=Succeeded,status.phase!=Failed").page_size(2);
    let mut events = Box::pin(watcher(api, config));
    for expected in ["init", "init a", "init b", "init c", "init done"] {
        assert_eq!(next(&mut events).await, expected);
    }
    server.create_pod("demo", "d", &[("app", "demo")]);
    assert_eq!(next(&mut events).await, r#"apply d ["demo"]"#);
    server.finish_pod("demo", "b");
    assert_eq!(next(&mut events).await, "delete b");
    server.end_watches();
    server.delete_pod("demo", "a");
    assert_eq!(next(&mut events).await, r#"apply a ["demo"]"#);
    assert_eq!(next(&mut events).await, "delete a");
    // Two pages of the one list.
    assert_eq!(server.calls_to(Verb::List).len(), 2);
    server.compact();
    server.end_watches();
    for expected in ["error 410", "init", "init c", "init d", "init done"] {
        assert_eq!(next(&mut events).await, expected);
    }
}

#[tokio::test]
async fn a_watcher_may_stream_the_list() {
    let server = FakeApiServer::start();
    server.create_pod("demo", "a", &[]);
    let api: Api<PartialObjectMeta<Pod>> = Api::namespaced(client(&server).await, "demo");
    let config =
        watcher::Config { initial_list_strategy: InitialListStrategy::StreamingList, ..Default::default() };
    let mut events = Box::pin(watcher(api, config));
    for expected in ["init", "init a", "init done"] {
        assert_eq!(next(&mut events).await, expected);
    }
    server.create_pod("demo", "b", &[]);
    assert_eq!(next(&mut events).await, "apply b []");
    assert!(server.calls_to(Verb::List).is_empty());
}

#[tokio::test]
async fn lists_of_nothing_and_errors_can_be_read() {
    let server = FakeApiServer::start();
    let client = client(&server).await;
    let metadata: Api<PartialObjectMeta<Pod>> = Api::all(client.clone());
    assert!(metadata.list(&ListParams::default()).await.unwrap().items.is_empty());
    let all: Api<Pod> = Api::all(client);
    assert!(all.list(&ListParams::default()).await.unwrap().items.is_empty());
    server.revoke().await;
    let Err(kube::Error::Api(status)) = all.list(&ListParams::default()).await else { panic!("no error") };
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
}
