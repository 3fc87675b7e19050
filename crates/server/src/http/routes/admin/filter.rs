//! The filter of a list of resources.

use axum::extract::Query;
use jiff::Timestamp;

use super::QueryPairs;
use crate::cleaner::{Decision, KeepReason, Released, SweepRequest};
use crate::http::error::ApiError;
use crate::http::routes::LONGEST_SHOWN;
use cloakroom_core::protocol::admin::{DUE, EVERYWHERE, MAX_PAGE, StagedResource, query};
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::resource::{Owner, OwnerKind, ResourceId};
use cloakroom_core::text::excerpt;
use cloakroom_core::time::SparkDuration;
use cloakroom_storage::ready::Listed;

/// The filter that the query of a list describes.
#[derive(Debug)]
pub(super) struct Filter {
    pub(super) after: Option<ResourceId>,
    pub(super) limit: usize,
    namespace: Option<String>,
    kind: Option<OwnerKind>,
    labels: Vec<(String, String)>,
    name: Option<String>,
    why: Vec<String>,
    unused: bool,
    staged_before: Option<Timestamp>,
    id: Option<String>,
    /// Whether deleted resources are listed, in place of staged ones.
    pub(super) deleted: bool,
}

/// The query's parameters as pairs of name and value.
pub(super) fn pairs(query: QueryPairs) -> Result<Vec<(String, String)>, ApiError> {
    query.map(|Query(pairs)| pairs).map_err(|error| invalid(error.body_text()))
}

/// Whether a removal is limited to resources that were never downloaded.
pub(super) fn only_unused(pairs: &[(String, String)]) -> Result<bool, ApiError> {
    refuse_unknown(pairs, &[query::UNUSED])?;
    flag(pairs, query::UNUSED)
}

/// What a sweep is asked for beyond its rules.
pub(super) fn sweep_request(pairs: &[(String, String)]) -> Result<SweepRequest, ApiError> {
    refuse_unknown(pairs, &[query::STRAYS, query::RELEASE_HELD])?;
    let releases = match single(pairs, query::RELEASE_HELD)? {
        None => Released::Nothing,
        Some(EVERYWHERE) => Released::All,
        Some(namespace) => Released::Namespace(namespace.to_owned()),
    };
    Ok(SweepRequest { removes_strays: flag(pairs, query::STRAYS)?, releases })
}

impl Filter {
    /// Checks every parameter. The error names the wrong one.
    pub(super) fn parse(pairs: &[(String, String)], now: Timestamp) -> Result<Self, ApiError> {
        refuse_unknown(pairs, &query::OF_LIST)?;
        let deleted = flag(pairs, query::DELETED)?;
        if deleted {
            refuse_of_tombstones(pairs)?;
        }
        let labels = all(pairs, query::LABEL).map(Owner::split_label).collect::<Result<_, _>>();
        let kind = single(pairs, query::KIND)?.map(OwnerKind::named).transpose();
        Ok(Self {
            after: single(pairs, query::AFTER)?.map(cursor).transpose()?,
            limit: single(pairs, query::LIMIT)?.map_or(Ok(MAX_PAGE), limit)?,
            namespace: single(pairs, query::NAMESPACE)?.map(str::to_owned),
            kind: kind.map_err(|error| invalid(error.to_string()))?,
            labels: labels.map_err(|error| invalid(error.to_string()))?,
            name: single(pairs, query::NAME)?.map(str::to_owned),
            why: all(pairs, query::WHY).map(why).collect::<Result<_, _>>()?,
            unused: flag(pairs, query::UNUSED)?,
            staged_before: single(pairs, query::OLDER_THAN)?.map(|age| before(now, age)).transpose()?,
            id: single(pairs, query::ID)?.map(str::to_owned),
            deleted,
        })
    }

    /// Whether the list has this resource, by everything but its keep reason.
    pub(super) fn matches(&self, listed: &Listed) -> bool {
        let owner = &listed.owner;
        self.namespace.as_deref().is_none_or(|namespace| namespace == owner.namespace())
            && self.kind.as_ref().is_none_or(|kind| kind == owner.kind())
            && self.name.as_deref().is_none_or(|name| owner.name() == Some(name))
            && self.labels.iter().all(|(key, value)| owner.labels().any(|label| label == (key, value)))
            && !(self.unused && listed.life.is_used())
            && self.staged_before.is_none_or(|before| listed.life.created_at <= before)
            && self.begins(&listed.id.to_string())
    }

    /// Whether the list has this tombstone. The labels and the name of its owner are forgotten, so they are not
    /// compared.
    pub(super) fn matches_deleted(&self, resource: &StagedResource) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| namespace == resource.owner.namespace)
            && self.kind.as_ref().is_none_or(|kind| kind.as_str() == resource.owner.kind)
            && !(self.unused && resource.last_used_at.is_some())
            && self.staged_before.is_none_or(|before| resource.created_at <= before)
            && self.begins(&resource.resource_id)
    }

    fn begins(&self, id: &str) -> bool {
        self.id.as_deref().is_none_or(|beginning| id.starts_with(beginning))
    }

    /// Whether the list has resources with this decision.
    pub(super) fn has(&self, decision: &Decision) -> bool {
        let why = match decision {
            Decision::Keep(kept) => kept.why.as_str(),
            Decision::Delete(_) => DUE,
        };
        self.why.is_empty() || self.why.iter().any(|wanted| wanted == why)
    }
}

fn cursor(text: &str) -> Result<ResourceId, ApiError> {
    ResourceId::parse(text).map_err(|_| {
        let name = query::AFTER;
        invalid(format!("{name} is not a resource id: give the “next” of the page before"))
    })
}

fn limit(text: &str) -> Result<usize, ApiError> {
    let limit = text.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
    limit.ok_or_else(|| invalid(format!("{} is not a number from 1 to {MAX_PAGE}", query::LIMIT)))
}

fn why(text: &str) -> Result<String, ApiError> {
    let known = || KeepReason::ALL.iter().map(|why| why.as_str()).chain([DUE]);
    if known().any(|name| name == text) {
        return Ok(text.to_owned());
    }
    let known: Vec<_> = known().collect();
    Err(invalid(format!("{} has a value that is none of {}", query::WHY, known.join(", "))))
}

fn before(now: Timestamp, text: &str) -> Result<Timestamp, ApiError> {
    let text = excerpt(text.trim(), LONGEST_SHOWN);
    let age: SparkDuration =
        text.parse().map_err(|error| invalid(format!("{} is not usable: {error}", query::OLDER_THAN)))?;
    Ok(now.checked_sub(age.get()).unwrap_or(Timestamp::MIN))
}

/// Refuses parameters about fields that a tombstone does not have.
fn refuse_of_tombstones(pairs: &[(String, String)]) -> Result<(), ApiError> {
    let forgotten = [query::LABEL, query::NAME, query::WHY];
    match forgotten.into_iter().find(|name| all(pairs, name).next().is_some()) {
        Some(name) => Err(invalid(format!(
            "{name} does not go with {}: a deleted resource has no labels or name of its owner, and no reason to be kept",
            query::DELETED
        ))),
        None => Ok(()),
    }
}

fn refuse_unknown(pairs: &[(String, String)], known: &[&str]) -> Result<(), ApiError> {
    match pairs.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, _)) => {
            let name = excerpt(name, LONGEST_SHOWN);
            Err(invalid(format!("parameter “{name}” is unknown: there are {}", known.join(", "))))
        }
    }
}

fn all<'a>(pairs: &'a [(String, String)], name: &str) -> impl Iterator<Item = &'a str> {
    pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn single<'a>(pairs: &'a [(String, String)], name: &str) -> Result<Option<&'a str>, ApiError> {
    let mut found = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let first = found.next();
    if found.next().is_some() {
        return Err(invalid(format!("parameter {name} is given more than once: it takes one value")));
    }
    Ok(first)
}

fn flag(pairs: &[(String, String)], name: &str) -> Result<bool, ApiError> {
    match single(pairs, name)? {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(invalid(format!("{name} is neither true nor false"))),
    }
}

fn invalid(detail: String) -> ApiError {
    ApiError::new(Code::InvalidParameter, detail)
}
