//! Properties files: Java's format, kubespark's configuration of server and init-container, the driver's properties.
#![no_main]

use std::collections::BTreeMap;
use std::path::Path;

use cloakroom_kubespark::{ApiServerProperties, InitContainerProperties, Role, StagingServerProperties};
use cloakroom_spark::{Properties, properties_text, with_fetched_files};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(properties) = Properties::parse("fuzz.properties", text) else { return };
    let map = to_map(&properties);
    let lines = text.split(['\r', '\n']).count();
    assert!(properties.iter().all(|property| (1..=lines).contains(&property.line)));
    assert_eq!(map, plain_reading(text), "read differently");
    let printed = properties_text(&map);
    let again = Properties::parse("again", &printed).expect("what is written can be read");
    assert_eq!(to_map(&again), map, "{printed:?}");
    check_fetched(&properties);
    let _ = Role::read(&properties);
    if let Ok(server) = StagingServerProperties::from(&properties) {
        assert!(server.unused_timeout.is_none_or(|time| !time.is_zero()));
        check_api_server(&server.api_server);
    }
    if let Ok(init) = InitContainerProperties::from(&properties) {
        assert!(!init.mount_timeout.is_zero());
        assert!(init.server_uri.is_some() || (init.jars.is_none() && init.files.is_none()));
        for remote in init.remote_jars.iter().chain(&init.remote_files) {
            remote.file_name().expect("every file has a name");
        }
    }
});

fn to_map(properties: &Properties) -> BTreeMap<String, String> {
    properties.iter().map(|property| (property.key.to_owned(), property.value.to_owned())).collect()
}

fn check_api_server(properties: &ApiServerProperties) {
    assert_eq!(properties.client_key_file.is_some(), properties.client_cert_file.is_some());
    assert!(properties.oauth_token.is_none() || properties.oauth_token_file.is_none());
    if let Some(token) = properties.oauth_token.as_ref().filter(|token| token.expose().len() > 12) {
        assert!(!format!("{token:?}").contains(token.expose()));
    }
}

/// Only `local:` of fetched files becomes `file:`. Nothing else changes.
fn check_fetched(properties: &Properties) {
    let text = with_fetched_files(properties, &[Path::new("/data/jars")]);
    let rewritten = Properties::parse("rewritten", &text).expect("what is written can be read");
    assert_eq!(properties.iter().count(), rewritten.iter().count());
    for property in properties.iter() {
        let after = rewritten.get(property.key).expect("every key stays");
        if !["spark.jars", "spark.files", "spark.archives", "spark.submit.pyFiles"].contains(&property.key) {
            assert_eq!(after, property.value);
        }
    }
}

/// `java.util.Properties.load` character by character, as its `LineReader` and `loadConvert` work.
fn plain_reading(text: &str) -> BTreeMap<String, String> {
    let mut map = BTreeMap::new();
    let mut characters = text.chars().peekable();
    while let Some(line) = next_line(&mut characters) {
        let blank = |c: char| matches!(c, ' ' | '\t' | '\u{c}');
        let mut end = 0;
        let mut escaped = false;
        while end < line.len() && (escaped || !(blank(line[end]) || matches!(line[end], '=' | ':'))) {
            escaped = line[end] == '\\' && !escaped;
            end += 1;
        }
        let mut value = end;
        while value < line.len() && blank(line[value]) {
            value += 1;
        }
        if value < line.len() && matches!(line[value], '=' | ':') {
            value += 1;
        }
        while value < line.len() && blank(line[value]) {
            value += 1;
        }
        let trimmed = |c: char| c <= ' ' && c != '\r' && c != '\n';
        let text = converted(&line[value..]);
        map.insert(converted(&line[..end]), text.trim_matches(trimmed).to_owned());
    }
    map
}

/// A logical line without its first blanks, with its escapes; `None` at the end of the text.
fn next_line(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Vec<char>> {
    let mut line = Vec::new();
    let (mut skips_blanks, mut appended, mut backslash) = (true, false, false);
    while let Some(c) = characters.next() {
        if skips_blanks {
            if matches!(c, ' ' | '\t' | '\u{c}') || !appended && matches!(c, '\r' | '\n') {
                continue;
            }
            (skips_blanks, appended) = (false, false);
        }
        if line.is_empty() && matches!(c, '#' | '!') {
            characters.by_ref().find(|c| matches!(c, '\r' | '\n'))?;
            skips_blanks = true;
        } else if !matches!(c, '\r' | '\n') {
            line.push(c);
            backslash = c == '\\' && !backslash;
        } else if line.is_empty() {
            skips_blanks = true;
        } else if !backslash {
            return Some(line);
        } else if characters.peek().is_none() {
            break;
        } else {
            line.pop();
            (skips_blanks, appended, backslash) = (true, true, false);
            if c == '\r' {
                characters.next_if_eq(&'\n');
            }
        }
    }
    if line.is_empty() {
        return None;
    }
    if backslash {
        line.pop();
    }
    Some(line)
}

fn converted(characters: &[char]) -> String {
    let mut units = Vec::new();
    let mut rest = characters.iter();
    while let Some(&c) = rest.next() {
        let c = if c == '\\' {
            match rest.next() {
                Some('u') => {
                    let digits: String = rest.by_ref().take(4).collect();
                    units.push(u16::from_str_radix(&digits, 16).expect("the escapes were read before"));
                    continue;
                }
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\u{c}',
                Some(&other) => other,
                None => continue,
            }
        } else {
            c
        };
        units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16(&units).expect("the escapes were read before")
}
