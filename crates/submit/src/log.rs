//! Lines in the format of Spark's own log, which people and schedulers read on stderr.

use std::sync::{Arc, OnceLock};

use jiff::tz::TimeZone;

use super::events::{Event, Events, Level, Log};
use cloakroom_core::clock::{Clock, SystemClock};
use cloakroom_core::text::{is_unfit, shortened};

/// Takes a text without its last line break. One text may be a block of several lines.
type Write = dyn Fn(&str) + Send + Sync;

/// Writes lines like those of spark-submit, because schedulers parse them. The pattern is
/// `%d{yy/MM/dd HH:mm:ss} %p %c{1}: %m`, in local time. Events that Spark does not log are left out.
pub struct Lines {
    clock: Arc<dyn Clock>,
    /// Looked up for the first line: the search reads all names of the system's time zones.
    zone: OnceLock<TimeZone>,
    write: Box<Write>,
}

impl Lines {
    /// Uses this clock and time zone.
    pub fn new(clock: Arc<dyn Clock>, zone: TimeZone, write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { clock, zone: OnceLock::from(zone), write: Box::new(write) }
    }

    /// Uses the system's clock and time zone.
    pub fn by_the_system(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(SystemClock::new()), zone: OnceLock::new(), write: Box::new(write) }
    }

    /// Writes one line. `logger` is the class that logs it in Spark, without its package.
    pub fn say(&self, level: Level, logger: &str, message: &str) {
        let zone = self.zone.get_or_init(TimeZone::system).clone();
        let now = self.clock.now().to_zoned(zone);
        let now = now.strftime("%y/%m/%d %H:%M:%S");
        (self.write)(&format!("{now} {} {logger}: {message}", level.name()));
    }
}

impl Events for Lines {
    fn happened(&self, event: &Event) {
        match event {
            Event::Said { level, logger, message } => self.say(*level, logger, message),
            Event::Status { logger, message, .. } => self.say(Level::Info, logger, message),
            Event::Printed { line } => (self.write)(line),
            _ => {}
        }
    }
}

impl Log {
    /// Writes the lines that spark-submit would log ([`Lines`]), with the system's clock and time zone.
    pub fn new(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self::to(Arc::new(Lines::by_the_system(write)))
    }

    /// The same with another clock and time zone.
    pub fn with_clock(
        clock: Arc<dyn Clock>,
        zone: TimeZone,
        write: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self::to(Arc::new(Lines::new(clock, zone, write)))
    }
}

/// Makes a line of the driver's log fit for our log. Its indentation stays. Words that tools look for in lines of
/// spark-submit are changed: the pod's name, its phase, the exit code and the application's id.
pub(super) fn quoted(line: &str) -> String {
    const LONGEST: usize = 400;
    // A progress bar draws its line again and again. Only the last text counts.
    let seen = line.trim_end().rsplit('\r').next().unwrap_or_default();
    let mut text = seen.replace('\t', "    ").replace(is_unfit, "");
    for (theirs, ours) in [
        ("xit code: ", "xit code "),
        ("pod name: ", "pod name "),
        ("phase: ", "phase "),
        ("spark-app-selector -> ", "spark-app-selector "),
    ] {
        text = text.replace(theirs, ours);
    }
    shortened(text, LONGEST)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::events::Status;

    struct Midnight;

    impl Clock for Midnight {
        fn now(&self) -> jiff::Timestamp {
            "2026-11-20T23:13:03.5Z".parse().unwrap()
        }

        fn monotonic(&self) -> std::time::Duration {
            std::time::Duration::ZERO
        }
    }

    #[test]
    fn a_line_looks_like_sparks_own_in_local_time() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let log =
            Log::with_clock(Arc::new(Midnight), zone, move |line| kept.lock().unwrap().push(line.to_owned()));
        log.say(Level::Info, "Client", "Deployed");
        log.print("Application not found.");
        assert_eq!(
            *lines.lock().unwrap(),
            ["26/11/21 01:13:03 INFO Client: Deployed", "Application not found."]
        );
    }

    #[test]
    fn a_status_is_a_line_in_sparks_words() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&said);
        let log = Log::new(move |line| lines.lock().unwrap().push(line.to_owned()));
        let status = Status { phase: "Running".to_owned(), executors: 2 };
        log.report("Watcher", "Application status", &status);
        assert!(said.lock().unwrap().pop().unwrap().ends_with(" INFO Watcher: Application status"));
    }

    #[test]
    fn a_line_of_the_drivers_log_passes_for_nothing_else() {
        for (line, expected) in [
            ("\tat org.example.App.main(App.java:3)\r", "    at org.example.App.main(App.java:3)"),
            ("\r[Stage 0:>  (0 + 2) / 2]\r26/11/22 INFO X: done", "26/11/22 INFO X: done"),
            ("\u{1b}[31mred\u{7}", "[31mred"),
            ("Exit code: 0, exit code:\t0", "Exit code 0, exit code    0"),
            ("\t pod name: other-driver", "     pod name other-driver"),
            ("(phase: Running) spark-app-selector -> spark-1", "(phase Running) spark-app-selector spark-1"),
        ] {
            assert_eq!(quoted(line), expected);
        }
        let long = quoted(&"ü".repeat(5000));
        assert_eq!((long.chars().count(), long.ends_with("ü…")), (401, true));
    }
}
