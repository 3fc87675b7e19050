//! A fake Kubernetes API server on a real socket. It keeps objects of any kind. It lists and watches them as the real
//! one does, and the probes of [`crate::scenarios`] compare the two. It also makes the errors that a test plans.
//!
//! It runs on a thread of its own, so that a test may block.

mod access;
mod answers;
mod discovery;
mod faults;
mod http;
mod pod_stream;
mod request;
mod selectors;
mod service_proxy;
mod watch;
mod world;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::sync::oneshot;

pub use faults::{Call, Fault, Verb};

use access::Access;
use faults::Faults;
use request::ServiceAccount;
use selectors::Selectors;
use watch::Orders;
use world::World;

use super::cluster::{
    Account, CLOAKROOM_USER, Cluster, DEPLOYMENT, JOB, Kind, NAMESPACE, Object, POD, SPARK_APPLICATION,
    STATEFUL_SET, rights,
};
use super::port::ReservedPort;

/// Events of the cluster about objects.
pub const EVENT: Kind = Kind { plural: "events", kind: "Event", ..POD };
/// Volcano's, which no API server has by itself.
pub const POD_GROUP: Kind = Kind {
    group: "scheduling.volcano.sh",
    version: "v1beta1",
    plural: "podgroups",
    kind: "PodGroup",
    is_namespaced: true,
};
/// Other kinds of objects that a submission may create.
pub const SECRET: Kind = Kind { plural: "secrets", kind: "Secret", ..POD };
pub const NETWORK_POLICY: Kind =
    Kind { group: "networking.k8s.io", plural: "networkpolicies", kind: "NetworkPolicy", ..POD };

/// Requests for tokens of service accounts.
pub const TOKEN: Kind = Kind { plural: "serviceaccounts/token", kind: "TokenRequest", ..POD };

/// Everything that the API server knows.
pub(in crate::api_server) struct Inside {
    kinds: Vec<Kind>,
    world: World,
    access: Access,
    faults: Faults,
    calls: Vec<Call>,
    orders: Orders,
    bookmark_interval: Duration,
    /// The logs of pods, by namespace and name.
    logs: BTreeMap<(String, String), String>,
    /// Where Services lead, by namespace and `http:NAME:PORT`.
    services: BTreeMap<(String, String), SocketAddr>,
    pod_ports: BTreeMap<(String, String, u16), SocketAddr>,
}

/// Its state, and the signal that something changed.
#[derive(Clone)]
pub(in crate::api_server) struct Shared {
    inside: Arc<Mutex<Inside>>,
    changed: tokio::sync::watch::Sender<u64>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap()
    }

    fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let outcome = change(&mut self.lock().world);
        self.wake();
        outcome
    }

    fn wake(&self) {
        self.changed.send_modify(|count| *count += 1);
    }
}

/// A running fake API server. Its port stays its own while it is stopped.
pub struct FakeApiServer {
    port: ReservedPort,
    shared: Shared,
    front: Box<dyn Fn(Router) -> Router + Send + Sync>,
    serving: Mutex<Option<Serving>>,
}

struct Serving {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl FakeApiServer {
    /// Starts a server that knows pods, deployments, stateful sets, jobs, namespaces and Spark applications. It has the
    /// accounts of [`Account`], with the rights that the manifests give them.
    pub fn start() -> Self {
        Self::behind(|server| server)
    }

    /// As [`Self::start`], with what the test puts before it: a layer sees each call, and makes calls of its own.
    pub fn behind(front: impl Fn(Router) -> Router + Send + Sync + 'static) -> Self {
        let inside = Inside {
            kinds: vec![NAMESPACE, POD, DEPLOYMENT, STATEFUL_SET, JOB, SPARK_APPLICATION],
            world: World::new(),
            access: Access::default(),
            faults: Faults::default(),
            calls: Vec::new(),
            orders: Orders::default(),
            bookmark_interval: Duration::from_secs(1),
            logs: BTreeMap::new(),
            services: BTreeMap::new(),
            pod_ports: BTreeMap::new(),
        };
        let shared =
            Shared { inside: Arc::new(Mutex::new(inside)), changed: tokio::sync::watch::Sender::new(0) };
        let port = ReservedPort::new();
        let server = Self { port, shared, front: Box::new(front), serving: Mutex::new(None) };
        server.start_again();
        server
    }

    /// Starts a server that knows these kinds as well, and has this namespace.
    pub fn with(namespace: &str, kinds: &[Kind]) -> Self {
        let server = Self::start();
        kinds.iter().for_each(|kind| server.define(*kind));
        server.add(NAMESPACE, "", json!({"metadata": {"name": namespace}}));
        server
    }

    /// Closes all connections, and refuses new ones.
    pub fn stop(&self) {
        if let Some(Serving { stop, thread }) = self.serving.lock().unwrap().take() {
            let _ = stop.send(());
            thread.join().unwrap();
        }
    }

    /// Listens again, at the same address.
    pub fn start_again(&self) {
        let mut serving = self.serving.lock().unwrap();
        if serving.is_none() {
            let answers = Router::new().fallback(http::answer).with_state(self.shared.clone());
            *serving = Some(serve(self.port.socket(), (self.front)(answers)));
        }
    }

    /// Adds a kind, as a CustomResourceDefinition does.
    pub fn define(&self, kind: Kind) {
        self.shared.lock().kinds.push(kind);
    }

    /// Removes a kind: calls for it get a 404.
    pub fn undefine(&self, kind: Kind) {
        self.shared.lock().kinds.retain(|known| *known != kind);
    }

    /// Creates an object, and its namespace if that is missing. Returns its resource version.
    pub fn create(&self, kind: Kind, namespace: &str, name: &str, labels: &[(&str, &str)]) -> u64 {
        let manifest = Object::new(kind, namespace, name, labels).manifest();
        self.shared.change(|world| {
            if kind.is_namespaced && world.get(&NAMESPACE, "", namespace).is_none() {
                let place = json!({"metadata": {"name": namespace}});
                world.create(&NAMESPACE, "", place).unwrap();
            }
            world.create(&kind, namespace, manifest).unwrap();
            world.version
        })
    }

    pub fn create_pod(&self, namespace: &str, name: &str, labels: &[(&str, &str)]) -> u64 {
        self.create(POD, namespace, name, labels)
    }

    /// Deletes an object. A namespace is deleted with everything in it.
    pub fn delete(&self, kind: Kind, namespace: &str, name: &str) {
        self.shared.change(|world| world.delete(&kind, namespace, name)).unwrap();
    }

    pub fn delete_pod(&self, namespace: &str, name: &str) {
        self.delete(POD, namespace, name);
    }

    /// `phase` is `Running`, `Succeeded`, `Failed`…
    pub fn set_phase(&self, namespace: &str, pod: &str, phase: &str) {
        let patch = json!({"status": {"phase": phase}});
        self.shared.change(|world| world.merge(&POD, namespace, pod, &patch, true)).unwrap();
    }

    /// Merges into the status of a pod, as its kubelet does.
    pub fn set_status(&self, namespace: &str, pod: &str, status: &Value) {
        let patch = json!({"status": status});
        self.shared.change(|world| world.merge(&POD, namespace, pod, &patch, true)).unwrap();
    }

    /// Sets the log of a pod's containers. Without this call a pod has no log.
    pub fn set_log(&self, namespace: &str, pod: &str, text: &str) {
        self.shared.lock().logs.insert((namespace.to_owned(), pod.to_owned()), text.to_owned());
    }

    /// Lets the way to a Service, such as `http:cloakroom:10000`, lead to a server.
    pub fn lead(&self, namespace: &str, service: &str, to: SocketAddr) {
        self.shared.lock().services.insert((namespace.to_owned(), service.to_owned()), to);
    }

    /// Lets streams to a port of a pod lead to a server.
    pub fn lead_to_pod(&self, namespace: &str, pod: &str, port: u16, to: SocketAddr) {
        self.shared.lock().pod_ports.insert((namespace.to_owned(), pod.to_owned(), port), to);
    }

    /// Creates an object as given.
    pub fn add(&self, kind: Kind, namespace: &str, object: Value) {
        self.shared.change(|world| world.create(&kind, namespace, object)).unwrap();
    }

    /// Has an object from the start, with its own unique id, times and status.
    pub fn keep(&self, kind: Kind, namespace: &str, object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        self.shared.change(|world| world.put(&kind, namespace, &name, object));
    }

    /// The current state of an object.
    pub fn object(&self, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
        self.shared.lock().world.get(&kind, namespace, name).map(|object| Value::clone(object))
    }

    /// `KIND NAME` of everything in a namespace.
    pub fn everything_in(&self, namespace: &str) -> Vec<String> {
        let inside = self.shared.lock();
        let all = Selectors::default();
        let named = |kind: &Kind| {
            let found = inside.world.select(kind, Some(namespace), &all);
            let name = |object: &Arc<Value>| object["metadata"]["name"].as_str().unwrap().to_owned();
            found.iter().map(|object| format!("{} {}", kind.kind, name(object))).collect::<Vec<_>>()
        };
        inside.kinds.iter().filter(|kind| kind.is_namespaced).flat_map(named).collect()
    }

    /// Lets a pod run to its end.
    pub fn finish_pod(&self, namespace: &str, pod: &str) {
        self.set_phase(namespace, pod, "Succeeded");
    }

    /// From now on, calls of this verb fail. The latest fault comes first.
    pub fn fail(&self, verb: Verb, fault: Fault) {
        self.shared.lock().faults.add(verb, None, None, fault);
    }

    /// As [`Self::fail`], for one kind only.
    pub fn fail_for(&self, kind: Kind, verb: Verb, fault: Fault) {
        self.shared.lock().faults.add(verb, Some(kind), None, fault);
    }

    /// As [`Self::fail`], for calls with this parameter in their query only.
    pub fn fail_with(&self, parameter: &'static str, verb: Verb, fault: Fault) {
        self.shared.lock().faults.add(verb, None, Some(parameter), fault);
    }

    /// As [`Self::fail_for`], but `skip` calls pass first, and then `times` calls fail.
    pub fn fail_some(&self, kind: Kind, verb: Verb, skip: usize, times: usize, fault: Fault) {
        self.shared.lock().faults.add_some(verb, kind, skip, times, fault);
    }

    /// Ends all faults. Watches that fell silent stay silent, as a dead connection does.
    pub fn heal(&self) {
        self.shared.lock().faults.clear();
    }

    /// Ends all open watches, as at their timeout.
    pub fn end_watches(&self) {
        self.order(|orders| orders.end = orders.opened);
    }

    /// Breaks all open watches in the middle of a line.
    pub fn cut_watches(&self) {
        self.order(|orders| orders.cut = orders.opened);
    }

    /// All open watches fall silent, and do not end.
    pub fn silence_watches(&self) {
        self.order(|orders| orders.silence = orders.opened);
    }

    fn order(&self, order: impl FnOnce(&mut Orders)) {
        order(&mut self.shared.lock().orders);
        self.shared.wake();
    }

    /// From now on, a watch that resumes at an earlier version gets a 410. Open watches go on.
    pub fn compact(&self) {
        self.shared.change(World::forget_the_past);
    }

    /// Sets how often new watches that want bookmarks get one; every second by default.
    pub fn set_bookmark_interval(&self, interval: Duration) {
        self.shared.lock().bookmark_interval = interval;
    }

    /// Every call since the start, or since [`Self::forget_calls`].
    pub fn calls(&self) -> Vec<Call> {
        self.shared.lock().calls.clone()
    }

    /// The calls of one verb.
    pub fn calls_to(&self, verb: Verb) -> Vec<Call> {
        self.calls().into_iter().filter(|call| call.verb == verb).collect()
    }

    pub fn forget_calls(&self) {
        self.shared.lock().calls.clear();
    }

    /// Makes a bearer token known.
    pub fn know_token(&self, token: &str, user: &str, groups: &[&str]) {
        self.shared.lock().access.know(token, user, groups);
    }

    /// Makes a service account, so that its tokens can be requested.
    pub fn add_service_account(&self, namespace: &str, name: &str) {
        self.shared.lock().access.add_account(service_account(namespace, name));
    }

    /// From now on, tokens that are requested have at most this life.
    pub fn limit_tokens_to(&self, seconds: u64) {
        self.shared.lock().access.token_seconds = Some(seconds);
    }

    /// The last token of a service account that was requested.
    pub fn requested_token(&self, namespace: &str, name: &str) -> Option<String> {
        self.shared.lock().access.last_token_of(&service_account(namespace, name))
    }

    /// From now on, calls with this token get a 401.
    pub fn forget_token(&self, token: &str) {
        self.shared.lock().access.forget(token);
    }

    /// Gives a user the rules of a Role, in one namespace or in all.
    pub fn grant_rules(&self, user: &str, namespace: Option<&str>, rules: Value) {
        self.shared.lock().access.grant(user, namespace, rules);
    }

    /// Takes all rules from a user.
    pub fn revoke_all(&self, user: &str) {
        self.shared.lock().access.revoke(user);
    }
}

impl Drop for FakeApiServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Serves until it is told to stop; then the runtime, and with it every connection, is dropped.
fn serve(socket: TcpSocket, router: Router) -> Serving {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = {
        let _entered = runtime.enter();
        socket.listen(1024).unwrap()
    };
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                served = axum::serve(listener, router) => served.unwrap(),
                _ = stopped => {}
            }
        });
    });
    Serving { stop, thread }
}

#[async_trait]
impl Cluster for FakeApiServer {
    fn address(&self) -> SocketAddr {
        self.port.address()
    }

    fn ca(&self) -> Option<&Path> {
        None
    }

    fn token(&self, account: Account) -> String {
        let token = match account {
            Account::Admin => "admin-token",
            Account::Cloakroom => "cloakroom-token",
            Account::Nobody => "nobody-token",
        };
        token.to_owned()
    }

    async fn revoke(&self) {
        self.revoke_all(CLOAKROOM_USER);
    }

    async fn grant(&self) {
        self.grant_rules(CLOAKROOM_USER, None, rights());
    }

    async fn stop(&self) {
        Self::stop(self);
    }

    async fn start(&self) {
        self.start_again();
    }

    async fn forget_the_past(&self) {
        self.compact();
        self.end_watches();
    }
}

fn service_account(namespace: &str, name: &str) -> ServiceAccount {
    ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() }
}
