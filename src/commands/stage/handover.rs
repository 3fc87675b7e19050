//! `cloakroom stage --for`: stages what an application needs that something else submits, and prints what that has to be
//! given. Nothing of it outlives a failure.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use jiff::Timestamp;
use serde_json::Value;

use super::asked;
use super::file::{self, Merged};
use super::progress::StageProgress;
use super::templates::Templates;
use super::words;
use crate::cli::{StageArgs, SubmitterChoice};
use crate::commands::screen::Screen;
use crate::commands::submit::{connect, signals::Signals, sources};
use crate::commands::tell;

use cloakroom_cluster::ApiServer;
use cloakroom_core::size::format_size;
use cloakroom_submit::create::{Companions, CreateError, Undo, try_companions};
use cloakroom_submit::inputs::Local;
use cloakroom_submit::plan::handover::Handover;
use cloakroom_submit::run;
use cloakroom_submit::stage::{NamedServer, StagedBundles, Stager as _, StagingError};
use cloakroom_submit::{Drawn, Event, Events, Log, Uploading, remove_leftovers};
use cloakroom_transfer::client::StageObserver;
use tokio_util::sync::CancellationToken;

const UNPRINTED: &str = "what was asked for cannot be printed on stdout";

/// Stages, makes the objects, writes the templates, prints.
pub async fn run(args: &StageArgs, choice: SubmitterChoice) -> anyhow::Result<ExitCode> {
    let submitter = sources::submitter()?;
    let file = file::read(args, choice)?;
    let defaults = sources::defaults(&submitter)?;
    let mut request = asked::request(args, choice, defaults.as_ref(), file.as_ref(), submitter.clone())?;
    request.conf.fill_in(submitter.surroundings())?;
    // What says how the API server is asked.
    let conf = request.conf.clone();
    let screen = if args.quiet { Screen::plain() } else { Screen::stderr() };
    let (seen, upload) = (screen.clone(), Mutex::new(None));
    let log = Log::to(Arc::new(Progress { screen: seen, is_quiet: args.quiet, upload }));
    let drawn = Drawn::new(Timestamp::now(), &mut rand::rng());
    let mut handover = run::handed_over(&request, &Local, &NamedServer, &drawn, &log).await?;
    if let Some(staging) = &mut handover.staging {
        (staging.ttl, staging.unused_timeout) = (args.ttl, args.unused_timeout);
    }
    let file = file.map(|file| file.merged(&handover)).transpose()?;
    handover.warnings.iter().for_each(|warning| tell(&format!("warning: {warning}")));
    let templates = match choice {
        SubmitterChoice::SparkSubmit => Some(Templates::new(&args.handover.templates_to, &handover)?),
        SubmitterChoice::SparkOperator => None,
    };
    let is_dry_run = args.handover.dry_run;
    let server = if is_dry_run { None } else { Some(connect::connect(&conf, &submitter)?) };
    let signals = Signals::watch(&screen)?;
    let merged = file.map(|file| Merged { file, uid: None });
    let (handover, templates) = (&handover, templates.as_ref());
    let mut work = Work { args, choice, handover, templates, merged, server, log: &log };
    let ended = work.run(&signals.stop).await;
    screen.clear();
    match ended {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if is_stopped(&error) => {
            tell(&error.to_string());
            Ok(signals.exit_code())
        }
        Err(error) => Err(error),
    }
}

struct Work<'a> {
    args: &'a StageArgs,
    choice: SubmitterChoice,
    handover: &'a Handover,
    templates: Option<&'a Templates>,
    /// The file of the application, where there is one: then nothing is made here.
    merged: Option<Merged>,
    /// Asked for nothing in a dry run.
    server: Option<ApiServer>,
    log: &'a Log,
}

impl Work<'_> {
    async fn run(&mut self, stop: &CancellationToken) -> anyhow::Result<()> {
        let namespace = &self.handover.namespace;
        match (&self.server, &mut self.merged) {
            (Some(server), Some(merged)) => merged.find(server, namespace, stop).await?,
            (Some(server), None) => {
                try_companions(server, namespace, &self.handover.objects.unticketed(), stop).await?;
            }
            (None, _) => {}
        }
        let staged = match &self.handover.staging {
            Some(plan) => Some(NamedServer.stage(plan, &Local, self.log, stop).await?),
            None => None,
        };
        let made = self.hand_over(staged.as_ref(), stop).await;
        if let (Err(_), Some(staged)) = (&made, &staged) {
            run::take_back(&NamedServer, staged, self.log).await;
        }
        made?;
        self.tidy(stop).await;
        if !self.args.quiet {
            let expires_at = staged.as_ref().and_then(StagedBundles::expires_at);
            match &self.merged {
                Some(merged) => words::explain_merged(self.handover, merged, expires_at),
                None => words::explain(self.handover, self.choice, self.server.is_some(), expires_at),
            }
        }
        Ok(())
    }

    /// Removes what earlier runs left, as far as that is certain. What was asked for is done: this can fail nothing.
    async fn tidy(&self, stop: &CancellationToken) {
        let (Some(server), Some(plan)) = (&self.server, &self.handover.staging) else { return };
        let removed = tokio::select! {
            removed = remove_leftovers(server, &self.handover.namespace, plan) => removed,
            () = stop.cancelled() => return,
        };
        if !removed.is_empty() && !self.args.quiet {
            words::say_removed(&self.handover.namespace, &removed);
        }
    }

    async fn hand_over(
        &self,
        staged: Option<&StagedBundles>,
        stop: &CancellationToken,
    ) -> anyhow::Result<()> {
        let objects = match (staged, &self.handover.staging) {
            (Some(staged), Some(plan)) => staged.objects(plan),
            _ => self.handover.objects.unticketed(),
        };
        if let Some(merged) = &self.merged {
            let documents = merged.documents(&self.handover.namespace, objects);
            return words::show(&words::documents(&documents)?).context(UNPRINTED);
        }
        let Some(server) = &self.server else { return self.write(&objects) };
        let companions = Companions::make(server, &self.handover.namespace, &objects, stop).await?;
        let written = self.write(&[]);
        match written {
            Ok(()) => Ok(()),
            Err(error) => match companions.undo().await {
                undo @ Undo::Left(_) => Err(error.context(format!("not everything was taken back{undo}"))),
                _ => Err(error),
            },
        }
    }

    /// Templates, and the text on stdout, with the objects if nobody has made them.
    fn write(&self, objects: &[Value]) -> anyhow::Result<()> {
        let given = words::given(self.choice, self.handover, self.templates)?;
        self.templates.map_or(Ok(()), Templates::write)?;
        let text = if objects.is_empty() { given.clone() } else { words::objects(self.handover, objects)? };
        let printed = words::show(&text).context(UNPRINTED);
        if printed.is_err() {
            self.templates.inspect(|templates| templates.take_back());
        } else if !objects.is_empty() {
            // stdout is kubectl's.
            tell(&given);
        }
        printed
    }
}

fn is_stopped(error: &anyhow::Error) -> bool {
    error.downcast_ref::<CreateError>().is_some_and(CreateError::is_stopped)
        || error.downcast_ref::<StagingError>().is_some_and(StagingError::is_stopped)
}

/// A line for each upload that has ended, and what [`StageProgress`] shows meanwhile.
struct Progress {
    screen: Screen,
    is_quiet: bool,
    upload: Mutex<Option<Arc<StageProgress>>>,
}

impl Progress {
    fn end_upload(&self) {
        if let Some(upload) = self.upload.lock().unwrap_or_else(PoisonError::into_inner).take() {
            upload.end();
        }
    }
}

impl Events for Progress {
    fn happened(&self, event: &Event) {
        match event {
            Event::Waits { notice } => self.screen.tell(notice),
            Event::Staged { what, resource_id, size_bytes, seconds } => {
                self.end_upload();
                if !self.is_quiet {
                    let size = format_size(*size_bytes);
                    let line = format!("staged the {what}, {size}, as {resource_id} in {seconds:.1} s");
                    self.screen.tell(&line);
                }
            }
            Event::NotStaged { .. } => self.end_upload(),
            Event::Left { what } => tell(&format!("warning: {what}")),
            // Nothing else happens where no application is made.
            Event::Said { .. }
            | Event::Status { .. }
            | Event::Printed { .. }
            | Event::Stopping
            | Event::TakenBack { .. } => {}
        }
    }

    fn uploading(&self, what: &'static str, upload: &Uploading) -> Arc<dyn StageObserver> {
        let progress = Arc::new(if self.is_quiet {
            StageProgress::start(upload, true)
        } else {
            StageProgress::among_others(&self.screen, what, upload)
        });
        *self.upload.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&progress));
        progress
    }
}
