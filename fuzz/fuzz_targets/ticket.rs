//! Tickets in both protocols, the receipts of `fetch`, and recipes of spliced bundles. The first byte selects the kind.
#![no_main]

use std::path::{Component, Path};

use cloakroom_core::protocol::recipe::{Recipe, RecipePart};
use cloakroom_core::protocol::v1::{Metadata, Ticket};
use cloakroom_core::resource::{FileName, ResourceId};
use cloakroom_kubespark::v0::SubmittedResourceIdAndSecret;
use cloakroom_transfer::fetch::Receipt;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((choice, rest)) = input.split_first() else { return };
    match choice % 4 {
        0 => ticket(rest),
        1 => receipt(rest),
        2 => names(&String::from_utf8_lossy(rest)),
        _ => recipe(rest),
    }
});

fn recipe(json: &[u8]) {
    let Ok(recipe) = serde_json::from_slice::<Recipe>(json) else { return };
    let splice = match recipe.checked() {
        Ok(splice) => splice,
        Err(refused) => return assert!(!refused.to_string().is_empty()),
    };
    let lengths = splice.parts.iter().map(|part| u128::from(part.length()));
    assert_eq!(lengths.sum::<u128>(), u128::from(splice.size_bytes));
    assert!(splice.sent_bytes <= splice.size_bytes);
    for size_bytes in [0, splice.size_bytes, u64::MAX] {
        let is_inside = splice.parts.iter().all(|part| match part {
            RecipePart::Copy([first, length]) => {
                u128::from(*first) + u128::from(*length) <= u128::from(size_bytes)
            }
            RecipePart::Send(_) => true,
        });
        assert_eq!(splice.check_source(size_bytes).is_ok(), is_inside);
    }
}

fn ticket(json: &[u8]) {
    if let Ok(ticket) = serde_json::from_slice::<Ticket>(json) {
        let printed = serde_json::to_vec(&ticket).expect("JSON");
        let again: Ticket = serde_json::from_slice(&printed).expect("what was written");
        assert_eq!(serde_json::to_vec(&again).expect("JSON"), printed);
        assert_eq!(again.resource_secret, ticket.resource_secret);
        let shown = format!("{ticket:?}");
        let is_elsewhere = ticket.resource_id.contains(&ticket.resource_secret);
        assert!(ticket.resource_secret.len() < 8 || is_elsewhere || !shown.contains(&ticket.resource_secret));
    }
    if let Ok(ticket) = serde_json::from_slice::<SubmittedResourceIdAndSecret>(json) {
        let printed = serde_json::to_vec(&ticket).expect("JSON");
        let again: SubmittedResourceIdAndSecret = serde_json::from_slice(&printed).expect("what was written");
        assert_eq!((again.resource_id, again.resource_secret), (ticket.resource_id, ticket.resource_secret));
    }
    if let Ok(metadata) = serde_json::from_slice::<Metadata>(json) {
        let printed = serde_json::to_vec(&metadata).expect("JSON");
        let again: Metadata = serde_json::from_slice(&printed).expect("what was written");
        assert_eq!(serde_json::to_vec(&again).expect("JSON"), printed);
    }
}

/// The files of any receipt are below the target folder.
fn receipt(json: &[u8]) {
    let Some(receipt) = Receipt::parse(json, "key") else { return };
    for name in receipt.names() {
        let path = Path::new(name);
        assert!(
            !name.is_empty() && path.components().all(|part| matches!(part, Component::Normal(_))),
            "{name:?}"
        );
    }
    let printed = serde_json::to_vec(&receipt).expect("JSON");
    assert_eq!(Receipt::parse(&printed, "key"), Some(receipt));
    assert_eq!(Receipt::parse(&printed, "other"), None);
}

fn names(text: &str) {
    if let Ok(id) = ResourceId::parse(text) {
        assert_eq!(id.to_string(), text);
        assert!(text.len() == 36 && !text.contains(['/', '.', '\\']));
        assert!(id.shard().bytes().all(|digit| digit.is_ascii_hexdigit()));
    }
    if let Ok(name) = FileName::parse(text) {
        assert_eq!(
            FileName::parse(name.as_str()).map(|name| name.as_str().to_owned()).ok().as_deref(),
            Some(name.as_str())
        );
        assert!(
            !name.as_str().is_empty()
                && !name.as_str().contains('/')
                && !name.as_str().contains(char::is_control)
        );
    }
}
