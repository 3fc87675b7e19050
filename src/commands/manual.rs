//! `cloakroom completions` and `cloakroom man`.

mod page;
mod positionals;

use std::io::ErrorKind;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::cli::{Cli, CompletionsArgs, ManArgs};

const NAME: &str = "cloakroom";

/// Prints a shell's completions.
pub fn completions(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut program = Cli::described();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, NAME, &mut script);
    script.extend_from_slice(positionals::script(args.shell, &program).as_bytes());
    match std::io::stdout().write_all(&script) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot print on stdout"),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Writes a page for the program and one for each command.
pub fn man(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let mut program = Cli::described().disable_help_subcommand(true);
    program.build();
    let write = || {
        std::fs::create_dir_all(&args.folder)?;
        program.get_subcommands().chain([&program]).try_for_each(|command| {
            std::fs::write(args.folder.join(page::file_name(command)), page::page(command)?)
        })
    };
    write().with_context(|| format!("cannot write the manual pages into {}", args.folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
