//! Requests of WebHDFS, `METHOD PATH?QUERY`, and lines of a file of upload keys.
#![no_main]

use cloakroom_core::protocol::webhdfs::{KeyLine, Operation, Place, UploadKey, shown_path};
use cloakroom_core::resource::Owner;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (method, address) = text.split_once(' ').unwrap_or(("GET", text));
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    if let Ok(Operation::Put(_)) = Operation::parse(method, query) {
        let second = Operation::parse(method, &Operation::second_step(query));
        assert!(matches!(second, Ok(Operation::Put(_))), "{query}");
    }
    match Place::parse(path) {
        Ok(place) => check(&place, path),
        Err(refused) => assert!(!refused.to_string().is_empty()),
    }
    let shown = shown_path(path);
    assert!(!shown.contains(UploadKey::BEGINNING) && !shown.contains("spark-upload-"), "{shown}");
    for line in text.lines() {
        if let Ok(Some(KeyLine { namespace, .. })) = KeyLine::parse(line) {
            Owner::without_objects(namespace).expect("a namespace");
        }
    }
});

fn check(place: &Place, path: &str) {
    Owner::without_objects(&place.namespace).expect("a namespace");
    let secret = place.secret();
    assert!(path.contains(secret.expose().split('/').next_back().expect("a folder")));
    let printed = format!("{place:?}");
    assert!(place.key.as_ref().is_none_or(|key| !printed.contains(key.expose())));
    let without_key = format!("/webhdfs/v1/{}", secret.expose());
    let again = Place::parse(&without_key).expect("the folder alone");
    assert!(again.secret() == secret && again.key.is_none() && again.name.is_none());
}
