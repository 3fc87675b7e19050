//! The progress of a submission on stderr: lines in Spark's format. On a terminal, a progress line below them shows the
//! upload in flight, and later the state of the application.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::commands::screen::Screen;
use crate::commands::stage::progress::{StageProgress, Uploads};

use cloakroom_core::lock::lock;
use cloakroom_core::size::format_size;
use cloakroom_core::time::format_elapsed;
use cloakroom_submit::{
    BundleKind, Event, Events, Level, Lines, Log, Status, TakenBack, UnderWay, Uploading,
};
use cloakroom_transfer::client::StageObserver;

/// The component that log lines name for uploads.
const STAGING: &str = "Staging";
/// Who tells of objects, as in Spark.
const CREATION: &str = "Client";

/// `Running for 00:03:12, 4 executors`
const STATUS: &str = "{spinner} {prefix} for {elapsed_precise}{msg}";

/// Shows the status. The elapsed time counts from the beginning of the phase.
fn show(screen: &Screen, line: &Mutex<Option<ProgressBar>>, status: &Status) {
    let mut line = lock(line);
    let line = line.get_or_insert_with(|| {
        screen.draw(ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()), STATUS)
    });
    if line.prefix() != status.phase {
        line.reset_elapsed();
        line.set_prefix(status.phase.clone());
    }
    line.set_message(match status.executors {
        0 => String::new(),
        1 => ", 1 executor".to_owned(),
        more => format!(", {more} executors"),
    });
}

/// Writes events as lines. On a terminal, Spark's status, which comes every second, and the upload in flight are
/// progress lines instead.
struct Progress {
    screen: Screen,
    lines: Lines,
    status: Mutex<Option<ProgressBar>>,
    uploads: Uploads,
}

/// The logger and the message for a stop.
fn stopping(under_way: UnderWay) -> (&'static str, &'static str) {
    match under_way {
        UnderWay::Files => (STAGING, "Stopping: no pod was created; everything that was begun is taken back"),
        UnderWay::Objects => (
            CREATION,
            "Stopping: waiting for the call that is under way; then everything that was created is taken back",
        ),
    }
}

/// The log of a submission.
pub fn log(screen: &Screen) -> Log {
    let written = screen.clone();
    let lines = Lines::by_the_system(move |text| written.tell(text));
    Log::to(Arc::new(Progress {
        screen: screen.clone(),
        lines,
        status: Mutex::new(None),
        uploads: Uploads::default(),
    }))
}

impl Progress {
    fn say_taken_back(&self, how: TakenBack, may_leave_pod: bool) {
        let what = match how {
            TakenBack::Released => "What was staged is released again",
            TakenBack::Removed => "What was copied is removed again",
            TakenBack::Deleted => "What was made is deleted again",
        };
        if may_leave_pod {
            let message = format!(
                "{what}: the pod that may be left cannot run the application, and fails if it starts"
            );
            self.lines.say(Level::Warn, STAGING, &message);
        } else {
            self.lines.say(Level::Info, STAGING, what);
        }
    }
}

impl Events for Progress {
    fn happened(&self, event: &Event) {
        match event {
            Event::Status { status, .. } if self.screen.is_live() => show(&self.screen, &self.status, status),
            Event::Waits { notice, .. } => self.screen.tell(notice),
            Event::Found { service, way } => {
                let message = format!("Staging by {service}, {way}");
                self.lines.say(Level::Info, STAGING, &message);
            }
            Event::Staged { what, resource_id, size_bytes, seconds } => {
                self.uploads.end();
                let took = Duration::try_from_secs_f64(*seconds).unwrap_or_default();
                let (size, took) = (format_size(*size_bytes), format_elapsed(took));
                let message = format!("Staged the {what}, {size}, as {resource_id} in {took}");
                self.lines.say(Level::Info, STAGING, &message);
            }
            Event::NotStaged { .. } => self.uploads.end(),
            Event::Stopping { under_way } => {
                let (logger, message) = stopping(*under_way);
                self.lines.say(Level::Warn, logger, message);
            }
            Event::Left(left) => self.lines.say(Level::Warn, STAGING, &left.to_string()),
            // In spark-submit's form.
            Event::Warned { warning } => self.screen.tell(&format!("Warning: {warning}")),
            Event::TakenBack { how, may_leave_pod } => self.say_taken_back(*how, *may_leave_pod),
            Event::Said { .. } | Event::Status { .. } | Event::Printed { .. } => self.lines.happened(event),
            // Comes only from `stage --for`.
            Event::LeftoversRemoved { .. } => {}
        }
    }

    fn uploading(&self, what: BundleKind, upload: &Uploading) -> Arc<dyn StageObserver> {
        self.uploads.begin(StageProgress::among_others(&self.screen, what, upload))
    }
}
