//! `cloakroom fetch`, which init-containers run. All messages go to stderr.

mod progress;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use progress::FetchProgress;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{UsageError, old_entrypoint, refuse, tell};
use crate::cli::FetchArgs;

use cloakroom_core::resource::ResourceId;
use cloakroom_core::text::{chain, without_mark};
use cloakroom_kubespark::InitContainerProperties;
use cloakroom_spark::{Properties, keys};
use cloakroom_transfer::bundle::UnpackLimits;
use cloakroom_transfer::client::{HttpClient, Timeouts};
use cloakroom_transfer::fetch::{
    self, DriverProperties, FetchError, FetchObserver, FetchOptions, FetchPlan, FetchPlanError, SourceReport,
    resource_id_of_ticket,
};

/// 128 plus the number of SIGTERM, as shells report it.
const EXIT_TERMINATED: u8 = 143;
/// The same for SIGINT.
const EXIT_INTERRUPTED: u8 = 130;

/// The work that the command line and the properties file ask for.
struct Job {
    plan: FetchPlan,
    ca_files: Vec<PathBuf>,
    options: FetchOptions,
    /// The properties to change for the driver, and the folders of the fetched jars and files.
    driver_properties: Option<(DriverProperties, [PathBuf; 2])>,
}

/// Fetches. The reason of a failure also goes to the termination log.
pub async fn run(args: FetchArgs) -> anyhow::Result<ExitCode> {
    let outcome = fetch(&args).await;
    if let Err(error) = &outcome {
        fetch::write_termination_log(&args.termination_log, &chain(error.as_ref()));
    }
    outcome
}

async fn fetch(args: &FetchArgs) -> anyhow::Result<ExitCode> {
    let job = job(args)?;
    if job.plan.is_empty() {
        tell("the properties file names nothing to fetch");
        return job.write_driver_properties();
    }
    let http = HttpClient::new(&job.ca_files, Timeouts::default())?;
    let stop = CancellationToken::new();
    let progress = Arc::new(FetchProgress::new(job.options.timeout));
    let observer: Arc<dyn FetchObserver> = progress.clone();
    let fetching = fetch::run(job.plan.clone(), &http, &job.options, &stop, observer);
    tokio::pin!(fetching);
    let (outcome, exit_code) = tokio::select! {
        outcome = &mut fetching => (outcome, ExitCode::SUCCESS),
        exit_code = stop_signal() => {
            stop.cancel();
            (fetching.await, ExitCode::from(exit_code?))
        }
    };
    progress.end();
    match outcome {
        Ok(reports) => {
            reports.iter().for_each(told);
            job.write_driver_properties()
        }
        Err(error @ FetchError::Stopped) => {
            tell(&error.to_string());
            Ok(exit_code)
        }
        Err(error) => Err(error.into()),
    }
}

impl Job {
    fn write_driver_properties(&self) -> anyhow::Result<ExitCode> {
        if let Some((properties, [jars, files])) = &self.driver_properties {
            properties.write(&[jars, files])?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn told(report: &SourceReport) {
    tell(&report.to_string());
}

async fn stop_signal() -> anyhow::Result<u8> {
    let mut terminated = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupted = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    tokio::select! {
        _ = terminated.recv() => Ok(EXIT_TERMINATED),
        _ = interrupted.recv() => Ok(EXIT_INTERRUPTED),
    }
}

fn job(args: &FetchArgs) -> anyhow::Result<Job> {
    let limits = UnpackLimits { max_entries: args.max_entries, max_bytes: args.max_unpacked.bytes() };
    let mut options = FetchOptions { limits, ..FetchOptions::default() };
    let mut ca_files = args.ca_files.clone();
    let mut driver_properties = None;
    let mut plan = match &args.properties_file {
        Some(path) => {
            refuse_both_forms(args, path)?;
            let properties = read_properties(path)?;
            options.timeout = properties.mount_timeout;
            ca_files.extend(properties.ca_cert_pem.clone());
            let files = args.spark_properties.clone().zip(args.spark_properties_to.clone());
            driver_properties = files.map(|(from, to)| {
                (DriverProperties { from, to }, [properties.jars_dir.clone(), properties.files_dir.clone()])
            });
            FetchPlan::from_properties(&properties)?
        }
        None => plan_of_flags(args)?,
    };
    plan.is_writable = args.writable;
    if let Some(timeout) = args.timeout {
        options.timeout = timeout.get();
    }
    Ok(Job { plan, ca_files, options, driver_properties })
}

fn read_properties(path: &Path) -> anyhow::Result<InitContainerProperties> {
    let text = old_entrypoint::read(path)?;
    if text.trim_start().starts_with('{') {
        let shown = path.display();
        refuse!(
            "{shown} is JSON and no properties file: if it is a ticket, write “cloakroom fetch --ticket {shown} --to DIR”"
        );
    }
    let file = Properties::parse(path, &text)?;
    let properties = InitContainerProperties::from(&file)?;
    for warning in &properties.warnings {
        tell(&format!("warning: {warning}"));
    }
    if !properties.names_a_source() && !may_name_nothing(&file) {
        bail!(
            "{} names nothing to fetch: set `{}` and the ids and secret files of tickets, or `{}` or `{}`",
            path.display(),
            keys::SERVER_URI,
            keys::INIT_REMOTE_JARS,
            keys::INIT_REMOTE_FILES
        );
    }
    Ok(properties)
}

/// Whether the lack of a source can be meant: the file has nothing but folders, a time limit and lists, which may be
/// empty. Otherwise a key is misspelled or a template was not filled in, and the pod would start without its files.
fn may_name_nothing(file: &Properties) -> bool {
    let harmless = [
        keys::JARS_DOWNLOAD_DIR.name(),
        keys::FILES_DOWNLOAD_DIR.name(),
        keys::MOUNT_TIMEOUT.name(),
        keys::INIT_REMOTE_JARS.name(),
        keys::INIT_REMOTE_FILES.name(),
    ];
    let mut keys = file.iter().map(|property| property.key).peekable();
    keys.peek().is_some() && keys.all(|key| harmless.contains(&key))
}

/// Refuses flags beside a properties file. A server in the environment is allowed there and has no effect.
fn refuse_both_forms(args: &FetchArgs, path: &Path) -> anyhow::Result<()> {
    let given = [
        ("--server", args.has_server_flag()),
        ("--ticket", args.ticket.is_some()),
        ("--id", args.id.is_some()),
        ("--secret-file", args.secret_file.is_some()),
        ("--to", args.to.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => refuse!(
            "{flag} and the properties file {} exclude each other: give the file, or --ticket and --to without it",
            path.display()
        ),
        None => Ok(()),
    }
}

fn plan_of_flags(args: &FetchArgs) -> anyhow::Result<FetchPlan> {
    if let (Some(file), Some(to)) = (&args.ticket, &args.to) {
        let of_environment = args.server.as_deref();
        let flag = of_environment.filter(|_| args.has_server_flag());
        let (json, file) = (read_ticket(file)?, file.display().to_string());
        return FetchPlan::from_ticket_json(&json, &file, flag, of_environment, to).map_err(sorted);
    }
    match (&args.server, &args.id, &args.secret_file, &args.to) {
        (Some(server), Some(id), Some(secret_file), Some(to)) => {
            FetchPlan::from_ticket(server, id, secret_file, to).map_err(sorted)
        }
        _ => refuse!(
            "give --ticket FILE and --to DIR, or the init-container's properties file, or all of --server, --id, \
             --secret-file and --to"
        ),
    }
}

/// Separates bad arguments (exit code 2) from errors in the files that they name (exit code 1).
fn sorted(error: FetchPlanError) -> anyhow::Error {
    match error {
        FetchPlanError::Server { setting: "--server", .. }
        | FetchPlanError::NoServer { .. }
        | FetchPlanError::Id { .. } => UsageError::from_error(&error).into(),
        error => error.into(),
    }
}

/// Reads the file of `--ticket`, or stdin if the path is `-`: the one line of JSON that `cloakroom stage` or the server has
/// answered.
fn read_ticket(path: &Path) -> anyhow::Result<String> {
    // A ticket has less than 1 KiB.
    const LONGEST: u64 = 64 << 10;
    let mut bytes = Vec::new();
    // The error must not show the ticket: it holds the secret.
    if path.to_string_lossy().trim_start().starts_with('{') {
        refuse!("--ticket takes the file that holds the ticket, or - for stdin, and not the ticket itself");
    }
    let read = if path == Path::new("-") {
        std::io::stdin().take(LONGEST).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes))
    };
    let cannot_be_read = || format!("--ticket names {}, which cannot be read", path.display());
    read.with_context(cannot_be_read)?;
    String::from_utf8(without_mark(bytes)).map_err(|error| error.utf8_error()).with_context(cannot_be_read)
}

/// The id in the file of a ticket. The ticket's secret and address have no effect.
pub fn ticket_id(path: &Path) -> anyhow::Result<ResourceId> {
    Ok(resource_id_of_ticket(&read_ticket(path)?, &path.display().to_string())?)
}
