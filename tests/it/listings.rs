//! The order and the width of what `cloakroom ls` and `rm` list.

use std::time::Duration;

use cloakroom_testing::process::stderr;
use cloakroom_testing::terminal::Terminal;

use crate::admin_commands::{command, output, run, stdout};
use crate::served::Served;

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_what_goes_and_what_went_have_the_oldest_first() {
    let mut server = Served::start();
    let mut staged = Vec::new();
    for _ in 0..4 {
        staged.push(server.stage_for("demo", "Pod", "x").await.resource_id);
        server.grow_older(Duration::from_mins(1)).await;
    }
    let ids = |text: String, row: &str| {
        let rows = text.lines().filter(|line| line.contains(row)).map(str::to_owned);
        rows.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let gone: Vec<&str> = [2, 0, 3].map(|index| &*staged[index]).into();
    for id in &gone[..2] {
        run(&server, &["rm", "-y", id]).await;
        server.grow_older(Duration::from_mins(1)).await;
    }
    // What is left is listed by age before it goes, and goes in this order.
    let removed = run(&server, &["rm", "-y", "-n", "demo"]).await;
    assert_eq!(ids(stderr(&removed), "Pod/app=x"), [&*staged[1], &staged[3]]);
    assert_eq!(ids(stdout(&removed), " removed"), [&*staged[1], &staged[3]]);
    let staged_first = stdout(&run(&server, &["ls", "--deleted"]).await);
    assert_eq!(ids(staged_first, "removed"), staged);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_on_a_narrow_terminal_has_no_line_that_is_longer() {
    let server = Served::start();
    server.stage_for(&"n".repeat(63), "Deployment", &"x".repeat(63)).await;
    for columns in [40, 59, 70] {
        let terminal = Terminal::new(columns);
        let mut ls = command(&server.url(""), &server.tokens, &["ls"]);
        ls.stdout(terminal.end());
        assert!(output(ls).await.status.success());
        let seen = terminal.until_closed();
        assert!(seen.starts_with("ID ") && seen.contains('…'), "{seen}");
        let longest = seen.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(usize::from(columns)), "{columns}: {seen}");
    }
}
