//! `cloakroom stage`: the ticket goes to stdout, everything else to stderr.

mod asked;
mod handover;
pub(super) mod progress;
mod templates;
mod words;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;

use cloakroom::bundle::{PackPlan, UnpackLimits};
use cloakroom::client::{Backoff, HttpClient, RetryPolicy, StageRequest, Staged, Timeouts, UploadToken};
use cloakroom::resource::Owner;
use cloakroom::spark::format_size;

use self::progress::StageProgress;
use crate::cli::StageArgs;

/// 128 and the number of SIGINT, as shells show it.
const EXIT_INTERRUPTED: u8 = 130;

/// Stages the files.
pub async fn run(args: StageArgs) -> anyhow::Result<ExitCode> {
    if let Some(choice) = args.handover.submitter {
        return handover::run(&args, choice).await;
    }
    let request = request(&args)?;
    let http = HttpClient::new(&args.ca_files, Timeouts::default())?;
    let policy = RetryPolicy { attempts: args.attempts, backoff: Backoff::default() };
    for renamed in request.plan.renamed() {
        let path = renamed.path.display();
        eprintln!(
            "warning: {path} becomes {} in the bundle, because another file has its name",
            renamed.name
        );
    }
    let most = UnpackLimits::default().max_entries;
    if request.plan.files().len() as u64 > most {
        eprintln!(
            "warning: fetch takes at most {most} files from a bundle unless its --max-entries is raised"
        );
    }
    let progress = Arc::new(StageProgress::start(&request, args.quiet));
    let started = Instant::now();
    let staged = tokio::select! {
        staged = http.stage(&request, policy, Arc::clone(&progress) as _) => staged,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.context("cannot wait for Ctrl-C")?;
            progress.end();
            eprintln!("stopped: the server keeps nothing of an upload that did not end");
            return Ok(ExitCode::from(EXIT_INTERRUPTED));
        }
    };
    progress.end();
    let staged = staged?;
    print(&staged)?;
    if !args.quiet {
        let (id, size) = (&staged.ticket.resource_id, format_size(staged.ticket.size_bytes));
        let seconds = started.elapsed().as_secs_f64();
        let expires_at = staged.ticket.expires_at;
        eprintln!(
            "staged {size} as {id} in {seconds:.1} s; it expires at {expires_at} if nobody downloads it"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// All that can be refused without the server is refused here.
fn request(args: &StageArgs) -> anyhow::Result<StageRequest> {
    let owner = Owner::new(args.kind.clone(), &args.namespace, args.labels.clone(), args.name.as_deref())?;
    let token = args.token_file.as_deref().map(|path| UploadToken::read(path, "--token-file")).transpose()?;
    Ok(StageRequest {
        server: args.server.clone(),
        owner,
        ttl: args.ttl,
        unused_timeout: args.unused_timeout,
        token,
        plan: Arc::new(PackPlan::new(&args.files)?),
    })
}

fn print(staged: &Staged) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{}", staged.json).and_then(|()| stdout.flush()).with_context(|| {
        let id = &staged.ticket.resource_id;
        format!("resource {id} is staged, but its ticket cannot be printed on stdout, so stage it again")
    })
}
