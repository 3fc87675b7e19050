//! The query of an upload in v1.

use std::time::Duration;

use crate::http::error::ApiError;
use crate::http::routes::LONGEST_SHOWN;
use crate::http::state::{Lifetimes, Settings};
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::protocol::v1::query;
use cloakroom_core::resource::{Lifetime, Owner, OwnerKind};
use cloakroom_core::text::excerpt;
use cloakroom_core::time::{SparkDuration, format_duration};

/// The terms that the query of an upload asks for.
#[derive(Debug)]
pub struct Parameters {
    /// The objects that the bundle is for.
    pub owner: Owner,
    /// How long the resource is kept.
    pub lifetime: Lifetime,
}

impl Parameters {
    /// Checks every parameter. The error names the wrong one.
    pub fn parse(pairs: &[(String, String)], settings: &Settings) -> Result<Self, ApiError> {
        refuse_unknown(pairs)?;
        let owner = owner(pairs, settings)?;
        let lifetime = lifetime(pairs, &settings.lifetimes)?;
        Ok(Self { owner, lifetime })
    }
}

fn refuse_unknown(pairs: &[(String, String)]) -> Result<(), ApiError> {
    match pairs.iter().find(|(name, _)| !query::ALL.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, _)) => {
            let name = excerpt(name, LONGEST_SHOWN);
            let known = query::ALL.join(", ");
            Err(invalid(format!("parameter “{name}” is unknown: an upload takes {known}")))
        }
    }
}

fn owner(pairs: &[(String, String)], settings: &Settings) -> Result<Owner, ApiError> {
    let kind = single(pairs, query::KIND)?.map(OwnerKind::named).transpose()?.unwrap_or_default();
    let labels = pairs.iter().filter(|(name, _)| name == query::LABEL);
    let labels = labels.map(|(_, label)| Owner::split_label(label)).collect::<Result<Vec<_>, _>>()?;
    let namespace = single(pairs, query::NAMESPACE)?.unwrap_or_default();
    let owner = Owner::new(kind, namespace, labels, single(pairs, query::NAME)?)?;
    settings.check_owner(&owner)?;
    Ok(owner)
}

fn lifetime(pairs: &[(String, String)], limits: &Lifetimes) -> Result<Lifetime, ApiError> {
    let unused_timeout = duration(pairs, query::UNUSED_TIMEOUT)?.unwrap_or(limits.unused_timeout);
    if unused_timeout > limits.max_unused {
        let most = format_duration(limits.max_unused);
        return Err(invalid(format!("unusedTimeout may be {most} at most on this server (--max-unused)")));
    }
    Ok(Lifetime { unused_timeout, ttl: duration(pairs, query::TTL)? })
}

fn duration(pairs: &[(String, String)], name: &str) -> Result<Option<Duration>, ApiError> {
    let Some(text) = single(pairs, name)? else { return Ok(None) };
    let text = excerpt(text.trim(), LONGEST_SHOWN);
    let duration: SparkDuration =
        text.parse().map_err(|error| invalid(format!("{name} is not usable: {error}")))?;
    if duration.get() < Duration::from_millis(1) {
        return Err(invalid(format!(
            "{name} is zero: nothing could ever be downloaded; leave it out or make it longer"
        )));
    }
    Ok(Some(duration.get()))
}

fn single<'a>(pairs: &'a [(String, String)], name: &str) -> Result<Option<&'a str>, ApiError> {
    let mut found = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let first = found.next();
    if found.next().is_some() {
        return Err(invalid(format!("parameter {name} is given more than once: it takes one value")));
    }
    Ok(first)
}

fn invalid(detail: String) -> ApiError {
    ApiError::new(Code::InvalidParameter, detail)
}
