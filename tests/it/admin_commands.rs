//! `cloakroom ls`, `show`, `rm` and `clean`, with the real binary.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use cloakroom_testing::process::{self, Cloakroom, stderr};
use cloakroom_testing::scripted::{Answer, Scripted, closed_port};
use cloakroom_testing::wait::until_true;
use cloakroom_testing::wire::ask;
use serde_json::Value;

use crate::served::{Served, TOKEN};

/// A command of an admin at `url`.
pub fn command(url: &str, tokens: &Path, args: &[&str]) -> Command {
    let mut command = process::command();
    command.args(args).args(["--admin-url", url, "--admin-token-file"]).arg(tokens);
    command
}

/// Runs it for this server.
pub async fn run(server: &Served, args: &[&str]) -> Output {
    output(command(&server.url(""), &server.tokens, args)).await
}

pub async fn output(mut command: Command) -> Output {
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    for text in [&output.stdout, &output.stderr] {
        assert!(!String::from_utf8_lossy(text).contains(TOKEN), "the token was printed");
    }
    output
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A server without resources, which says this of itself.
async fn saying(status: String) -> Scripted {
    Scripted::start(move |_, request| {
        let body = if request.target.ends_with("/status") {
            status.as_str()
        } else {
            r#"{"now":"2026-01-01T12:03:00Z","resources":[]}"#
        };
        Answer::new(200, body).header("content-type", "application/json").into()
    })
    .await
}

/// What `ls` says of such a server.
async fn listed(server: &Scripted) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, TOKEN).unwrap();
    output(command(&server.url(), &tokens, &["ls"])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_totals_name_the_limits() {
    let status = |share| {
        let limits = format!(
            r#"{{"maxResourceSize":1,"maxTotalSize":1048576,"minFreeSpace":0,"maxResources":8,{share}
                "maxConcurrentUploads":1,"maxConcurrentDownloads":1}}"#
        );
        format!(
            r#"{{"version":"1","now":"2026-01-01T12:03:00Z","ownersAsked":false,"storedBytes":0,"watches":[],
                "limits":{limits},"uploadsInFlight":0,"downloadsInFlight":0}}"#
        )
    };
    for (share, says) in [("", ""), (r#""sharePercent":25,"#, "; 25% of everything for one namespace")] {
        let listed = stderr(&listed(&saying(status(share)).await).await);
        assert!(listed.contains("0 B stored in all of 1 MiB"), "{listed}");
        assert!(listed.ends_with(&format!("; 8 resources at most{says}\n")), "{listed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_a_table_whose_columns_awk_can_count() {
    let mut server = Served::start();
    let old = server.stage_for("demo", "Pod", "x").await;
    server.use_once(&old).await;
    server.grow_older(Duration::from_mins(7)).await;
    let young = server.stage_for("team-a", "Job", "y").await;
    let listed = run(&server, &["ls"]).await;
    assert_eq!(listed.status.code(), Some(0), "{}", stderr(&listed));
    let text = stdout(&listed);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["ID", "NAMESPACE", "OWNER", "SIZE", "AGE", "USED", "BY", "KEPT", "GOES"]);
    assert_eq!(
        lines[1],
        [
            &old.resource_id,
            "demo",
            "Pod/app=x",
            "4B",
            "7m",
            "7m",
            "127.0.0.1",
            "owners-not-asked",
            "by",
            "hand"
        ]
    );
    let seconds = lines[2][4];
    assert!(seconds.ends_with('s'), "{seconds}");
    assert_eq!(
        lines[2],
        [
            &young.resource_id,
            "team-a",
            "Job/app=y",
            "4B",
            seconds,
            "never",
            "127.0.0.1",
            "not-used-yet",
            "in",
            "30m"
        ]
    );
    assert_eq!(lines.len(), 3, "totals are not in the table");
    assert!(
        stderr(&listed).starts_with("2 resources, 8 B, 1 never downloaded; 8 KiB stored in all"),
        "{}",
        stderr(&listed)
    );
    let filtered =
        stdout(&run(&server, &["ls", "--unused", "--label", "app=y", "--kind", "Job", "-n", "team-a"]).await);
    assert_eq!(filtered.lines().count(), 2);
    let none = run(&server, &["ls", "--older-than", "1d"]).await;
    assert!(none.stdout.is_empty() && stderr(&none).starts_with("0 resources, 0 B;"), "{}", stderr(&none));
    assert!(stderr(&none).ends_with("\nno staged resource matches these filters\n"), "{}", stderr(&none));
    let wrong = run(&server, &["ls", "--why", "nonsense"]).await;
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("[possible values: owner-present, "), "{}", stderr(&wrong));
}

#[tokio::test(flavor = "multi_thread")]
async fn json_has_what_the_server_said() {
    let server = Served::start();
    let ticket = server.stage_for("demo", "Pod", "x").await;
    let listed = run(&server, &["ls", "-o", "json"]).await;
    assert!(stderr(&listed).is_empty());
    let list = json(&listed);
    assert_eq!(list["resources"][0]["resourceId"], ticket.resource_id);
    assert_eq!(list["resources"][0]["owner"]["labels"]["app"], "x");
    assert_eq!(list["server"]["ownersAsked"], false);
    let shown = json(&run(&server, &["show", "-o", "json", &ticket.resource_id]).await);
    assert_eq!((&shown["sha256"], &shown["keptBecause"]), (&ticket.sha256.into(), &"not-used-yet".into()));
    let swept = json(&run(&server, &["clean", "-o", "json"]).await);
    assert_eq!(swept["kept"]["not-used-yet"], 1);
    let removed = json(&run(&server, &["rm", "-y", "-o", "json", &ticket.resource_id]).await);
    assert_eq!((&removed["freedBytes"], &removed["resources"][0]["outcome"]), (&4.into(), &"removed".into()));
    let again = json(&run(&server, &["rm", "-y", "-o", "json", &ticket.resource_id]).await);
    assert_eq!(again["resources"][0]["outcome"], "gone-already");
    assert_eq!(again["resources"][0]["deletionReason"], "removed");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_resource_is_shown_with_the_reason_in_a_sentence() {
    let server = Served::start();
    let ticket = server.stage_for("demo", "Pod", "x").await;
    let shown = stdout(&run(&server, &["show", &ticket.resource_id]).await);
    for line in [
        "owner       Pod/app=x in namespace demo",
        "file name   deps.tgz",
        "kept        because it was never downloaded, and its unused timeout is not over (not-used-yet)",
    ] {
        assert!(shown.lines().any(|found| found == line), "{line}\n{shown}");
    }
    let goes = shown.lines().find(|line| line.starts_with("goes        at 20")).expect(&shown);
    assert!(goes.ends_with("Z (in 30m), unless it is downloaded before or its owner comes"), "{goes}");
    assert!(!shown.contains(&ticket.resource_secret));
    let unknown = run(&server, &["show", "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1"]).await;
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("there is no resource with this id"), "{}", stderr(&unknown));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_are_removed_and_a_failure_does_not_spare_the_rest() {
    let server = Served::start();
    let (first, second) =
        (server.stage_for("demo", "Pod", "x").await, server.stage_for("demo", "Pod", "y").await);
    let unknown = "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1";
    let ids = [&*first.resource_id, unknown, &*second.resource_id, &*first.resource_id];
    let unasked = run(&server, &[&["rm"], &ids[..]].concat()).await;
    assert_eq!(unasked.status.code(), Some(2));
    assert!(stderr(&unasked).contains("give --yes"), "{}", stderr(&unasked));
    assert!(server.has(&first).await && server.has(&second).await);
    let removed = run(&server, &[&["rm", "--yes"], &ids[..]].concat()).await;
    assert_eq!(removed.status.code(), Some(1));
    let expected = format!(
        "{0} removed, 4 B\n{1} removed, 4 B\n{0} was gone already (removed)\n",
        first.resource_id, second.resource_id
    );
    assert_eq!(stdout(&removed), expected);
    let said = stderr(&removed);
    assert!(said.contains(unknown) && said.contains("1 of 4 resources could not be removed"), "{said}");
    let gone = server.download(&second).send().await.unwrap();
    assert_eq!(gone.status(), 410);
    let gone: Value = serde_json::from_str(&gone.text().await.unwrap()).unwrap();
    assert_eq!(gone["deletionReason"], "removed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_filters_mean_is_shown_and_removed_and_nothing_else() {
    let server = Served::start();
    let (used, unused) =
        (server.stage_for("demo", "Pod", "x").await, server.stage_for("demo", "Pod", "x").await);
    let elsewhere = server.stage_for("team-a", "Pod", "x").await;
    server.use_once(&used).await;
    let removed = run(&server, &["rm", "-y", "--namespace", "demo", "--unused"]).await;
    assert_eq!(removed.status.code(), Some(0), "{}", stderr(&removed));
    assert_eq!(stdout(&removed), format!("{} removed, 4 B\n", unused.resource_id));
    assert!(stderr(&removed).contains(&format!("{}  demo ", unused.resource_id)), "{}", stderr(&removed));
    assert!(stderr(&removed).contains("\n1 resource, 4 B\n"), "{}", stderr(&removed));
    for kept in [&used, &elsewhere] {
        assert!(server.has(kept).await);
    }
    let nothing = run(&server, &["rm", "-y", "--namespace", "nowhere"]).await;
    assert_eq!(nothing.status.code(), Some(0));
    assert!(stderr(&nothing).contains("no staged resource matches"), "{}", stderr(&nothing));
    for command in ["ls", "rm"] {
        let none = run(&server, &[command, "-n", "Demo"]).await;
        assert_eq!(none.status.code(), Some(2));
        assert!(stderr(&none).contains("“Demo” is not a Kubernetes namespace"), "{}", stderr(&none));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_is_told() {
    let server = Served::start();
    server.put("namespace=demo&label=app%3Dx&unusedTimeout=1ms", "jars").await;
    let staged = Instant::now();
    server.stage_for("demo", "Pod", "x").await;
    until_true("the unused timeout is over", || staged.elapsed() > Duration::from_millis(1)).await;
    let swept = run(&server, &["clean"]).await;
    assert_eq!(stdout(&swept), "deleted 1: 1 unused\nkept 1: 1 not-used-yet\n", "{}", stderr(&swept));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_work_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let off = Cloakroom::serve_at(everywhere, &folder.path().join("off"), &["--upload-auth", "none"]);
    let port = off.address.rsplit_once(':').unwrap().1;
    std::fs::write(&tokens, "another-horse-battery\n").unwrap();
    let server = Served::start();
    let foreign =
        Scripted::start(|_, _| Answer::new(200, "<html>").header("content-type", "text/html").into()).await;
    let nobody = format!("http://127.0.0.1:{}", closed_port());
    for (url, says) in [
        (
            nobody.as_str(),
            "connection refused; check that it runs, and that this is its --ops-listen address",
        ),
        (
            &format!("http://127.0.0.1:{port}"),
            "start it with --admin-token-file FILE to turn them on (403 admin-off)",
        ),
        (&server.url(""), "this is not an admin token of this server"),
        (&foreign.url(), "the server there is not a cloakroom server; check that it runs"),
        (&server.url("/somewhere"), "--ops-listen address (--admin-url)"),
        ("http://staging.example:10001", "the admin token would travel unencrypted"),
    ] {
        for args in [&["ls"][..], &["clean"], &["show", "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1"]] {
            let failed = output(command(url, &tokens, args)).await;
            assert_eq!(failed.status.code(), Some(1), "{url} {args:?}");
            assert!(stderr(&failed).contains(says), "{url} {args:?}: {}", stderr(&failed));
            assert!(failed.stdout.is_empty());
        }
    }
    for args in [&["ls"][..], &["ls", "--admin-url", "https://staging.example"]] {
        let missing = process::command().args(args).current_dir(&folder).output().unwrap();
        assert_eq!(missing.status.code(), Some(2));
        let says = "and none is given. For the server in a cluster, this needs nothing else: kubectl exec -n cloakroom \
             deploy/cloakroom -- cloakroom ls.";
        assert!(stderr(&missing).contains(says), "{}", stderr(&missing));
    }
    for args in [
        &["rm", "-y"][..],
        &["rm", "-y", "x"],
        &["show"],
        &["ls", "-o", "xml"],
        &["ls", "--deleted", "-l", "a=b"],
    ] {
        assert_eq!(process::run(args).status.code(), Some(2), "{args:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_an_operational_listener_the_admin_is_served_there_alone() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, format!("{TOKEN}\n")).unwrap();
    let mut serve = process::command();
    serve.args(["serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--min-free-space", "0b"]);
    serve.arg("--data-dir").arg(folder.path().join("data")).env("CLOAKROOM_ADMIN_TOKEN_FILE", &tokens);
    let mut server = Cloakroom::start(serve);
    let line = server.wait_for_log("health checks are on http://");
    let operations = line.rsplit_once("://").unwrap().1.trim().trim_end_matches("\u{1b}[0m").to_owned();
    let request =
        format!("GET /admin/v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    assert_eq!(ask(server.address.parse().unwrap(), &request).await.status, 404);
    assert_eq!(ask(operations.parse().unwrap(), &request).await.status, 200);

    let by_environment = |args: &[&str]| {
        let mut command = process::command();
        command.args(args).env("CLOAKROOM_ADMIN_TOKEN_FILE", &tokens);
        command.env("CLOAKROOM_ADMIN_URL", format!("http://{operations}"));
        command
    };
    let staged = process::command()
        .args(["stage", "-q", "--namespace", "demo", "--label", "app=x", "--server", &server.url("")])
        .arg(&tokens)
        .output()
        .unwrap();
    let ticket: Value = serde_json::from_slice(&staged.stdout).unwrap();
    let id = ticket["resourceId"].as_str().unwrap();
    let listed = output(by_environment(&["ls"])).await;
    assert!(stdout(&listed).contains(id), "{}{}", stdout(&listed), stderr(&listed));
    let removed = output(by_environment(&["rm", "--yes", id])).await;
    assert_eq!(removed.status.code(), Some(0), "{}", stderr(&removed));
    let log = server.wait_for_log("removed by the admin");
    assert!(log.contains(id), "{log}");
    assert!(!server.log().contains(TOKEN));
    server.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_that_do_not_know_are_told_below_the_list() {
    let status = r#"{"version":"1","now":"2026-01-01T12:03:00Z","ownersAsked":true,"storedBytes":0,
        "watches":[{"kind":"Pod","unfinishedOnly":false,"state":"forbidden","since":"2026-01-01T12:00:00Z","lastFailure":"403: no\u001b[31m"}],
        "limits":{"maxResourceSize":1,"minFreeSpace":0,"maxConcurrentUploads":1,"maxConcurrentDownloads":1},
        "uploadsInFlight":0,"downloadsInFlight":0,"somethingNew":1}"#;
    let server = saying(status.to_owned()).await;
    let listed = listed(&server).await;
    assert_eq!(listed.status.code(), Some(0), "{}", stderr(&listed));
    let expected = "warning: the watch of owners of kind Pod has been forbidden for 3m, so their resources stay: 403: no\u{fffd}[31m\n";
    assert!(stderr(&listed).ends_with(expected), "{}", stderr(&listed));
    assert_eq!(server.requests()[0].header("authorization"), Some(&*format!("Bearer {TOKEN}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_listed_by_its_id_and_removed_by_it() {
    let mut server = Served::start();
    let (known, unknown) =
        (server.stage_for("demo", "Pod", "x").await, server.stage_for("demo", "Pod", "y").await);
    let change = |id, change| format!("UPDATE resources SET {change} WHERE id = '{id}'");
    server
        .change_ledger(&[
            change(&known.resource_id, "owner_labels = 'none'"),
            change(&unknown.resource_id, "size_bytes = 9223372036854775807"),
        ])
        .await;
    let listed = run(&server, &["ls"]).await;
    for part in [
        format!("{} (owner_labels; namespace demo; 4 B)", known.resource_id),
        format!("{} (size_bytes; namespace demo)", unknown.resource_id),
        "(cloakroom rm ID): ".to_owned(),
    ] {
        assert!(stderr(&listed).contains(&part), "no “{part}” in: {}", stderr(&listed));
    }
    let shown = run(&server, &["show", &known.resource_id]).await;
    assert_eq!((shown.status.code(), stdout(&shown)), (Some(1), String::new()));
    let cannot = format!("cannot read what the ledger has of resource {} (owner_labels)", known.resource_id);
    for part in [cannot.as_str(), "cloakroom rm"] {
        assert!(stderr(&shown).contains(part), "no “{part}” in: {}", stderr(&shown));
    }
    let removed = run(&server, &["rm", "-y", &known.resource_id, &unknown.resource_id]).await;
    assert_eq!(removed.status.code(), Some(0), "{}", stderr(&removed));
    let lines = [format!("{} removed, 4 B", known.resource_id), format!("{} removed", unknown.resource_id)];
    assert_eq!(stdout(&removed).lines().collect::<Vec<_>>(), lines);
    assert!(!stderr(&run(&server, &["ls"]).await).contains("warning"));
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_ids_are_counted_and_their_strays_go_by_clean() {
    let mut server = Served::start();
    let ticket = server.stage_for("demo", "Pod", "x").await;
    server
        .change_ledger(&[format!("UPDATE resources SET id = 'no id' WHERE id = '{}'", ticket.resource_id)])
        .await;
    let listed = run(&server, &["ls"]).await;
    for part in [
        "warning: the ids of 1 resource in the server's ledger are damaged",
        "warning: 1 bundle, 4 KiB in all, without a resource",
    ] {
        assert!(stderr(&listed).contains(part), "no “{part}” in: {}", stderr(&listed));
    }
    assert_eq!(run(&server, &["clean", "--strays"]).await.status.code(), Some(0));
    let listed = run(&server, &["ls"]).await;
    assert!(!stderr(&listed).contains("1 bundle"), "{}", stderr(&listed));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_beginning_of_an_id_names_a_resource_that_is_staged_or_was() {
    let server = Served::start();
    let (first, second) =
        (server.stage_for("demo", "Pod", "x").await, server.stage_for("demo", "Pod", "y").await);
    let beginning = |id: &str| id[..13].to_owned();
    let shown = run(&server, &["show", &beginning(&first.resource_id)]).await;
    assert!(
        stdout(&shown).starts_with(&format!("resource    {}\n", first.resource_id)),
        "{}",
        stderr(&shown)
    );
    let removed = run(&server, &["rm", "-y", &beginning(&first.resource_id)]).await;
    assert_eq!(stdout(&removed), format!("{} removed, 4 B\n", first.resource_id));
    let shown = run(&server, &["show", &beginning(&first.resource_id)]).await;
    assert!(stdout(&shown).contains("state       deleted\n"), "{}", stderr(&shown));
    // Nothing is removed where one of the names is none.
    let unknown = run(&server, &["rm", "-y", &second.resource_id, "0000-"]).await;
    assert_eq!(unknown.status.code(), Some(1));
    assert!(
        stderr(&unknown).contains("no resource has an id that begins with 0000-"),
        "{}",
        stderr(&unknown)
    );
    assert!(server.has(&second).await);
    // So many that two of them begin alike for certain: of 4 characters, the first is one of 16.
    let mut beginnings = std::collections::BTreeMap::new();
    let twin = loop {
        let id = server.stage_for("demo", "Pod", "z").await.resource_id;
        if let Some(twin) = beginnings.insert(id[..1].to_owned(), id.clone()) {
            break [id, twin];
        }
    };
    let page = server.ask_admin(&format!("/admin/v1/resources?id={}", &twin[0][..1])).await;
    let ids: Vec<&str> =
        page["resources"].as_array().unwrap().iter().map(|row| row["resourceId"].as_str().unwrap()).collect();
    assert!(twin.iter().all(|id| ids.contains(&id.as_str())), "{ids:?}");
    assert!(ids.iter().all(|id| id.starts_with(&twin[0][..1])), "{ids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_are_listed_with_when_and_why_and_summed_up_by_namespace() {
    let mut server = Served::start();
    let gone = server.stage_for("demo", "Pod", "x").await;
    server.stage_for("team-a", "Job", "y").await;
    run(&server, &["rm", "-y", &gone.resource_id]).await;
    server.grow_older(Duration::from_mins(7)).await;
    let deleted = run(&server, &["ls", "--deleted", "-n", "demo"]).await;
    let expected = format!(
        "ID                                    NAMESPACE  OWNER  SIZE  AGE  USED   DELETED  BECAUSE\n\
         {}  demo       Pod    4B    7m   never  7m       removed\n",
        gone.resource_id
    );
    assert_eq!(stdout(&deleted), expected, "{}", stderr(&deleted));
    assert_eq!(stderr(&deleted), "1 resource deleted in the last seven days, 4 B\n");
    let none = run(&server, &["ls", "--deleted", "-n", "team-a"]).await;
    assert!(none.stdout.is_empty(), "{}", stdout(&none));
    let hint = "\nno resource deleted in the last seven days matches these filters\n";
    assert!(stderr(&none).ends_with(hint), "{}", stderr(&none));
    let sums = run(&server, &["ls", "--by-namespace"]).await;
    let expected = "NAMESPACE  RESOURCES  SIZE  UNUSED  OLDEST\n\
                    team-a     1          4B    1       7m\n";
    assert_eq!(stdout(&sums), expected);
    let sums = json(&run(&server, &["ls", "--by-namespace", "-o", "json"]).await);
    assert_eq!(sums["namespaces"][0]["sizeBytes"], 4);
    let refused = run(&server, &["ls", "--kind", "pods"]).await;
    assert!(stderr(&refused).contains("did you mean Pod?"), "{}", stderr(&refused));
    let refused = server.ask_admin("/admin/v1/resources?deleted=true&why=due").await;
    assert_eq!(refused["code"], "invalid-parameter");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_default_server_serves_the_admin_on_its_one_listener() {
    let server = Served::start();
    assert_eq!(run(&server, &["ls"]).await.status.code(), Some(0));
}
