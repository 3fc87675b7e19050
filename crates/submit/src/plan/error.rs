//! Why an application cannot be submitted as it is.

use std::path::PathBuf;

use thiserror::Error;

use super::facts::Uncollected;
use super::no_way::no_way;
use crate::advice::{Named, and_advice};
use cloakroom_core::resource::OwnerError;
use cloakroom_spark::SettingError;
use cloakroom_spark::hadoop_user::NoUser;
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
    LocalFile {
        /// The setting or argument that names it.
        place: &'static str,
        /// As it was written.
        file: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A dependency that is not on the submitting machine.
    #[error("`{key}`: {uri}: {problem}")]
    Remote {
        /// The setting that names it.
        key: &'static str,
        /// As it was written, without secrets.
        uri: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The URI of the application itself.
    #[error("the application cannot be found: {problem}")]
    Application {
        /// What is wrong with its URI.
        problem: String,
    },
    /// Files that cannot be packed into a bundle.
    #[error("{problem}")]
    Bundle {
        /// What is wrong with which file, and what to do.
        problem: String,
    },
    /// The staged files cannot be merged into the file of an application.
    #[error("{problem}")]
    ApplicationFile {
        /// Which file, what is wrong with it, and what to do.
        problem: String,
    },
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
    Clash {
        /// `driver` or `executors`.
        whose: &'static str,
        /// The kind and the name of the part.
        what: String,
    },
    /// The owner of the staged files is not valid.
    #[error(transparent)]
    Owner(OwnerError),
    /// The staging server did not answer which image the init-container has.
    #[error(
        "the staging server at {server} does not say which image the init-container is to have: {given_up}{}",
        and_advice(&given_up.failure, *named)
    )]
    ServerNotAsked {
        /// Its address.
        server: String,
        /// The last failure, and how long it was tried.
        given_up: Box<GivenUp>,
        /// Where the user has named the server.
        named: Named,
    },
    /// The Service of the staging server cannot be reached.
    #[error("{}", no_service(server, given_up, no_way.as_deref()))]
    ServiceNotReached {
        /// The Service.
        server: String,
        /// The last failure, and how long it was tried.
        given_up: Box<GivenUp>,
        /// The refusal of a file that needs this server, if it is the default one.
        no_way: Option<Box<PlanError>>,
    },
    /// A local file has no way into the pod without a staging server.
    #[error("{place}: {file} {}", no_way(why))]
    NoWay {
        /// The setting or argument that names it.
        place: &'static str,
        /// As it was written.
        file: String,
        /// More about it, in brackets; may be empty.
        why: String,
    },
    /// The HTTP client for the staging server cannot be set up.
    #[error("the staging server cannot be asked: {problem}")]
    NoClient {
        /// The cause.
        problem: String,
    },
    /// Neither a setting nor the server names an image for the init-container.
    #[error(
        "no image is known for the init-container that fetches the staged files: set {} to the image of this program{why}",
        named.image()
    )]
    NoInitImage {
        /// Where the user has named the server.
        named: Named,
        /// What else would give an image; empty if no server was asked.
        why: String,
    },
    /// The submission would need a Kerberos login on this machine.
    #[error("core-site.xml in HADOOP_CONF_DIR asks for Kerberos: {way_out}")]
    Kerberos {
        /// What to do.
        way_out: String,
    },
    /// The name of an object is too long for Kubernetes.
    #[error(
        "the name of the {kind} would have {length} characters, and at most 253 are allowed: choose a shorter \
         --name (`spark.app.name`)"
    )]
    LongName {
        /// The kind of object.
        kind: String,
        /// Its length in characters.
        length: usize,
    },
    /// A config map or secret is larger than Kubernetes allows.
    #[error(
        "the {kind} {name} would have {size_bytes} bytes in it, and at most 1048576 are allowed: {advice}"
    )]
    LargeObject {
        /// The kind of object.
        kind: &'static str,
        name: String,
        /// The size of its data, decoded.
        size_bytes: usize,
        /// What to make smaller.
        advice: &'static str,
    },
    /// The folder or file that an environment variable names.
    #[error("{variable} is {}: {problem}", value.display())]
    Variable {
        /// Name of the environment variable.
        variable: &'static str,
        value: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
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
