//! The binary: reads the command line and hands over to a command.

mod cli;
mod commands;
mod telemetry;

use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime::Builder;

use cli::{Cli, Command};

/// How long what still runs may take to end, when the command has done its work.
const LAST_ENDS: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            commands::tell(&format!("error: {}", cloakroom_core::text::chain(error.as_ref())));
            if error.is::<commands::UsageError>() {
                ExitCode::from(commands::USAGE)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let cli = Cli::read(&commands::arguments()?);
    let runtime = runtime(&cli.command).enable_all().build()?;
    let may_hang = matches!(cli.command, Command::Submit(_) | Command::Serve(_));
    for warning in cli.command.name().map(commands::variables::near_misses).unwrap_or_default() {
        commands::tell(&format!("warning: {warning}"));
    }
    let done = runtime.block_on(async {
        match cli.command {
            Command::Submit(args) => commands::submit::run(args.arguments).await,
            Command::Serve(args) => commands::serve::run(*args).await,
            Command::Stage(args) => Box::pin(commands::stage::run(*args)).await,
            Command::Fetch(args) => commands::fetch::run(args).await,
            Command::Ls(args) => commands::admin::ls(args).await,
            Command::Show(args) => commands::admin::show(args).await,
            Command::Rm(args) => commands::admin::rm(args).await,
            Command::Clean(args) => commands::admin::clean(args).await,
            Command::ResumeDeletions(args) => commands::admin::resume_deletions(args).await,
            Command::Completions(args) => commands::manual::completions(&args),
            Command::Man(args) => commands::manual::man(&args),
        }
    });
    if may_hang {
        // A read of a pipe, when the user stops a submission, or a call to a disk that hangs may never end: do not wait
        // for it. Programs that this one has started, such as credential plugins, are ended.
        runtime.shutdown_timeout(LAST_ENDS);
    }
    done
}

/// A submission waits for one API server: threads would only cost memory.
fn runtime(command: &Command) -> Builder {
    match command {
        Command::Submit(_) => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    }
}
