//! A store's answer that is an error: what it means, by its status and the store's own code, and what an admin changes. A
//! refusal's body contains parts of the credentials, so nothing of it is kept but words.

use std::fmt::{self, Display, Formatter};

use cloakroom_core::metrics::StoreOutcome;
use hyper::http::header::DATE;
use hyper::http::{HeaderMap, StatusCode};
use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// Stores accept signatures whose time differs by up to 15 minutes. A smaller difference is worth a look, too.
const LARGE_DIFFERENCE: SignedDuration = SignedDuration::from_mins(5);

/// What a store means by the codes that it names its errors with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The store takes no further call at the moment.
    Throttling,
    /// The request did not arrive as it was sent. The status is 400, but the request was not wrong.
    Unfinished,
    /// The credentials are not accepted, with any status.
    Denying,
    /// Nothing can be done in this bucket.
    OfTheBucket,
    /// An object is missing, in a bucket that exists.
    AbsentObject,
    /// No later attempt helps, with the status of a conflict.
    Lasting,
    /// It is about the state of one object, with a status of the credentials or of a condition.
    OfTheObject,
    /// The bucket has no room.
    Full,
}

/// How a kind of stores names its errors. What is not named is told by its status.
#[derive(PartialEq, Eq)]
pub(super) struct Codes {
    pub meanings: &'static [(Meaning, &'static [&'static str])],
    /// What codes mean, where that says what an admin changes.
    pub advice: &'static [(&'static [&'static str], &'static str)],
}

impl fmt::Debug for Codes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Codes")
    }
}

/// An answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoreRefusal {
    pub status: StatusCode,
    /// The store's own name for the error.
    pub code: Option<String>,
    /// What codes mean in this store.
    pub codes: &'static Codes,
    /// A message that has no credentials.
    pub message: Option<String>,
    /// How an admin mends it; `None` if that is not known.
    pub advice: Option<String>,
}

impl StoreRefusal {
    /// Reads the answer. Only words are taken from its body.
    pub fn read(codes: &'static Codes, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        // Services that give out tokens answer as OAuth says.
        let of_token = || serde_json::from_slice::<Value>(body).ok()?["error"].as_str().and_then(word);
        let code = header(headers, "x-ms-error-code").or_else(|| element(&text, "Code")).or_else(of_token);
        let advice = advice(codes, status, code.as_deref(), headers, &text);
        Self { status, code, codes, message: None, advice }
    }

    fn means(&self, meaning: Meaning) -> bool {
        let mut codes = self.codes.meanings.iter().filter(|(of, _)| *of == meaning);
        codes.any(|(_, codes)| codes.iter().any(|code| self.is(code)))
    }

    /// Whether the store names the error so.
    pub fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// Whether the store takes no further call at the moment.
    pub fn is_throttling(&self) -> bool {
        self.status == StatusCode::TOO_MANY_REQUESTS || self.means(Meaning::Throttling)
    }

    /// Whether it is certain that nothing was changed, and that nothing will be.
    pub fn is_certain(&self) -> bool {
        let is_unfinished = self.status == StatusCode::REQUEST_TIMEOUT
            || self.status == StatusCode::CONFLICT && !self.means(Meaning::Lasting)
            || self.means(Meaning::Unfinished);
        let is_clear = self.status == StatusCode::NOT_IMPLEMENTED
            || !self.status.is_server_error() && !self.status.is_success();
        self.is_throttling() || self.is_full() || is_clear && !is_unfinished
    }

    fn is_full(&self) -> bool {
        self.status == StatusCode::INSUFFICIENT_STORAGE || self.means(Meaning::Full)
    }

    fn is_denial(&self) -> bool {
        let is_denied = [StatusCode::FORBIDDEN, StatusCode::UNAUTHORIZED].contains(&self.status);
        is_denied && !self.means(Meaning::OfTheObject) || self.means(Meaning::Denying)
    }

    /// Whether other calls would fail as well.
    fn is_of_all(&self) -> bool {
        !self.status.is_client_error() || self.means(Meaning::OfTheBucket)
    }

    /// Whether the condition of the call does not hold.
    pub fn is_of_a_condition(&self) -> bool {
        [StatusCode::CONFLICT, StatusCode::PRECONDITION_FAILED].contains(&self.status)
            && !self.means(Meaning::OfTheBucket)
            && !self.means(Meaning::OfTheObject)
    }

    /// Whether there is a bucket, and no such object in it.
    pub fn is_absent_object(&self) -> bool {
        self.status == StatusCode::NOT_FOUND && self.means(Meaning::AbsentObject)
    }

    /// How it counts in the metrics.
    pub fn outcome(&self) -> StoreOutcome {
        if self.is_throttling() {
            StoreOutcome::Throttled
        } else if self.is_full() {
            StoreOutcome::Full
        } else if self.is_denial() {
            StoreOutcome::Denied
        } else if self.is_of_all() {
            StoreOutcome::Unavailable
        } else if self.status == StatusCode::NOT_FOUND {
            StoreOutcome::Absent
        } else if self.is_of_a_condition() {
            StoreOutcome::Conflict
        } else {
            StoreOutcome::Failed
        }
    }
}

impl Display for StoreRefusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(message) = &self.message {
            let code = self.code.as_deref().unwrap_or_else(|| self.status.as_str());
            return write!(f, "{code}: {message}");
        }
        write!(f, "{}", self.status.as_u16())?;
        if let Some(code) = &self.code {
            write!(f, " ({code})")?;
        }
        self.advice.as_ref().map_or(Ok(()), |advice| write!(f, ": {advice}"))
    }
}

/// How an admin mends it, if the answer tells.
fn advice(
    codes: &Codes,
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
    let code = code?;
    let text = match codes.advice.iter().find(|(of, _)| of.contains(&code)) {
        Some((_, text)) => text,
        None if body.contains("Content-MD5") => NO_CHECKSUM,
        None if KEEPS_OBJECTS.iter().any(|word| body.contains(word)) => {
            "the bucket keeps its objects for a time, so nothing could be deleted in it: use one without object lock or \
             retention"
        }
        None => return None,
    };
    Some(text.to_owned())
}

/// Words of an answer of a bucket that keeps its objects for a time.
const KEEPS_OBJECTS: [&str; 4] = ["Object Lock", "object lock", "WORM", "retention"];

/// For codes of an account that the provider has closed.
pub(super) const CLOSED: &str = "the provider has closed the bucket or its account: ask its owner why";

/// The object is where it cannot be read from.
pub(super) const ARCHIVED: &str = "a rule of the bucket has moved the object to an archive: restore it there, and let the rule leave out the prefix";

/// A write was refused because it has no checksum.
pub(super) const NO_CHECKSUM: &str = "the store wants a checksum in a header with each write, as buckets with object lock do; cloakroom sends none: use a \
     bucket without object lock";

/// That the clocks differ, if the store says a time.
fn clocks(headers: &HeaderMap) -> Option<String> {
    let store = rfc2822::parse(headers.get(DATE)?.to_str().ok()?).ok()?.timestamp();
    let own = Timestamp::now();
    if own.duration_since(store).abs() < LARGE_DIFFERENCE {
        return None;
    }
    Some(format!("the clock here says {own:.0}, and that of the store {store:.0}"))
}

/// A header that is a [`word`].
pub(super) fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().and_then(word)
}

/// The text of the first XML element of that name, if it is a [`word`].
pub(super) fn element(body: &str, name: &str) -> Option<String> {
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    word(rest.split_once("</")?.0)
}

/// A short word, as stores name errors and regions. Another text could be anything.
pub(super) fn word(text: &str) -> Option<String> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    ((1..=64).contains(&text.len()) && text.bytes().all(is_word)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::azure::CODES as AZURE;
    use super::super::s3::CODES as S3;
    use super::*;

    fn of(status: u16, code: &str, body: &str, header: (&'static str, &'static str)) -> Option<String> {
        let headers = HeaderMap::from_iter([(header.0.parse().unwrap(), header.1.parse().unwrap())]);
        let both = [&S3, &AZURE]
            .map(|codes| advice(codes, StatusCode::from_u16(status).unwrap(), Some(code), &headers, body));
        both.into_iter().flatten().next()
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

    #[test]
    fn only_the_word_for_an_error_is_read() {
        for (body, expected) in [
            ("<Error><Code>AccessDenied</Code><Message>SECRET</Message></Error>", "403 (AccessDenied)"),
            ("<Error><Code>SECRET of a message</Code></Error>", "403"),
            (r#"{"error":"invalid_client","error_description":"SECRET"}"#, "403 (invalid_client)"),
            (r#"{"error":{"message":"SECRET"}}"#, "403"),
            ("SECRET", "403"),
        ] {
            let refusal = StoreRefusal::read(&S3, StatusCode::FORBIDDEN, &HeaderMap::new(), body.as_bytes());
            assert_eq!(refusal.to_string(), expected);
        }
    }
}
