//! The binary: reads the command line and hands over to a command.

mod cli;
mod commands;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {}", cloakroom::telemetry::chain(error.as_ref()));
            if error.is::<commands::UsageError>() {
                ExitCode::from(commands::USAGE)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let cli = Cli::parse_from(commands::arguments()?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match cli.command {
            Command::Serve(args) => commands::serve::run(*args).await,
            Command::Stage(args) => commands::stage::run(args).await,
            Command::Fetch(args) => commands::fetch::run(args).await,
            Command::Ls(args) => commands::admin::ls(args).await,
            Command::Show(args) => commands::admin::show(args).await,
            Command::Rm(args) => commands::admin::rm(args).await,
            Command::Clean(args) => commands::admin::clean(args).await,
        }
    })
}
