//! A data directory that one version has written and the other one opens.

use std::path::Path;

use cloakroom_testing::process::{Cloakroom, stderr};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use super::{Age, New, Old, TwoVersions};

const REFUSED: &str = "it may come from a newer cloakroom";

/// The sentence of the page that names the form of this version's ledger.
const FORM_ON_THE_PAGE: &str = "The ledger's form is ";

pub(super) fn an_upgraded_server_goes_on_with_the_data_directory() {
    goes_on(Old, New);
}

/// The forms are the same unless there was a migration in between.
pub(super) fn a_server_that_goes_back_goes_on_or_refuses_a_newer_form() {
    if form_made_by(Old) == form_made_by(New) {
        goes_on(New, Old);
    } else {
        let versions = TwoVersions::new();
        versions.serve(New, &[]).kill();
        refuses(Old, &versions.path("server"));
    }
}

/// The later one is started first, as in a rollout, and is killed at the end. The earlier one then has it all again.
fn goes_on(earlier: Age, later: Age) {
    let versions = TwoVersions::new();
    let mut server = versions.serve(earlier, &[]);
    let [used, unused, gone] = [(); 3].map(|()| versions.stage(earlier, &server, &[]));
    versions.fetch(earlier, &server.url(""), &used, "first");
    versions.admin(earlier, &server, &["rm", "--yes", &gone.resource_id]);

    let mut successor = Cloakroom::launch(versions.serving(later, &[]));
    successor.wait_for_log("waiting for the data directory");
    server.signal("TERM");
    assert!(server.wait().success());
    successor.wait_until_it_serves();
    for (ticket, to) in [(&used, "second"), (&unused, "third")] {
        versions.fetch(later, &successor.url(""), ticket, to);
    }
    let refused = versions.try_to_fetch(later, &successor.url(""), &gone, "nowhere");
    assert!(stderr(&refused).contains("was deleted at "), "{}", stderr(&refused));
    let listed = versions.admin(later, &successor, &["ls"]);
    assert!(listed.contains(&used.resource_id) && !listed.contains(&gone.resource_id), "{listed}");
    let of_successor = versions.stage(later, &successor, &[]);
    versions.admin(later, &successor, &["rm", "--yes", &used.resource_id]);
    successor.kill();

    if form_made_by(earlier) == form_made_by(later) {
        let server = versions.serve(earlier, &[]);
        versions.fetch(earlier, &server.url(""), &of_successor, "fourth");
        versions.fetch(earlier, &server.url(""), &unused, "fifth");
        let refused = versions.try_to_fetch(earlier, &server.url(""), &used, "nowhere");
        assert!(stderr(&refused).contains("was deleted at "), "{}", stderr(&refused));
    }
}

pub(super) fn a_newer_form_is_refused_and_left_as_it_is() {
    for age in [Old, New] {
        let versions = TwoVersions::new();
        let server = versions.serve(age, &[]);
        let ticket = versions.stage(age, &server, &[]);
        server.kill();
        let plant = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                     VALUES (9999, 'the future', TRUE, x'00', 0)";
        in_ledger(&versions.path("server"), plant);
        refuses(age, &versions.path("server"));
        in_ledger(&versions.path("server"), "DELETE FROM _sqlx_migrations WHERE version = 9999");
        let server = versions.serve(age, &[]);
        versions.fetch(age, &server.url(""), &ticket, "to");
    }
}

/// The start ends with the sentence of the page.
fn refuses(age: Age, data: &Path) {
    let mut server = Cloakroom::launch(age.serving(data, &[]));
    let said = server.wait_for_log(REFUSED);
    assert!(said.contains("start the newer version again"), "{age:?}: {said}");
    assert_eq!(server.wait().code(), Some(1), "{age:?}: {said}");
}

/// What the page says is what the migrations come to.
pub(super) fn the_page_of_versions_names_the_form_of_the_ledger() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(repository.join("docs/versions.md")).unwrap();
    let (_, said) = page.split_once(FORM_ON_THE_PAGE).unwrap();
    let said: String = said.chars().take_while(char::is_ascii_digit).collect();
    let files = std::fs::read_dir(repository.join("migrations/sqlite")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let newest = names.filter_map(|name| name.split('_').next()?.parse::<u32>().ok()).max();
    assert_eq!(said.parse().ok(), newest, "docs/versions.md: “{FORM_ON_THE_PAGE}”");
}

fn form_made_by(age: Age) -> i64 {
    let versions = TwoVersions::new();
    versions.serve(age, &[]).kill();
    in_ledger(&versions.path("server"), "SELECT MAX(version) FROM _sqlx_migrations").unwrap()
}

/// Runs a statement on the ledger of a server that has ended; its first number, if it gives one.
fn in_ledger(data: &Path, statement: &'static str) -> Option<i64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(data.join("ledger.db"));
        let mut ledger: SqliteConnection = options.connect().await.unwrap();
        let row = sqlx::query(statement).fetch_optional(&mut ledger).await.unwrap();
        ledger.close().await.unwrap();
        row.map(|row| row.get(0))
    })
}
