//! Owners: in JSON as in v0, and as the query of an upload. The first byte selects the form.
#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use axum::extract::Query;
use axum::http::Uri;
use cloakroom_core::resource::{
    Owner, OwnerError, OwnerKind, OwnerKinds, is_dns_label, is_label_key, is_label_value,
};
use cloakroom_fuzz::assert_readable;
use cloakroom_kubespark::v0::StagedResourcesOwner;
use cloakroom_server::http::{Lifetimes, Settings, TrustedProxies, UploadAuth, UploadParameters};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((choice, rest)) = input.split_first() else { return };
    if choice % 2 == 0 { in_json(rest) } else { in_query(rest) }
});

fn in_json(json: &[u8]) {
    let Ok(sent) = serde_json::from_slice::<StagedResourcesOwner>(json) else { return };
    let printed = serde_json::to_vec(&sent).expect("JSON");
    let again: StagedResourcesOwner = serde_json::from_slice(&printed).expect("what was written");
    assert_eq!(
        (&again.owner_namespace, &again.owner_labels, &again.owner_type),
        (&sent.owner_namespace, &sent.owner_labels, &sent.owner_type),
    );
    let owner = OwnerKind::parse(&sent.owner_type)
        .and_then(|kind| Owner::new(kind, &sent.owner_namespace, sent.owner_labels.clone(), None));
    match owner {
        Ok(owner) => {
            check(&owner);
            assert_eq!(owner.namespace(), sent.owner_namespace);
            assert!(
                owner
                    .labels()
                    .eq(sent.owner_labels.iter().map(|(key, value)| (key.as_str(), value.as_str())))
            );
        }
        Err(error) => check_refusal(&error),
    }
}

fn in_query(query: &[u8]) {
    static SETTINGS: LazyLock<Settings> = LazyLock::new(settings);
    let Ok(query) = std::str::from_utf8(query) else { return };
    let Ok(uri) = format!("/api/v1/resources?{query}").parse::<Uri>() else { return };
    let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::try_from_uri(&uri) else { return };
    match UploadParameters::parse(&pairs, &SETTINGS) {
        Ok(parameters) => {
            check(&parameters.owner);
            assert!(parameters.lifetime.unused_timeout <= SETTINGS.lifetimes.max_unused);
            assert!(!parameters.lifetime.unused_timeout.is_zero());
            assert!(parameters.lifetime.ttl.is_none_or(|ttl| ttl >= Duration::from_millis(1)));
            SETTINGS.owner_kinds.check(parameters.owner.kind()).expect("an accepted kind");
        }
        Err(error) => {
            let shown = format!("{error:?}");
            assert!(shown.len() < 2_000, "{shown}");
        }
    }
}

/// An accepted owner could exist, and is accepted again.
fn check(owner: &Owner) {
    assert!(is_dns_label(owner.namespace()));
    assert!(owner.labels().all(|(key, value)| is_label_key(key) && is_label_value(value)));
    assert!(owner.labels().count() <= 64 && (owner.name().is_some() || owner.labels().next().is_some()));
    assert_eq!(OwnerKind::parse(owner.kind().as_str()).as_ref(), Ok(owner.kind()));
    let labels = owner.labels().map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(Owner::new(owner.kind().clone(), owner.namespace(), labels, owner.name()).as_ref(), Ok(owner));
}

fn check_refusal(error: &OwnerError) {
    let message = error.to_string();
    assert_readable(&message);
    assert!(message.len() < 2_000, "{message}");
}

fn settings() -> Settings {
    let lifetimes = Lifetimes {
        unused_timeout: Duration::from_hours(1),
        max_unused: Duration::from_hours(24),
        max_key_ttl: Duration::from_hours(24),
    };
    Settings {
        upload_auth: UploadAuth::None,
        token_hint: String::new(),
        owner_kinds: OwnerKinds::parse(OwnerKinds::DEFAULT).expect("the default"),
        namespaces: None,
        lifetimes,
        public_url: None,
        internal_url: None,
        max_proxied_size: u64::MAX,
        fetch_image: None,
        trusted_proxies: TrustedProxies::default(),
        tls: None,
        webhdfs: None,
    }
}
