//! A user's folder: files, the programs that run in it, a server that keeps its data there.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::api_server::FakeApiServer;
use crate::cluster::{Account, Cluster as _};
use crate::process::{Cloakroom, command};

/// The file with the token for the cluster.
const TOKEN: &str = "token";

/// A folder that is removed when this is dropped.
pub struct Workspace(TempDir);

impl Workspace {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn with(files: &[(&str, &str)]) -> Self {
        let workspace = Self::new();
        for (name, content) in files {
            workspace.write(name, content);
        }
        workspace
    }

    /// With the token of an admin of this cluster, for [`Workspace::submit`].
    pub fn for_cluster(api_server: &FakeApiServer, files: &[(&str, &str)]) -> Self {
        let workspace = Self::with(files);
        workspace.write(TOKEN, api_server.token(Account::Admin));
        workspace
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// The path as an argument.
    pub fn text(&self, name: &str) -> String {
        self.path(name).into_os_string().into_string().unwrap()
    }

    /// Writes a file, and makes the folders that are missing.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// The program, in this folder, which is also its home.
    pub fn command(&self) -> Command {
        let mut command = command();
        command.current_dir(self.root()).env("HOME", self.root());
        command
    }

    /// A server with its data in the folder `server`.
    pub fn serve(&self, flags: &[&str]) -> Cloakroom {
        Cloakroom::serve(&self.path("server"), flags)
    }

    /// `cloakroom submit` to the cluster at this address. Keys without `spark.` are below `spark.kubernetes`.
    pub fn submit(&self, cluster: SocketAddr, conf: &[(&str, &str)]) -> Command {
        let mut command = self.command();
        command.args(submit(cluster, conf));
        command
    }
}

/// The arguments of [`Workspace::submit`], for another program to start it with.
pub fn submit(cluster: SocketAddr, conf: &[(&str, &str)]) -> Vec<String> {
    let master = format!("k8s://http://{cluster}");
    let common =
        [("container.image", "repo.example/spark:4"), ("authenticate.submission.oauthTokenFile", TOKEN)];
    let conf = common.iter().chain(conf).flat_map(|(key, value)| {
        let below = if key.starts_with("spark.") { "" } else { "spark.kubernetes." };
        ["--conf".to_owned(), format!("{below}{key}={value}")]
    });
    let begin = ["submit", "--master", &master, "--deploy-mode", "cluster"].map(str::to_owned);
    begin.into_iter().chain(conf).collect()
}
