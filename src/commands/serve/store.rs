//! Where the bundles are: in the data directory, or in a bucket.

use std::slice;
use std::sync::Arc;

use anyhow::Context as _;

use crate::cli::{AddressingChoice, StoreArgs};
use crate::commands::{UsageError, refuse};
use cloakroom_adapters::bucket::{Addressing, BucketOptions, BucketStore, Location, Pool};
use cloakroom_core::metrics::Metrics;
use cloakroom_core::size::format_size;
use cloakroom_core::text::SecretText;
use cloakroom_transfer::client::TrustedCertificates;

/// A bucket of the configuration. No request was made yet.
pub struct ConfiguredBucket {
    pub location: Location,
    pub store: Arc<BucketStore>,
    pub memory_bytes: u64,
}

/// The bucket that the flags and the environment name; `None` without `--store`. `largest` is how many bytes a bundle may
/// have. Each request is counted in `metrics`.
pub fn resolve(
    args: &StoreArgs,
    largest: u64,
    warnings: &mut Vec<String>,
    metrics: &Metrics,
) -> anyhow::Result<Option<ConfiguredBucket>> {
    let Some(url) = &args.store else { return Ok(None) };
    let location = Location::parse(url.expose());
    let location = location.map_err(|error| UsageError::new(format!("--store is no location: {error}")))?;
    let memory_bytes = args.store_memory.bytes();
    let least = BucketStore::least_memory(largest);
    if memory_bytes < least {
        refuse!(
            "--store-memory {} is too little for a bundle of --max-resource-size: give {} or more",
            args.store_memory,
            format_size(least)
        );
    }
    let trusted = args
        .store_ca
        .as_ref()
        .map_or(Ok(TrustedCertificates::default()), |path| TrustedCertificates::read(slice::from_ref(path)));
    let options = BucketOptions {
        endpoint: args.store_endpoint.as_ref().map(|url| SecretText::expose(url).to_owned()),
        region: args.store_region.clone(),
        account: args.store_account.clone(),
        user: args.store_user.clone(),
        addressing: args.store_addressing.map(|way| match way {
            AddressingChoice::Virtual => Addressing::Virtual,
            AddressingChoice::Path => Addressing::Path,
        }),
        allows_http: args.store_allow_http,
        trusted: trusted.context("--store-ca cannot be used")?,
    };
    let variables = |name: &str| std::env::var(name).ok();
    let pool = Pool::new(memory_bytes);
    let store = BucketStore::new(location.clone(), &options, &variables, pool, largest, metrics);
    let store = Arc::new(store.map_err(|error| UsageError::from_error(&error))?);
    if store.is_in_clear() {
        warnings.push(format!(
            "{location} is spoken to without TLS (--store-allow-http): all on the way can read the bundles"
        ));
    }
    Ok(Some(ConfiguredBucket { location, store, memory_bytes }))
}
