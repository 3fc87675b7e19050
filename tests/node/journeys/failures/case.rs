//! Somebody who wants to submit an application: a namespace, a folder with the application in it, and a server of their own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};

use cloakroom_testing::documentation::output::Output;
use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::tls::signed_by_ca;
use cloakroom_testing::{dist, noise};
use serde_json::{Value, json};

use super::super::{jobs::home, secrets};
use crate::cluster::{Cluster, NODE_ADDRESS};
use crate::images::{BUSYBOX, CLOAKROOM};
use crate::shell::{At, laptop, run, until};
use crate::world;

/// The application, which no pod needs to have.
pub const REPORT: &str = "--class org.example.Report report.jar";

/// The setting that has files staged at the case's own server.
pub const STAGED: &str = "--conf spark.kubernetes.resourceStagingServer.uri=http://$SERVER";

/// One failure. What is its own is named like it: the namespace, and the folder below the laptop's home.
pub struct Case {
    pub name: &'static str,
    port: u16,
    server: Mutex<Option<Cloakroom>>,
}

impl Case {
    /// With an application of a few megabytes that pack no smaller, and without a server.
    pub fn new(name: &'static str) -> Self {
        static PORT: AtomicU16 = AtomicU16::new(21100);
        let case = Self { name, port: PORT.fetch_add(1, Ordering::Relaxed), server: Mutex::new(None) };
        std::fs::create_dir_all(case.path("")).unwrap();
        std::fs::write(case.path("report.jar"), jar(3 << 20)).unwrap();
        case
    }

    pub fn path(&self, name: &str) -> PathBuf {
        home().join(self.name).join(name)
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(NODE_ADDRESS.parse().unwrap(), self.port)
    }

    /// Starts a server on the node, always at the same address, whose data is in a folder of this name.
    pub fn serve(&self, data: &str, flags: &str) {
        let mut command = Command::new(dist::binary());
        command.env_clear().current_dir(self.path("")).arg("serve");
        command.args([
            "--listen",
            &self.address().to_string(),
            "--data-dir",
            data,
            "--fetch-image",
            CLOAKROOM,
        ]);
        command.arg("--kubeconfig").arg(world::folder().join("admin.kubeconfig")).args(flags.split(' '));
        *self.server.lock().unwrap() = Some(Cloakroom::start(command));
    }

    /// The same with TLS. Returns the setting that has files staged there, for those who trust `ca.pem`.
    pub fn serve_https(&self, flags: &str) -> String {
        let pem = signed_by_ca(&self.path(""), &[NODE_ADDRESS]);
        let (cert, key) = (pem.cert.display(), pem.key.display());
        self.serve("data", &format!("{flags} --tls-cert {cert} --tls-key {key}"));
        STAGED.replace("http:", "https:")
    }

    /// `kill -9`
    pub fn kill_server(&self) {
        self.server.lock().unwrap().take().unwrap().kill();
    }

    /// The option for a pod template in which the driver's container runs a shell script, whatever the arguments are.
    pub fn template(&self, script: &str, spec: Value) -> String {
        let mut template = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec});
        template["spec"]["containers"] = json!([
            {"name": "spark-kubernetes-driver", "image": BUSYBOX, "command": ["sh", "-c", script]},
        ]);
        std::fs::write(self.path("driver.yaml"), template.to_string()).unwrap();
        format!(
            "--conf spark.kubernetes.driver.podTemplateFile=driver.yaml --conf spark.kubernetes.container.image={BUSYBOX}"
        )
    }

    /// Submits, and returns the code and all that was said. `meanwhile` is done while it runs as the process `$submit`, which
    /// says everything into the file `told`.
    pub fn submit(&self, arguments: &str, meanwhile: &str) -> (i32, String) {
        let (name, api_server) = (self.name, Cluster::api_server());
        let ran = run(
            At::Laptop,
            &format!(
                "cd {name}
                 SERVER={}
                 cloakroom submit --master k8s://{api_server} --deploy-mode cluster --name report --kubernetes-namespace {name} \
                     --conf spark.kubernetes.container.image=apache/spark:4.3.0 \
                     --conf spark.kubernetes.authenticate.driver.serviceAccountName=spark \
                     --conf spark.kubernetes.driver.pod.name=report-driver --conf spark.driver.memory=512m {arguments} >told 2>&1 & submit=$!
                 says() {{ until grep -q \"$1\" told 2>/dev/null; do kill -0 $submit; sleep 0.1; done; }}
                 {{
                     :
                     {meanwhile}
                 }} >/dev/null
                 wait $submit && code=0 || code=$?
                 cat told
                 exit $code",
                self.address()
            ),
        );
        secrets::keep(name, &ran.stdout);
        assert!(ran.stderr.is_empty(), "{}", ran.stderr);
        (ran.code.unwrap(), ran.stdout)
    }

    /// That the page shows what was said, once what is different here is replaced.
    pub fn is_shown(&self, block: Output, told: &str) {
        let told = told
            .replace(&self.address().to_string(), "NODE:31000")
            .replace(&format!("{NODE_ADDRESS}:6443"), "APISERVER:6443")
            .replace(self.name, "spark");
        block.assert_shows(&told);
    }

    /// Submits what is refused, and looks that the page shows what was said.
    pub fn refused(&self, arguments: &str, block: Output) {
        let (code, told) = self.submit(arguments, "");
        assert_eq!(code, 1, "{told}");
        self.is_shown(block, &told);
        self.nothing_is_left();
    }

    /// Neither in the cluster, except for what the case has made itself, nor on the server.
    pub fn nothing_is_left(&self) {
        let name = self.name;
        let objects = format!(
            "kubectl get pods,services,configmaps,secrets -n {name} -o name | grep -v -e /other -e kube-root-ca || true"
        );
        until("nothing is left", || laptop(&objects).stdout.is_empty());
        let kept = format!(
            "find {name}/data/incoming {name}/data/bundles -type f ! -name stamp 2>/dev/null || true"
        );
        assert_eq!(laptop(&kept).stdout, "");
    }

    /// A quota, once it counts what is there.
    pub fn limit(&self, what: &str, hard: &str, used: &str) {
        let name = self.name;
        laptop(&format!("kubectl create quota team -n {name} --hard={what}={hard}"));
        let query = format!("kubectl get quota team -n {name} -o jsonpath='{{.status.used}}'");
        let counted = json!({what: used}).to_string();
        until("the quota counts", || laptop(&query).stdout == counted);
    }
}

/// A jar of this many bytes that pack no smaller. No class is in it.
fn jar(size_bytes: usize) -> Vec<u8> {
    let mut end_of_zip = [0; 22];
    end_of_zip[..4].copy_from_slice(b"PK\x05\x06");
    [noise::noise(size_bytes - end_of_zip.len()), end_of_zip.to_vec()].concat()
}
