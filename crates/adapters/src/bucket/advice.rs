//! Explains the codes of stores: what each one means, and what an admin changes.

use hyper::http::header::DATE;
use hyper::http::{HeaderMap, StatusCode};
use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};

use super::answer::{element, header};

/// Stores accept signatures whose time differs by up to 15 minutes. A smaller difference is worth a look, too.
const LARGE_DIFFERENCE: SignedDuration = SignedDuration::from_mins(5);

/// What the answer means. `code` is the store's name for the error.
pub(super) fn advice(
    status: StatusCode,
    code: Option<&str>,
    headers: &HeaderMap,
    body: &str,
) -> Option<String> {
    if [StatusCode::FORBIDDEN, StatusCode::UNAUTHORIZED].contains(&status)
        && let Some(clocks) = clocks(headers)
    {
        return Some(clocks);
    }
    if status.is_redirection() || status == StatusCode::BAD_REQUEST {
        let region = header(headers, "x-amz-bucket-region").or_else(|| element(body, "Region"));
        if let Some(region) = region {
            return Some(format!("the bucket is in the region {region} (--store-region {region})"));
        }
    }
    let text = match code? {
        "InvalidAccessKeyId" | "XAdminUserNotFound" => "the store does not know the access key",
        "SignatureDoesNotMatch" => "the secret key does not belong to the access key",
        "ExpiredToken" => "the temporary credentials have expired",
        "InvalidToken" | "TokenRefreshRequired" => {
            "the session token is damaged, or belongs to another key (AWS_SESSION_TOKEN)"
        }
        "AccountIsDisabled" | "AccountProblem" | "AllAccessDisabled" | "NotSignedUp" => {
            "the provider has closed the bucket or its account: ask its owner why"
        }
        "AuthenticationFailed" | "InvalidAuthenticationInfo" => {
            "the key, the signature or the token is not one of the account"
        }
        "AuthorizationHeaderMalformed" => "is it the right region? (--store-region)",
        "PermanentRedirect" | "TemporaryRedirect" => {
            "the bucket is at another address (--store-endpoint, --store-region)"
        }
        "RequestTimeTooSkewed" => "the clock here and that of the store differ: one of them is wrong",
        "SecondLevelDomainForbidden" => {
            "the store wants the bucket as a part of the host name (--store-addressing virtual)"
        }
        "BlobArchived" | "InvalidObjectState" => {
            "a rule of the bucket has moved the object to an archive: restore it there, and let the rule leave out the \
             prefix"
        }
        "BadDigest" | "XAmzContentSHA256Mismatch" => "the bytes were changed on their way",
        "MissingContentMD5" => NO_CHECKSUM,
        _ if body.contains("Content-MD5") => NO_CHECKSUM,
        _ if ["Object Lock", "object lock", "WORM", "retention"].iter().any(|word| body.contains(word)) => {
            "the bucket keeps its objects for a time, so nothing could be deleted in it: use one without object lock or \
             retention"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

const NO_CHECKSUM: &str = "the store wants a checksum in a header with each write, as buckets with object lock do; cloakroom \
                           sends none: use a bucket without object lock";

/// That the clocks differ, if the store says a time.
fn clocks(headers: &HeaderMap) -> Option<String> {
    let store = rfc2822::parse(headers.get(DATE)?.to_str().ok()?).ok()?.timestamp();
    let own = Timestamp::now();
    if own.duration_since(store).abs() < LARGE_DIFFERENCE {
        return None;
    }
    Some(format!("the clock here says {own:.0}, and that of the store {store:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, code: &str, body: &str, header: (&'static str, &'static str)) -> Option<String> {
        let headers = HeaderMap::from_iter([(header.0.parse().unwrap(), header.1.parse().unwrap())]);
        advice(StatusCode::from_u16(status).unwrap(), Some(code), &headers, body)
    }

    #[test]
    fn answers_are_told_by_what_is_to_be_changed() {
        let none = ("x-other", "-");
        let region = "<Error><Region>eu-west-1</Region></Error>";
        for (status, code, body, header, expected) in [
            (400, "AuthorizationHeaderMalformed", region, none, "--store-region eu-west-1"),
            (301, "PermanentRedirect", "", ("x-amz-bucket-region", "eu-west-1"), "--store-region eu-west-1"),
            (307, "TemporaryRedirect", "", none, "--store-endpoint"),
            (403, "SignatureDoesNotMatch", "", none, "the secret key does not"),
            (403, "InvalidAccessKeyId", "", none, "the access key"),
            (400, "InvalidToken", "", none, "AWS_SESSION_TOKEN"),
            (403, "AllAccessDisabled", "", none, "has closed the bucket"),
            (403, "AuthenticationFailed", "", none, "is not one of the account"),
            (403, "SecondLevelDomainForbidden", "", none, "--store-addressing virtual"),
            (
                403,
                "RequestTimeTooSkewed",
                "",
                ("date", "Sat, 03 Jan 2015 04:05:06 GMT"),
                "the store 2015-01-03T04:05:06Z",
            ),
            (
                400,
                "InvalidRequest",
                "Content-MD5 OR x-amz-checksum- HTTP header is required",
                none,
                "object lock",
            ),
            (400, "InvalidRequest", "Object is WORM protected", none, "retention"),
            (400, "XAmzContentSHA256Mismatch", "", none, "changed on their way"),
            (403, "RequestTimeTooSkewed", "", none, "the clock here and that of the store differ"),
        ] {
            let told = of(status, code, body, header);
            assert!(told.as_ref().is_some_and(|told| told.contains(expected)), "{code}: {told:?}");
        }
    }

    #[test]
    fn nothing_is_guessed() {
        let now = rfc2822::to_string(&Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC)).unwrap().leak();
        for (status, code, body, header) in [
            (403, "AccessDenied", "", ("date", &*now)),
            (403, "AccessDenied", "<Region>eu-west-1</Region>", ("x-amz-bucket-region", "eu-west-1")),
            (400, "InvalidArgument", "<Region>of a SECRET</Region>", ("date", "yesterday")),
        ] {
            assert_eq!(of(status, code, body, header), None, "{code}");
        }
    }
}
