//! The program of the commit that `.ci/skew-from` names, and the present one: each as client, server and init-container of the
//! other, and on the other's data directory. It is what docs/versions.md promises.

mod data;
mod handed_over;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::needs::{Need, path, trial};
use cloakroom_testing::process::{Cloakroom, command, stderr};
use cloakroom_testing::workspace::Workspace;
use libtest_mimic::Trial;

const OLD_BINARY: &str = "CLOAKROOM_TEST_SKEW_BINARY";
const ADMIN_TOKEN: &str = "admin-horse-battery-staple";
const UPLOAD_TOKEN: &str = "a-token-that-is-long-enough";

macro_rules! trials {
    ($($test:path),+ $(,)?) => { vec![$(skew(concat!("skew::", stringify!($test)), $test)),+] };
}

pub fn trials() -> Vec<Trial> {
    let mut trials = trials![
        an_old_client_stages_and_fetches_at_a_new_server,
        a_new_client_stages_and_fetches_at_an_old_server,
        an_old_admin_looks_after_a_new_server,
        a_new_admin_looks_after_an_old_server,
        what_an_old_server_does_not_know_it_refuses_and_does_nothing_of,
        a_named_token_is_for_new_servers_and_new_clients,
        handed_over::an_init_container_of_any_version_fetches_what_stage_handed_over,
        handed_over::an_init_container_of_any_version_fetches_what_submit_handed_over,
        data::an_upgraded_server_goes_on_with_the_data_directory,
        data::a_server_that_goes_back_goes_on_or_refuses_a_newer_form,
        data::a_newer_form_is_refused_and_left_as_it_is,
    ];
    trials.push(trial(
        "skew::data::the_page_of_versions_names_the_form_of_the_ledger",
        &[],
        data::the_page_of_versions_names_the_form_of_the_ledger,
    ));
    trials
}

fn skew(name: &'static str, test: fn()) -> Trial {
    let what = "a cloakroom of the commit in .ci/skew-from (.ci/run builds it)";
    trial(name, &[Need::Path(OLD_BINARY, what)], test)
}

/// Which of the two programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    Old,
    New,
}

use Age::{New, Old};

impl Age {
    /// The program with a clean environment.
    fn command(self) -> Command {
        let mut command = match self {
            New => command(),
            Old => Command::new(path(OLD_BINARY)),
        };
        command.env_clear().stdin(Stdio::null());
        command
    }

    fn run(self, args: &[&str]) -> Output {
        self.command().args(args).output().unwrap()
    }

    fn serving(self, data: &Path, flags: &[&str]) -> Command {
        let mut command = self.command();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data).args(flags);
        command
    }
}

/// A folder with files to stage, and tokens.
struct TwoVersions(Workspace);

impl TwoVersions {
    fn new() -> Self {
        Self(Workspace::with(&[
            ("dep.jar", "a dependency"),
            ("data.txt", "data"),
            ("admin", ADMIN_TOKEN),
            ("upload", UPLOAD_TOKEN),
            ("named", "name=alice a-token-that-is-alices-own"),
        ]))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    fn text(&self, name: &str) -> String {
        self.0.text(name)
    }

    /// A server with an admin.
    fn serve(&self, age: Age, flags: &[&str]) -> Cloakroom {
        Cloakroom::start(self.serving(age, flags))
    }

    fn serving(&self, age: Age, flags: &[&str]) -> Command {
        let mut command = age.serving(&self.path("server"), flags);
        command.arg("--admin-token-file").arg(self.path("admin"));
        command
    }

    fn try_to_stage(&self, age: Age, server: &Cloakroom, flags: &[&str]) -> Output {
        let url = server.url("");
        let args = ["stage", "--server", &url, "--namespace", "demo", "--label", "app=demo"];
        age.run(&[&args, flags, &[&self.text("dep.jar"), &self.text("data.txt")]].concat())
    }

    fn stage(&self, age: Age, server: &Cloakroom, flags: &[&str]) -> Ticket {
        let output = self.try_to_stage(age, server, flags);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn try_to_fetch(&self, age: Age, url: &str, ticket: &Ticket, to: &str) -> Output {
        std::fs::write(self.path("secret"), &ticket.resource_secret).unwrap();
        let (secret, to) = (self.text("secret"), self.text(to));
        age.run(&[
            "fetch",
            "--server",
            url,
            "--id",
            &ticket.resource_id,
            "--secret-file",
            &secret,
            "--to",
            &to,
        ])
    }

    /// What `fetch` says of a success.
    fn fetch(&self, age: Age, url: &str, ticket: &Ticket, to: &str) -> String {
        let output = self.try_to_fetch(age, url, ticket, to);
        assert!(output.status.success(), "{}", stderr(&output));
        for name in ["dep.jar", "data.txt"] {
            let (sent, got) = (self.path(name), self.path(to).join(name));
            assert_eq!(std::fs::read(sent).unwrap(), std::fs::read(got).unwrap(), "{name}");
        }
        stderr(&output)
    }

    fn ask_as_admin(&self, age: Age, server: &Cloakroom, args: &[&str]) -> Output {
        let (url, token) = (server.url(""), self.text("admin"));
        age.run(&[args, &["--admin-url", &url, "--admin-token-file", &token]].concat())
    }

    /// What a command of the admin's prints.
    fn admin(&self, age: Age, server: &Cloakroom, args: &[&str]) -> String {
        let output = self.ask_as_admin(age, server, args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }
}

fn an_old_client_stages_and_fetches_at_a_new_server() {
    stages_and_fetches(Old, New);
}

fn a_new_client_stages_and_fetches_at_an_old_server() {
    stages_and_fetches(New, Old);
}

fn stages_and_fetches(client: Age, server: Age) {
    let versions = TwoVersions::new();
    let token = versions.text("upload");
    let server = versions.serve(server, &["--upload-auth", "token", "--upload-token-file", &token]);
    let ticket = versions.stage(client, &server, &["--ttl", "1h", "--token-file", &token]);
    let url = server.url("");
    assert!(versions.fetch(client, &url, &ticket, "to").contains("2 files, "));
    let refused = versions.try_to_stage(client, &server, &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("401"), "{}", stderr(&refused));
    let mut wrong = ticket.clone();
    "not-the-secret".clone_into(&mut wrong.resource_secret);
    let refused = versions.try_to_fetch(client, &url, &wrong, "elsewhere");
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("404"), "{}", stderr(&refused));
    server.kill();
    for age in [Old, New] {
        let second = versions.fetch(age, &url, &ticket, "to");
        assert!(second.contains("in place since an earlier run"), "{age:?} reads the receipt: {second}");
    }
}

fn an_old_admin_looks_after_a_new_server() {
    looks_after(Old, New);
}

fn a_new_admin_looks_after_an_old_server() {
    looks_after(New, Old);
}

fn looks_after(admin: Age, server: Age) {
    let versions = TwoVersions::new();
    let server = versions.serve(server, &[]);
    let [kept, removed] = [(); 2].map(|()| versions.stage(admin, &server, &[]).resource_id);
    for args in [&["ls"][..], &["ls", "-o", "json"], &["ls", "--namespace", "demo", "--unused"]] {
        let listed = versions.admin(admin, &server, args);
        assert!(listed.contains(&kept) && listed.contains(&removed), "{args:?}: {listed}");
    }
    let elsewhere = versions.admin(admin, &server, &["ls", "--namespace", "elsewhere"]);
    assert!(!elsewhere.contains(&kept), "{elsewhere}");
    let shown = versions.admin(admin, &server, &["show", &kept]);
    assert!(shown.contains("Pod/app=demo in namespace demo"), "{shown}");
    versions.admin(admin, &server, &["rm", "--yes", &removed]);
    let shown = versions.admin(admin, &server, &["show", &removed]);
    assert!(shown.contains("deleted") && shown.contains("removed"), "{shown}");
    let swept = versions.admin(admin, &server, &["clean"]);
    assert!(swept.contains("not-used-yet"), "{swept}");
    assert!(versions.admin(admin, &server, &["show", &kept]).contains("ready"));
}

fn what_an_old_server_does_not_know_it_refuses_and_does_nothing_of() {
    let versions = TwoVersions::new();
    let server = versions.serve(Old, &[]);
    let id = versions.stage(New, &server, &[]).resource_id;
    let beginning = &id[..8];
    for (args, parameter) in [
        (&["show", beginning][..], "id"),
        (&["rm", "--yes", &id, beginning], "id"),
        (&["ls", "--deleted"], "deleted"),
    ] {
        let refused = versions.ask_as_admin(New, &server, args);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains(&format!("parameter “{parameter}” is unknown")), "{args:?}: {said}");
        assert!(said.contains("the server is older than this program: write whole ids"), "{args:?}: {said}");
        assert!(refused.stdout.is_empty(), "{args:?}");
    }
    assert!(versions.admin(New, &server, &["show", &id]).contains("ready"), "nothing was removed");
}

/// Lines `name=NAME TOKEN` are newer than the old program, to which such a line is a token.
fn a_named_token_is_for_new_servers_and_new_clients() {
    let versions = TwoVersions::new();
    let named = versions.text("named");
    for (client, age, is_let_in) in [(New, New, true), (Old, New, false), (New, Old, false)] {
        let folder = versions.path(&format!("{client:?}-{age:?}"));
        let flags = ["--upload-auth", "token", "--upload-token-file", &named];
        let server = Cloakroom::start(age.serving(&folder, &flags));
        let staged = versions.try_to_stage(client, &server, &["--token-file", &named]);
        let said = stderr(&staged);
        assert_eq!(staged.status.success(), is_let_in, "{client:?} at {age:?}: {said}");
        assert!(is_let_in || said.contains("401"), "{client:?} at {age:?}: {said}");
        assert!(!said.contains("alices-own"), "{said}");
    }
}
