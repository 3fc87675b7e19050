//! Ceph's gateway for the protocol of S3, with a cluster of one monitor and one daemon that keeps objects in memory. It needs
//! seconds to start, so all tests of a process share one.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::child::Program;
use crate::needs::Need;
use crate::port::ReservedPort;
use crate::s3_gateway::{ACCESS_KEY, BUCKET, SECRET_KEY, signed};
use crate::wait::until_true;

/// What each of its programs reads. All of it listens on loopback only.
const CONFIGURATION: &str = "[global]
fsid = {cluster}
mon host = [v2:{monitor}/0]
mon data = {folder}/monitor
osd data = {folder}/objects
rgw data = {folder}/gateway
run dir = {folder}
keyring = {folder}/keyring
admin socket =
pid file =
log file = /dev/null
log to stderr = true
mon cluster log file = /dev/null
public addr = 127.0.0.1
cluster addr = 127.0.0.1
rgw frontends = beast endpoint={gateway}
osd objectstore = memstore
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd max object name len = 460
mon allow pool size one = true
mon max pg per osd = 2000
paxos propose interval = 0.05
paxos min wait = 0.01
";

const CLUSTER: &str = "6ac3d5a0-5b3c-4d5a-9c1f-0d3f3a1f7a10";
const DAEMON: &str = "6ac3d5a0-5b3c-4d5a-9c1f-0d3f3a1f7a11";

/// A running gateway with its cluster. They end with the process.
pub struct Ceph {
    gateway: ReservedPort,
    monitor: ReservedPort,
    folder: TempDir,
    programs: Vec<Program>,
}

impl Ceph {
    pub fn needs() -> Vec<Need> {
        ["ceph", "ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "curl"].map(Need::Program).into()
    }

    /// That of this process, with the keys and the bucket of the [other gateway](crate::s3_gateway).
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Ceph> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    async fn start() -> Self {
        let (folder, monitor, gateway) =
            (tempfile::tempdir().unwrap(), ReservedPort::new(), ReservedPort::new());
        let text = CONFIGURATION
            .replace("{cluster}", CLUSTER)
            .replace("{monitor}", &monitor.address().to_string())
            .replace("{gateway}", &gateway.address().to_string())
            .replace("{folder}", folder.path().to_str().unwrap());
        std::fs::write(folder.path().join("ceph.conf"), text).unwrap();
        let mut ceph = Self { gateway, monitor, folder, programs: Vec::new() };
        ceph.make_keys();
        ceph.start_monitor();
        ceph.start_daemon();
        ceph.start_program("radosgw", &["-f", "-n", "client.admin"]);
        let keys = ["--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY];
        ceph.run(
            "radosgw-admin",
            &[&["user", "create", "--uid=team", "--display-name=team"], &keys[..]].concat(),
        );
        until_true("the gateway is ready", || {
            ceph.programs.iter().for_each(Program::assert_running);
            TcpStream::connect(ceph.address()).is_ok()
        })
        .await;
        signed("PUT", &format!("{}/{BUCKET}", ceph.url()));
        ceph
    }

    pub fn address(&self) -> SocketAddr {
        self.gateway.address()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    fn make_keys(&self) {
        self.run("ceph-authtool", &["keyring", "--create-keyring"]);
        for name in ["mon.", "client.admin", "osd.0"] {
            let all = ["--cap", "mon", "allow *", "--cap", "osd", "allow *"];
            self.run("ceph-authtool", &[&["keyring", "--gen-key", "-n", name], &all[..]].concat());
        }
    }

    fn start_monitor(&mut self) {
        let at = format!("[v2:{}/0]", self.monitor.address());
        self.run("monmaptool", &["--create", "--fsid", CLUSTER, "--addv", "a", &at, "map"]);
        std::fs::create_dir(self.folder.path().join("monitor")).unwrap();
        self.run("ceph-mon", &["--mkfs", "-i", "a", "--monmap", "map", "--keyring", "keyring"]);
        self.start_program("ceph-mon", &["-f", "-i", "a"]);
    }

    fn start_daemon(&mut self) {
        std::fs::create_dir(self.folder.path().join("objects")).unwrap();
        self.run("ceph", &["osd", "new", DAEMON]);
        self.run("ceph-osd", &["--mkfs", "-i", "0", "--osd-uuid", DAEMON]);
        self.start_program("ceph-osd", &["-f", "-i", "0"]);
    }

    /// Runs a program to its end.
    fn run(&self, program: &str, args: &[&str]) {
        let mut command = Command::new(program);
        command
            .args(args)
            .env("CEPH_CONF", self.folder.path().join("ceph.conf"))
            .current_dir(self.folder.path());
        let done = command.output().unwrap();
        assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Starts a program that runs as long as this process.
    fn start_program(&mut self, program: &str, args: &[&str]) {
        let folder = self.folder.path();
        let conf = format!("CEPH_CONF={}", folder.join("ceph.conf").display());
        let args: Vec<String> = [&[&conf, program], args].concat().into_iter().map(str::to_owned).collect();
        self.programs.push(Program::start(
            Path::new("/usr/bin/env"),
            &args,
            folder.join(format!("{program}.log")),
        ));
    }
}
