//! Clients whose server is replaced: the real binaries, a server that goes and comes back at its address with its data.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::front::{Front, STOPPING, Turn};
use cloakroom_testing::noise::noise;
use cloakroom_testing::port::ReservedPort;
use cloakroom_testing::process::{Cloakroom, command, read_until, stderr};
use cloakroom_testing::workspace::Workspace;

/// More than a connection takes that is held after a little of it.
const LARGE: usize = 8 << 20;
const A_LITTLE: usize = 1 << 20;

/// A machine with a large file, and the data directory of a server.
struct Client {
    folder: Workspace,
}

impl Client {
    fn new() -> Self {
        let folder = Workspace::new();
        folder.write("app.jar", noise(LARGE));
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    fn serve(&self, address: SocketAddr) -> Cloakroom {
        Cloakroom::serve_at(address, &self.path("server"), &[])
    }

    /// On a free port.
    fn serve_anywhere(&self) -> (Cloakroom, SocketAddr) {
        let server = Cloakroom::serve(&self.path("server"), &[]);
        let address = server.address.parse().unwrap();
        (server, address)
    }

    fn stage(&self, server: &str) -> Command {
        let mut command = command();
        command.args(["stage", "--server", server, "--namespace", "demo", "--label", "app=demo"]);
        command.arg(self.path("app.jar"));
        command
    }

    fn fetch(&self, server: &str, ticket: &Ticket, to: &str) -> Command {
        std::fs::write(self.path("secret"), &ticket.resource_secret).unwrap();
        let mut command = command();
        command.args(["fetch", "--server", server, "--id", &ticket.resource_id, "--secret-file"]);
        command.arg(self.path("secret")).arg("--to").arg(self.path(to));
        command
    }

    /// What the ticket is for is what was staged.
    fn assert_staged(&self, server: &str, output: &Output) {
        assert!(output.status.success(), "{}", stderr(output));
        let ticket = serde_json::from_slice(&output.stdout).unwrap();
        let fetched = self.fetch(server, &ticket, "staged").output().unwrap();
        assert!(fetched.status.success(), "{}", stderr(&fetched));
        self.assert_fetched("staged");
    }

    fn assert_fetched(&self, to: &str) {
        let fetched = std::fs::read(self.path(to).join("app.jar")).unwrap();
        assert!(fetched == std::fs::read(self.path("app.jar")).unwrap(), "other bytes");
    }
}

/// A client under way.
struct Running {
    child: Child,
    told: ChildStderr,
    said: String,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let told = child.stderr.take().unwrap();
        Self { child, told, said: String::new() }
    }

    fn until(&mut self, needle: &str) {
        self.said += &read_until(&mut self.told, needle);
    }

    fn end(mut self) -> Output {
        self.told.read_to_string(&mut self.said).unwrap();
        let mut output = self.child.wait_with_output().unwrap();
        output.stderr = self.said.into_bytes();
        output
    }
}

fn count(output: &Output, needle: &str) -> usize {
    stderr(output).matches(needle).count()
}

/// How many lines the client printed. On a busy machine it meets a server once more while that starts, which is no part of
/// these counts.
fn lines(output: &Output) -> usize {
    stderr(output).lines().filter(|line| !line.contains("this server is starting")).count()
}

#[test]
fn a_server_that_is_away_when_stage_begins_is_waited_for() {
    let (client, port) = (Client::new(), ReservedPort::new());
    let url = format!("http://{}", port.address());
    let mut staging = Running::start(client.stage(&url));
    let waiting = format!(
        "the staging server at {url} does not answer (connection refused): waiting up to 30s for it\n"
    );
    staging.until(&waiting);
    let _server = client.serve(port.address());
    let output = staging.end();
    client.assert_staged(&url, &output);
    assert_eq!(lines(&output), 3, "{}", stderr(&output));
    assert_eq!(count(&output, &waiting), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_cut_off_with_its_server_is_made_again_with_the_next_one() {
    let client = Client::new();
    let (server, address) = client.serve_anywhere();
    let uploads = AtomicUsize::new(0);
    let front = Front::before(address, move |request| {
        let is_first = request.starts_with("POST") && uploads.fetch_add(1, Ordering::Relaxed) == 0;
        if is_first { Turn::Hold { after: A_LITTLE } } else { Turn::Pass }
    });
    let url = front.url();
    let mut staging = Running::start(client.stage(&url));
    front.holds().await;
    tokio::task::spawn_blocking(move || {
        server.kill();
        front.let_go();
        staging.until("trying again for up to 30s\n");
        let _server = client.serve(address);
        let output = staging.end();
        client.assert_staged(&url, &output);
        assert_eq!(count(&output, "the connection broke after "), 1, "{}", stderr(&output));
        assert_eq!(lines(&output), 3, "{}", stderr(&output));
    })
    .await
    .unwrap();
}

#[test]
fn a_server_that_is_about_to_stop_is_asked_again_and_that_is_said_once() {
    let client = Client::new();
    let (_server, address) = client.serve_anywhere();
    let asked = AtomicUsize::new(0);
    let front = Front::before(address, move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0..=2 => STOPPING,
        _ => Turn::Pass,
    });
    let output = client.stage(&front.url()).output().unwrap();
    client.assert_staged(&front.url(), &output);
    let told = format!(
        "the staging server at {} is being replaced (503 shutting-down): trying again for up to 2m\n",
        front.url()
    );
    assert_eq!(count(&output, &told), 1, "{}", stderr(&output));
    assert_eq!(lines(&output), 3, "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_goes_on_where_it_stopped_when_its_server_is_replaced() {
    let client = Client::new();
    let (server, address) = client.serve_anywhere();
    let staged = client.stage(&server.url("")).output().unwrap();
    let ticket: Ticket = serde_json::from_slice(&staged.stdout).unwrap();
    let downloads = AtomicUsize::new(0);
    let front = Front::before(address, move |_| match downloads.fetch_add(1, Ordering::Relaxed) {
        0 => Turn::Hold { after: A_LITTLE },
        1 => STOPPING,
        _ => Turn::Pass,
    });
    let mut fetching = Running::start(client.fetch(&front.url(), &ticket, "jars"));
    front.holds().await;
    tokio::task::spawn_blocking(move || {
        server.kill();
        front.let_go();
        fetching.until("the connection broke (");
        let _server = client.serve(address);
        let output = fetching.end();
        assert!(output.status.success(), "{}", stderr(&output));
        client.assert_fetched("jars");
        assert_eq!(
            count(&output, "(503 shutting-down); trying again for up to 5m in all\n"),
            1,
            "{}",
            stderr(&output)
        );
        assert!(front.passed_bytes() < LARGE + LARGE / 8, "{} bytes came", front.passed_bytes());
    })
    .await
    .unwrap();
}

#[test]
fn a_fetch_that_begins_while_its_server_is_away_waits_for_it() {
    let (client, port) = (Client::new(), ReservedPort::new());
    let url = format!("http://{}", port.address());
    let server = client.serve(port.address());
    let staged = client.stage(&url).output().unwrap();
    let ticket: Ticket = serde_json::from_slice(&staged.stdout).unwrap();
    server.kill();
    let mut fetching = Running::start(client.fetch(&url, &ticket, "jars"));
    fetching.until("connection refused; trying again for up to 5m in all\n");
    let _server = client.serve(port.address());
    let output = fetching.end();
    assert!(output.status.success(), "{}", stderr(&output));
    client.assert_fetched("jars");
}
