//! Conditional requests (RFC 9110, section 13). The entity tag is the bundle's SHA-256. It is strong, and never
//! changes.

use axum::http::HeaderMap;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH, IF_RANGE};

/// The result of the preconditions of a GET or HEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PreconditionOutcome {
    /// The preconditions hold.
    Proceed,
    /// `304`: the client has this bundle already.
    NotModified,
    /// `412`: the client means another bundle.
    Failed,
}

/// Evaluates `If-Match` and then `If-None-Match`, which is the order of section 13.2.2.
pub(super) fn evaluate(headers: &HeaderMap, etag: &str) -> PreconditionOutcome {
    if headers.contains_key(IF_MATCH) && !lists(headers, &IF_MATCH, etag, strong) {
        PreconditionOutcome::Failed
    } else if lists(headers, &IF_NONE_MATCH, etag, weak) {
        PreconditionOutcome::NotModified
    } else {
        PreconditionOutcome::Proceed
    }
}

/// Whether `Range` counts: if there is no `If-Range`, or it has exactly this tag. A date never matches, because the
/// server sends no `Last-Modified`.
pub(super) fn range_counts(headers: &HeaderMap, etag: &str) -> bool {
    headers.get(IF_RANGE).is_none_or(|value| value.as_bytes() == etag.as_bytes())
}

fn lists(
    headers: &HeaderMap,
    name: &axum::http::HeaderName,
    etag: &str,
    same: fn(&str, &str) -> bool,
) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).any(|tag| tag == "*" || same(tag, etag))
}

fn strong(tag: &str, etag: &str) -> bool {
    tag == etag
}

fn weak(tag: &str, etag: &str) -> bool {
    tag.strip_prefix("W/").unwrap_or(tag) == etag
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: axum::http::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, axum::http::HeaderValue::from_static(value))])
    }

    #[test]
    fn preconditions_are_judged_as_the_rfc_says() {
        let etag = "\"a\"";
        for (name, value, expected) in [
            (IF_NONE_MATCH, "\"a\"", PreconditionOutcome::NotModified),
            (IF_NONE_MATCH, "W/\"a\"", PreconditionOutcome::NotModified),
            (IF_NONE_MATCH, "\"b\", \"a\"", PreconditionOutcome::NotModified),
            (IF_NONE_MATCH, "*", PreconditionOutcome::NotModified),
            (IF_NONE_MATCH, "\"b\"", PreconditionOutcome::Proceed),
            (IF_MATCH, "\"a\"", PreconditionOutcome::Proceed),
            (IF_MATCH, "*", PreconditionOutcome::Proceed),
            (IF_MATCH, "W/\"a\"", PreconditionOutcome::Failed),
            (IF_MATCH, "\"b\"", PreconditionOutcome::Failed),
        ] {
            assert_eq!(evaluate(&headers(name, value), etag), expected, "{value}");
        }
        assert!(range_counts(&headers(IF_RANGE, "\"a\""), etag));
        assert!(!range_counts(&headers(IF_RANGE, "W/\"a\""), etag));
        assert!(range_counts(&HeaderMap::new(), etag));
    }
}
