//! Credential plugins: programs that a kubeconfig names, and that print a token or a certificate
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins>). kube could
//! start them as well, but it waits for them without end, on a thread that keeps the whole process.

use std::env;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use jiff::Timestamp;
use kube::config::{Cluster, ExecAuthCluster, ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;

use super::connect_error::ConnectError;
use super::files::{self, Content};
use super::identity::{ClientCertificate, Identity};
use cloakroom_core::text::one_line;
use cloakroom_core::time::format_duration;

/// The longest text of a plugin in a message, in characters.
const LONGEST: usize = 300;

/// A credential plugin that was found and not started yet.
#[derive(Clone)]
pub(super) struct Plugin {
    /// Names the plugin and its user in messages.
    name: String,
    command: String,
    exec: ExecConfig,
    cluster: Option<ExecAuthCluster>,
}

/// The credential that a plugin gave, until it expires.
pub(super) struct Issued {
    pub(super) identity: Identity,
    pub(super) expires_at: Option<Timestamp>,
}

/// The part of an `ExecCredential` that counts.
#[derive(Deserialize)]
struct ExecCredential {
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<Timestamp>,
}

impl Plugin {
    /// Checks a plugin without starting it. The error is the end of a sentence about the kubeconfig.
    pub(super) fn new(exec: &ExecConfig, cluster: &Cluster, name: String) -> Result<Self, String> {
        if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
            return Err(format!("{name} must ask a question, and there is no person to answer"));
        }
        let Some(command) = exec.command.clone().filter(|command| !command.is_empty()) else {
            return Err(format!("{name} has no command"));
        };
        let cluster = exec.provide_cluster_info.then(|| ExecAuthCluster::try_from(cluster)).transpose();
        let cluster = cluster
            .map_err(|_| format!("its certificate-authority cannot be given to {name}, which asks for it"))?;
        let plugin = Self { name, command, exec: exec.clone(), cluster };
        if !is_installed(&plugin.command) {
            return Err(format!("{} {}", plugin.name, plugin.not_installed()));
        }
        Ok(plugin)
    }

    /// Runs the plugin, at most for the time `limit`. If the caller stops waiting, the plugin is ended.
    pub(super) async fn run(&self, limit: Duration) -> Result<Issued, ConnectError> {
        let started = self.start().map_err(|error| match error.kind() {
            ErrorKind::NotFound => self.failed(self.not_installed()),
            _ => self.failed(format!("cannot be started: {error}")),
        })?;
        let ended = tokio::time::timeout(limit, started.wait_with_output()).await.map_err(|_| {
            let limit = format_duration(limit);
            self.failed(format!("did not end within {limit}: run it by hand to see why"))
        })?;
        let out = ended.map_err(|error| self.failed(format!("cannot be read: {error}")))?;
        if !out.status.success() {
            return Err(self.failed(failed_run(&out)));
        }
        self.issued(&out.stdout)
            .ok_or_else(|| self.failed("gave no usable credential: run it by hand to see why".to_owned()))
    }

    fn start(&self) -> std::io::Result<tokio::process::Child> {
        let mut spec = json!({"interactive": false});
        if let Some(cluster) = &self.cluster {
            spec["cluster"] = json!(cluster);
        }
        let info = json!({"kind": "ExecCredential", "apiVersion": self.exec.api_version, "spec": spec});
        let variables = self.exec.env.iter().flatten();
        Command::new(&self.command)
            .args(self.exec.args.iter().flatten())
            .envs(variables.filter_map(|variable| Some((variable.get("name")?, variable.get("value")?))))
            .env("KUBERNETES_EXEC_INFO", info.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
    }

    /// Reads what the plugin printed: JSON or, from some plugins, YAML.
    fn issued(&self, printed: &[u8]) -> Option<Issued> {
        let credential: ExecCredential = serde_saphyr::from_slice(printed).ok()?;
        let status = credential.status?;
        let content = |text: String| Content { place: self.name.clone(), bytes: text.into_bytes() };
        let mut identity = Identity::default();
        if let Some(token) = status.token.filter(|token| !token.is_empty()) {
            identity.auth.token = Some(files::token(&content(token)).ok()?.into());
        }
        if let (Some(chain), Some(key)) = (status.client_certificate_data, status.client_key_data) {
            identity.certificate = Some(ClientCertificate::read(&content(chain), &content(key)).ok()?);
        }
        let is_empty = identity.auth.token.is_none() && identity.certificate.is_none();
        (!is_empty).then_some(Issued { identity, expires_at: status.expiration_timestamp })
    }

    fn failed(&self, problem: String) -> ConnectError {
        ConnectError::Plugin { plugin: self.name.clone(), problem }
    }

    fn not_installed(&self) -> String {
        let hint = self.exec.install_hint.as_deref().map(|hint| one_line(hint, LONGEST));
        let hint = hint.filter(|hint| !hint.is_empty()).map(|hint| format!(". Its hint: {hint}"));
        format!("needs the program {}, which is not installed{}", self.command, hint.unwrap_or_default())
    }
}

/// Shows stderr only: a plugin writes its messages there, and the credential to stdout.
fn failed_run(out: &Output) -> String {
    let said = String::from_utf8_lossy(&out.stderr);
    match one_line(&said, LONGEST).as_str() {
        "" => format!("failed ({}): run it by hand to see why", out.status),
        said => format!("failed ({}): {said}", out.status),
    }
}

/// Where programs are looked for if there is no `PATH`, as POSIX has it.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Whether a command is there: a path as it is, a name in the folders of `PATH`.
fn is_installed(command: &str) -> bool {
    if command.contains('/') {
        return Path::new(command).is_file();
    }
    let folders = env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    env::split_paths(&folders).any(|folder| folder.join(command).is_file())
}
