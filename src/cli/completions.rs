//! The command lines of `cloakroom completions` and `cloakroom man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Print what a shell needs to complete this program's command lines
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  cloakroom completions bash \\
      > ~/.local/share/bash-completion/completions/cloakroom
  cloakroom completions zsh > \"${fpath[1]}/_cloakroom\"
  cloakroom completions fish > ~/.config/fish/completions/cloakroom.fish")]
pub struct CompletionsArgs {
    /// Which shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// Write the manual pages into a folder: cloakroom.1, and one for each command
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:
  cloakroom man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The folder; it is made if it is missing
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
