//! Credential plugins: programs that a kubeconfig names, and that print a token or a certificate
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins>). kube could
//! start them as well, but it waits for them without end, on a thread that keeps the whole process.

use std::env;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use kube::config::{Cluster, ExecAuthCluster, ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;

use super::connect_error::ConnectError;
use super::files::{self, Content};
use super::identity::{ClientCertificate, ClientIdentity};
use super::program::{self, Ended, ProgramError};
use cloakroom_core::text::one_line;

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
    pub(super) identity: ClientIdentity,
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
    /// Checks a plugin without starting it. `user` says whose it is, in the words after “the credential plugin”.
    pub(super) fn new(exec: &ExecConfig, cluster: &Cluster, user: &str) -> Result<Self, ConnectError> {
        let command = exec.command.clone().unwrap_or_default();
        let quoted = if command.is_empty() { String::new() } else { format!("“{command}” ") };
        let name = format!("the credential plugin {quoted}{user}");
        let refused =
            |problem: &str| ConnectError::Plugin { plugin: name.clone(), problem: problem.to_owned() };
        if command.is_empty() {
            return Err(refused("has no command"));
        }
        if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
            let problem = "must ask a question (interactiveMode: Always), and there is no person to answer";
            return Err(refused(problem));
        }
        let cluster = exec.provide_cluster_info.then(|| ExecAuthCluster::try_from(cluster)).transpose();
        let cluster = cluster
            .map_err(|_| refused("asks for the cluster's certificate-authority, which cannot be read"))?;
        let plugin = Self { name, command, exec: exec.clone(), cluster };
        if !is_installed(&plugin.command) {
            return Err(plugin.failed(plugin.not_installed()));
        }
        Ok(plugin)
    }

    /// Runs the plugin, at most for the time `limit`. If the caller stops waiting, the plugin is ended.
    pub(super) async fn run(&self, limit: Duration) -> Result<Issued, ConnectError> {
        let ended = program::run(&mut self.started(), limit).await.map_err(|error| match error {
            ProgramError::Start(error) if error.kind() == ErrorKind::NotFound => {
                self.failed(self.not_installed())
            }
            error @ (ProgramError::TooLong(_) | ProgramError::TooMuch) => {
                self.failed(format!("{error}: {BY_HAND}"))
            }
            error => self.failed(error.to_string()),
        })?;
        if !ended.status.success() {
            return Err(self.failed(failed_run(&ended)));
        }
        self.issued(&ended.stdout)
    }

    fn started(&self) -> Command {
        let mut spec = json!({"interactive": false});
        if let Some(cluster) = &self.cluster {
            spec["cluster"] = json!(cluster);
        }
        let info = json!({"kind": "ExecCredential", "apiVersion": self.exec.api_version, "spec": spec});
        let variables = self.exec.env.iter().flatten();
        let mut command = Command::new(&self.command);
        command
            .args(self.exec.args.iter().flatten())
            .envs(variables.filter_map(|variable| Some((variable.get("name")?, variable.get("value")?))))
            .env("KUBERNETES_EXEC_INFO", info.to_string());
        command
    }

    /// Reads what the plugin printed: JSON or, from some plugins, YAML.
    fn issued(&self, printed: &[u8]) -> Result<Issued, ConnectError> {
        let credential: ExecCredential = serde_saphyr::from_slice(printed)
            .map_err(|_| self.failed(format!("printed something else than an ExecCredential: {BY_HAND}")))?;
        let status = credential.status.ok_or_else(|| {
            self.failed(format!("printed an ExecCredential without a credential in it: {BY_HAND}"))
        })?;
        let content = |what: &str, text: String| Content {
            place: format!("the {what} that {} gave", self.name),
            bytes: text.into_bytes(),
        };
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let mut identity = ClientIdentity::default();
        if let Some(token) = given(status.token) {
            identity.auth.token = Some(files::token(&content("token", token))?.into());
        }
        identity.certificate = match (given(status.client_certificate_data), given(status.client_key_data)) {
            (Some(chain), Some(key)) => {
                let (chain, key) = (content("clientCertificateData", chain), content("clientKeyData", key));
                Some(ClientCertificate::read(&chain, &key)?)
            }
            (None, None) => None,
            (Some(_), None) => return Err(self.failed("gave a certificate without its key")),
            (None, Some(_)) => return Err(self.failed("gave a key without its certificate")),
        };
        if identity.auth.token.is_none() && identity.certificate.is_none() {
            return Err(self.failed("gave neither a token nor a certificate"));
        }
        Ok(Issued { identity, expires_at: status.expiration_timestamp })
    }

    fn failed(&self, problem: impl Into<String>) -> ConnectError {
        ConnectError::Plugin { plugin: self.name.clone(), problem: problem.into() }
    }

    fn not_installed(&self) -> String {
        let hint = self.exec.install_hint.as_deref().map(|hint| one_line(hint, LONGEST));
        let hint = hint.filter(|hint| !hint.is_empty()).map(|hint| format!(". Its hint: {hint}"));
        format!("is not installed{}", hint.unwrap_or_default())
    }
}

/// What to do about a plugin that does not say why it failed.
const BY_HAND: &str = "run it by hand to see why";

/// Shows stderr only: a plugin writes its messages there, and the credential to stdout.
fn failed_run(ended: &Ended) -> String {
    let said = String::from_utf8_lossy(&ended.stderr);
    match one_line(&said, LONGEST).as_str() {
        "" => format!("failed ({}): {BY_HAND}", ended.status),
        said => format!("failed ({}): {said}", ended.status),
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
