//! What happens while an application is submitted, as data. A program words it; another one may send it on.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::left::Left;
use super::log::{Level, Lines, Status};
use super::stage::BundleKind;
use cloakroom_core::clock::Clock;
use cloakroom_transfer::client::{Bound, RetryNotice, StageObserver, StageRequest};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// What spark-submit logs at this place.
    Said {
        /// How much it matters.
        level: Level,
        /// The class that says it in Spark, without its package.
        logger: String,
        /// Perhaps several lines.
        message: String,
    },
    /// How the application is. It comes again and again.
    Status {
        /// The class that says it in Spark.
        logger: String,
        /// In Spark's words.
        message: String,
        /// The same as data.
        status: Status,
    },
    /// A line that is no line of a log, as `--kill` and `--status` print it.
    Printed {
        /// The line.
        line: String,
    },
    /// What the user should know, in one line.
    Warned {
        /// Without `warning:`.
        warning: String,
    },
    /// A server does not do what it is asked to, and is asked again.
    Waits {
        /// The address of the server.
        server: String,
        /// What it does instead.
        why: String,
        /// For how long it is asked at most. `None` if a number of attempts is the limit.
        at_most_seconds: Option<f64>,
        /// The same in one line.
        notice: String,
    },
    /// A bundle is on the staging server.
    Staged {
        /// Which one.
        what: BundleKind,
        /// Its id, which is no secret.
        resource_id: String,
        /// The bundle's.
        size_bytes: u64,
        /// How long it took.
        seconds: f64,
    },
    /// A bundle is not on the staging server. What follows from that is told elsewhere.
    NotStaged {
        /// Which one.
        what: BundleKind,
    },
    /// It is to stop, and something is under way that has to end first.
    Stopping {
        /// What it is.
        under_way: UnderWay,
    },
    /// Something is left that should be gone.
    Left(Left),
    /// What earlier runs of `stage --for` had left is removed, because the server has deleted their files.
    LeftoversRemoved {
        /// Where.
        namespace: String,
        /// The names of the secrets; their config maps are removed as well.
        secrets: Vec<String>,
    },
    /// Nothing is left of what was brought or made.
    TakenBack {
        /// What became of it.
        how: TakenBack,
        /// Whether the pod is left, or may be. It cannot run the application.
        may_leave_pod: bool,
    },
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
    /// The staging server deletes them.
    Released,
    /// The copies are deleted.
    Removed,
    /// The objects for an application that something else submits are deleted.
    Deleted,
}

/// A bundle that is going to be uploaded: what may be shown of it. The token is not in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Uploading {
    /// The address of the server.
    pub server: String,
    /// How many files.
    pub files: usize,
    /// Of all files; the bundle may be smaller.
    pub size_bytes: u64,
}

impl From<&StageRequest> for Uploading {
    fn from(request: &StageRequest) -> Self {
        let StageRequest { server, plan, .. } = request;
        Self { server: server.to_string(), files: plan.files().len(), size_bytes: plan.total_bytes() }
    }
}

/// Hears what happens.
pub trait Events: Send + Sync {
    /// Something did.
    fn happened(&self, event: &Event);

    /// A bundle is going to be uploaded. What is returned hears how that gets on.
    fn uploading(&self, _what: BundleKind, _upload: &Uploading) -> Arc<dyn StageObserver> {
        Arc::new(Unheard)
    }
}

struct Unheard;

impl StageObserver for Unheard {
    fn packed(&self, _: u64) {}
    fn retrying(&self, _: Option<&RetryNotice>) {}
}

/// Where events go. Clones lead to the same place.
#[derive(Clone)]
pub struct Log(Arc<dyn Events>);

impl Log {
    /// Leads to whatever hears of events.
    pub fn to(events: Arc<dyn Events>) -> Self {
        Self(events)
    }

    /// Writes what spark-submit would log, by the system's clock and time zone.
    pub fn new(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Lines::by_the_system(write)))
    }

    /// By another clock.
    pub fn with_clock(
        clock: Arc<dyn Clock>,
        zone: TimeZone,
        write: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Lines::new(clock, zone, write)))
    }

    /// The status, which spark-submit words as `message`.
    pub(super) fn report(&self, logger: &str, message: &str, status: &Status) {
        let (logger, message) = (logger.to_owned(), message.to_owned());
        self.tell(&Event::Status { logger, message, status: status.clone() });
    }

    /// `logger` is the class that says it in Spark, without its package.
    pub(super) fn say(&self, level: Level, logger: &str, message: &str) {
        self.tell(&Event::Said { level, logger: logger.to_owned(), message: message.to_owned() });
    }

    /// A line without time, level and logger.
    pub(super) fn print(&self, line: &str) {
        self.tell(&Event::Printed { line: line.to_owned() });
    }

    /// Tells of each warning.
    pub(super) fn warn(&self, warnings: &[String]) {
        for warning in warnings {
            self.tell(&Event::Warned { warning: warning.clone() });
        }
    }

    /// A server is asked again.
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
        tokio::select! {
            biased;
            outcome = &mut work => return outcome,
            () = stop.cancelled() => {}
        }
        self.tell(&Event::Stopping { under_way });
        work.await
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
            (Bound::Time(Duration::from_secs(90)), json!(90.0)),
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
