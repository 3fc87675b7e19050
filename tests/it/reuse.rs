//! The second upload of files that have hardly changed, by the real binary to a real server.

use std::net::SocketAddr;
use std::process::Command;

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::front::{Front, Turn};
use cloakroom_testing::noise::noise;
use cloakroom_testing::process::{Cloakroom, output_in_time, stderr};
use cloakroom_testing::workspace::Workspace;

const JARS: usize = 20;
const JAR_BYTES: usize = 200_000;

/// A machine with jars and a text, and a proxy before the server.
struct Stager {
    folder: Workspace,
    _server: Cloakroom,
    front: Front,
}

impl Stager {
    fn new() -> Self {
        Self::before(|_| Turn::Pass)
    }

    fn before(script: impl Fn(&str) -> Turn + Send + Sync + 'static) -> Self {
        let folder = Workspace::new();
        (0..JARS).for_each(|number| drop(folder.write(&jar(number), noise(JAR_BYTES + number))));
        folder.write("app.csv", words(1_200_000));
        let server = folder.serve(&[]);
        let front = Front::before(server.address.parse::<SocketAddr>().unwrap(), script);
        Self { folder, _server: server, front }
    }

    fn command(&self, files: &[String], flags: &[&str]) -> Command {
        let mut command = self.folder.command();
        command.args(["stage", "--server", &self.front.url(), "--namespace", "demo", "--label", "app=demo"]);
        command.args(flags).args(files);
        command
    }

    /// Stages files. Returns the ticket, what was said, and how many bytes have passed.
    fn stages(&self, files: &[String], flags: &[&str]) -> (Ticket, String, usize) {
        let before = self.front.passed_bytes();
        let output = output_in_time(&mut self.command(files, flags));
        let said = stderr(&output);
        assert!(output.status.success(), "{said}");
        let ticket: Ticket = serde_json::from_slice(&output.stdout).unwrap();
        assert!(!said.contains(&ticket.resource_secret), "{said}");
        (ticket, said, self.front.passed_bytes() - before)
    }

    /// Stages files twice, with and without what was staged before: both are the same bundle. Returns how many bytes have passed for
    /// the first one.
    fn reuses(&self, files: &[String]) -> usize {
        let (ticket, said, passed) = self.stages(files, &[]);
        assert!(said.contains(" of it travelled: the server had the rest since "), "{said}");
        let (whole, said, _) = self.stages(files, &["--no-reuse"]);
        assert!(!said.contains("travel"), "{said}");
        assert_eq!((ticket.sha256, ticket.size_bytes), (whole.sha256, whole.size_bytes));
        passed
    }

    fn memory(&self) -> Vec<std::path::PathBuf> {
        let folder = std::fs::read_dir(self.folder.path(".cache/cloakroom"));
        let mut files: Vec<_> = folder.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        files
    }
}

impl Stager {
    /// What is in all files of the memory.
    fn remembered(&self) -> String {
        self.memory().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
    }
}

fn jar(number: usize) -> String {
    format!("dep-{number}.jar")
}

/// Text that can be compressed, but not to nothing.
fn words(length: usize) -> Vec<u8> {
    noise(length).into_iter().map(|byte| b"abcdefgh"[usize::from(byte) % 8]).collect()
}

fn all() -> Vec<String> {
    (0..JARS).map(jar).chain(["app.csv".to_owned()]).collect()
}

// Invariant: a bundle that is put together of parts is that of a whole upload, or nothing of it is kept; its source
// stays readable meanwhile.
#[test]
fn only_what_changed_travels_and_the_bundle_is_that_of_a_whole_upload() {
    const HEADERS: usize = 80_000;
    let stager = Stager::new();
    let (_, said, _) = stager.stages(&all(), &[]);
    assert!(!said.contains("travel"), "{said}");
    assert!(stager.reuses(&all()) < HEADERS, "nothing has changed");

    for number in [3, 17] {
        stager.folder.write(&jar(number), noise(JAR_BYTES + 1000));
    }
    let passed = stager.reuses(&all());
    assert!((2 * JAR_BYTES..2 * JAR_BYTES + HEADERS).contains(&passed), "{passed}");

    let mut files = all();
    files.reverse();
    assert!(stager.reuses(&files) < HEADERS, "they are in another order");
    files.remove(5);
    assert!(stager.reuses(&files) < HEADERS, "one is left out");
    files.insert(2, jar(15));
    stager.folder.write("more.jar", noise(JAR_BYTES + 777));
    files.insert(7, "more.jar".to_owned());
    assert!(stager.reuses(&files) < JAR_BYTES + HEADERS, "one is new, and one is back");
    std::fs::rename(stager.folder.path(&jar(9)), stager.folder.path("renamed.jar")).unwrap();
    let place = files.iter().position(|name| *name == jar(9)).unwrap();
    files[place] = "renamed.jar".to_owned();
    assert!(stager.reuses(&files) < HEADERS, "one has another name");
    stager.folder.write("renamed.jar", "");
    stager.folder.write("app.csv", "now a short one");
    assert!(stager.reuses(&files) < HEADERS, "two are short now");
}

#[test]
fn a_bundle_that_the_server_has_no_more_is_sent_whole_without_a_word() {
    let stager = Stager::new();
    let (first, ..) = stager.stages(&all(), &[]);
    let url = first.url.clone();
    let mut release = Command::new("curl");
    release.args(["--silent", "--fail", "--request", "DELETE", "--header"]);
    release.arg(format!("Authorization: Bearer {}", first.resource_secret)).arg(url);
    assert!(output_in_time(&mut release).status.success());
    let (second, said, passed) = stager.stages(&all(), &[]);
    assert_eq!(second.sha256, first.sha256);
    assert!(passed > JARS * JAR_BYTES, "{passed}");
    assert!(["gone", "warning", "travel"].iter().all(|word| !said.contains(word)), "{said}");
    let memory = stager.remembered();
    assert!(memory.contains(&second.resource_id) && !memory.contains(&first.resource_id));
    stager.reuses(&all());
}

#[test]
fn the_newest_of_equal_bundles_is_taken_and_the_next_one_if_that_is_gone() {
    let stager = Stager::new();
    let stage = || stager.stages(&all(), &[]);
    let tickets = [stage().0, stage().0, stage().0];
    let bundle = |ticket: &Ticket| {
        let id = &ticket.resource_id;
        stager.folder.path(&format!("server/bundles/{}/{id}", &id[..2]))
    };
    // The first one is lost, the newest is damaged: neither is remembered after that.
    std::fs::remove_file(bundle(&tickets[0])).unwrap();
    assert!(stage().2 < JAR_BYTES);
    let newest = stage().0;
    std::fs::write(bundle(&newest), "").unwrap();
    let (ticket, said, passed) = stage();
    assert_eq!(ticket.sha256, newest.sha256);
    assert!(passed < JAR_BYTES && said.contains(" of it travelled: "), "{passed}: {said}");
    let memory = stager.remembered();
    assert!(!memory.contains(&newest.resource_id) && memory.contains(&ticket.resource_id));
}

#[test]
fn a_server_that_cannot_put_bundles_together_gets_all_of_it() {
    const PROBLEM: &str = "application/problem+json";
    for turn in [
        Turn::Answer(404, PROBLEM, r#"{"status":404,"code":"no-such-path","detail":"there is nothing"}"#),
        Turn::Answer(400, PROBLEM, r#"{"status":400,"code":"digest-mismatch","detail":"other bytes"}"#),
        Turn::Answer(503, PROBLEM, r#"{"status":503,"code":"overloaded","detail":"too many recipes"}"#),
        Turn::Answer(408, PROBLEM, r#"{"status":408,"code":"too-slow","detail":"the recipe was slow"}"#),
        Turn::Answer(405, "text/html", "a proxy"),
        Turn::Answer(200, "text/html", "a portal"),
        Turn::Answer(500, PROBLEM, r#"{"status":500,"code":"internal","detail":"its log says why"}"#),
    ] {
        let stager =
            Stager::before(move |line: &str| if line.contains("/spliced") { turn } else { Turn::Pass });
        let (first, ..) = stager.stages(&all(), &[]);
        let (second, said, passed) = stager.stages(&all(), &[]);
        assert_eq!(second.sha256, first.sha256);
        assert!(passed > JARS * JAR_BYTES, "{turn:?}: {passed}");
        assert!(["again", "warning", "travel"].iter().all(|word| !said.contains(word)), "{turn:?}: {said}");
        let (_, said, _) = stager.stages(&all(), &["--verbose"]);
        assert!(said.contains("DEBUG the server has not put the bundle together: "), "{turn:?}: {said}");
    }
}

#[test]
fn a_splice_whose_connection_breaks_is_tried_again() {
    let is_first = std::sync::atomic::AtomicBool::new(true);
    let script = move |line: &str| {
        let breaks = line.contains("/spliced") && is_first.swap(false, std::sync::atomic::Ordering::Relaxed);
        if breaks { Turn::Cut { after: 0 } } else { Turn::Pass }
    };
    let stager = Stager::before(script);
    let (first, ..) = stager.stages(&all(), &[]);
    let (second, _, passed) = stager.stages(&all(), &[]);
    assert_eq!(second.sha256, first.sha256);
    assert!(passed < JAR_BYTES, "{passed}");
}

#[test]
fn what_was_staged_before_is_private_and_may_be_damaged_or_missing() {
    use std::os::unix::fs::PermissionsExt as _;
    let stager = Stager::new();
    stager.stages(&all(), &["--no-reuse"]);
    assert_eq!(stager.memory(), Vec::<std::path::PathBuf>::new());
    let without_home = |flags: &[&str]| {
        let mut command = stager.command(&all(), flags);
        command.env_remove("HOME");
        output_in_time(&mut command)
    };
    assert!(without_home(&[]).status.success());
    assert_eq!(stager.memory(), Vec::<std::path::PathBuf>::new());
    stager.stages(&all(), &[]);
    let [file] = &stager.memory()[..] else { panic!("{:?}", stager.memory()) };
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::write(file, "{").unwrap();
    let (_, said, passed) = stager.stages(&all(), &["-v"]);
    let told = format!("DEBUG {} cannot be read error=it is not what this version writes", file.display());
    assert!(passed > JARS * JAR_BYTES && said.contains(&told), "{said}");
    stager.reuses(&all());
    let mut by_variable = stager.command(&all(), &[]);
    by_variable.env("CLOAKROOM_NO_REUSE", "true");
    assert!(!stderr(&output_in_time(&mut by_variable)).contains("travel"));
}
