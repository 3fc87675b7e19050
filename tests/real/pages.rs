//! The commands of the pages, in their order, in a folder of their own, as a reader types them.

mod member;
mod rotation;

use cloakroom_testing::dist;
use cloakroom_testing::documentation::table::{By, TABLE};
use cloakroom_testing::documentation::{self, Block};
use cloakroom_testing::needs::{Need, trial};
use cloakroom_testing::page_shell::Terminal;
use libtest_mimic::Trial;

/// Starts a server where the page expects one, and shows what it said.
const SERVE: &str = "cloakroom serve >said 2>&1 & server=$!
trap 'kill $server; wait $server' EXIT
for look in $(seq 600); do grep -q 'serves on' said && break; sleep 0.1; done
grep INFO said";

/// What the reader of a page has before its first command.
const READERS: [(&str, &str); 8] = [
    ("docs/airflow.md", ":"),
    ("docs/api.md", "serve; head -c 300000 /dev/urandom >deps.tgz"),
    (
        "docs/clients.md",
        "serve; mkdir two; for jar in app two/app lib; do head -c 100000 /dev/urandom >$jar.jar; done
         mkdir -p project/.git project/build; cd project; printf 'build/\n*.log\n' >.gitignore
         echo 'print(1)' | tee main.py >build/x; touch run.sh a.log b.log; chmod +x run.sh; cd ..",
    ),
    ("docs/install.md", "ln -s $DIST/* .; PATH=~/.local/bin:$PATH"),
    (
        "docs/migrating.md",
        "printf 'spark.kubernetes.resourceStagingServer.%s\n' 'port 10001' 'initialAccessExpirationTimeout 45m' >server.properties",
    ),
    (
        "docs/administer.md",
        "serve
         for bytes in 13001747 2500000 2500001 2500002; do head -c $bytes /dev/urandom >$bytes.gz; done
         cloakroom stage -q -n etl -l spark-app-selector=spark-1f6b -l spark-role=driver 13001747.gz >ticket.json
         cloakroom fetch --ticket ticket.json --to fetched
         cloakroom stage -q -n etl --name nightly-driver 2500000.gz
         cloakroom stage -q -n web --kind Deployment -l app=api 2500001.gz
         cloakroom stage -q -n etl -l app=scratch 2500002.gz",
    ),
    ("docs/submit.md", ":"),
    ("docs/try.md", ":"),
];

pub fn trials() -> Vec<Trial> {
    let readers = READERS.into_iter().map(|(page, before)| {
        let mut needs = needs();
        if page == "docs/install.md" {
            needs.push(Need::Below("CLOAKROOM_TEST_DIST", "SHA256SUMS".to_owned()));
        }
        let name = format!("pages::every_command_of_{}_does_what_the_page_shows", plain(page));
        trial(&name, &needs, move || read(page, before))
    });
    let all = trial("pages::every_page_with_commands_has_a_reader", &[], every_page_has_a_reader);
    readers.chain([all]).chain(member::trials()).chain([rotation::trial()]).collect()
}

fn needs() -> Vec<Need> {
    vec![Need::Program("curl"), Need::Program("jq"), Need::Program("unshare"), Need::Root]
}

/// As a part of a test's name.
fn plain(page: &str) -> String {
    page.trim_end_matches(".md").replace(|c: char| !c.is_ascii_alphanumeric(), "_").to_lowercase()
}

/// Types what is left to a reader of the page.
fn read(page: &str, before: &str) {
    // The pages' own address, which nothing else has there.
    let mut terminal = Terminal::open(&["--mount", "--net"], &dist::binary());
    terminal.prepare("ip link set lo up");
    terminal.prepare(&format!("serve() {{\n{SERVE}\n}}"));
    terminal.prepare(before);
    for block in blocks(page, By::Reader) {
        terminal.type_block(&block);
    }
}

/// The blocks of a page that one of the two types, in its order.
fn blocks(page: &str, by: By) -> Vec<Block> {
    let blocks = documentation::blocks(page).into_iter();
    blocks.filter(|block| TABLE.iter().any(|row| row.by == by && row.is_of(block))).collect()
}

fn every_page_has_a_reader() {
    let pages = |by: By| {
        let mut pages: Vec<&str> = TABLE.iter().filter(|row| row.by == by).map(|row| row.page).collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    };
    let mut readers = READERS.map(|(page, _)| page);
    readers.sort_unstable();
    assert_eq!(pages(By::Reader), readers);
    let mut members = member::MEMBERS.map(|member| member.page);
    members.sort_unstable();
    assert_eq!(pages(By::Member), members);
}
