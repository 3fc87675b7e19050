//! `MinIO`: a store that speaks the protocol of S3 in some places otherwise than the [gateway](crate::s3_gateway).

use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use tempfile::TempDir;

use crate::child::Program;
use crate::needs::{Need, path};
use crate::port::ReservedPort;
use crate::s3_gateway::{ACCESS_KEY, BUCKET, SECRET_KEY};
use crate::wait::until_true;

/// The variable that names the folder with the program.
const FOLDER: &str = "CLOAKROOM_TEST_MINIO";

/// A running server with the keys and the bucket of the gateway. It ends when this is dropped.
pub struct Minio {
    program: Program,
    port: ReservedPort,
    _folder: TempDir,
}

impl Minio {
    pub fn needs() -> Vec<Need> {
        vec![Need::Below(FOLDER, "minio".to_owned()), Need::Program("curl")]
    }

    /// Starts it with an empty bucket. It is ready when this returns.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("objects").join(BUCKET)).unwrap();
        Self::start_in(folder, &[]).await
    }

    /// The same on a file system of this size, as `mount` takes it.
    pub async fn start_with_room(size: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let objects = folder.path().join("objects");
        std::fs::create_dir(&objects).unwrap();
        let script =
            format!("mount -t tmpfs -o size={size} tmpfs \"$0\" && mkdir \"$0/{BUCKET}\" && exec \"$@\"");
        let objects = objects.to_str().unwrap().to_owned();
        let mount = ["unshare", "--mount", "--propagation", "private", "sh", "-c", &script, &objects, "env"];
        Self::start_in(folder, &mount).await
    }

    async fn start_in(folder: TempDir, before: &[&str]) -> Self {
        let (port, console) = (ReservedPort::new(), ReservedPort::new());
        let objects = folder.path().join("objects");
        let args = [
            &format!("MINIO_ROOT_USER={ACCESS_KEY}"),
            &format!("MINIO_ROOT_PASSWORD={SECRET_KEY}"),
            path(FOLDER).join("minio").to_str().unwrap(),
            "server",
            "--quiet",
            "--address",
            &port.address().to_string(),
            "--console-address",
            &console.address().to_string(),
            objects.to_str().unwrap(),
        ]
        .map(str::to_owned);
        let args: Vec<String> = before.iter().map(|word| (*word).to_owned()).chain(args).collect();
        let program = Program::start("/usr/bin/env".as_ref(), &args, folder.path().join("log"));
        let minio = Self { program, port, _folder: folder };
        until_true("the server is ready", || {
            minio.program.assert_running();
            TcpStream::connect(minio.address()).is_ok() && minio.is_ready()
        })
        .await;
        minio
    }

    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    fn is_ready(&self) -> bool {
        let url = format!("http://{}/minio/health/ready", self.address());
        let asked = Command::new("curl").args(["--silent", "--fail", "--output", "/dev/null", &url]).status();
        asked.unwrap().success()
    }
}
