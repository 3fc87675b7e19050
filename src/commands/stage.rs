//! `cloakroom stage`: the ticket goes to stdout or into a file, everything else to stderr.

mod external_submitter;
mod messages;
pub(super) mod progress;
mod request;
mod through_api_server;
mod ticket_output;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use cloakroom_core::resource::{Owner, OwnerKind, POD};
use cloakroom_core::size::format_size;
use cloakroom_core::time::format_elapsed;
use cloakroom_reach::ServerPlace;
use cloakroom_submit::Uploading;
use cloakroom_transfer::bundle::{Disk, LeftOut, PackPlan, UnpackLimits};
use cloakroom_transfer::client::{
    HttpClient, RetryPolicy, ServerAddress, StageError, StageRequest, Staged, StagedBefore, Timeouts,
    UploadToken, UploadTokens, Url, shown,
};

use self::progress::StageProgress;
use self::ticket_output::TicketOutput;
use crate::cli::{Printed, StageArgs, token_giver};
use crate::commands::screen::Screen;
use crate::commands::submit::signals::Signals;
use crate::commands::{UsageError, refuse, tell};

/// The answer to the first signal.
const STOPPING: &str = "stopping: what is under way has to end, and is taken back";

/// Stages the files.
pub async fn run(args: StageArgs) -> anyhow::Result<ExitCode> {
    if let Some(choice) = args.external.submitter {
        return external_submitter::run(&args, choice).await;
    }
    if args.key_ttl.is_some() && args.print != Printed::UrlWithKey {
        refuse!("--key-ttl is for the key of --print url-with-key: give that too, or leave it out");
    }
    let screen = Screen::with(args.quiet, args.verbose);
    let place = args.place()?;
    let request = request(&args)?;
    // After the walk, which could find the unfinished file in one of the folders.
    let output = TicketOutput::open(args.ticket_to.as_deref(), args.print == Printed::UrlWithKey)?;
    let http = HttpClient::new(&args.ca_files, Timeouts::default())?;
    let Reached { http, address, internal_url, tokens } = reach(&place, &args, http).await?;
    let request = StageRequest { tokens, ..request(address) };
    request.check_token()?;
    let policy = RetryPolicy { attempts: args.attempts, ..RetryPolicy::default() };
    warn(&request.plan);
    let signals = Signals::watch(&screen)?;
    let uploading = Uploading { server: place.to_string(), ..Uploading::from(&request) };
    let progress = Arc::new(StageProgress::start(&screen, &uploading, args.quiet));
    if let Some(left_out) = request.plan.left_out().filter(|_| !args.quiet) {
        screen.tell(&told(left_out));
    }
    let started = Instant::now();
    let staging = http.stage(&signals.stop, &request, policy, Arc::clone(&progress) as _);
    let staged = until_ended(staging, &signals, &args, &screen).await;
    progress.end();
    let staged = match staged {
        Err(error @ StageError::Stopped { .. }) => {
            tell(&error.to_string());
            return Ok(signals.exit_code());
        }
        staged => staged?,
    };
    let staged = match &internal_url {
        Some(url) => staged.at(url),
        None => staged,
    };
    if signals.stop.is_cancelled() {
        tell(&format!("stopped: {}", take_back(&http, &request, &staged).await));
        return Ok(signals.exit_code());
    }
    if let Err((error, what)) = give(&http, &request, &staged, output, &args).await {
        let left = take_back(&http, &request, &staged).await;
        return Err(error.context(format!("{what}; {left}")));
    }
    if !args.quiet {
        summarise(&staged, started);
    }
    if internal_url.is_none() {
        warn_of_address(&request.server, &staged.ticket.url);
    }
    if staged.may_be_twice {
        tell(&format!(
            "warning: {} perhaps has it a second time, because an upload of it had no answer; that one expires unused",
            request.server
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Gives the user what was asked for. An error says what the user does not get.
async fn give(
    http: &HttpClient,
    request: &StageRequest,
    staged: &Staged,
    output: TicketOutput,
    args: &StageArgs,
) -> Result<(), (anyhow::Error, String)> {
    let done = output.to_string();
    if args.print == Printed::UrlWithKey {
        let (server, ticket) = (&request.server, &staged.ticket);
        let making = http.retried(server, RetryPolicy::brief(), &|_| {}, || {
            http.make_read_key(server, ticket, args.key_ttl)
        });
        let keyed = making.await.map_err(|error| (error.into(), "the server made no key".to_owned()))?;
        let (_, key) = keyed.url.split_once('?').unwrap_or_default();
        let name = args.folders.top.as_deref().unwrap_or("bundle");
        let url = format!("{}/content/{name}.tar.gz?{key}\n", ticket.url);
        messages::show(&url)
            .map_err(|error| (error.into(), "the URL cannot be printed on stdout".to_owned()))?;
        if !args.quiet {
            tell(&format!("whoever has the URL can read the bundle until {}", keyed.expires_at));
        }
    }
    output.write(&staged.json).map_err(|error| (error.into(), format!("the ticket cannot be {done}")))
}

/// The way to the server.
struct Reached {
    http: HttpClient,
    address: ServerAddress,
    /// The URL for pods, of a server behind a Service.
    internal_url: Option<String>,
    /// Tokens that such a server may want.
    tokens: Option<Arc<dyn UploadTokens>>,
}

async fn reach(place: &ServerPlace, args: &StageArgs, http: HttpClient) -> anyhow::Result<Reached> {
    match place {
        ServerPlace::Address(address) => {
            Ok(Reached { http, address: address.clone(), internal_url: None, tokens: None })
        }
        ServerPlace::Service(service) => through_api_server::reach(service, args, &http).await,
    }
}

fn told(left_out: &LeftOut) -> String {
    if left_out.is_empty() { "left out nothing".to_owned() } else { format!("left out {left_out}") }
}

fn summarise(staged: &Staged, started: Instant) {
    let (id, size) = (&staged.ticket.resource_id, format_size(staged.ticket.size_bytes));
    let took = format_elapsed(started.elapsed());
    let expires_at = staged.ticket.expires_at;
    tell(&format!("staged {size} as {id} in {took}; it expires at {expires_at} if it is not downloaded"));
}

fn warn(plan: &PackPlan) {
    for renamed in plan.renamed() {
        let (path, name) = (renamed.path.display(), &renamed.name);
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

/// A ticket's URL leads elsewhere if the server has a `--public-url`, or if a proxy changes the name or the scheme. Who
/// downloads by the URL must reach that address.
fn warn_of_address(server: &ServerAddress, url: &str) {
    if !url.starts_with(server.join("/").as_str()) {
        let named = Url::parse(url).map_or_else(|_| "another address".to_owned(), |url| shown(&url));
        tell(&format!(
            "warning: the ticket's url is {named}, and {server} was asked: who downloads by it must reach that address \
             (--public-url of the server sets it)"
        ));
    }
}

/// Waits for the end of `staging`. After a signal, an upload that is complete still waits for its answer, which has the
/// ticket to release it with. Tells the user so.
async fn until_ended<T>(
    staging: impl Future<Output = T>,
    signals: &Signals,
    args: &StageArgs,
    screen: &Screen,
) -> T {
    let mut staging = std::pin::pin!(staging);
    tokio::select! {
        biased;
        staged = &mut staging => staged,
        () = signals.stop.cancelled() => {
            if !args.quiet {
                screen.tell(STOPPING);
            }
            staging.await
        }
    }
}

/// Releases what was staged, because the user does not get its ticket. Returns what became of it.
async fn take_back(http: &HttpClient, request: &StageRequest, staged: &Staged) -> String {
    let (server, ticket) = (&request.server, &staged.ticket);
    let releasing = http.retried(server, RetryPolicy::brief(), &|_| {}, || http.release(server, ticket));
    match releasing.await {
        Ok(()) => "what was staged is released again".to_owned(),
        Err(given_up) => format!(
            "resource {} is staged and could not be released: {given_up}; it expires unused",
            ticket.resource_id
        ),
    }
}

/// The request, for the address of the server. Everything that can be refused without the server is refused here.
fn request(args: &StageArgs) -> anyhow::Result<impl FnOnce(ServerAddress) -> StageRequest> {
    let kind = args.kind.clone().map_or_else(|| OwnerKind::parse(POD), Ok)?;
    let namespace = args.namespace.as_deref().unwrap_or_default();
    let owner = Owner::new(kind, namespace, args.labels.clone(), args.name.as_deref())
        .map_err(|error| UsageError::from_error(&error))?;
    let token = args.token_file.as_deref();
    let token = token.map(|path| UploadToken::read(path, &token_giver(path).to_string())).transpose()?;
    let plan = Arc::new(PackPlan::of(&args.files, &args.folders.rules())?);
    let (ttl, unused_timeout) = (args.ttl, args.unused_timeout);
    let sources = Arc::new(Disk);
    let before = if args.no_reuse { None } else { staged_before() };
    Ok(move |server| StageRequest {
        server,
        owner,
        ttl,
        unused_timeout,
        token,
        tokens: None,
        plan,
        sources,
        before,
    })
}

/// What this user has staged before.
pub(super) fn staged_before() -> Option<StagedBefore> {
    StagedBefore::of_user(|name| std::env::var_os(name).map(PathBuf::from))
}
