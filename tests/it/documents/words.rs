//! How long the pages are: a reader finds what stands on few pages of few words.

use std::collections::BTreeMap;

use super::{pages, repository};
use crate::ratchet;

const NUMBERS: &str = "tests/it/documents/words.tsv";

/// By how many words a page may be shorter than its number.
const SLACK: usize = 50;

const MOST_OF_README: usize = 1_300;
const MOST_OF_A_PAGE: usize = 4_000;
const MOST_IN_ALL: usize = 60_000;

/// A word has a letter or a digit. The changelog grows with each release, and the page of the chart with its values.
#[test]
fn no_page_has_more_words_than_its_number() {
    let count =
        |text: &str| text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
    let counted: BTreeMap<String, usize> = pages()
        .iter()
        .map(|page| {
            (page.path().strip_prefix(repository()).unwrap().display().to_string(), count(page.text()))
        })
        .filter(|(name, _)| name == "README.md" || name.starts_with("docs/"))
        .collect();
    for (name, words) in &counted {
        let most = if name == "README.md" { MOST_OF_README } else { MOST_OF_A_PAGE };
        assert!(*words <= most, "{name} has {words} words, and may have {most}");
    }
    let all: usize = counted.values().sum();
    assert!(all <= MOST_IN_ALL, "the pages have {all} words, and may have {MOST_IN_ALL}");
    ratchet::holds(NUMBERS, &counted, SLACK);
}
