//! Why an application cannot be submitted as it is.

use std::path::PathBuf;

use thiserror::Error;

use super::facts::Uncollected;
use cloakroom_core::resource::OwnerError;
use cloakroom_reach::{NamedBy, and_advice};
use cloakroom_spark::SettingError;
use cloakroom_spark::hadoop_user::NoUser;
use cloakroom_spark::keys::{CLOAKROOM_SERVER_NAMESPACE, SERVER_URI, UPLOAD_PATH};
use cloakroom_transfer::client::{Failure, GivenUp};

/// What is wrong with a request. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// A setting is wrong or missing.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A name that Hadoop does not accept as a user.
    #[error(transparent)]
    User(#[from] NoUser),
    /// The files were not collected, because that work itself failed.
    #[error(transparent)]
    Uncollected(#[from] Uncollected),
    /// A file of the submitting machine is missing, cannot be read or cannot travel.
    #[error("{place}: {file} {problem}")]
    LocalFile { place: &'static str, file: String, problem: String },
    /// A dependency that is not on the submitting machine.
    #[error("`{key}`: {uri}: {problem}")]
    Remote {
        key: &'static str,
        /// As it was written, without secrets.
        uri: String,
        problem: String,
    },
    /// The URI of the application itself.
    #[error("the application cannot be found: {problem}")]
    Application { problem: String },
    /// Files that cannot be packed into a bundle.
    #[error("{problem}")]
    Bundle { problem: String },
    /// The staged files cannot be merged into the file of an application.
    #[error("{problem}")]
    ApplicationFile { problem: String },
    /// `stage --for` has nothing that an init-container would fetch.
    #[error(
        "there is nothing to stage: every file that is named is in the image or left to Spark; spark-submit takes them as \
         they are"
    )]
    NothingToStage,
    /// The pod already has a part with one of the init-container's names.
    #[error(
        "the pod of the {whose} has a {what} already, by its template or by settings of volumes, and the init-container that \
         fetches the staged files needs this one: give yours another name or path"
    )]
    Clash { whose: &'static str, what: String },
    /// The owner of the staged files is not valid.
    #[error(transparent)]
    Owner(OwnerError),
    /// The staging server did not answer which image the init-container has.
    #[error(
        "the staging server at {server} does not say which image the init-container is to have: {given_up}{}",
        and_advice(&given_up.failure, *named)
    )]
    ServerNotAsked { server: String, given_up: Box<GivenUp>, named: NamedBy },
    /// The Service of the staging server cannot be reached.
    #[error("{}", no_service(server, given_up, no_way.as_deref()))]
    ServiceNotReached { server: String, given_up: Box<GivenUp>, no_way: Option<Box<PlanError>> },
    /// A local file has no way into the pod without a staging server.
    #[error("{place}: {file} {}", no_way(why))]
    NoWay {
        place: &'static str,
        file: String,
        /// More about it, in brackets; may be empty.
        why: String,
    },
    /// The HTTP client for the staging server cannot be set up.
    #[error("the staging server cannot be asked: {problem}")]
    NoClient { problem: String },
    /// Neither a setting nor the server names an image for the init-container.
    #[error(
        "no image is known for the init-container that fetches the staged files: set {} to the image of this program{why}",
        named.image()
    )]
    NoInitImage {
        named: NamedBy,
        /// What else would give an image; empty if no server was asked.
        why: String,
    },
    /// The submission would need a Kerberos login on this machine.
    #[error("core-site.xml in HADOOP_CONF_DIR asks for Kerberos: {way_out}")]
    Kerberos { way_out: String },
    /// The name of an object is too long for Kubernetes.
    #[error(
        "the name of the {kind} would have {length} characters, and at most 253 are allowed: choose a shorter \
         --name (`spark.app.name`)"
    )]
    LongName { kind: String, length: usize },
    /// A config map or secret is larger than Kubernetes allows.
    #[error(
        "the {kind} {name} would have {size_bytes} bytes in it, and at most 1048576 are allowed: {advice}"
    )]
    LargeObject {
        kind: &'static str,
        name: String,
        /// The size of its data, decoded.
        size_bytes: usize,
        advice: &'static str,
    },
    /// The folder or file that an environment variable names.
    #[error("{variable} is {}: {problem}", value.display())]
    Variable { variable: &'static str, value: PathBuf, problem: String },
    /// `--proxy-user` is empty.
    #[error("--proxy-user is empty: name the user that the application is run as, or leave the option out")]
    NoProxyUser,
}

/// Without a Service of the usual name, the user needs to know how files travel at all. Otherwise the reason is what counts.
fn no_service(server: &str, given_up: &GivenUp, no_way: Option<&PlanError>) -> String {
    match no_way {
        Some(no_way) if matches!(given_up.failure, Failure::Way { status: Some(404), .. }) => {
            format!("{no_way} (no server is named, and there is none at the usual place, {server})")
        }
        Some(PlanError::NoWay { place, file, .. }) => format!(
            "{place}: {file} needs a staging server, none is named, and {server}, the usual one, cannot be reached: {given_up}"
        ),
        _ => format!("{server} cannot be reached: {given_up}"),
    }
}

/// The advice for a file that has no way into the pod.
pub(super) fn no_way(why: &str) -> String {
    format!(
        "is on this machine, where no pod can reach it{why}: deploy a staging server (docs/deploy.md) and set \
         `{CLOAKROOM_SERVER_NAMESPACE}` to its namespace or `{SERVER_URI}` to its address, put the file into the image and \
         write local:///…, give an http(s) URL, or set `{UPLOAD_PATH}` to a folder that pods see as well"
    )
}
