//! `cloakroom resume-deletions`.

use std::process::ExitCode;

use super::{connect, print};
use crate::cli::ResumeDeletionsArgs;

/// Lets the server's sweeps delete again.
pub async fn run(args: ResumeDeletionsArgs) -> anyhow::Result<ExitCode> {
    let resumed = connect(&args.admin, "resume-deletions")?.resume_deletions().await?;
    print(if resumed.was_behind {
        "sweeps delete again, by this ledger\n"
    } else {
        "ledger and bundles belong together: nothing was changed\n"
    })?;
    Ok(ExitCode::SUCCESS)
}
