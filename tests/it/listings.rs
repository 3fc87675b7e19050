//! The width of what `cloakroom ls` lists.

use crate::admin::Administered;
use crate::admin_commands::{command, output};
use crate::support::terminal::Terminal;

#[tokio::test(flavor = "multi_thread")]
async fn a_list_on_a_narrow_terminal_has_no_line_that_is_longer() {
    let server = Administered::start().await;
    server.stage(&"n".repeat(63), "Deployment", &"x".repeat(63)).await;
    for columns in [40, 59, 70] {
        let terminal = Terminal::new(columns);
        let mut ls = command(&server.app.url(""), &server.tokens, &["ls"]);
        ls.stdout(terminal.end());
        assert!(output(ls).await.status.success());
        let seen = terminal.until_closed();
        assert!(seen.starts_with("ID ") && seen.contains("GOES"), "{seen}");
        let longest = seen.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(usize::from(columns)), "{columns}: {seen}");
    }
}
