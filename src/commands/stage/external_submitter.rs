//! `cloakroom stage --for`: stages the files of an application that another program submits, and prints what to pass on
//! to that program. After a failure nothing of this is left.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use serde_json::Value;

use super::messages::Templates;
use super::progress::{StageProgress, Uploads};
use super::{STOPPING, messages, object_file, request, staged_before};
use crate::cli::{SparkSubmitter, StageArgs};
use crate::commands::screen::Screen;
use crate::commands::submit::connect::{self, WantedApiServer};
use crate::commands::submit::{signals::Signals, sources};
use crate::commands::{refuse, stdout, tell};

use cloakroom_core::size::format_size;
use cloakroom_core::time::format_elapsed;
use cloakroom_spark::keys;
use cloakroom_submit::inputs::Local;
use cloakroom_submit::plan::external_submitter::ExternalSubmission;
use cloakroom_submit::plan::external_submitter::operator::ApplicationFile;
use cloakroom_submit::run::{self, HandOver, HandedOver};
use cloakroom_submit::stage::NamedServer;
use cloakroom_submit::{BundleKind, Event, Events, Log, Randomness, TakenBack, Uploading};
use cloakroom_transfer::client::StageObserver;

const UNPRINTED: &str = "the result cannot be printed on stdout";

/// Stages, creates the objects, writes the templates, and prints.
pub async fn run(args: &StageArgs, choice: SparkSubmitter) -> anyhow::Result<ExitCode> {
    stdout::require()?;
    if let Some(flag) = args.folders.first_given().or(args.pods.first_given()) {
        refuse!(
            "{flag} is for folders and pods: it does not go with --for spark-submit and --for spark-operator"
        );
    }
    let submitter = sources::submitter()?;
    let file = application_file(args, choice)?;
    let defaults = sources::defaults(&submitter)?;
    let mut request = request::of_flags(args, choice, defaults.as_ref(), file.as_ref(), submitter.clone())?;
    request.conf.fill_in(submitter.surroundings())?;
    let screen = Screen::with(args.quiet, args.verbose);
    let (seen, uploads) = (screen.clone(), Uploads::default());
    let log = Log::to(Arc::new(Progress {
        screen: seen,
        is_quiet: args.quiet,
        is_stopping: AtomicBool::new(false),
        uploads,
    }));
    let randomness = Randomness::new(Timestamp::now(), &mut rand::rng());
    let is_dry_run = args.external.dry_run;
    // Even a dry run needs the cluster if that is the way to the server.
    let needs_cluster = !is_dry_run || !request.conf.contains(&keys::SERVER_URI);
    let api_server = if needs_cluster {
        Some(connect::connect(WantedApiServer::read(&request.conf)?, &submitter).await?)
    } else {
        None
    };
    let stager = NamedServer::new(api_server.clone(), staged_before());
    let external = run::handed_over(&request, &Local, &stager, &randomness, &log).await?;
    let templates = match choice {
        SparkSubmitter::SparkSubmit => {
            let folder = args.external.templates_to.as_deref().unwrap_or(Path::new("."));
            Some(Templates::new(folder, &external)?)
        }
        SparkSubmitter::SparkOperator => None,
    };
    let signals = Signals::watch(&screen)?;
    let (server, stop) = (api_server.as_ref().filter(|_| !is_dry_run), &signals.stop);
    let work = HandOver { server, inputs: &Local, stager: &stager, log: &log, stop };
    let take = |to_apply: &[Value]| Ok(give(choice, &external, templates.as_ref(), to_apply)?);
    let ended = work.run(&external, take).await;
    screen.clear();
    match ended {
        Ok(handed_over) => {
            if !args.quiet {
                explain(&external, choice, server.is_some(), &handed_over);
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) if error.is_stopped() => {
            tell(&error.to_string());
            Ok(signals.exit_code())
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints the SparkApplication, or writes the templates and prints what to pass on to the submitter. Objects that were
/// not created are printed for kubectl instead.
fn give(
    choice: SparkSubmitter,
    external: &ExternalSubmission,
    templates: Option<&Templates>,
    to_apply: &[Value],
) -> anyhow::Result<()> {
    let documents = messages::documents(to_apply)?;
    if external.file.is_some() {
        return messages::show(&documents).context(UNPRINTED);
    }
    let given = messages::given(choice, external, templates)?;
    templates.map_or(Ok(()), Templates::write)?;
    let printed = messages::show(if to_apply.is_empty() { &given } else { &documents }).context(UNPRINTED);
    if printed.is_err() {
        templates.inspect(|templates| templates.take_back());
    } else if !to_apply.is_empty() {
        // stdout has the objects for kubectl.
        tell(&given);
    }
    printed
}

fn explain(external: &ExternalSubmission, choice: SparkSubmitter, are_made: bool, handed_over: &HandedOver) {
    match &external.file {
        Some(file) => messages::explain_merged(external, file, handed_over),
        None => messages::explain(external, choice, are_made, handed_over.expires_at),
    }
}

/// Shows uploads by [`StageProgress`], and prints a line when one has ended.
struct Progress {
    screen: Screen,
    is_quiet: bool,
    /// A bundle that is complete after the signal is released, and not told as staged.
    is_stopping: AtomicBool,
    uploads: Uploads,
}

impl Events for Progress {
    fn happened(&self, event: &Event) {
        match event {
            Event::Waits { notice, .. } => self.screen.tell(notice),
            Event::Staged { what, resource_id, size_bytes, seconds } => {
                self.uploads.end();
                if !self.is_quiet && !self.is_stopping.load(Ordering::Relaxed) {
                    let took = Duration::try_from_secs_f64(*seconds).unwrap_or_default();
                    let (size, took) = (format_size(*size_bytes), format_elapsed(took));
                    let line = format!("staged the {what}, {size}, as {resource_id} in {took}");
                    self.screen.tell(&line);
                }
            }
            Event::NotStaged { .. } => self.uploads.end(),
            Event::Found { service, way } if !self.is_quiet => {
                self.screen.tell(&format!("staging by {service}, {way}"));
            }
            Event::Left(left) => tell(&format!("warning: {left}")),
            Event::Warned { warning } => tell(&format!("warning: {warning}")),
            Event::LeftoversRemoved { namespace, secrets } if !self.is_quiet => {
                let names = secrets.join(", ");
                tell(&format!(
                    "removed from namespace {namespace} what earlier runs had left there, because the server has \
                     deleted their files: the secrets {names}, and their config maps"
                ));
            }
            Event::Stopping { .. } => {
                self.is_stopping.store(true, Ordering::Relaxed);
                if !self.is_quiet {
                    self.screen.tell(STOPPING);
                }
            }
            Event::TakenBack { how, .. } if !self.is_quiet => tell(taken_back(*how)),
            // The others come only from a submission.
            Event::Said { .. }
            | Event::Status { .. }
            | Event::Printed { .. }
            | Event::Found { .. }
            | Event::TakenBack { .. }
            | Event::LeftoversRemoved { .. } => {}
        }
    }

    fn uploading(&self, what: BundleKind, upload: &Uploading) -> Arc<dyn StageObserver> {
        self.uploads.begin(if self.is_quiet {
            StageProgress::start(&self.screen, upload, true)
        } else {
            StageProgress::among_others(&self.screen, what, upload)
        })
    }
}

fn taken_back(how: TakenBack) -> &'static str {
    match how {
        TakenBack::Released => "what was staged is released again",
        TakenBack::Removed => "what was copied is removed again",
        TakenBack::Deleted => "what was made in the cluster is deleted again",
    }
}

/// The file of the SparkApplication that `-f` names, if it names one (`--for spark-operator -f FILE`).
fn application_file(args: &StageArgs, choice: SparkSubmitter) -> anyhow::Result<Option<ApplicationFile>> {
    let Some(path) = &args.external.filename else { return Ok(None) };
    if choice != SparkSubmitter::SparkOperator {
        refuse!("-f takes the file of an object: it goes with --for spark-operator and --for pods");
    }
    let (called, text) = object_file::read(path)?;
    Ok(Some(ApplicationFile::parse(&called, &text, args.name.as_deref())?))
}
