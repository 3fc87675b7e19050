//! The command lines of `cloakroom completions` and `cloakroom man`, and what a shell can offer for each value.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, Command, ValueHint};
use clap_complete::Shell;

use cloakroom_core::protocol::admin::{DUE, WITHOUT_UID};
use cloakroom_core::resource::OwnerKind;
use cloakroom_server::cleaner::KeepReason;

/// Print the script with which a shell completes command lines of this program
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  cloakroom completions bash \\
      > ~/.local/share/bash-completion/completions/cloakroom
  cloakroom completions zsh > \"${fpath[1]}/_cloakroom\"
  cloakroom completions fish > ~/.config/fish/completions/cloakroom.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// Write the manual pages into a folder: cloakroom.1, and one for each command
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:
  cloakroom man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The folder; it is created if missing
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// The command with hints for shells. The name of a value decides what a shell offers: files, folders, known words, or
/// nothing.
pub fn with_hints(command: Command) -> Command {
    command.mut_args(with_hint).mut_subcommands(with_hints)
}

fn with_hint(arg: Arg) -> Arg {
    if !arg.get_action().takes_values() || !arg.get_possible_values().is_empty() {
        return arg;
    }
    let name =
        arg.get_value_names().and_then(|names| names.first()).map_or(arg.get_id().as_str(), |name| name);
    let words: Vec<&'static str> = match name {
        "application" | "ARCHIVES" | "FILE" | "FILES" | "JARS" | "KEYTAB" | "PATH" | "PEM"
        | "PROPERTIES_FILE" | "PY_FILES" | "YAML" => return arg.value_hint(ValueHint::FilePath),
        "DIR" => return arg.value_hint(ValueHint::DirPath),
        "FILTER" => ["error", "warn", "info", "debug", "trace"].into(),
        "KIND" => OwnerKind::well_known().collect(),
        "UID" => [WITHOUT_UID].into(),
        "WHY" => KeepReason::ALL.iter().map(|why| why.as_str()).chain([DUE]).collect(),
        "cluster" => ["cluster"].into(),
        _ => return arg.value_hint(ValueHint::Other),
    };
    // Other words are allowed too, so help and manual must not list these as all possible values.
    arg.value_parser(PossibleValuesParser::new(words)).hide_possible_values(true)
}
