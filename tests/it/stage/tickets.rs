//! Where the ticket goes.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Stdio;

use cloakroom_testing::process::{stderr, with_closed_stdout};
use cloakroom_testing::scripted::{Answer, Scripted};

use super::{SECRET, Stager, output, take};

#[tokio::test(flavor = "multi_thread")]
async fn the_ticket_is_all_that_stands_on_stdout() {
    let stager = Stager::with_file(2_000_000);
    let server = Scripted::start(|_, _| take()).await;
    let mut command = stager.stage(&server.url());
    command.args([
        "--label",
        "example.com/role=driver",
        "--name",
        "driver",
        "--ttl",
        "2h",
        "--unused-timeout",
        "90m",
    ]);
    let output = output(command).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(printed.lines().count(), 1);
    let json: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(json["resourceSecret"], SECRET);
    assert_eq!(json["somethingNew"], true, "the server's own object is printed");
    assert!(!stderr(&output).contains(SECRET), "{}", stderr(&output));
    let request = &server.requests()[0];
    assert_eq!(request.method, "POST");
    assert_eq!(
        request.target,
        "/api/v1/resources?namespace=demo&kind=Pod&label=app%3Ddemo&label=example.com%2Frole%3Ddriver&ttl=2h&unusedTimeout=90m&name=driver"
    );
    assert_eq!(request.header("transfer-encoding"), Some("chunked"));
    assert_eq!(request.header("authorization"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_that_nobody_can_have_is_released() {
    let stager = Stager::with_file(1000);
    let server =
        Scripted::start(
            |_, request| {
                if request.method == "DELETE" { Answer::new(204, "").into() } else { take() }
            },
        )
        .await;
    let mut command = stager.stage(&server.url());
    command.stdout(Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap()));
    let output = output(command).await;
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot be printed on stdout; what was staged is released again"), "{said}");
    assert_eq!(server.requests().last().unwrap().method, "DELETE");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_in_a_file_is_for_its_owner_alone_and_complete() {
    let stager = Stager::with_file(1000);
    let server = Scripted::start(|_, _| take()).await;
    let ticket = stager.path("ticket.json");
    // An earlier one stays until there is another, and its mode does not count.
    std::fs::write(&ticket, "earlier").unwrap();
    std::fs::set_permissions(&ticket, Permissions::from_mode(0o644)).unwrap();
    let to = |path: &Path| {
        let mut command = stager.stage(&server.url());
        command.arg("--ticket-to").arg(path);
        command
    };
    let staged = output(to(&ticket)).await;
    assert!(staged.status.success() && staged.stdout.is_empty(), "{}", stderr(&staged));
    let text = std::fs::read_to_string(&ticket).unwrap();
    assert!(text.ends_with("}\n") && text.contains("resourceSecret"), "{text}");
    assert_eq!(ticket.metadata().unwrap().mode() & 0o777, 0o600);
    let asked = server.requests().len();
    let mut failing = to(&ticket);
    failing.arg(stager.path("none.jar"));
    assert_eq!(output(failing).await.status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(&ticket).unwrap(), text, "a failure leaves the earlier one");
    for path in [stager.path("none/ticket.json"), stager.path("")] {
        let refused = output(to(&path)).await;
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(
            said.contains(&format!("--ticket-to names {}, which cannot be written", path.display())),
            "{said}"
        );
    }
    assert_eq!(server.requests().len(), asked, "nothing was sent");
    let names = std::fs::read_dir(stager.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names.into_iter().any(|name| name.to_string_lossy().starts_with('.')), "nothing is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_stdout_is_refused_before_anything_is_sent() {
    let stager = Stager::with_file(1000);
    let server = Scripted::start(|_, _| take()).await;
    let refused = output(with_closed_stdout(&stager.stage(&server.url()))).await;
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.starts_with("error: stdout is closed, ") && server.requests().is_empty(), "{said}");
    let mut discarded = stager.stage(&server.url());
    discarded.stdout(Stdio::from(std::fs::File::options().write(true).open("/dev/null").unwrap()));
    let discarded = output(discarded).await;
    assert!(discarded.status.success(), "{}", stderr(&discarded));
}
