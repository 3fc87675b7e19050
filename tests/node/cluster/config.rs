//! What each program is told: certificates, tokens, kubeconfigs, flags.

use std::path::{Path, PathBuf};

use cloakroom_testing::needs::path;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use serde_json::json;

use super::network::{NODE_ADDRESS, PODS};
use super::program::Program;
use super::{ASSETS, CHART_TOOLS, CNI_PLUGINS, NODE};
use crate::images::PAUSE;
use crate::world;

/// Where containerd listens.
pub const CONTAINERD: &str = "/run/containerd.sock";

/// Where the API server is, for the node, the laptop and pods.
pub const API_SERVER: &str = "https://10.99.0.1:6443";

/// The token of the group system:masters.
const ADMIN: &str = "admin-of-the-node-tests";

/// Static tokens: user and groups of each program that calls the API server.
const USERS: [(&str, &str, &str); 5] = [
    (ADMIN, "admin", "system:masters"),
    ("controllers", "system:kube-controller-manager", ""),
    ("scheduler", "system:kube-scheduler", ""),
    ("proxy", "system:kube-proxy", ""),
    ("kubelet", "system:node:node-1", "system:nodes"),
];

/// Which calls the API server records: all but those of its own programs, which are many.
const AUDIT: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
    {"level": "None", "users": ["admin", "system:kube-controller-manager", "system:kube-scheduler", "system:kube-proxy", "system:apiserver"]},
    {"level": "None", "userGroups": ["system:nodes", "system:serviceaccounts:kube-system"]},
    {"level": "Metadata"}]}"#;

/// Files below one folder.
pub struct Config {
    pub folder: PathBuf,
}

impl Config {
    /// Writes what all programs need, the admin's kubeconfig included (`admin.kubeconfig`).
    pub fn write(folder: &Path) -> Self {
        let config = Self { folder: folder.to_owned() };
        config.write_certificates();
        let line = |(token, user, group): (&str, &str, &str)| {
            let groups = if group.is_empty() { String::new() } else { format!(",{group}") };
            format!("{token},{user},{user}{groups}\n")
        };
        config.file("tokens.csv", &USERS.map(line).concat());
        config.file("audit.yaml", AUDIT);
        std::fs::copy(config.kubeconfig(ADMIN), folder.join("admin.kubeconfig")).unwrap();
        config
    }

    /// The kubeconfig of whoever has a token.
    pub fn kubeconfig(&self, token: &str) -> PathBuf {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "node",
            "clusters": [{"name": "node", "cluster":
                {"server": API_SERVER, "certificate-authority": self.folder.join("ca.pem")}}],
            "users": [{"name": "user", "user": {"token": token}}],
            "contexts": [{"name": "node", "context": {"cluster": "node", "user": "user"}}],
        });
        let name: String = token.chars().rev().take(12).filter(char::is_ascii_alphanumeric).collect();
        self.file(&format!("{name}.kubeconfig"), &config.to_string())
    }

    pub fn start_etcd(&self) -> Program {
        let data = self.folder.join("etcd");
        self.start(
            "etcd",
            &[
                format!("--data-dir={}", data.display()),
                // The data is worth nothing once the tests are over.
                "--unsafe-no-fsync".to_owned(),
                "--log-level=error".to_owned(),
            ],
        )
    }

    pub fn start_api_server(&self) -> Program {
        let at = |name: &str| self.folder.join(name).display().to_string();
        self.start(
            "kube-apiserver",
            &[
                "--etcd-servers=http://127.0.0.1:2379".to_owned(),
                format!("--bind-address={NODE_ADDRESS}"),
                format!("--advertise-address={NODE_ADDRESS}"),
                format!("--tls-cert-file={}", at("api-server.pem")),
                format!("--tls-private-key-file={}", at("api-server.key")),
                format!("--token-auth-file={}", at("tokens.csv")),
                format!("--audit-policy-file={}", at("audit.yaml")),
                format!("--audit-log-path={}", at("audit.log")),
                "--authorization-mode=Node,RBAC".to_owned(),
                "--enable-admission-plugins=NodeRestriction".to_owned(),
                "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
                format!("--service-account-key-file={}", at("service-account.pub")),
                format!("--service-account-signing-key-file={}", at("service-account.key")),
                "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
                "--kubelet-preferred-address-types=InternalIP".to_owned(),
                // The kubelet's own certificate is not checked without a CA for it: nobody else is in this network.
                "--allow-privileged=true".to_owned(),
            ],
        )
    }

    pub fn start_controllers(&self) -> Program {
        let mut args = self.of_a_client("controllers");
        args.extend([
            "--leader-elect=false".to_owned(),
            "--use-service-account-credentials=true".to_owned(),
            format!(
                "--service-account-private-key-file={}",
                self.folder.join("service-account.key").display()
            ),
            format!("--root-ca-file={}", self.folder.join("ca.pem").display()),
        ]);
        self.start("kube-controller-manager", &args)
    }

    pub fn start_scheduler(&self) -> Program {
        let mut args = self.of_a_client("scheduler");
        args.push("--leader-elect=false".to_owned());
        self.start("kube-scheduler", &args)
    }

    fn of_a_client(&self, token: &str) -> Vec<String> {
        let kubeconfig = self.kubeconfig(token).display().to_string();
        let flags = ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"];
        flags.map(|flag| format!("--{flag}={kubeconfig}")).into()
    }

    pub fn start_proxy(&self) -> Program {
        self.start(
            "kube-proxy",
            &[
                format!("--kubeconfig={}", self.kubeconfig("proxy").display()),
                format!("--hostname-override={NODE}"),
                "--proxy-mode=iptables".to_owned(),
                format!("--cluster-cidr={PODS}"),
                // The table of connections is the machine's.
                "--conntrack-max-per-core=0".to_owned(),
                "--conntrack-tcp-timeout-established=0".to_owned(),
                "--conntrack-tcp-timeout-close-wait=0".to_owned(),
            ],
        )
    }

    /// Names of Services, for pods and for the node itself.
    pub fn start_dns(&self) -> Program {
        let kubeconfig = self.kubeconfig(ADMIN);
        let corefile = format!(
            ".:53 {{\n  bind {NODE_ADDRESS}\n  errors\n  kubernetes cluster.local {{\n    kubeconfig {}\n    ttl 1\n  }}\n}}\n",
            kubeconfig.display()
        );
        let corefile = self.file("Corefile", &corefile);
        let args = ["-conf".to_owned(), corefile.display().to_string()];
        Program::start(&path(CHART_TOOLS).join("coredns"), &args, &self.folder)
    }

    pub fn start_containerd(&self) -> Program {
        let network = json!({
            "cniVersion": "0.4.0", "name": "pods",
            "plugins": [{
                "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
                "ipam": {"type": "host-local", "dataDir": "/var/lib/cni/leases", "ranges": [[{"subnet": PODS}]],
                         "routes": [{"dst": "0.0.0.0/0"}]},
            }],
        });
        self.file("cni/10-pods.conflist", &network.to_string());
        let folder = self.folder.display();
        let config = format!(
            r#"
version = 2
root = "{folder}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
    "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.opt"]
[grpc]
  address = "{CONTAINERD}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/{PAUSE}"
  # Or no container starts where a machine takes this right from its root.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{folder}/cni"
"#
        );
        let config = self.file("containerd.toml", &config);
        let args = ["--config".to_owned(), config.display().to_string()];
        Program::start(Path::new("containerd"), &args, &self.folder)
    }

    pub fn start_kubelet(&self) -> Program {
        let config = json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            // Nobody else is in this network.
            "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": world::control_group(),
            // A machine may still have version 1 of control groups.
            "failCgroupV1": false,
            "failSwapOn": false,
            "containerRuntimeEndpoint": format!("unix://{CONTAINERD}"),
            "clusterDNS": [NODE_ADDRESS],
            "clusterDomain": "cluster.local",
            "resolvConf": self.file("resolv.conf", "").display().to_string(),
            // A machine of a developer may be nearly full.
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "256Mi", "nodefs.inodesFree": "1%",
                             "imagefs.available": "256Mi"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "nodeStatusUpdateFrequency": "5s",
            "volumePluginDir": self.folder.join("volume-plugins").display().to_string(),
        });
        let config = self.file("kubelet.json", &config.to_string());
        self.start(
            "kubelet",
            &[
                format!("--config={}", config.display()),
                format!("--kubeconfig={}", self.kubeconfig("kubelet").display()),
                format!("--hostname-override={NODE}"),
                format!("--node-ip={NODE_ADDRESS}"),
                format!("--root-dir={}", self.folder.join("kubelet").display()),
                format!("--cert-dir={}", self.folder.join("kubelet-certificates").display()),
            ],
        )
    }

    fn start(&self, program: &str, args: &[String]) -> Program {
        Program::start(&path(ASSETS).join(program), args, &self.folder)
    }

    fn write_certificates(&self) {
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name.push(DnType::CommonName, "cluster CA");
        self.file("ca.pem", &ca.self_signed(&ca_key).unwrap().pem());
        let issuer = Issuer::new(ca, ca_key);
        let names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"].map(str::to_owned);
        let mut server = CertificateParams::new(names).unwrap();
        for address in [NODE_ADDRESS, "10.96.0.1"] {
            server.subject_alt_names.push(SanType::IpAddress(address.parse().unwrap()));
        }
        let key = KeyPair::generate().unwrap();
        self.file("api-server.pem", &server.signed_by(&key, &issuer).unwrap().pem());
        self.file("api-server.key", &key.serialize_pem());
        let accounts = KeyPair::generate().unwrap();
        self.file("service-account.key", &accounts.serialize_pem());
        self.file("service-account.pub", &accounts.public_key_pem());
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }
}
