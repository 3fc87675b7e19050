//! What is told of a run that does not come to its end, and when it is refused before it begins.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;

use cloakroom_testing::process::with_closed_stdout;

use super::*;

#[test]
fn a_closed_stdout_is_refused_before_staging_and_a_discarded_one_is_not() {
    let stager = Stager::new();
    for more in [&[][..], &["--dry-run"]] {
        let arguments = [more, &WHOLE].concat();
        let closed = with_closed_stdout(&stager.stage_for("spark-submit", &arguments)).output().unwrap();
        let said = stderr(&closed);
        assert_eq!(closed.status.code(), Some(1), "{said}");
        assert!(said.starts_with("error: stdout is closed, ") && !said.contains("staging "), "{said}");
        stager.assert_nothing_is_left(&said);
    }
    let null = File::options().write(true).open("/dev/null").unwrap();
    let discarded = stager.stage_for("spark-submit", &WHOLE).stdout(Stdio::from(null)).output().unwrap();
    assert!(discarded.status.success(), "{}", stderr(&discarded));
}

#[test]
fn ctrl_c_during_an_upload_is_answered_at_once() {
    let stager = Stager::new();
    // It takes connections, and says nothing.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", deaf.local_addr().unwrap());
    let arguments = [&["--fetch-image", IMAGE][..], &WHOLE].concat();
    let mut running =
        stager.stage_at(&url, "spark-submit", &arguments).stderr(Stdio::piped()).spawn().unwrap();
    let connection = deaf.accept().unwrap();
    assert!(Command::new("kill").args(["-s", "INT", &running.id().to_string()]).status().unwrap().success());
    let lines = BufReader::new(running.stderr.take().unwrap()).lines();
    let said = lines.map(Result::unwrap).collect::<Vec<_>>().join("\n");
    assert_eq!(running.wait().unwrap().code(), Some(130), "{said}");
    drop(connection);
    assert!(said.contains("\nstopping: what is under way has to end, and is taken back\n"), "{said}");
    // The signal comes before or after the last byte of so small a bundle.
    let (unsent, unanswered) = ("(nothing is left on the server)", "no answer came; they expire unused)");
    assert!(said.ends_with(unsent) || said.ends_with(unanswered), "{said}");
    stager.assert_nothing_is_left(&said);
}

#[test]
fn a_quiet_run_tells_only_warnings_and_why_it_ended() {
    let stager = Stager::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let arguments = [&["--quiet"][..], &WHOLE].concat();
    let output = stager.stage_for("spark-submit", &arguments).stdout(Stdio::from(full)).output().unwrap();
    let said = stderr(&output);
    let lines: Vec<_> = said.lines().collect();
    let [warnings @ .., reason] = &*lines else { panic!("it told nothing") };
    assert!(reason.starts_with("error: "), "{said}");
    assert!(warnings.iter().all(|line| line.starts_with("warning: ")), "{said}");
}

#[test]
fn what_is_taken_back_is_told() {
    let stager = Stager::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = stager.stage_for("spark-submit", &WHOLE).stdout(Stdio::from(full)).output().unwrap();
    let said = stderr(&output);
    let told = "\nwhat was made in the cluster is deleted again\nwhat was staged is released again\nerror: ";
    assert!(said.contains(told), "{said}");
    // The first call is the dry run.
    stager.api_server.fail_some(SECRET, Verb::Patch, 1, usize::MAX, Fault::Status(422));
    let said = stderr(&stager.output("spark-submit", &WHOLE));
    assert!(said.contains("\nwhat was staged is released again\nerror: "), "{said}");
    assert!(said.contains("(removed again: config map app-"), "{said}");
    stager.assert_nothing_is_left(&said);
}

#[test]
fn a_token_that_would_travel_in_clear_is_refused_before_the_upload() {
    let stager = Stager::new();
    std::fs::write(stager.path("token"), "a-token-that-is-long-enough\n").unwrap();
    let arguments = ["--fetch-image", IMAGE, "--token-file", "token", "app.jar"];
    let output = stager.stage_at("http://staging.example:1", "spark-submit", &arguments).output().unwrap();
    let said = stderr(&output);
    assert!(said.contains("the upload token would travel unencrypted"), "{said}");
    assert!(!said.contains("staging 1 file"), "{said}");
    stager.assert_nothing_is_left(&said);
}
