//! Command line types.

mod admin;
mod completions;
mod external_submitter;
mod fetch;
mod retention;
mod serve;
mod stage;
mod submit;
mod version;

use std::ffi::{OsStr, OsString};

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use cloakroom_spark::Origin;
use cloakroom_spark::conf::without_userinfo;

pub use admin::{
    AdminArgs, CleanArgs, ListOutput, LsArgs, ResourceArg, RmArgs, ShowArgs, SortKey, Structured,
    TOKEN_FLAG as ADMIN_TOKEN_FLAG, token_giver as admin_token_giver,
};
pub use completions::{CompletionsArgs, ManArgs};
pub use external_submitter::SubmitterChoice;
pub use fetch::FetchArgs;
pub use serve::{KubernetesArgs, ServeArgs, UploadAuthChoice};
pub use stage::{StageArgs, ca_giver, token_giver};
pub use submit::{SubmitArgs, VARIABLES as SUBMIT_VARIABLES, help as submit_help};

/// Help is as wide as the terminal, and no wider than this: longer lines are hard to read.
const MAX_WIDTH: usize = 100;

/// A resource staging server for Kubernetes: hand your jars in, get a ticket; the pods show the ticket and get
/// the jars
#[derive(Debug, Parser)]
#[command(name = "cloakroom", version, long_version = version::LONG.as_str(), max_term_width = MAX_WIDTH)]
#[command(
    after_help = "A properties file of kubespark's resource staging server or init-container as the only \
                        argument means `serve` or `fetch`, by its keys. Called under a name such as spark-submit, \
                        or with its options, the program is `submit`."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// The whole program for shells and the manual, with the options of `submit` as well.
    pub fn described() -> clap::Command {
        completions::with_hints(Self::command().mut_subcommand("submit", |_| submit::described()))
    }

    /// Reads a command line, or says what is wrong with it and ends the process.
    pub fn of(arguments: Vec<OsString>) -> Self {
        let mut command = Self::command().mut_subcommands(|command| command.mut_args(without_empty_variable));
        let read = command.try_get_matches_from_mut(arguments);
        let read = read.and_then(|matches| Self::from_arg_matches(&matches));
        read.unwrap_or_else(|error| presentable(error.format(&mut command)).exit())
    }
}

/// An empty variable is as good as none: Kubernetes and CI systems make one of a value that is not given.
fn without_empty_variable(arg: Arg) -> Arg {
    let value = arg.get_env().and_then(std::env::var_os);
    if value.is_some_and(|value| value.is_empty()) { arg.env(Resettable::Reset) } else { arg }
}

/// What gave an option its value, for messages: its variable where that `says` the same, else the flag.
pub fn giver(flag: &'static str, variable: &'static str, says: impl FnOnce(&OsStr) -> bool) -> Origin {
    match std::env::var_os(variable) {
        Some(value) if says(&value) => Origin::Variable(variable),
        _ => Origin::Option(flag),
    }
}

/// The same without who somebody is to a server: a password is not shown again where its address is refused.
fn presentable(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) {
        let shown = without_userinfo(value).into_owned();
        error.insert(ContextKind::InvalidValue, ContextValue::String(shown));
    }
    error
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve staged resources
    Serve(Box<ServeArgs>),
    /// Pack local files, hand them in, print the ticket
    Stage(StageArgs),
    /// Submit a Spark application, as spark-submit does, without a JVM
    Submit(SubmitArgs),
    /// Show tickets, get the files: what an init-container does
    Fetch(FetchArgs),
    /// List what is staged, for whom, why it is kept, and when it goes
    Ls(LsArgs),
    /// Show all that is known of one resource
    Show(ShowArgs),
    /// Remove resources now
    Rm(RmArgs),
    /// Sweep now
    Clean(CleanArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Write manual pages
    Man(ManArgs),
}
