//! All that a namespace shows to those who may not read secrets: every state of its objects, and the logs of its pods.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_testing::cluster::{Account, Api, Cluster as _, Next, text};
use cloakroom_testing::wait::BOUND;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::shared::RunningCluster;

/// Executors' objects are gone when an application has ended: they are seen while they are there.
pub struct Sight<'a> {
    cluster: &'a RunningCluster,
    api: Api,
    namespace: String,
    objects: Arc<Mutex<Vec<Value>>>,
    watches: Vec<JoinHandle<()>>,
}

impl<'a> Sight<'a> {
    /// From now on.
    pub fn of(cluster: &'a RunningCluster, namespace: &str) -> Self {
        let api = cluster.plane.api(Account::Admin);
        let objects = Arc::new(Mutex::new(Vec::new()));
        let watches = ["pods", "configmaps", "services", "events"].map(|plural| {
            let path = format!("/api/v1/namespaces/{namespace}/{plural}");
            tokio::spawn(look(api.clone(), path, Arc::clone(&objects)))
        });
        Self { cluster, api, namespace: namespace.to_owned(), objects, watches: watches.into() }
    }

    /// A text that nobody may see is in a secret whose name ends like this, in no other, and nowhere else.
    pub async fn has_only_in_secret(&self, hidden: &str, end: &str) {
        assert_eq!(self.places(hidden), Vec::<String>::new());
        let secrets = self.secrets_with(hidden).await;
        assert!(secrets.len() == 1 && secrets[0].ends_with(end), "it is in {secrets:?}");
    }

    /// Where a text is to be seen.
    pub fn places(&self, hidden: &str) -> Vec<String> {
        let logs = self.cluster.runner.logs(&self.namespace);
        assert!(logs.len() > 2, "driver and executors have logs: {logs:?}");
        let logs = logs.into_iter().filter(|(_, log)| log.contains(hidden));
        let objects = self.objects.lock().unwrap();
        let of_role =
            |role: &str| objects.iter().any(|object| object["metadata"]["labels"]["spark-role"] == role);
        assert!(of_role("driver") && of_role("executor"), "both are seen");
        let objects = objects.iter().filter(|object| object.to_string().contains(hidden));
        let objects =
            objects.map(|object| format!("{} {}", text(&object["kind"]), object["metadata"]["name"]));
        logs.map(|(name, _)| format!("log of {name}")).chain(objects).collect()
    }

    async fn secrets_with(&self, hidden: &str) -> Vec<String> {
        let (_, list) = self.api.get(&format!("/api/v1/namespaces/{}/secrets", self.namespace)).await;
        let has_it = |secret: &&Value| {
            let values = secret["data"].as_object().into_iter().flatten();
            let mut shown = values.map(|(_, value)| STANDARD.decode(text(value)).unwrap());
            shown.any(|bytes| String::from_utf8_lossy(&bytes).contains(hidden))
        };
        let secrets = list["items"].as_array().unwrap().iter().filter(has_it);
        secrets.map(|secret| text(&secret["metadata"]["name"])).collect()
    }
}

impl Drop for Sight<'_> {
    fn drop(&mut self) {
        self.watches.iter().for_each(JoinHandle::abort);
    }
}

/// Keeps every object of a watch that outlasts the test.
async fn look(api: Api, path: String, objects: Arc<Mutex<Vec<Value>>>) {
    // What is there counts as added.
    let mut watch = api.watch(&path, "timeoutSeconds=3600&resourceVersion=0", "application/json").await;
    loop {
        match watch.next(BOUND).await {
            Next::Event(event) => objects.lock().unwrap().push(event["object"].clone()),
            Next::Silence => {}
            Next::End | Next::Broken(_) => return,
        }
    }
}
