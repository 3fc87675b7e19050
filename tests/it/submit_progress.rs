//! How a submission gets on, as somebody in front of a terminal sees it, and a scheduler that reads a pipe.

use std::cell::RefCell;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use cloakroom_testing::api_server::{EVENT, FakeApiServer, NETWORK_POLICY, SECRET};
use cloakroom_testing::cluster::{CONFIG_MAP, Cluster as _, POD, SERVICE};
use cloakroom_testing::noise::noise;
use cloakroom_testing::port::ReservedPort;
use cloakroom_testing::process::{Cloakroom, read_until};
use cloakroom_testing::terminal::Terminal;
use cloakroom_testing::wait::BOUND;
use cloakroom_testing::workspace::Workspace;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const DRIVER: &str = "app-driver";
/// More than the buffers of a connection take.
const LARGE: usize = 32 << 20;
/// As much of it as a server reads that is slow.
const A_LITTLE: usize = 1 << 20;

struct Submitter {
    api_server: FakeApiServer,
    folder: Workspace,
}

impl Submitter {
    fn new() -> Self {
        let api_server =
            FakeApiServer::with("default", &[SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY, EVENT]);
        let folder = Workspace::for_cluster(&api_server, &[("data.txt", "data")]);
        folder.write("app.jar", noise(LARGE));
        Self { api_server, folder }
    }

    /// Everything goes to the staging server at this address.
    fn submit(&self, server: &str, waits: bool) -> Command {
        let conf = [
            ("driver.pod.name", DRIVER),
            ("resourceStagingServer.uri", server),
            ("resourceStagingServer.internal.uri", server),
            ("initContainer.image", "repo.example/cloakroom:1"),
            ("report.interval", "50ms"),
            ("submission.waitAppCompletion", if waits { "true" } else { "false" }),
        ];
        let mut command = self.folder.submit(self.api_server.address(), &conf);
        command.args(["--class", "org.example.App", "--files", "data.txt", "app.jar"]).stdout(Stdio::null());
        command
    }

    fn server(&self) -> Cloakroom {
        self.folder.serve(&[])
    }

    fn set_state(&self, phase: &str, state: &Value) {
        let status = json!({"phase": phase, "containerStatuses": [{"name": "spark-kubernetes-driver", "image": "x",
            "ready": false, "restartCount": 0, "imageID": "", "state": state}]});
        self.api_server.set_status("default", DRIVER, &status);
    }

    fn until_driver(&self) {
        let started = std::time::Instant::now();
        while self.api_server.object(POD, "default", DRIVER).is_none() {
            assert!(started.elapsed() < BOUND, "there is no driver pod");
            std::thread::yield_now();
        }
    }

    /// The driver is pending, runs with two executors, and succeeds, as soon as `told` says that it was noticed.
    fn play(&self, told: impl Fn(&str)) {
        self.until_driver();
        self.set_state("Pending", &json!({"waiting": {"reason": "PodInitializing"}}));
        told("Pending");
        self.set_state("Running", &json!({"running": {}}));
        told("Running");
        let driver = self.api_server.object(POD, "default", DRIVER).unwrap();
        let app = driver["metadata"]["labels"]["spark-app-selector"].as_str().unwrap().to_owned();
        for name in ["exec-1", "exec-2"] {
            let labels = [("spark-app-selector", app.as_str()), ("spark-role", "executor")];
            self.api_server.create_pod("default", name, &labels);
            self.api_server.set_phase("default", name, "Running");
        }
        told("executors");
        self.set_state("Succeeded", &json!({"terminated": {"exitCode": 0, "reason": "Completed"}}));
    }
}

fn start_on(terminal: &Terminal, kind: &str, mut command: Command) -> Child {
    command.env("TERM", kind).stderr(terminal.end()).spawn().unwrap()
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

/// A server that has read a little of an upload.
fn begun(listener: &TcpListener) -> TcpStream {
    let mut connection = listener.accept().unwrap().0;
    connection.read_exact(&mut vec![0; A_LITTLE]).unwrap();
    connection
}

/// What schedulers parse, and nothing that would move a cursor.
fn assert_is_plain(text: &str) {
    let control = text.chars().find(|letter| letter.is_control() && !"\t\n".contains(*letter));
    assert_eq!(control, None, "{text:?}");
    for line in ["staging 1 file, 32 MiB, to http://", "Staged the jars, ", "Application status for spark-"] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn a_terminal_shows_rate_and_remaining_time_of_an_upload() {
    let submitter = Submitter::new();
    let slow = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("http://{}", slow.local_addr().unwrap());
    for (columns, has_bar) in [(100, true), (66, false)] {
        let terminal = Terminal::new(columns);
        let mut running = start_on(&terminal, "xterm", submitter.submit(&uri, false));
        let connection = begun(&slow);
        let written = terminal.until("s left");
        let first = written.find("s left").unwrap() + "s left".len();
        let seen = terminal.seen(&written[..first]).pop().unwrap();
        assert!(seen.starts_with("jars ") && seen.contains(" of 32.00 MiB, "), "{seen}");
        assert_eq!(seen.contains("░"), has_bar, "{seen}");
        let (_, rate) = seen.split_once(" of 32.00 MiB, ").unwrap();
        assert!(rate.contains("B/s, ") && rate.ends_with("s left"), "{seen}");
        interrupt(&running);
        assert_eq!(running.wait().unwrap().code(), Some(130));
        drop(connection);
        let seen = terminal.seen(&terminal.until_closed()).join("");
        assert!(!seen.contains("B/s"), "a bar is left: {seen}");
        assert!(
            seen.ends_with("stopped before the application was submitted (nothing is left on the server)"),
            "{seen}"
        );
    }
}

#[test]
fn a_second_ctrl_c_leaves_nothing_half_drawn() {
    let submitter = Submitter::new();
    submitter.folder.write("app.jar", "small");
    // It takes connections, and says nothing.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let terminal = Terminal::new(100);
    let uri = format!("http://{}", deaf.local_addr().unwrap());
    let mut running = start_on(&terminal, "xterm", submitter.submit(&uri, false));
    terminal.until("waiting for the server's answer for");
    interrupt(&running);
    terminal.until("is taken back");
    interrupt(&running);
    assert_eq!(running.wait().unwrap().code(), Some(130));
    let seen = terminal.seen(&terminal.until_closed()).join("");
    assert!(
        seen.ends_with("Stopping: no pod was created; everything that was begun is taken back"),
        "{seen}"
    );
}

#[test]
fn a_terminal_shows_that_a_server_is_waited_for_and_ctrl_c_ends_it() {
    let (submitter, port) = (Submitter::new(), ReservedPort::new());
    let terminal = Terminal::new(100);
    let uri = format!("http://{}", port.address());
    let mut running = start_on(&terminal, "xterm", submitter.submit(&uri, false));
    let written = terminal.until("waiting for the staging server");
    let seen = terminal.seen(&written).pop().unwrap();
    assert!(seen.contains("jars waiting for the staging server") && !seen.contains("B/s"), "{seen}");
    interrupt(&running);
    assert_eq!(running.wait().unwrap().code(), Some(130));
    let seen = terminal.seen(&terminal.until_closed()).concat();
    let told = format!("{uri} does not answer (connection refused): waiting up to 30s for it");
    assert_eq!(seen.matches(&told).count(), 1, "{seen}");
    assert!(seen.ends_with("before the application was submitted (nothing is left on the server)"), "{seen}");
    assert!(!seen.contains("waiting for the staging server"), "a line is left: {seen}");
}

#[test]
fn a_terminal_has_one_line_that_says_how_the_application_is() {
    let submitter = Submitter::new();
    let server = submitter.server();
    let terminal = Terminal::new(100);
    let mut running = start_on(&terminal, "xterm", submitter.submit(&server.url(""), true));
    submitter.play(|what| {
        terminal.until(match what {
            "Pending" => "Pending for 00:00:0",
            "Running" => "Running for 00:00:0",
            _ => ", 2 executors",
        });
    });
    assert_eq!(running.wait().unwrap().code(), Some(0));
    let written = terminal.until_closed();
    let seen = terminal.seen(&written);
    let said = seen.join("\n");
    assert!(!written.contains("Application status for"), "{said}");
    let announced = format!("staging 1 file, 32 MiB, to {}\n", server.url(""));
    for line in
        [&announced, "Staged the jars, ", "Staged the files, ", "phase: Running", "Container final statuses"]
    {
        assert_eq!(said.matches(line).count(), 1, "{line}: {said}");
    }
    for drawn in ["for 00:00", "s left", "waiting for the server"] {
        assert!(!said.contains(drawn), "{drawn} is left: {said}");
    }
    assert!(seen.last().unwrap().ends_with(" finished"), "{said}");
}

#[test]
fn whoever_is_no_terminal_reads_plain_lines() {
    let submitter = Submitter::new();
    let server = submitter.server();
    let mut command = submitter.submit(&server.url(""), true);
    let mut running = command.env("TERM", "xterm").stderr(Stdio::piped()).spawn().unwrap();
    let said = RefCell::new(running.stderr.take().unwrap());
    let text = RefCell::new(String::new());
    submitter.play(|what| {
        let needle = if what == "executors" { "phase: Running" } else { what };
        text.borrow_mut().push_str(&read_until(&mut *said.borrow_mut(), needle));
    });
    said.into_inner().read_to_string(&mut text.borrow_mut()).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(0));
    assert_is_plain(&text.into_inner());
}

#[test]
fn a_terminal_that_cannot_go_back_in_a_line_has_plain_lines() {
    let submitter = Submitter::new();
    let server = submitter.server();
    let terminal = Terminal::new(100);
    let mut running = start_on(&terminal, "dumb", submitter.submit(&server.url(""), true));
    submitter.play(|what| {
        terminal.until(if what == "executors" { "phase: Running)" } else { what });
    });
    assert_eq!(running.wait().unwrap().code(), Some(0));
    assert_is_plain(&terminal.until_closed().replace("\r\n", "\n"));
}
