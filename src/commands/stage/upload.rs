//! The upload of a bundle: its progress, its end after a signal, and how it is taken back.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use cloakroom_core::size::format_size;
use cloakroom_core::text::escaped;
use cloakroom_core::time::format_elapsed;
use cloakroom_reach::ServerPlace;
use cloakroom_submit::Uploading;
use cloakroom_transfer::bundle::{LeftOut, PackPlan, UnpackLimits};
use cloakroom_transfer::client::{HttpClient, RetryPolicy, StageError, StageRequest, Staged};

use super::STOPPING;
use super::progress::StageProgress;
use crate::cli::StageArgs;
use crate::commands::screen::Screen;
use crate::commands::submit::signals::Signals;
use crate::commands::tell;

/// A bundle that is about to be uploaded, or was.
pub struct Upload<'a> {
    pub http: HttpClient,
    pub request: StageRequest,
    server: String,
    args: &'a StageArgs,
    screen: Screen,
    pub signals: Signals,
    started: Instant,
}

impl<'a> Upload<'a> {
    /// Warns about the bundle. From here on a signal ends the upload, and no longer the program.
    pub fn new(
        http: HttpClient,
        request: StageRequest,
        place: &ServerPlace,
        args: &'a StageArgs,
    ) -> anyhow::Result<Self> {
        request.check_token()?;
        warn(&request.plan);
        let screen = Screen::with(args.quiet, args.verbose);
        let signals = Signals::watch(&screen)?;
        let server = place.to_string();
        Ok(Self { http, request, server, args, screen, signals, started: Instant::now() })
    }

    /// Uploads it. `None` if it was stopped; nothing is left then, or the user was told what is.
    pub async fn run(&self) -> anyhow::Result<Option<Staged>> {
        let uploading = Uploading { server: self.server.clone(), ..Uploading::from(&self.request) };
        let progress = Arc::new(StageProgress::start(&self.screen, &uploading, self.args.quiet));
        if let Some(left_out) = self.request.plan.left_out().filter(|_| !self.args.quiet) {
            self.screen.tell(&told(left_out));
        }
        let policy = RetryPolicy { attempts: self.args.attempts, ..RetryPolicy::default() };
        let stop = &self.signals.stop;
        let staging = self.http.stage(stop, &self.request, policy, Arc::clone(&progress) as _);
        let staged = self.until_ended(staging).await;
        progress.end();
        let staged = match staged {
            Err(error @ StageError::Stopped { .. }) => {
                tell(&error.to_string());
                return Ok(None);
            }
            staged => staged?,
        };
        if stop.is_cancelled() {
            tell(&format!("stopped: {}", self.take_back(&staged).await));
            return Ok(None);
        }
        Ok(Some(staged))
    }

    /// The same files, if an earlier run has staged them and nobody has fetched them.
    pub async fn earlier(&self) -> Option<Staged> {
        tokio::select! {
            earlier = self.http.staged_before(&self.request) => earlier,
            () = self.signals.stop.cancelled() => None,
        }
    }

    /// The exit code after a signal.
    pub fn exit_code(&self) -> ExitCode {
        self.signals.exit_code()
    }

    /// Waits for the end of `staging`. After a signal, an upload that is complete still waits for its answer, which has
    /// the ticket to release it with. Tells the user so.
    async fn until_ended<T>(&self, staging: impl Future<Output = T>) -> T {
        let mut staging = std::pin::pin!(staging);
        tokio::select! {
            biased;
            staged = &mut staging => staged,
            () = self.signals.stop.cancelled() => {
                if !self.args.quiet {
                    self.screen.tell(STOPPING);
                }
                staging.await
            }
        }
    }

    /// Releases what was staged, because the user does not get its ticket. Returns what became of it. What an earlier run
    /// has staged stays, because its user has the ticket.
    pub async fn take_back(&self, staged: &Staged) -> String {
        if staged.is_earlier {
            return "what an earlier run has staged stays".to_owned();
        }
        let (http, server, ticket) = (&self.http, &self.request.server, &staged.ticket);
        let releasing = http.retried(server, RetryPolicy::brief(), &|_| {}, || http.release(server, ticket));
        match releasing.await {
            Ok(()) => "what was staged is released again".to_owned(),
            Err(given_up) => format!(
                "resource {} is staged and could not be released: {given_up}; it expires unused",
                ticket.resource_id
            ),
        }
    }

    /// Tells what was staged.
    pub fn summarise(&self, staged: &Staged) {
        let (id, size) = (&staged.ticket.resource_id, format_size(staged.ticket.size_bytes));
        let expires_at = staged.ticket.expires_at;
        if !self.args.quiet {
            let staged = if staged.is_earlier {
                format!("the server has these {size} already, as {id}, and nothing was sent")
            } else {
                format!("staged {size} as {id} in {}", format_elapsed(self.started.elapsed()))
            };
            tell(&format!("{staged}; it expires at {expires_at} if it is not downloaded"));
        }
    }

    /// Warns if the server may have the bundle once more.
    pub fn warn_of_second(&self, staged: &Staged) {
        if staged.may_be_twice {
            tell(&format!(
                "warning: {} perhaps has it a second time, because an upload of it had no answer; that one expires unused",
                self.request.server
            ));
        }
    }
}

fn told(left_out: &LeftOut) -> String {
    if left_out.is_empty() { "left out nothing".to_owned() } else { format!("left out {left_out}") }
}

fn warn(plan: &PackPlan) {
    for renamed in plan.renamed() {
        let (path, name) = (escaped(&renamed.path.to_string_lossy()), escaped(&renamed.name));
        tell(&format!("warning: {path} becomes {name} in the bundle, because another file has its name"));
    }
    let most = UnpackLimits::default().max_entries;
    let entries = plan.entries();
    if entries as u64 > most {
        tell(&format!(
            "warning: the bundle has {entries} entries, and fetch takes at most {most} unless its --max-entries is \
             raised"
        ));
    }
}
