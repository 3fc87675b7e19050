//! A user who stages for another program, with a cluster and a server.

use std::path::PathBuf;
use std::process::{Command, Output};

use cloakroom_testing::api_server::{FakeApiServer, SECRET};
use cloakroom_testing::cluster::{CONFIG_MAP, Cluster as _, Kind, kubeconfig};
use cloakroom_testing::process::{Cloakroom, command, stderr};
use cloakroom_testing::workspace::Workspace;
use serde_json::Value;

use super::{IMAGE, TOKEN, pods_too, rules};

/// A cluster, a server, and a folder with an application in it.
pub(super) struct Stager {
    pub(super) api_server: FakeApiServer,
    pub(super) server: Cloakroom,
    pub(super) folder: Workspace,
}

impl Stager {
    pub(super) fn new() -> Self {
        let api_server = FakeApiServer::with("demo", &[CONFIG_MAP, SECRET]);
        api_server.know_token(TOKEN, "stager", &[]);
        api_server.grant_rules("stager", Some("demo"), rules());
        let names = ["app.jar", "lib/dep one.jar", "data.txt", "prod.conf", "env.tar.gz"];
        let folder = Workspace::with(&names.map(|name| (name, name)));
        folder.write("kubeconfig", kubeconfig(None, api_server.address(), TOKEN));
        let server = folder.serve(&["--fetch-image", IMAGE, "--no-kubernetes"]);
        Self { api_server, server, folder }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    pub(super) fn stage_for(&self, submitter: &str, more: &[&str]) -> Command {
        self.stage_at(&self.server.url(""), submitter, more)
    }

    pub(super) fn stage_at(&self, server: &str, submitter: &str, more: &[&str]) -> Command {
        let mut command = command();
        command.current_dir(self.folder.root()).env("KUBECONFIG", self.path("kubeconfig"));
        command.args(["stage", "--for", submitter, "--server", server, "--namespace", "demo"]);
        command.args(pods_too(server)).args(more);
        command
    }

    pub(super) fn output(&self, submitter: &str, more: &[&str]) -> Output {
        self.stage_for(submitter, more).output().unwrap()
    }

    pub(super) fn printed(&self, submitter: &str, more: &[&str]) -> String {
        let output = self.output(submitter, more);
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The only one that was written.
    pub(super) fn template(&self) -> Value {
        let [path] = &self.templates("driver")[..] else { panic!("not one template") };
        serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    pub(super) fn templates(&self, whose: &str) -> Vec<PathBuf> {
        let end = format!("-{whose}-pod-template.yaml");
        let entries = std::fs::read_dir(self.folder.root()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.to_str().unwrap().ends_with(&end)).collect()
    }

    pub(super) fn only(&self, kind: Kind) -> Value {
        let everything = self.api_server.everything_in("demo");
        let mut names = everything.iter().filter_map(|name| name.strip_prefix(&format!("{} ", kind.kind)));
        let object = self.api_server.object(kind, "demo", names.next().unwrap()).unwrap();
        assert_eq!(names.next(), None);
        object
    }

    pub(super) fn bundles(&self) -> usize {
        let folders = std::fs::read_dir(self.path("server/bundles")).unwrap();
        let folders = folders.map(|folder| folder.unwrap().path()).filter(|path| path.is_dir());
        folders.map(|folder| std::fs::read_dir(folder).unwrap().count()).sum()
    }

    pub(super) fn assert_nothing_is_left(&self, said: &str) {
        assert_eq!(self.api_server.everything_in("demo"), [""; 0], "{said}");
        assert_eq!(self.bundles(), 0, "{said}");
        assert_eq!(self.templates("driver"), Vec::<PathBuf>::new(), "{said}");
    }
}
