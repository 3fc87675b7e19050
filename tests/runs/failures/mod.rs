//! What goes wrong for people who submit applications: each failure as it happens, with what is said of it, which is what
//! docs/submit-troubleshooting.md shows, and with what is left of it.

mod before_the_pod;
mod in_the_pod;
mod of_the_driver;
mod of_the_server;
mod page;
pub mod running;
mod tap;
mod tested;

use std::sync::Arc;

use libtest_mimic::Trial;

use crate::shared::SharedCluster;
use page::Block;

const NO_SERVER: Block = Block { heading: "No staging server", number: 0 };
const NO_SERVER_APPLICATION: Block = Block { heading: "No staging server", number: 1 };
const NO_CONNECTION: Block = Block { heading: "The server cannot be reached from here", number: 0 };
const NO_CONNECTION_LATER: Block = Block { heading: "The server cannot be reached from here", number: 1 };
const NO_TRUST: Block = Block { heading: "The server's certificate is not trusted", number: 0 };
const TOO_LARGE: Block = Block { heading: "The upload is refused", number: 0 };
const NO_ROOM: Block = Block { heading: "The upload is refused", number: 1 };
const NO_DISK: Block = Block { heading: "The upload is refused", number: 2 };
const NO_TOKEN: Block = Block { heading: "The upload is refused", number: 3 };
const WRONG_TOKEN: Block = Block { heading: "The upload is refused", number: 4 };
const NO_RIGHT: Block = Block { heading: "The upload is refused", number: 5 };
const QUOTA: Block = Block { heading: "The quota is exceeded", number: 0 };
const QUOTA_LATER: Block = Block { heading: "The quota is exceeded", number: 1 };
const NO_ROOM_FOR_EXECUTORS: Block = Block { heading: "The quota is exceeded", number: 2 };
const POWERLESS: Block = Block { heading: "The driver's service account may not make executors", number: 0 };
const NO_ACCOUNT: Block = Block { heading: "The driver's service account may not make executors", number: 1 };
const WRONG_IMAGE: Block = Block { heading: "The image cannot be pulled", number: 0 };
const WRONG_INIT_IMAGE: Block = Block { heading: "The image cannot be pulled", number: 1 };
const NOT_REACHED: Block = Block { heading: "The init-container cannot reach the server", number: 0 };
const OTHER_SECRET: Block = Block { heading: "The secret is another application's", number: 0 };
const REPLACED: Block = Block { heading: "The server is replaced during the download", number: 0 };
const REPLACED_EMPTY: Block = Block { heading: "The server is replaced during the download", number: 1 };
const NO_CLASS: Block = Block { heading: "The main class is not found", number: 0 };
const OUT_OF_MEMORY: Block = Block { heading: "The driver is killed for its memory", number: 0 };

/// All that the page shows.
const BLOCKS: [Block; 24] = [
    NO_SERVER,
    NO_SERVER_APPLICATION,
    NO_CONNECTION,
    NO_CONNECTION_LATER,
    NO_TRUST,
    TOO_LARGE,
    NO_ROOM,
    NO_DISK,
    NO_TOKEN,
    WRONG_TOKEN,
    NO_RIGHT,
    QUOTA,
    QUOTA_LATER,
    NO_ROOM_FOR_EXECUTORS,
    POWERLESS,
    NO_ACCOUNT,
    WRONG_IMAGE,
    WRONG_INIT_IMAGE,
    NOT_REACHED,
    OTHER_SECRET,
    REPLACED,
    REPLACED_EMPTY,
    NO_CLASS,
    OUT_OF_MEMORY,
];

pub fn trials(shared: &Arc<SharedCluster>) -> Vec<Trial> {
    let of_the_page = [
        Trial::test("failures::a_page_that_shows_something_else_is_found", || {
            page::finds_mistakes();
            Ok(())
        }),
        Trial::test("failures::every_block_of_the_page_is_what_a_test_looks_at", || {
            assert_eq!(page::complaints(&BLOCKS), [""; 0]);
            Ok(())
        }),
    ];
    let trials = [
        before_the_pod::trials(shared),
        in_the_pod::trials(shared),
        of_the_driver::trials(shared),
        of_the_server::trials(shared),
    ];
    of_the_page.into_iter().chain(trials.into_iter().flatten()).collect()
}
