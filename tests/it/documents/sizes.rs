//! The table of sizes, against the constants that it names.

use super::markdown::Page;
use super::repository;

/// `| what | 512 KiB | file.rs: CONSTANT |`, where `text_of` has the file's text.
pub fn about(page: &Page, text_of: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let rows = page.rows("Memory and threads");
    let complaint = |row: &Vec<String>| {
        let (file, name) = row[2].split_once(": ")?;
        let text = text_of(file)?;
        let value = value_of(&text, name)?;
        (shown(value) != row[1]).then(|| format!("{name} is {}, not {}", shown(value), row[1]))
    };
    let is_known = |row: &Vec<String>| {
        let named = row[2].split_once(": ");
        named.is_some_and(|(file, name)| text_of(file).is_some_and(|text| value_of(&text, name).is_some()))
    };
    let unknown = rows.iter().filter(|row| !is_known(row)).map(|row| format!("there is no {}", row[2]));
    unknown.chain(rows.iter().filter_map(complaint)).map(|what| page.complain(what)).collect()
}

/// The value of `const NAME: type = VALUE;`, which is a number, or two with `<<` or `*` between.
fn value_of(text: &str, name: &str) -> Option<u64> {
    let (_, rest) = text.split_once(&format!("const {name}: "))?;
    let (_, value) = rest.split_once(';')?.0.split_once(" = ")?;
    let number = |text: &str| text.replace('_', "").parse::<u64>().ok();
    if let Some((left, right)) = value.split_once(" << ") {
        return Some(number(left)? << number(right)?);
    }
    match value.split_once(" * ") {
        Some((left, right)) => Some(number(left)? * number(right)?),
        None => number(value),
    }
}

/// As people write it.
fn shown(value: u64) -> String {
    match value {
        value if value >= 1 << 20 && value % (1 << 20) == 0 => format!("{} MiB", value >> 20),
        value if value >= 1 << 12 && value % (1 << 10) == 0 => format!("{} KiB", value >> 10),
        value => value.to_string(),
    }
}

#[test]
fn planted_mistakes_in_the_table_of_sizes_are_found() {
    let source = "/// x\npub const LARGE: usize = 512 << 10;\nconst CHUNK: u64 = 64 * 1024;\nconst MOST: u32 = 100_000;\n";
    let page = |rows: &str| {
        let text = format!("## Memory and threads\n\n| what | at most | constant |\n|---|---|---|\n{rows}");
        Page::new(repository().join("docs/planted.md"), text)
    };
    let right =
        "| a | 512 KiB | `x.rs: LARGE` |\n| b | 64 KiB | `x.rs: CHUNK` |\n| c | 100000 | `x.rs: MOST` |\n";
    let complaints = |rows: &str| about(&page(rows), |file| (file == "x.rs").then(|| source.to_owned()));
    assert_eq!(complaints(right), Vec::<String>::new());
    for wrong in [
        right.replace("512", "256"),
        right.replace("`x.rs: CHUNK`", "`x.rs: CHUNKS`"),
        right.replace("`x.rs: MOST`", "`y.rs: MOST`"),
    ] {
        assert_eq!(complaints(&wrong).len(), 1, "{wrong}");
    }
}
