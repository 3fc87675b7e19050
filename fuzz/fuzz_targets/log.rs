//! The log of a ledger in a bucket: groups, the stamp, and places. The first byte selects the kind.
#![no_main]

use std::fmt::Display;
use std::str::FromStr;

use cloakroom_core::protocol::digest::to_hex;
use cloakroom_fuzz::assert_readable;
use cloakroom_storage::log::{DamagedGroup, ForeignStamp, Group, Position, WriterStamp};
use libfuzzer_sys::fuzz_target;
use sha2::{Digest as _, Sha256};

fuzz_target!(|input: &[u8]| {
    let Some((choice, rest)) = input.split_first() else { return };
    match choice % 4 {
        0 => group(&with_digest(rest)),
        1 => group(rest),
        2 => stamp(&String::from_utf8_lossy(rest)),
        _ => place(&String::from_utf8_lossy(rest)),
    }
});

/// The lines with the last line that belongs to them. Without that, no line would be read.
fn with_digest(lines: &[u8]) -> Vec<u8> {
    let sha256 = to_hex(&Sha256::digest(lines).into());
    [lines, format!("{{\"sha256\":\"{sha256}\"}}\n").as_bytes()].concat()
}

fn group(object: &[u8]) {
    match Group::decode(object) {
        Ok(group) => check_group(&group, object),
        Err(error) => check_damage(&error),
    }
}

fn check_group(group: &Group, object: &[u8]) {
    let written = group.encode().expect("JSON");
    assert_eq!(Group::decode(&written).expect("what was written"), *group);
    let lines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines(&written), group.changes.len() + 2);
    assert_eq!(lines(object), lines(&written), "a line was left out");
    // Any byte of the group, chosen by the group.
    let at = written.iter().map(|byte| usize::from(*byte)).sum::<usize>() % written.len();
    assert!(Group::decode(&written[..at]).is_err(), "the first {at} bytes");
    let mut changed = written;
    changed[at] ^= 1;
    assert!(Group::decode(&changed).is_err(), "byte {at} is another one");
}

/// It names a line that is there.
fn check_damage(error: &DamagedGroup) {
    assert_readable(&error.to_string());
    if let DamagedGroup::Line { line, .. } = error {
        assert!(*line > 0);
    }
}

fn stamp(text: &str) {
    match text.parse::<WriterStamp>() {
        Ok(stamp) => assert_one_form(&stamp, text.trim_ascii_end()),
        Err(error) => {
            assert_readable(&error.to_string());
            assert_eq!(matches!(error, ForeignStamp::Newer(_)), is_newer(text), "{text:?}");
        }
    }
}

/// `form-2` and more, whatever follows.
fn is_newer(text: &str) -> bool {
    let form = text.trim_ascii_end().split(' ').next().and_then(|word| word.strip_prefix("form-"));
    form.is_some_and(|form| form.parse::<u32>().is_ok_and(|form| form > 1))
}

fn place(text: &str) {
    let place = text.parse::<Position>();
    assert_eq!(place.is_ok(), is_plain_place(text), "{text:?}");
    if let Ok(place) = place {
        assert_one_form(&place, text);
    }
}

/// Two numbers with a dash between them, written as people write numbers.
fn is_plain_place(text: &str) -> bool {
    let is_number = |word: &str| {
        let has_one_form = word == "0" || !word.starts_with(['0', '+']);
        has_one_form && word.parse::<u64>().is_ok()
    };
    text.split_once('-').is_some_and(|(epoch, number)| is_number(epoch) && is_number(number))
}

fn assert_one_form<T: FromStr + Display + PartialEq>(value: &T, text: &str) {
    assert_eq!(value.to_string(), text);
    assert!(value.to_string().parse().is_ok_and(|again: T| again == *value));
}
