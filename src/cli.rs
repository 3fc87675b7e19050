//! Command line types.

mod admin;
mod completions;
mod external_submitter;
mod fetch;
mod pods;
mod serve;
mod stage;
mod store;
mod submit;

use std::env::consts::{ARCH, OS};
use std::ffi::{OsStr, OsString};
use std::sync::LazyLock;

use clap::builder::{Resettable, StyledStr};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use cloakroom_spark::Origin;
use cloakroom_spark::conf::without_userinfo;
use cloakroom_spark::version::{NEWEST_SPARK, OLDEST_SPARK};

pub use admin::{
    AdminArgs, CleanArgs, LsArgs, Output, ResourceArg, ResumeDeletionsArgs, RmArgs, ShowArgs,
    TOKEN_FLAG as ADMIN_TOKEN_FLAG, token_giver as admin_token_giver,
};
pub use completions::{CompletionsArgs, ManArgs};
pub use external_submitter::{SparkSubmitter, SubmitterChoice};
pub use fetch::FetchArgs;
pub use serve::{AccessArgs, KubernetesArgs, ServeArgs, UploadAuthChoice};
pub use stage::{Printed, StageArgs, ca_giver, token_giver};
pub use store::{AddressingChoice, StoreArgs};
pub use submit::{SubmitArgs, VARIABLES as SUBMIT_VARIABLES, help as submit_help};

/// Help is as wide as the terminal, and no wider than this: longer lines are hard to read.
const MAX_WIDTH: usize = 100;

/// A resource staging server for Kubernetes: upload your jars and get a ticket; pods download the jars with the ticket
#[derive(Debug, Parser)]
#[command(name = "cloakroom", version, long_version = LONG_VERSION.as_str(), max_term_width = MAX_WIDTH)]
#[command(
    after_help = "If the only argument is a properties file of kubespark's server or init-container, its keys \
                            decide between `serve` and `fetch`. If the program is called under a name such as \
                            spark-submit, or with an option of spark-submit first, it is `submit`."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// The whole program with the options of `submit`, for shells and the manual.
    pub fn described() -> clap::Command {
        completions::with_hints(Self::command().mut_subcommand("submit", |_| submit::described()))
    }

    /// Reads a command line, or says what is wrong with it and ends the process.
    pub fn read(arguments: &[OsString]) -> Self {
        let mut command = Self::command().mut_subcommands(|command| command.mut_args(without_empty_variable));
        let is_serve = arguments.get(1).is_some_and(|name| name == "serve");
        let read = command.try_get_matches_from_mut(arguments);
        let read = read.and_then(|matches| Self::with_sources(&matches));
        read.unwrap_or_else(|error| {
            let error = of_variable(error.format(&mut command), &command, arguments);
            presentable(hinted(error, is_serve)).exit()
        })
    }

    /// The command line, with what is to be known of where values come from.
    fn with_sources(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut cli = Self::from_arg_matches(matches)?;
        if let (Command::Stage(args), Some((_, matches))) = (&mut cli.command, matches.subcommand()) {
            args.by_flag = stage::ByFlag::read(matches);
        }
        Ok(cli)
    }
}

/// Ignores an empty variable: Kubernetes and CI systems set one for a value that is not given.
fn without_empty_variable(arg: Arg) -> Arg {
    let value = arg.get_env().and_then(std::env::var_os);
    if value.is_some_and(|value| value.is_empty()) { arg.env(Resettable::Reset) } else { arg }
}

/// Where an option got its value, for messages: its variable if that variable `says` the same, else the flag.
pub fn giver(flag: &'static str, variable: &'static str, says: impl FnOnce(&OsStr) -> bool) -> Origin {
    match std::env::var_os(variable) {
        Some(value) if says(&value) => Origin::Variable(variable),
        _ => Origin::Option(flag),
    }
}

/// The same error with the flag that is meant by `--port` and the like, which other servers have.
fn hinted(mut error: clap::Error, is_serve: bool) -> clap::Error {
    const OF_OTHER_SERVERS: [&str; 4] = ["--port", "--host", "--bind", "--address"];
    if let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg)
        && is_serve
        && OF_OTHER_SERVERS.contains(&flag.split('=').next().unwrap_or_default())
    {
        let hint = StyledStr::from("the address and the port are one flag: --listen ADDRESS:PORT".to_owned());
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint]));
    }
    error
}

/// The same error with the variable in the place of its flag, if the value comes from there.
fn of_variable(mut error: clap::Error, command: &clap::Command, arguments: &[OsString]) -> clap::Error {
    let (Some(ContextValue::String(shown)), Some(ContextValue::String(value))) =
        (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
    else {
        return error;
    };
    let flag = shown.split(' ').next().unwrap_or_default();
    let is_given =
        arguments.iter().any(|argument| argument.to_string_lossy().split('=').next() == Some(flag));
    let subcommand = arguments.get(1).and_then(|name| command.find_subcommand(name));
    let mut args = subcommand.into_iter().flat_map(clap::Command::get_arguments);
    let arg = args.find(|arg| arg.get_long() == flag.strip_prefix("--"));
    let variable = arg.and_then(Arg::get_env).and_then(OsStr::to_str).map(str::to_owned);
    let says = |variable: &String| std::env::var(variable).is_ok_and(|set| set == *value);
    if let Some(variable) = variable.filter(|variable| !is_given && says(variable)) {
        error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
    }
    error
}

/// The same error without the user information of an address: a message must not repeat a password.
fn presentable(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) {
        let shown = without_userinfo(value).into_owned();
        error.insert(ContextKind::InvalidValue, ContextValue::String(shown));
    }
    error
}

// No comments on the variants: they would replace the help texts of the types inside.
#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(Box<ServeArgs>),
    Stage(Box<StageArgs>),
    Submit(SubmitArgs),
    Fetch(FetchArgs),
    Ls(LsArgs),
    Show(ShowArgs),
    Rm(RmArgs),
    Clean(CleanArgs),
    ResumeDeletions(ResumeDeletionsArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

impl Command {
    /// The subcommand's name; `None` for those that say themselves which variables have no effect, or read none.
    pub fn name(&self) -> Option<&'static str> {
        match self {
            Self::Stage(_) => Some("stage"),
            Self::Fetch(_) => Some("fetch"),
            Self::Ls(_) => Some("ls"),
            Self::Show(_) => Some("show"),
            Self::Rm(_) => Some("rm"),
            Self::Clean(_) => Some("clean"),
            Self::ResumeDeletions(_) => Some("resume-deletions"),
            Self::Serve(_) | Self::Submit(_) | Self::Completions(_) | Self::Man(_) => None,
        }
    }
}

/// The commit: packaging/revision.rs sets it for release builds.
const REVISION: Option<&str> = option_env!("CLOAKROOM_REVISION");

/// The C library. Users need to know it, because it resolves host names.
const LIBRARY: &str = if cfg!(target_env = "musl") { "musl" } else { "gnu" };

/// The text of `--version` after the program's name. `-V` prints only its first word.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    let revision = REVISION.filter(|revision| !revision.is_empty()).unwrap_or("unknown");
    format!(
        "{version}\nrevision: {revision}\ntarget: {ARCH}-{OS}-{LIBRARY}\nsubmits for Spark: {OLDEST_SPARK} to {NEWEST_SPARK}"
    )
});
