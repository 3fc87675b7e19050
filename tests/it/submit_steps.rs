//! `cloakroom submit` where each of its requests goes wrong, in each way: nothing half done stays, and what is said of it
//! is true.

mod output;
mod submitter;

use std::collections::BTreeSet;
use std::io::Read as _;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::Signal;

use cloakroom_testing::api_server::{Fault, Verb};
use cloakroom_testing::checkpoint::{Accident, Extent, Passed};
use cloakroom_testing::cluster::CONFIG_MAP;
use cloakroom_testing::process::{read_until, stderr};
use submitter::{CLUSTER, State, Submitter, Way, send};

/// Most of the time is spent waiting.
const AT_ONCE: usize = 6;

/// One request of a submission that would otherwise be a good one.
struct Step<'a> {
    submitter: &'a Submitter,
    number: usize,
    /// What the request is, in the good submission.
    what: String,
    is_upload: bool,
    is_pod: bool,
    /// What the driver's service account may do: whoever gets no answer goes on without.
    is_question: bool,
}

impl Step<'_> {
    fn with(&self, extent: Extent, accident: Accident) -> (Output, State) {
        (self.submitter.submitted_with(self.number, extent, accident), self.submitter.state())
    }
}

/// A submission that meets nothing, request by request.
fn good(submitter: &Submitter) -> (Vec<Passed>, State) {
    submitter.checkpoint.heal();
    let output = submitter.submitted();
    assert!(output.status.success(), "{}", stderr(&output));
    let good = (submitter.checkpoint.passed(), submitter.state());
    submitter.clear();
    good
}

/// Tries each request of a good submission, which leaves so many objects behind.
fn at_each_request(way: Way, objects: usize, try_one: impl Fn(&Step) + Sync) {
    let (next, tried) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let submitter = Submitter::new(way);
        let (passed, state) = good(&submitter);
        assert_eq!(state.objects.len(), objects);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(request) = passed.get(number) else { return passed.len() };
            let what = request.to_string();
            let is_upload = what == "staging POST /api/v1/resources";
            let is_pod = what == "cluster POST /api/v1/namespaces/default/pods";
            let is_question = what.ends_with("/localsubjectaccessreviews");
            try_one(&Step { submitter: &submitter, number, what, is_upload, is_pod, is_question });
            submitter.clear();
            tried.fetch_add(1, Ordering::Relaxed);
        }
    };
    let requests = std::thread::scope(|scope| {
        let running: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        running.into_iter().map(|one| one.join().unwrap()).max().unwrap()
    });
    assert_eq!(tried.load(Ordering::Relaxed), requests);
}

/// Of a submission that failed: the last line says what became of it.
fn assert_says_what_is_left(step: &str, said: &str) {
    let last = said.lines().last().unwrap_or_default();
    let ends =
        ["(nothing was created)", "(nothing is left on the server)", "(removed again: ", "(still there: "];
    let is_said = ends.iter().any(|end| last.contains(end));
    // Of these two nothing can have been made, or nobody can know.
    let is_about_the_image = last.contains("does not say which image the init-container is to have");
    assert!(is_said || is_about_the_image || last.contains("perhaps the server keeps it"), "{step}: {said}");
}

/// One application, with what it needs.
fn assert_is_submitted(step: &Step, output: &Output, state: &State, resources: usize) {
    let (what, said) = (&step.what, stderr(output));
    assert!(output.status.success(), "{what}: {said}");
    assert_eq!(state.objects.iter().filter(|object| object.starts_with("Pod ")).count(), 1, "{what}");
    assert_eq!((state.resources.len(), state.bundles), (resources, resources), "{what}: {said}");
    assert_eq!(said.matches("Deployed Spark application").count(), 1, "{what}: {said}");
}

#[test]
fn every_request_of_a_submission_is_known() {
    let submitter = Submitter::new(Way::Staged);
    let (passed, state) = good(&submitter);
    let kind = |passed: &Passed| {
        let (method, path) = passed.what.split_once(' ').unwrap();
        let parts: Vec<&str> = path.split('/').collect();
        let plural = parts.iter().position(|part| *part == "default").map(|at| parts[at + 1]);
        format!("{method} {}", plural.unwrap_or(parts.last().unwrap()))
    };
    let kinds: Vec<String> = passed.iter().map(kind).collect();
    assert_eq!(
        kinds,
        [
            "GET v1",
            "POST pods (dry run)",
            "POST resources",
            "POST resources",
            "GET metadata",
            "GET metadata",
            "PATCH podgroups",
            "POST pods",
            "PATCH podgroups",
            "PATCH secrets",
            "PATCH services",
            "PATCH networkpolicies",
            "PATCH persistentvolumeclaims",
            "PATCH configmaps",
            "PATCH configmaps",
            "PATCH configmaps",
            "PATCH secrets",
            "PATCH configmaps",
        ]
    );
    assert_eq!((state.objects.len(), state.resources.len(), state.bundles), (11, 2, 2));
}

/// It is only a help.
#[test]
fn a_question_about_the_drivers_account_that_goes_wrong_does_no_harm() {
    let submitter = Submitter::new(Way::Copied);
    let (passed, _) = good(&submitter);
    let is_question = |request: &Passed| request.what.ends_with("/localsubjectaccessreviews");
    let number = passed.iter().position(is_question).unwrap();
    for accident in [
        Accident::Refused(403),
        Accident::Refused(500),
        Accident::Cut,
        Accident::AnswerLost,
        Accident::Hangs,
        Accident::AnswerHangs,
    ] {
        let output = submitter.submitted_with(number, Extent::EachTime, accident);
        let (said, state) = (stderr(&output), submitter.state());
        assert!(output.status.success(), "{accident:?}: {said}");
        assert_eq!((state.objects.len(), said.contains("may not create pods")), (8, false), "{said}");
        submitter.clear();
    }
}

// Invariant: if any request of a submission fails, in any way, nothing stays but what a message names.
#[test]
fn a_request_that_is_refused_leaves_nothing_behind() {
    for code in [403, 507] {
        at_each_request(Way::Staged, 11, |step| {
            // An API server has no 507, and what is a 5xx may pass.
            if code == 507 && !step.is_upload {
                return;
            }
            let (output, state) = step.with(Extent::EachTime, Accident::Refused(code));
            let (what, said) = (&step.what, stderr(&output));
            assert_eq!((output.status.code(), state), (Some(1), State::default()), "{what}: {said}");
            assert!(said.contains(&format!("the test wants a {code}")), "{what}: {said}");
            assert_says_what_is_left(what, &said);
        });
    }
}

#[test]
fn a_request_that_is_refused_leaves_no_copy_behind() {
    at_each_request(Way::Copied, 8, |step| {
        if step.is_question {
            return;
        }
        let (output, state) = step.with(Extent::EachTime, Accident::Refused(400));
        let (what, said) = (&step.what, stderr(&output));
        assert_eq!((output.status.code(), state), (Some(1), State::default()), "{what}: {said}");
        assert_says_what_is_left(what, &said);
    });
}

#[test]
fn a_connection_that_is_cut_once_does_no_harm() {
    at_each_request(Way::Staged, 11, |step| {
        let (output, state) = step.with(Extent::Once, Accident::Cut);
        assert_is_submitted(step, &output, &state, 2);
    });
}

#[test]
fn connections_that_are_cut_again_and_again_leave_nothing_behind() {
    at_each_request(Way::Staged, 11, |step| {
        let (output, state) = step.with(Extent::EachTime, Accident::Cut);
        let (what, said) = (&step.what, stderr(&output));
        assert_eq!((output.status.code(), state), (Some(1), State::default()), "{what}: {said}");
        assert_says_what_is_left(what, &said);
    });
}

/// Of an upload a second resource stays, which nobody uses and which expires.
#[test]
fn an_answer_that_is_lost_once_does_no_harm() {
    at_each_request(Way::Staged, 11, |step| {
        let (output, state) = step.with(Extent::Once, Accident::AnswerLost);
        assert_is_submitted(step, &output, &state, if step.is_upload { 3 } else { 2 });
        let said = stderr(&output);
        assert_eq!(said.contains("after all of it was sent"), step.is_upload, "{said}");
        assert_eq!(
            said.contains(" WARN Staging: perhaps the ") && said.contains(" a second time"),
            step.is_upload,
            "{said}"
        );
        assert_eq!(said.contains("The creation of pod app-driver had no answer"), step.is_pod, "{said}");
        assert!(!said.contains("existed already"), "{said}");
    });
}

#[test]
fn answers_lost_again_and_again_leave_only_what_a_message_names() {
    at_each_request(Way::Staged, 11, |step| {
        let (output, state) = step.with(Extent::EachTime, Accident::AnswerLost);
        if step.is_pod {
            return assert_is_submitted(step, &output, &state, 2);
        }
        let (what, said) = (&step.what, stderr(&output));
        assert_eq!(output.status.code(), Some(1), "{what}: {said}");
        assert_says_what_is_left(what, &said);
        // One of each attempt, and none has a ticket.
        let expected = if step.is_upload { 2..=12 } else { 0..=0 };
        assert!(expected.contains(&state.resources.len()), "{what}: {said}");
        assert_eq!(
            said.contains("perhaps the server keeps it, until it expires unused"),
            step.is_upload,
            "{said}"
        );
        assert_eq!(state.objects, [""; 0], "{what}: {said}");
    });
}

#[test]
fn whoever_ends_it_while_a_request_hangs_finds_nothing() {
    for (way, objects) in [(Way::Staged, 11), (Way::Copied, 8)] {
        at_each_request(way, objects, |step| {
            let output = step.submitter.stopped_with(step.number, Accident::Hangs, Signal::TERM);
            let (what, said, state) = (&step.what, stderr(&output), step.submitter.state());
            assert_eq!((output.status.code(), state), (Some(143), State::default()), "{what}: {said}");
            assert!(said.contains("stopped before the application was submitted"), "{what}: {said}");
            assert_says_what_is_left(what, &said);
        });
    }
}

#[test]
fn ctrl_c_during_a_silent_request_leaves_only_what_a_message_names() {
    at_each_request(Way::Staged, 11, |step| {
        let output = step.submitter.stopped_with(step.number, Accident::AnswerHangs, Signal::INT);
        let (what, said, state) = (&step.what, stderr(&output), step.submitter.state());
        assert_eq!(output.status.code(), Some(130), "{what}: {said}");
        assert_says_what_is_left(what, &said);
        assert_eq!(state.resources.len(), usize::from(step.is_upload), "{what}: {said}");
        assert_eq!(said.contains("still there: perhaps the "), step.is_upload, "{what}: {said}");
        assert_eq!(state.objects, [""; 0], "{what}: {said}");
    });
}

/// The bytes are all there, and only the ticket is missing.
#[test]
fn ctrl_c_just_before_the_answer_to_an_upload_waits_and_releases_it() {
    let submitter = Submitter::new(Way::Staged);
    let (passed, _) = good(&submitter);
    let uploads = (0..passed.len()).filter(|number| passed[*number].what == "POST /api/v1/resources");
    for (announced, number) in (1..).zip(uploads) {
        submitter.checkpoint.plan(number, Extent::Once, Accident::AnswerHangs);
        let mut running = submitter.submit().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        submitter.checkpoint.until_accident();
        send(Signal::INT, &running);
        let mut stderr = running.stderr.take().unwrap();
        let mut said = read_until(&mut stderr, "Stopping: no pod was created");
        submitter.checkpoint.let_go();
        stderr.read_to_string(&mut said).unwrap();
        assert_eq!(running.wait().unwrap().code(), Some(130), "{said}");
        assert!(said.contains("(nothing is left on the server)"), "{said}");
        let announcements = said.lines().filter(|line| line.starts_with("staging "));
        assert_eq!(announcements.count(), announced, "none for a bundle that is not sent: {said}");
        assert_eq!(submitter.state(), State::default(), "{said}");
    }
}

#[test]
fn what_cannot_be_taken_back_from_a_server_that_is_gone_is_named() {
    at_each_request(Way::Staged, 11, |step| {
        let (output, state) = step.with(Extent::WholeServer, Accident::Cut);
        let (what, said) = (&step.what, stderr(&output));
        assert_eq!(output.status.code(), Some(1), "{what}: {said}");
        assert_says_what_is_left(what, &said);
        if what.starts_with(CLUSTER) {
            assert_eq!(state.resources, BTreeSet::new(), "{what}: {said}");
            let has_pod = state.objects.iter().any(|object| object == "Pod app-driver");
            let names_pod =
                said.contains("remove it with “kubectl delete pod -n default -l spark-app-selector=");
            assert!(names_pod || !has_pod, "{what}: {said}");
            let refuses =
                said.contains("What was staged is released again: the pod that may be left cannot run");
            assert_eq!(refuses, names_pod, "{what}: {said}");
        } else {
            assert_eq!(state.objects, [""; 0], "{what}: {said}");
            for id in &state.resources {
                assert!(said.contains(&format!("(resource {id} at http://")), "{what}: {said}");
                assert!(!said.contains("no answer within 10s"), "nobody waits for that: {what}: {said}");
            }
        }
    });
}

/// The application must not run although it was said that it was not submitted.
#[test]
fn bundles_are_released_although_the_pod_cannot_be_deleted() {
    for way in [Way::Staged, Way::Copied] {
        let submitter = Submitter::new(way);
        submitter.api_server.fail_for(CONFIG_MAP, Verb::Patch, Fault::Status(403));
        submitter.api_server.fail(Verb::Delete, Fault::Status(403));
        let output = submitter.submitted();
        let (said, state) = (stderr(&output), submitter.state());
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(state.objects.contains(&"Pod app-driver".to_owned()), "{said}");
        assert_eq!((state.resources.len(), state.bundles, state.copies), (0, 0, Vec::new()), "{said}");
        assert!(
            said.contains(" again: the pod that may be left cannot run the application, and fails"),
            "{said}"
        );
        assert!(said.contains("(still there: pod app-driver, and what it owns ("), "{said}");
    }
}
