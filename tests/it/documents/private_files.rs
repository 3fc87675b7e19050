//! Whether the pages write tickets and tokens into files that other users cannot read.

use cloakroom_testing::documentation::Block;

/// How a line, or the lines after it, make private files.
const PRIVATE: &str = "umask 077";

/// The lines that write a ticket or a token into a file that others can read.
pub fn about(blocks: &[Block]) -> Vec<String> {
    let mut complaints = Vec::new();
    for block in blocks {
        let mut is_private = false;
        for line in block.text.lines() {
            let line = line.trim_start_matches("$ ").trim();
            is_private |= line == PRIVATE;
            if !is_private && !line.contains(PRIVATE) && writes_a_secret(line) {
                complaints.push(format!("{}: others can read what “{line}” writes", block.page));
            }
        }
    }
    complaints
}

fn writes_a_secret(line: &str) -> bool {
    let redirected = line.split('>').skip(1);
    let teed = line.split("tee ").skip(1);
    let mut files = redirected.chain(teed).filter_map(|rest| rest.split_whitespace().next());
    files.any(|file| file.contains("ticket") || file.contains("token"))
}

/// The secrets that are found in a page with mistakes.
pub fn planted() -> Vec<String> {
    let text = "# A\n\n    (umask 077; a >ticket)\n    a > ticket.json\n    a | tee token\n\nb\n\n    umask 077\n    a >token\n    jq . ticket\n";
    about(&cloakroom_testing::documentation::blocks_of("p.md", text))
}
