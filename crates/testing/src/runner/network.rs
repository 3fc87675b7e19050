//! Addresses and host names of the pods. Each pod has its own address on the loopback interface.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::cluster::text;

/// The port of the API server's service.
const API_SERVER_PORT: u16 = 443;

/// A range of addresses, the names for them, and the API server's service at the first of them.
pub struct Network {
    /// The first one is the API server's service.
    service: Ipv4Addr,
    /// The file that every container sees as `/etc/hosts`. It only grows, so that a reader never sees half of it.
    hosts: PathBuf,
    names: Mutex<Names>,
    gate: JoinHandle<()>,
}

#[derive(Default)]
struct Names {
    hosts: Option<File>,
    pods: Vec<Pod>,
    /// Name and namespace, and the labels that they select.
    services: BTreeMap<(String, String), Labels>,
    written: BTreeSet<String>,
    last_octet: u8,
}

type Labels = BTreeMap<String, String>;

struct Pod {
    namespace: String,
    labels: Labels,
    address: Ipv4Addr,
}

impl Network {
    /// Claims a range of addresses, and forwards its first address to the API server.
    pub async fn start(folder: &Path, api_server: SocketAddr) -> Self {
        let (service, listener) = claim().await;
        let hosts = folder.join("hosts");
        let mut file = OpenOptions::new().create(true).append(true).open(&hosts).unwrap();
        let known = format!(
            "127.0.0.1 localhost\n{service} kubernetes.default kubernetes.default.svc \
             kubernetes.default.svc.cluster.local\n"
        );
        file.write_all(known.as_bytes()).unwrap();
        let names = Names { hosts: Some(file), last_octet: 1, ..Names::default() };
        let gate = tokio::spawn(forward(listener, api_server));
        Self { service, hosts, names: Mutex::new(names), gate }
    }

    /// The address and the port of the API server's service.
    pub fn service(&self) -> (IpAddr, u16) {
        (self.service.into(), API_SERVER_PORT)
    }

    /// The path of the file for `/etc/hosts`.
    pub fn hosts(&self) -> &Path {
        &self.hosts
    }

    /// Assigns an address to a pod, and writes its host name.
    pub fn address(&self, pod: &Value, host_name: &str) -> IpAddr {
        let mut names = self.names.lock().unwrap();
        names.last_octet = names.last_octet.checked_add(1).unwrap();
        let [a, b, c, _] = self.service.octets();
        let address = Ipv4Addr::new(a, b, c, names.last_octet);
        names.write(&format!("{address} {host_name}\n"));
        let metadata = &pod["metadata"];
        names.pods.push(Pod {
            namespace: text(&metadata["namespace"]),
            labels: labels(&metadata["labels"]),
            address,
        });
        names.publish();
        address.into()
    }

    /// Adds the name of a service for the pods that it selects, now and later.
    pub fn service_changed(&self, service: &Value) {
        let selector = labels(&service["spec"]["selector"]);
        if selector.is_empty() {
            return;
        }
        let metadata = &service["metadata"];
        let mut names = self.names.lock().unwrap();
        names.services.insert((text(&metadata["name"]), text(&metadata["namespace"])), selector);
        names.publish();
    }
}

impl Names {
    /// Writes new names to the file.
    fn publish(&mut self) {
        let mut lines = Vec::new();
        for ((name, namespace), selector) in &self.services {
            let selected = |pod: &&Pod| {
                pod.namespace == *namespace
                    && selector.iter().all(|(key, value)| pod.labels.get(key) == Some(value))
            };
            for pod in self.pods.iter().filter(selected) {
                let short = format!("{name}.{namespace}.svc");
                lines.push(format!("{} {short} {short}.cluster.local\n", pod.address));
            }
        }
        for line in lines {
            self.write(&line);
        }
    }

    fn write(&mut self, line: &str) {
        if self.written.insert(line.to_owned()) {
            self.hosts.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.gate.abort();
    }
}

fn labels(value: &Value) -> Labels {
    let pairs = value.as_object().into_iter().flatten();
    pairs.map(|(key, value)| (key.clone(), text(value))).collect()
}

/// Claims the first free one of some hundred ranges. The process that listens at the first address of a range owns it.
async fn claim() -> (Ipv4Addr, TcpListener) {
    for third in 1..=250 {
        let address = Ipv4Addr::new(127, 80, third, 1);
        if let Ok(listener) = TcpListener::bind((address, API_SERVER_PORT)).await {
            return (address, listener);
        }
    }
    panic!("no address 127.80.x.1 has port {API_SERVER_PORT} free for the API server's service");
}

async fn forward(listener: TcpListener, to: SocketAddr) {
    loop {
        let (mut inside, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            if let Ok(mut outside) = TcpStream::connect(to).await {
                let _ = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
            }
        });
    }
}
