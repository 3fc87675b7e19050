//! Everything that happens during a submission, as data. A program puts it into words or sends it on.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::left::Left;
use super::stage::BundleKind;
use cloakroom_transfer::client::{Bound, RetryNotice, StageObserver, StageRequest};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A line as spark-submit logs it at this point.
    Said {
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
    Printed { line: String },
    /// A warning for the user. It is a sentence and not data: each step of the plan words its own, and a caller can only
    /// show it.
    Warned {
        /// One line, without `warning:`.
        warning: String,
    },
    /// A request to a server failed and is made again.
    Waits {
        server: String,
        /// The reason: what the server did instead.
        why: String,
        /// The limit on the time of all attempts. `None` if the number of attempts is limited instead.
        at_most_seconds: Option<f64>,
        /// The same in one line.
        notice: String,
    },
    /// The staging server was found behind its Service.
    Found {
        service: String,
        /// The way there, as the end of a sentence.
        way: String,
    },
    /// A bundle is on the staging server.
    Staged {
        what: BundleKind,
        /// Its resource id, which is no secret.
        resource_id: String,
        size_bytes: u64,
        /// The duration of the upload.
        seconds: f64,
    },
    /// The upload of a bundle failed. The error of the use case has the reason.
    NotStaged { what: BundleKind },
    /// The user stopped the submission while something is under way that has to end first.
    Stopping { under_way: UnderWay },
    /// Something could not be taken back.
    Left(Left),
    /// Objects of earlier runs of `stage --for` were removed, because the server has deleted their files.
    LeftoversRemoved {
        namespace: String,
        /// The names of the secrets. Their config maps were removed as well.
        secrets: Vec<String>,
    },
    /// All that was staged, copied or created was taken back.
    TakenBack {
        how: TakenBack,
        /// Whether the pod is still there, or may be. It cannot run the application without its files.
        may_leave_pod: bool,
    },
}

/// The level of a line, with log4j's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Normal progress.
    Info,
    /// A problem that the user should look at.
    Warn,
    /// A final failure.
    Error,
}

impl Level {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}

/// The application's state in the line of each report interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The phase of the driver's pod.
    pub phase: String,
    /// The number of executors that are known to run.
    pub executors: usize,
}

/// What has to end before the work stops. It is taken back then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnderWay {
    /// Files are uploaded or copied.
    Files,
    /// A call makes an object of the application.
    Objects,
}

/// How something is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TakenBack {
    /// The staging server has released the bundles.
    Released,
    /// The copies were deleted.
    Removed,
    /// The objects for an application that something else submits are deleted.
    Deleted,
}

/// The parts of an upload that may be shown; the token is not one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Uploading {
    pub server: String,
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
        let at_most_seconds = match notice.bound {
            Bound::Time(limit) => Some(limit.as_secs_f64()),
            Bound::Number { .. } => None,
        };
        self.tell(&Event::Waits {
            server: notice.server.to_string(),
            why: notice.failure.to_string(),
            at_most_seconds,
            notice: notice.to_string(),
        });
    }

    /// Tells at once that it is to stop, and waits for the work all the same.
    pub(super) async fn saying_stopping<T>(
        &self,
        under_way: UnderWay,
        stop: &CancellationToken,
        work: impl Future<Output = T> + Send,
    ) -> T {
        let mut work = pin!(work);
        let outcome = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            outcome = &mut work => Some(outcome),
        };
        // The work heeds `stop` as well, and may end because of it before this looks: the user is told in any case.
        if stop.is_cancelled() {
            self.tell(&Event::Stopping { under_way });
        }
        match outcome {
            Some(outcome) => outcome,
            None => work.await,
        }
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
    use std::sync::Mutex;
    use std::time::Duration;

    use cloakroom_transfer::client::{Failure, ServerAddress};
    use serde_json::json;

    use super::*;

    /// The events as data.
    struct Kept(Arc<Mutex<Vec<serde_json::Value>>>);

    impl Events for Kept {
        fn happened(&self, event: &Event) {
            self.0.lock().unwrap().push(serde_json::to_value(event).unwrap());
        }
    }

    #[test]
    fn who_is_waited_for_and_for_how_long_is_data() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let log = Log::to(Arc::new(Kept(Arc::clone(&kept))));
        let (server, failure) = (ServerAddress::parse("https://h").unwrap(), Failure::Refused);
        for (bound, at_most_seconds) in [
            (Bound::Time(Duration::from_mins(2)), json!(120.0)),
            (Bound::Number { next: 2, most: 3, wait: Duration::ZERO }, json!(null)),
        ] {
            let notice =
                RetryNotice { server: server.clone(), failure: failure.clone(), progress: None, bound };
            log.waits(&notice);
            let expected = json!({
                "event": "waits", "server": server.to_string(), "why": "connection refused",
                "at_most_seconds": at_most_seconds, "notice": notice.to_string(),
            });
            assert_eq!(kept.lock().unwrap().pop().unwrap(), expected);
        }
    }

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
