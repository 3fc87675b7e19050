use super::super::answer::Answer;
use super::*;
use cloakroom_core::protocol::WireName;
use cloakroom_outbound::tls::TlsFailure;

const REFUSED: Failure = Failure::Refused;
const SILENT: Failure = Failure::NoAnswer { after: Duration::from_secs(10) };

fn answered(status: u16, code: &str, retry_after: Option<u64>) -> Failure {
    let (code, retry_after) = (Some(WireName::read(code.to_owned())), retry_after.map(Duration::from_secs));
    Failure::Answered(Answer { status, code, detail: "come again".to_owned(), retry_after, proxy: None })
}

fn server() -> ServerAddress {
    ServerAddress::parse("http://h:31000").unwrap()
}

/// Attempts with a clock that moves only by their durations and by the waits.
struct Run {
    retries: Retries,
    start: Instant,
    now: Instant,
    has_answered: bool,
    may_be_done: bool,
    attempts: u32,
    /// The notices that the user gets.
    told: Vec<String>,
    waits: Vec<Duration>,
    tried: Tried,
}

impl Run {
    fn new(policy: RetryPolicy) -> Self {
        let now = Instant::now();
        Self {
            retries: Retries::new(policy, MOST_SILENCES),
            start: now,
            now,
            has_answered: false,
            may_be_done: false,
            attempts: 0,
            told: Vec::new(),
            waits: Vec::new(),
            tried: Tried::Once,
        }
    }

    /// Records one failed attempt with its duration. Returns whether another one follows.
    fn fails(&mut self, failure: &Failure, takes: Duration) -> bool {
        self.has_answered |= matches!(failure, Failure::Answered(_));
        self.attempts += 1;
        let (began, ended) = (self.now, self.now + takes);
        let (has_answered, may_be_done) = (self.has_answered, self.may_be_done);
        let attempt = Attempt { failure, began, ended, has_answered, may_be_done };
        self.now = ended;
        let Some(again) = self.retries.after(&attempt, 1.0) else {
            self.tried = self.retries.tried(&attempt);
            return false;
        };
        self.now += again.wait;
        self.waits.push(again.wait);
        if again.is_news {
            let (failure, bound) = (failure.clone(), again.bound);
            self.told.push(RetryNotice { server: server(), failure, progress: None, bound }.to_string());
        }
        true
    }

    fn fails_for_good(mut self, failure: &Failure, takes: Duration) -> Self {
        while self.fails(failure, takes) {
            assert!(self.attempts < 10_000, "it has no end");
        }
        self
    }

    fn lasted(&self) -> Duration {
        self.now - self.start
    }
}

fn given_up(failure: &Failure, takes: Duration, has_answered: bool) -> Run {
    Run { has_answered, ..Run::new(RetryPolicy::default()) }.fails_for_good(failure, takes)
}

// Invariant: clients wait while their server is replaced, and say so once.
#[test]
fn clients_wait_30_seconds_for_a_server_never_heard_or_2_minutes() {
    let unheard = given_up(&REFUSED, Duration::ZERO, false);
    assert_eq!(unheard.lasted(), Duration::from_secs(30));
    assert_eq!(unheard.tried.to_string(), " (tried for 30s)");
    let heard = given_up(&REFUSED, Duration::ZERO, true);
    assert_eq!(heard.lasted(), Duration::from_mins(2));
    assert_eq!(given_up(&answered(503, "starting", None), Duration::ZERO, false).lasted(), heard.lasted());
}

#[test]
fn an_answer_in_between_turns_30_seconds_into_120_and_each_is_told_once() {
    let mut run = Run::new(RetryPolicy::default());
    (0..5).for_each(|_| assert!(run.fails(&REFUSED, Duration::ZERO)));
    (0..5).for_each(|_| assert!(run.fails(&answered(503, "shutting-down", None), Duration::ZERO)));
    let run = run.fails_for_good(&REFUSED, Duration::ZERO);
    assert_eq!(run.lasted(), Duration::from_mins(2));
    assert_eq!(
        run.told,
        [
            "the staging server at http://h:31000 does not answer (connection refused): waiting up to 30s for it",
            "the staging server at http://h:31000 is being replaced (503 shutting-down): trying again for up to 2m",
        ]
    );
}

#[test]
fn waits_are_short_and_the_last_attempt_is_made_when_the_time_is_over() {
    let run = given_up(&REFUSED, Duration::ZERO, false);
    let waits: Vec<u128> = run.waits.iter().map(Duration::as_millis).collect();
    assert_eq!(waits[..6], [200, 400, 800, 1600, 2000, 2000]);
    assert_eq!((waits.len(), waits.last()), (18, Some(&1000)));
    // The attempt that is in flight when the time is over is the last one.
    let slow = given_up(&Failure::ConnectTimeout { after: LASTING }, LASTING, false);
    assert_eq!((slow.attempts, slow.lasted().as_secs()), (4, 41));
}

#[test]
fn a_number_of_attempts_wins_over_time() {
    let policy = RetryPolicy { attempts: Some(3), ..RetryPolicy::default() };
    let run = Run::new(policy).fails_for_good(&REFUSED, Duration::from_mins(5));
    assert_eq!((run.attempts, run.tried.to_string().as_str()), (3, " (3 attempts)"));
    assert_eq!(
        run.told,
        ["connection refused; attempt 2 of 3 in 200ms", "connection refused; attempt 3 of 3 in 400ms"]
    );
    let once = Run::new(RetryPolicy { attempts: Some(0), ..policy }).fails_for_good(&REFUSED, Duration::ZERO);
    assert_eq!((once.attempts, once.tried.to_string().as_str()), (1, ""));
}

#[test]
fn a_server_that_takes_requests_and_says_nothing_is_asked_three_times() {
    for has_answered in [false, true] {
        let run = given_up(&SILENT, Duration::from_secs(10), has_answered);
        assert_eq!((run.attempts, run.tried.to_string().as_str()), (3, " (3 attempts)"));
    }
    let upload = Run { retries: Retries::new(RetryPolicy::default(), 2), ..Run::new(RetryPolicy::default()) };
    assert_eq!(upload.fails_for_good(&SILENT, Duration::from_secs(70)).attempts, 2);
}

#[test]
fn lost_answers_do_not_fill_the_server_with_bundles_without_tickets() {
    let broken = Failure::Broken { why: "the server closed it".to_owned() };
    let run = Run { may_be_done: true, has_answered: true, ..Run::new(RetryPolicy::default()) };
    assert_eq!(run.fails_for_good(&broken, Duration::ZERO).attempts, MOST_LOST);
}

#[test]
fn a_permanent_failure_is_not_tried_again() {
    for failure in [
        Failure::Tls(TlsFailure::UnknownIssuer),
        Failure::Foreign { why: String::new() },
        answered(401, "unauthorized", None),
        answered(507, "insufficient-storage", None),
    ] {
        let run = given_up(&failure, Duration::ZERO, true);
        assert_eq!((run.attempts, run.tried), (1, Tried::Once), "{failure}");
    }
}

#[test]
fn a_name_that_does_not_resolve_costs_five_seconds_unless_it_once_did() {
    let unknown = Failure::UnknownHost { why: "no such host".to_owned() };
    assert_eq!(given_up(&unknown, Duration::ZERO, false).lasted(), Duration::from_secs(5));
    assert_eq!(given_up(&unknown, Duration::ZERO, true).lasted(), Duration::from_mins(2));
}

#[test]
fn a_service_without_a_pod_is_waited_for_like_a_server_that_has_answered() {
    let way = |status| Failure::Way {
        why: "no endpoints available".to_owned(),
        status,
        is_transient: true,
        may_have_arrived: false,
    };
    assert_eq!(given_up(&way(Some(503)), Duration::ZERO, false).lasted(), Duration::from_mins(2));
    assert_eq!(given_up(&way(None), Duration::ZERO, false).lasted(), Duration::from_secs(30));
}

#[test]
fn the_servers_wish_to_wait_is_honoured_up_to_a_minute_and_the_time_left() {
    let run = given_up(&answered(503, "overloaded", Some(7)), Duration::ZERO, false);
    assert_eq!(run.waits[..2], [Duration::from_secs(7); 2]);
    let run = given_up(&answered(503, "overloaded", Some(86_400)), Duration::ZERO, false);
    assert_eq!(run.waits, [Duration::from_mins(1); 2]);
    assert!(run.told[0].ends_with("says: come again (503 overloaded); trying again for up to 2m"));
}

#[test]
fn a_long_upload_that_breaks_gets_its_time_again_but_not_for_ever() {
    let broken = Failure::Broken { why: "reset by peer".to_owned() };
    goes_on_for_rows(&broken);
    let broken = Failure::Way {
        why: "broke (503)".to_owned(),
        status: Some(503),
        is_transient: true,
        may_have_arrived: true,
    };
    goes_on_for_rows(&broken);
    // A failure that takes long and is no break does not show that a server was there.
    let gateway = given_up(&answered(504, "gateway-timeout", None), Duration::from_mins(1), false);
    assert_eq!((gateway.attempts, gateway.tried.to_string().as_str()), (3, " (tried for 2m)"));
}

fn goes_on_for_rows(broken: &Failure) {
    let mut run = Run::new(RetryPolicy::default());
    assert!(run.fails(broken, Duration::from_mins(5)));
    assert!(run.told[0].contains("up to 2m"), "a server was there: {:?}", run.told);
    assert!(run.fails(&REFUSED, Duration::ZERO));
    assert!(run.fails(broken, Duration::from_mins(5)), "it went on for five minutes in between");
    assert_eq!(run.told.len(), 2, "each break is told");
    let run = run.fails_for_good(broken, Duration::from_mins(5));
    assert_eq!(run.attempts, MOST_ROWS + 2);
}

#[test]
fn tidying_up_takes_no_longer_than_a_replaced_server_is_away() {
    let run = Run { has_answered: true, ..Run::new(RetryPolicy::brief()) };
    assert_eq!(run.fails_for_good(&REFUSED, Duration::ZERO).lasted(), Duration::from_secs(5));
}
