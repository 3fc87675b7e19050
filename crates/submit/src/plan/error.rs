//! Why an application cannot be submitted as it is.

use std::path::PathBuf;

use thiserror::Error;

use super::facts::Uncollected;
use crate::advice::{Named, and_advice};
use cloakroom_core::resource::OwnerError;
use cloakroom_spark::SettingError;
use cloakroom_spark::hadoop_user::NoUser;
use cloakroom_transfer::client::GivenUp;

/// What is wrong with what was asked for. Nothing was sent to anybody.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// A setting, or the lack of one.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A user that cannot be one.
    #[error(transparent)]
    User(#[from] NoUser),
    /// No file was looked at.
    #[error(transparent)]
    Uncollected(#[from] Uncollected),
    /// A file of the submitting machine.
    #[error("{place}: {file} {problem}")]
    LocalFile {
        /// The setting or argument that names it.
        place: &'static str,
        /// As it was written.
        file: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A dependency somewhere else.
    #[error("`{key}`: {uri}: {problem}")]
    Remote {
        /// The setting that names it.
        key: &'static str,
        /// As it was written, without secrets.
        uri: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The application itself.
    #[error("the application cannot be found: {problem}")]
    Application {
        /// What is wrong with its URI.
        problem: String,
    },
    /// Files that cannot be packed.
    #[error("{problem}")]
    Bundle {
        /// What is wrong with which file, and what to do.
        problem: String,
    },
    /// The file of an application that cannot be merged with what is staged.
    #[error("{problem}")]
    ApplicationFile {
        /// Which file, what is wrong with it, and what to do.
        problem: String,
    },
    /// Nothing that an init-container would bring.
    #[error(
        "there is nothing to stage: every file that is named is in the image or left to Spark; spark-submit takes them as \
         they are"
    )]
    NothingToStage,
    /// A part of the init-container's that is there already.
    #[error(
        "the pod of the {whose} has a {what} already, by its template or by settings of volumes, and the init-container that \
         fetches the staged files needs this one: give yours another name or path"
    )]
    Clash {
        /// `driver` or `executors`.
        whose: &'static str,
        /// Which part.
        what: String,
    },
    /// Nobody the staged files could belong to.
    #[error(transparent)]
    Owner(OwnerError),
    /// The staging server, which would say the init-container's image.
    #[error(
        "the staging server at {server} does not say which image the init-container is to have: {given_up}{}",
        and_advice(&given_up.failure, *named)
    )]
    ServerNotAsked {
        /// Where.
        server: String,
        /// What happened.
        given_up: Box<GivenUp>,
        /// How it was given.
        named: Named,
    },
    /// A client that cannot be set up.
    #[error("the staging server cannot be asked: {problem}")]
    NoClient {
        /// Why.
        problem: String,
    },
    /// No image for the init-container that fetches what was staged.
    #[error(
        "no image is known for the init-container that fetches the staged files: set {} to the image of this program{why}",
        named.image()
    )]
    NoInitImage {
        /// How the server was given.
        named: Named,
        /// What was tried to find one.
        why: String,
    },
    /// Somebody would have to log in.
    #[error("core-site.xml in HADOOP_CONF_DIR asks for Kerberos: {way_out}")]
    Kerberos {
        /// What to do.
        way_out: String,
    },
    /// A name that Kubernetes cannot take.
    #[error(
        "the name of the {kind} would have {length} characters, and at most 253 are allowed: choose a shorter \
         --name (`spark.app.name`)"
    )]
    LongName {
        /// The kind of object.
        kind: String,
        /// How long it would be.
        length: usize,
    },
    /// More than an object of Kubernetes may have in it.
    #[error(
        "the {kind} {name} would have {size_bytes} bytes in it, and at most 1048576 are allowed: {advice}"
    )]
    LargeObject {
        /// The kind of object.
        kind: &'static str,
        /// How it would be called.
        name: String,
        /// How large it would be.
        size_bytes: usize,
        /// What to make smaller.
        advice: &'static str,
    },
    /// What the environment points at.
    #[error("{variable} is {}: {problem}", value.display())]
    Variable {
        /// Name of the environment variable.
        variable: &'static str,
        /// Its value.
        value: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// `--proxy-user` that no pod can have.
    #[error("--proxy-user is empty: name the user that the application is run as, or leave the option out")]
    NoProxyUser,
}
