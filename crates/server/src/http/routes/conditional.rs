//! Conditional requests (RFC 9110, section 13). The entity tag is the bundle's SHA-256: strong, and for ever.

use axum::http::HeaderMap;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH, IF_RANGE};

/// What the preconditions of a GET or HEAD come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Go on.
    Proceed,
    /// `304`: the client has it.
    NotModified,
    /// `412`: it is not the one that the client means.
    Failed,
}

/// Judges `If-Match`, then `If-None-Match`, in the order of section 13.2.2.
pub(super) fn evaluate(headers: &HeaderMap, etag: &str) -> Outcome {
    if headers.contains_key(IF_MATCH) && !lists(headers, &IF_MATCH, etag, strong) {
        Outcome::Failed
    } else if lists(headers, &IF_NONE_MATCH, etag, weak) {
        Outcome::NotModified
    } else {
        Outcome::Proceed
    }
}

/// Whether a `Range` counts: without `If-Range`, or with one that has this very tag. Dates never match, because no
/// `Last-Modified` is sent.
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
            (IF_NONE_MATCH, "\"a\"", Outcome::NotModified),
            (IF_NONE_MATCH, "W/\"a\"", Outcome::NotModified),
            (IF_NONE_MATCH, "\"b\", \"a\"", Outcome::NotModified),
            (IF_NONE_MATCH, "*", Outcome::NotModified),
            (IF_NONE_MATCH, "\"b\"", Outcome::Proceed),
            (IF_MATCH, "\"a\"", Outcome::Proceed),
            (IF_MATCH, "*", Outcome::Proceed),
            (IF_MATCH, "W/\"a\"", Outcome::Failed),
            (IF_MATCH, "\"b\"", Outcome::Failed),
        ] {
            assert_eq!(evaluate(&headers(name, value), etag), expected, "{value}");
        }
        assert!(range_counts(&headers(IF_RANGE, "\"a\""), etag));
        assert!(!range_counts(&headers(IF_RANGE, "W/\"a\""), etag));
        assert!(range_counts(&HeaderMap::new(), etag));
    }
}
