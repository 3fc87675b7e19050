//! Releases of the chart, each beside the server of the manifests.

use cloakroom_testing::documentation::block;
use cloakroom_testing::needs::{Need, path};

use super::deploy::commands;
use crate::cluster::{CHART_TOOLS, NODE_ADDRESS, make_volume};
use crate::shell::laptop;
use crate::world;

/// A release, in a namespace of its name.
pub struct Release {
    pub name: &'static str,
    /// The port of the node that its server has.
    pub port: u16,
    /// More values than the README gives, as `--set` takes them.
    pub values: String,
}

/// What it takes beside a node.
pub fn needs() -> Vec<Need> {
    let mut needs = world::needs();
    needs.push(Need::Below(CHART_TOOLS, "helm-4".to_owned()));
    needs
}

impl Release {
    /// Makes its namespace, its volume, and a certificate and tokens as the chart's notes say.
    pub fn prepare(&self) {
        let (folder, name) = (world::folder(), self.name);
        make_volume(&folder, name, name);
        let helm = folder.join("bin/helm");
        if !helm.exists() {
            std::os::unix::fs::symlink(path(CHART_TOOLS).join("helm-4"), helm).unwrap();
        }
        laptop(&format!(
            "kubectl create namespace {name}
             kubectl label namespace {name} pod-security.kubernetes.io/enforce=restricted
             openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN={name} -keyout {name}.key -out {name}.crt -addext subjectAltName=IP:{NODE_ADDRESS},DNS:{name}-cloakroom.{name}.svc
             kubectl create secret tls tls -n {name} --cert={name}.crt --key={name}.key
             kubectl create secret generic cloakroom-tokens -n {name} --from-file=upload-token"
        ));
    }

    /// The README's own command, for another namespace and volume, at a port of the node.
    pub fn install(&self) -> String {
        let install = self.in_its_words(&block("README.md", "Deploy", "$ printf").replace("$ ", ""));
        let Self { name, port, values } = self;
        format!(
            "{install} --timeout 90s --set uploadAuth=token,service.type=NodePort,service.nodePort={port},tls.existingSecret=tls,\
                 persistence.storageClassName={name}{values}"
        )
    }

    /// A line of a page, for this release.
    pub fn in_its_words(&self, line: &str) -> String {
        let name = self.name;
        let line = line.replacen(" cloakroom ", &format!(" {name} "), 1);
        line.replace("-n cloakroom", &format!("-n {name}"))
            .replace("deployment/cloakroom", &format!("deployment/{name}-cloakroom"))
    }

    /// How clients reach it.
    pub fn server(&self) -> String {
        let Self { name, port, .. } = self;
        format!("--server https://{NODE_ADDRESS}:{port} --ca-file {name}.crt")
    }

    /// Stages a file whose owner is there as long as the release is. Its ticket is `NAME.json`.
    pub fn stage(&self, file: &str) -> String {
        let (server, name) = (self.server(), self.name);
        format!(
            "cloakroom stage {server} --token-file upload-token --namespace {name} --kind Deployment \
                 --label app.kubernetes.io/instance={name} {file} >{file}.json
             jq -r .resourceSecret {file}.json >{file}.secret"
        )
    }

    /// Fetches what was staged, and compares.
    pub fn fetch(&self, file: &str) -> String {
        let server = self.server();
        format!(
            "to=$(mktemp -d)
             cloakroom fetch {server} --id $(jq -r .resourceId {file}.json) --secret-file {file}.secret --to $to
             cmp {file} $to/{file}
             rm -r $to"
        )
    }

    /// The README's job runs, with its files from this server.
    pub fn counts(&self) {
        let Self { name, port, .. } = self;
        let submit = commands().into_iter().find(|command| command.starts_with("cloakroom submit")).unwrap();
        let done = laptop(&format!(
            "export CLOAKROOM_SERVER=https://{NODE_ADDRESS}:{port} CLOAKROOM_CA_FILE={name}.crt CLOAKROOM_UPLOAD_TOKEN_FILE=upload-token
             {} --conf spark.kubernetes.driver.pod.name=from-{name} count.py
             kubectl logs -n spark from-{name}
             kubectl delete pod -n spark from-{name}",
            submit.replace("APISERVER", NODE_ADDRESS).strip_suffix("count.py").unwrap()
        ));
        assert!(done.stdout.contains("counted 10000"), "{}", done.stdout);
    }
}
