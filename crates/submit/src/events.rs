//! Everything that happens during a submission, as data. A program puts it into words or sends it on.

use std::fmt;
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde::Serialize;

use super::left::Left;
use super::log::{Level, Lines, Status};
use super::stage::BundleKind;
use cloakroom_core::clock::Clock;
use cloakroom_transfer::client::{RetryNotice, StageObserver, StageRequest};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A line as spark-submit logs it at this point.
    Said {
        /// The line's level.
        level: Level,
        /// The class that logs it in Spark, without its package.
        logger: String,
        /// The text, which may have several lines.
        message: String,
    },
    /// The application's state. It is sent at each report interval.
    Status {
        /// The class that logs it in Spark, without its package.
        logger: String,
        /// The state in Spark's words.
        message: String,
        /// The state as data.
        status: Status,
    },
    /// A line without time, level and logger, as `--kill` and `--status` print it.
    Printed {
        /// The line.
        line: String,
    },
    /// A warning for the user.
    Warned {
        /// One line, without `warning:`.
        warning: String,
    },
    /// A request to a server failed and is made again.
    Waits {
        /// The server and the reason.
        notice: String,
    },
    /// A bundle is on the staging server.
    Staged {
        /// The bundle.
        what: BundleKind,
        /// Its resource id, which is no secret.
        resource_id: String,
        /// The size of the bundle.
        size_bytes: u64,
        /// The duration of the upload.
        seconds: f64,
    },
    /// The upload of a bundle failed. The error of the use case has the reason.
    NotStaged {
        /// The bundle.
        what: BundleKind,
    },
    /// The user stopped the submission while files are under way.
    Stopping,
    /// A file or bundle could not be taken back.
    Left(Left),
    /// Objects of earlier runs of `stage --for` were removed, because the server has deleted their files.
    LeftoversRemoved {
        /// The namespace of the objects.
        namespace: String,
        /// The names of the secrets. Their config maps were removed as well.
        secrets: Vec<String>,
    },
    /// All files were taken back.
    TakenBack {
        /// How they were taken back.
        how: TakenBack,
        /// Whether the pod is still there, or may be. It cannot run the application without its files.
        may_leave_pod: bool,
    },
}

/// How files are taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TakenBack {
    /// The staging server has released the bundles.
    Released,
    /// The copies were deleted.
    Removed,
}

/// The parts of an upload that may be shown; the token is not one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Uploading {
    /// The server's address.
    pub server: String,
    /// The number of files.
    pub files: usize,
    /// The size of all files together. The bundle may be smaller.
    pub size_bytes: u64,
}

impl From<&StageRequest> for Uploading {
    fn from(request: &StageRequest) -> Self {
        let StageRequest { server, plan, .. } = request;
        Self { server: server.to_string(), files: plan.files().len(), size_bytes: plan.total_bytes() }
    }
}

/// A receiver of events.
pub trait Events: Send + Sync {
    /// Takes an event.
    fn happened(&self, event: &Event);

    /// Takes the beginning of an upload. The returned observer gets its progress.
    fn uploading(&self, _what: BundleKind, _upload: &Uploading) -> Arc<dyn StageObserver> {
        Arc::new(Unheard)
    }
}

struct Unheard;

impl StageObserver for Unheard {
    fn packed(&self, _: u64) {}
    fn retrying(&self, _: Option<&RetryNotice>) {}
}

/// A handle to the receiver of events. Clones have the same receiver.
#[derive(Clone)]
pub struct Log(Arc<dyn Events>);

impl Log {
    /// Sends events to this receiver.
    pub fn to(events: Arc<dyn Events>) -> Self {
        Self(events)
    }

    /// Writes the lines that spark-submit would log ([`Lines`]), with the system's clock and time zone.
    pub fn new(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Lines::by_the_system(write)))
    }

    /// The same with another clock and time zone.
    pub fn with_clock(
        clock: Arc<dyn Clock>,
        zone: TimeZone,
        write: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Lines::new(clock, zone, write)))
    }

    /// Sends the application's state. `message` is the state in Spark's words.
    pub(super) fn report(&self, logger: &str, message: &str, status: &Status) {
        let (logger, message) = (logger.to_owned(), message.to_owned());
        self.tell(&Event::Status { logger, message, status: status.clone() });
    }

    /// Sends a log line. `logger` is the class that logs it in Spark, without its package.
    pub(super) fn say(&self, level: Level, logger: &str, message: &str) {
        self.tell(&Event::Said { level, logger: logger.to_owned(), message: message.to_owned() });
    }

    /// Sends a line without time, level and logger.
    pub(super) fn print(&self, line: &str) {
        self.tell(&Event::Printed { line: line.to_owned() });
    }

    /// Sends one event for each warning.
    pub(super) fn warn(&self, warnings: &[String]) {
        for warning in warnings {
            self.tell(&Event::Warned { warning: warning.clone() });
        }
    }

    /// Sends the notice of a request that is made again.
    pub(super) fn waits(&self, notice: &RetryNotice) {
        self.tell(&Event::Waits { notice: notice.to_string() });
    }

    pub(super) fn tell(&self, event: &Event) {
        self.0.happened(event);
    }

    pub(super) fn uploading(&self, what: BundleKind, upload: &Uploading) -> Arc<dyn StageObserver> {
        self.0.uploading(what, upload)
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_data_that_can_be_sent_on() {
        let (what, resource_id) = (BundleKind::Jars, "0123".to_owned());
        let event = Event::Staged { what, resource_id: resource_id.clone(), size_bytes: 7, seconds: 0.5 };
        assert_eq!(
            serde_json::to_string(&event).unwrap(),
            r#"{"event":"staged","what":"jars","resource_id":"0123","size_bytes":7,"seconds":0.5}"#
        );
        let (server, why) = ("https://h".to_owned(), "refused".to_owned());
        assert_eq!(
            serde_json::to_string(&Event::Left(Left::Staged { what, resource_id, server, why })).unwrap(),
            r#"{"event":"left","kind":"staged","what":"jars","resource_id":"0123","server":"https://h","why":"refused"}"#
        );
        let upload = Uploading { server: "https://h".to_owned(), files: 2, size_bytes: 7 };
        assert_eq!(
            serde_json::to_string(&upload).unwrap(),
            r#"{"server":"https://h","files":2,"size_bytes":7}"#
        );
        let status = Status { phase: "Running".to_owned(), executors: 2 };
        let event = Event::Status { logger: "L".to_owned(), message: "m".to_owned(), status };
        let json = serde_json::to_value(&event).unwrap();
        assert_eq!((&json["event"], &json["status"]["executors"]), (&"status".into(), &2.into()));
    }
}
