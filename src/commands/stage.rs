//! `cloakroom stage`: the ticket goes to stdout or into a file, everything else to stderr.

mod external_submitter;
mod messages;
mod object_file;
mod pods;
pub(super) mod progress;
mod request;
mod through_api_server;
mod ticket_output;
mod upload;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cloakroom_core::resource::{Owner, OwnerKind, POD};
use cloakroom_core::time::{SparkDuration, format_duration};
use cloakroom_reach::ServerPlace;
use cloakroom_transfer::bundle::{Disk, PackPlan};
use cloakroom_transfer::client::{
    HttpClient, RetryPolicy, ServerAddress, StageRequest, Staged, StagedBefore, Timeouts, UploadToken,
    UploadTokens, Url, is_loopback, shown,
};

use self::ticket_output::TicketOutput;
use self::upload::Upload;
use crate::cli::{Printed, SparkSubmitter, StageArgs, SubmitterChoice, token_giver};
use crate::commands::{UsageError, refuse, tell};

/// The answer to the first signal.
const STOPPING: &str = "stopping: what is under way has to end, and is taken back";

/// Stages the files.
pub async fn run(args: StageArgs) -> anyhow::Result<ExitCode> {
    let spark = match args.external.submitter {
        None => return print_ticket(&args).await,
        Some(SubmitterChoice::Pods) => return pods::run(&args).await,
        Some(SubmitterChoice::SparkSubmit) => SparkSubmitter::SparkSubmit,
        Some(SubmitterChoice::SparkOperator) => SparkSubmitter::SparkOperator,
    };
    external_submitter::run(&args, spark).await
}

async fn print_ticket(args: &StageArgs) -> anyhow::Result<ExitCode> {
    if args.key_ttl.is_some() && args.print != Printed::UrlWithKey {
        refuse!("--key-ttl is for the key of --print url-with-key: give that too, or leave it out");
    }
    let place = args.place()?;
    let owner = owner(args)?;
    let request = request(args, owner, plan(args)?)?;
    // After the walk, which could find the unfinished file in one of the folders.
    let output = TicketOutput::open(args.ticket_to.as_deref(), args.print == Printed::UrlWithKey)?;
    let namespace = args.namespace.as_deref().unwrap_or_default();
    let Reached { http, address, internal_url, tokens, .. } = reach(&place, args, namespace).await?;
    if args.print == Printed::UrlWithKey {
        check_key(&http, &address, args).await?;
    }
    let request = StageRequest { tokens, ..request(address) };
    let upload = Upload::new(http, request, &place, args)?;
    let Some(staged) = upload.run().await? else { return Ok(upload.exit_code()) };
    let staged = match &internal_url {
        Some(url) => staged.at(url),
        None => staged,
    };
    if let Err((error, what)) = give(&upload, &staged, output, args).await {
        let left = upload.take_back(&staged).await;
        return Err(error.context(format!("{what}; {left}")));
    }
    upload.summarise(&staged);
    if internal_url.is_none() {
        warn_of_address(&upload.request.server, &staged.ticket.url);
    }
    upload.warn_of_second(&staged);
    Ok(ExitCode::SUCCESS)
}

/// Refuses a key that the server would refuse after the upload. If it does not answer, the upload tries again.
async fn check_key(http: &HttpClient, address: &ServerAddress, args: &StageArgs) -> anyhow::Result<()> {
    let Ok(info) = http.server_info(address).await else { return Ok(()) };
    let most: Option<SparkDuration> = info.max_key_ttl.and_then(|most| most.parse().ok());
    match (most.map(SparkDuration::get), args.key_ttl) {
        (Some(Duration::ZERO), _) => refuse!(
            "{address} makes no keys, as its admin has set (--max-key-ttl): use the ticket, which needs a header"
        ),
        (Some(most), Some(wanted)) if wanted.get() > most => refuse!(
            "--key-ttl is {wanted}, and a key of {address} is good for {} at most",
            format_duration(most)
        ),
        _ => Ok(()),
    }
}

/// Gives the user what was asked for. An error says what the user does not get.
async fn give(
    upload: &Upload<'_>,
    staged: &Staged,
    output: TicketOutput,
    args: &StageArgs,
) -> Result<(), (anyhow::Error, String)> {
    let done = output.to_string();
    if args.print == Printed::UrlWithKey {
        let (http, server, ticket) = (&upload.http, &upload.request.server, &staged.ticket);
        let making = http.retried(server, RetryPolicy::brief(), &|_| {}, || {
            http.make_read_key(server, ticket, args.key_ttl)
        });
        let keyed = making.await.map_err(|error| (error.into(), "the server made no key".to_owned()))?;
        let (_, key) = keyed.url.split_once('?').unwrap_or_default();
        let name = args.folders.top.as_deref().unwrap_or("bundle");
        let url = format!("{}/content/{name}.tar.gz?{key}\n", ticket.url);
        messages::show(&url)
            .map_err(|error| (error.into(), "the URL cannot be printed on stdout".to_owned()))?;
        if Url::parse(&url).is_ok_and(|url| is_loopback(&url)) {
            tell(
                "warning: the URL begins with an address of this machine, which a program elsewhere takes for its own: --public-url \
                 of the server sets another one",
            );
        }
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
    /// The image that such a server advertises.
    fetch_image: Option<String>,
    /// Tokens that such a server may want.
    tokens: Option<Arc<dyn UploadTokens>>,
}

async fn reach(place: &ServerPlace, args: &StageArgs, namespace: &str) -> anyhow::Result<Reached> {
    let http = HttpClient::new(&args.ca_files, Timeouts::default())?;
    match place {
        ServerPlace::Address(address) => {
            let address = address.clone();
            Ok(Reached { http, address, internal_url: None, fetch_image: None, tokens: None })
        }
        ServerPlace::Service(service) => through_api_server::reach(service, args, namespace, &http).await,
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

fn owner(args: &StageArgs) -> anyhow::Result<Owner> {
    let kind = args.kind.clone().map_or_else(|| OwnerKind::parse(POD), Ok)?;
    let namespace = args.namespace.as_deref().unwrap_or_default();
    let owner = Owner::new(kind, namespace, args.labels.clone(), args.name.as_deref());
    owner.map_err(|error| UsageError::from_error(&error).into())
}

fn plan(args: &StageArgs) -> anyhow::Result<Arc<PackPlan>> {
    Ok(Arc::new(PackPlan::of(&args.files, &args.folders.rules())?))
}

/// The request, for the address of the server. Everything that can be refused without the server is refused here.
fn request(
    args: &StageArgs,
    owner: Owner,
    plan: Arc<PackPlan>,
) -> anyhow::Result<impl FnOnce(ServerAddress) -> StageRequest> {
    let token = args.token_file.as_deref();
    let token = token.map(|path| UploadToken::read(path, &token_giver(path).to_string())).transpose()?;
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
