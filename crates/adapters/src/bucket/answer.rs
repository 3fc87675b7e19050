//! Turns failed calls into errors. The library's texts contain URLs with signatures, and a refusal's body contains parts of
//! the credentials. So an error has only the action, the object, the status and the store's own code.

use std::error::Error as StdError;
use std::fmt::{self, Display, Formatter};

use cloakroom_core::metrics::StoreOutcome;
use cloakroom_storage::store::StoreError;
use hyper::http::{HeaderMap, StatusCode};
use object_store::client::{HttpError, HttpErrorKind};
use serde_json::Value;

use super::advice::advice;

/// Says of a store that its answer has ended early.
pub(super) const BROKEN: &str = "broke the connection";

/// Says of a store that its answer did not come.
pub(super) const LATE: &str = "did not answer in time";

/// Codes that say that the store takes no further call at the moment.
const THROTTLING: [&str; 4] = ["RequestLimitExceeded", "ServerBusy", "SlowDown", "TooManyRequests"];

/// Codes for a request that did not arrive as it was sent. Their status is 400, but the request was not wrong.
const UNFINISHED: [&str; 4] = ["BadDigest", "IncompleteBody", "RequestTimeout", "XAmzContentSHA256Mismatch"];

/// Codes that say that the credentials are not accepted, with any status.
const DENYING: [&str; 4] =
    ["ExpiredToken", "InvalidAccessKeyId", "InvalidAuthenticationInfo", "InvalidToken"];

/// Codes that say that nothing can be done in this bucket.
const OF_THE_BUCKET: [&str; 8] = [
    "AccountBeingCreated",
    "AuthorizationHeaderMalformed",
    "ContainerBeingDeleted",
    "ContainerDisabled",
    "ContainerNotFound",
    "NoSuchBucket",
    "PermanentRedirect",
    "TemporaryRedirect",
];

/// Codes for a missing object in a bucket that exists.
const OF_AN_ABSENT_OBJECT: [&str; 3] = ["BlobNotFound", "FileNotFoundException", "NoSuchKey"];

/// Codes with the status of a conflict for which no later attempt helps.
const LASTING: [&str; 4] =
    ["BlobAlreadyExists", "BlobArchived", "BlobImmutableDueToPolicy", "SnapshotsPresent"];

/// Codes that are about the state of one object, with a status of the credentials or of a condition.
const OF_THE_OBJECT: [&str; 4] =
    ["BlobArchived", "BlobImmutableDueToPolicy", "InvalidObjectState", "SnapshotsPresent"];

/// Codes that say that the bucket has no room.
const FULL: [&str; 2] = ["QuotaExceeded", "XMinioStorageFull"];

/// The code of a namenode that another one should be asked in place of.
const STANDBY: &str = "StandbyException";

/// How many characters of a message are shown.
const LONGEST_MESSAGE: usize = 300;

const NO_NODE: &str = "this is not how a node of HDFS answers: check the address and the port";

const NO_KERBEROS: &str = "the cluster wants Kerberos, which cloakroom does not speak";

/// An answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoreRefusal {
    status: StatusCode,
    /// The store's own name for the error.
    code: Option<String>,
    /// The message of HDFS, which has no credentials.
    message: Option<String>,
    /// What the code means, and what an admin changes; `None` if only the code is known.
    advice: Option<String>,
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    /// The answer is an error.
    Refused(StoreRefusal),
    /// There is no connection, so nothing was asked; the text says why.
    Unreached(String),
    /// There is no answer, or only a part of it; the text says why.
    NoAnswer(String),
    /// The time for the call is over, and there is no answer.
    Late,
    /// There is an answer that cannot be read.
    Unclear,
}

/// A reason, and who is to blame for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallTrouble {
    /// The host that gives out credentials, if the trouble is there and not at the store.
    pub host: Option<String>,
    pub reason: Reason,
}

/// A call that failed.
#[derive(Debug)]
pub(super) struct CallFailure {
    action: &'static str,
    on: String,
    trouble: Box<CallTrouble>,
}

impl StoreRefusal {
    /// Reads the answer. Only words are taken from its body.
    pub fn read(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        // Services that give out tokens answer as OAuth says.
        let of_token = || serde_json::from_slice::<Value>(body).ok()?["error"].as_str().and_then(word);
        let code = header(headers, "x-ms-error-code").or_else(|| element(&text, "Code")).or_else(of_token);
        let advice = advice(status, code.as_deref(), headers, &text);
        Self { status, code, message: None, advice }
    }

    /// Reads the answer of a node of HDFS. Nearly all errors there have one status, so the exception tells them apart.
    pub fn of_hdfs(status: StatusCode, body: &[u8]) -> Self {
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        let exception = &answer["RemoteException"];
        let code = exception["exception"].as_str().and_then(word);
        let message = match exception["message"].as_str().and_then(|text| text.lines().next()) {
            Some(line) => {
                Some(line.chars().filter(|char| !char.is_control()).take(LONGEST_MESSAGE).collect())
            }
            None if status == StatusCode::UNAUTHORIZED => Some(NO_KERBEROS.to_owned()),
            None => Some(NO_NODE.to_owned()),
        };
        let status = code.as_deref().map_or(status, status_of);
        Self { status, code, message, advice: None }
    }

    /// The answer that an object is not the version that was asked for.
    pub fn of_another_version() -> Self {
        Self { status: StatusCode::PRECONDITION_FAILED, code: None, message: None, advice: None }
    }

    fn is(&self, codes: &[&str]) -> bool {
        self.code.as_deref().is_some_and(|code| codes.contains(&code))
    }

    fn is_throttling(&self) -> bool {
        self.status == StatusCode::TOO_MANY_REQUESTS || self.is(&THROTTLING)
    }

    /// Whether it is certain that nothing was changed, and that nothing will be.
    fn is_certain(&self) -> bool {
        let is_unfinished = self.status == StatusCode::REQUEST_TIMEOUT
            || self.status == StatusCode::CONFLICT && !self.is(&LASTING)
            || self.is(&UNFINISHED);
        let is_clear = self.status == StatusCode::NOT_IMPLEMENTED
            || !self.status.is_server_error() && !self.status.is_success();
        self.is_throttling() || self.is_full() || is_clear && !is_unfinished
    }

    fn is_full(&self) -> bool {
        self.status == StatusCode::INSUFFICIENT_STORAGE || self.is(&FULL)
    }

    fn is_denial(&self) -> bool {
        let is_denied = [StatusCode::FORBIDDEN, StatusCode::UNAUTHORIZED].contains(&self.status);
        is_denied && !self.is(&OF_THE_OBJECT) || self.is(&DENYING)
    }

    /// Whether other calls would fail as well.
    fn is_of_all(&self) -> bool {
        !self.status.is_client_error() || self.is(&OF_THE_BUCKET)
    }

    fn is_of_a_condition(&self) -> bool {
        [StatusCode::CONFLICT, StatusCode::PRECONDITION_FAILED].contains(&self.status)
            && !self.is(&OF_THE_BUCKET)
            && !self.is(&OF_THE_OBJECT)
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

/// The status that an exception of HDFS stands for.
fn status_of(exception: &str) -> StatusCode {
    match exception {
        "AccessControlException" | "SecurityException" | "AuthenticationException" | "InvalidToken" => {
            StatusCode::FORBIDDEN
        }
        "FileNotFoundException" => StatusCode::NOT_FOUND,
        "FileAlreadyExistsException" => StatusCode::PRECONDITION_FAILED,
        "DSQuotaExceededException"
        | "NSQuotaExceededException"
        | "QuotaByStorageTypeExceededException"
        | "MaxDirectoryItemsExceededException" => StatusCode::INSUFFICIENT_STORAGE,
        "IllegalArgumentException"
        | "InvalidPathException"
        | "ParentNotDirectoryException"
        | "PathIsNotDirectoryException"
        | "SnapshotException"
        | "UnsupportedOperationException" => StatusCode::BAD_REQUEST,
        // A namenode on standby or in safe mode, datanodes that cannot be used, and all that is rare.
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
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
fn word(text: &str) -> Option<String> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    ((1..=64).contains(&text.len()) && text.bytes().all(is_word)).then(|| text.to_owned())
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

impl Display for CallTrouble {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let who = match &self.host {
            Some(host) => {
                f.write_str("no credentials (docs/buckets.md says where they may be): ")?;
                host.as_str()
            }
            None => "the store",
        };
        match &self.reason {
            Reason::Refused(refusal) => write!(f, "{who} answered {refusal}"),
            Reason::Unreached(why) | Reason::NoAnswer(why) => write!(f, "{who} {why}"),
            Reason::Late => write!(f, "{who} {LATE}"),
            Reason::Unclear => write!(f, "{who} gave an answer that cannot be read"),
        }
    }
}

impl StdError for CallTrouble {}

impl From<CallTrouble> for object_store::Error {
    fn from(trouble: CallTrouble) -> Self {
        Self::Generic { store: "store", source: trouble.into() }
    }
}

impl CallFailure {
    /// `error` of the call that was to do `action` on `on`.
    pub fn new(action: &'static str, on: impl Display, error: &object_store::Error) -> Self {
        Self { action, on: on.to_string(), trouble: Box::new(CallTrouble::of(error)) }
    }

    /// There is no answer, or only a part of it: the store `why`.
    pub fn no_answer(action: &'static str, on: impl Display, why: &str) -> Self {
        Self { action, on: on.to_string(), trouble: Box::new(CallTrouble::no_answer(why)) }
    }

    /// The time for the call is over, and there is no answer.
    pub fn late(action: &'static str, on: impl Display) -> Self {
        let trouble = CallTrouble { host: None, reason: Reason::Late };
        Self { action, on: on.to_string(), trouble: Box::new(trouble) }
    }

    /// The failure is one of the credentials, and not of the call.
    pub fn of_credentials(mut self) -> Self {
        self.trouble.host.get_or_insert_with(|| "their source".to_owned());
        self
    }

    fn refusal(&self) -> Option<&StoreRefusal> {
        self.trouble.refusal()
    }

    /// Whether the store may have done it all the same, or may still do it. Without credentials nothing was sent.
    pub fn may_be_done(&self) -> bool {
        self.trouble.host.is_none() && self.refusal().is_none_or(|refusal| !refusal.is_certain())
    }

    /// Whether another attempt may succeed.
    pub fn is_temporary(&self) -> bool {
        match &self.trouble.reason {
            Reason::Refused(refusal) => refusal.is_throttling() || !refusal.is_certain(),
            Reason::Unreached(_) | Reason::NoAnswer(_) | Reason::Late | Reason::Unclear => true,
        }
    }

    /// Whether the store had all the time that it may take. Another attempt would double the time without an answer.
    pub fn is_late(&self) -> bool {
        self.trouble.reason == Reason::Late
    }

    /// Whether there is an answer that cannot be read.
    pub fn is_unclear(&self) -> bool {
        self.trouble.reason == Reason::Unclear
    }

    /// Whether the answer is that a part is not the one that was sent.
    pub fn is_of_a_part(&self) -> bool {
        self.refusal().is_some_and(|refusal| refusal.is(&["InvalidPart"]))
    }

    /// Whether the answer itself says what to do about it.
    pub fn is_explained(&self) -> bool {
        self.refusal().is_some_and(|refusal| refusal.advice.is_some())
    }

    /// Whether the answer may mean that the store does not know a part of the request.
    pub fn may_be_unsupported(&self) -> bool {
        self.refusal().is_some_and(|refusal| {
            let statuses =
                [StatusCode::BAD_REQUEST, StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED];
            statuses.contains(&refusal.status) && refusal.outcome() != StoreOutcome::Denied
        })
    }

    /// Whether the answer is that the object is shorter than the range that was asked for.
    pub fn is_out_of_range(&self) -> bool {
        self.refusal().is_some_and(|refusal| refusal.status == StatusCode::RANGE_NOT_SATISFIABLE)
    }

    /// Whether the answer is that there is no such object, or no such bucket.
    pub fn is_absence(&self) -> bool {
        self.trouble.is_absence()
    }

    /// Whether the answer is that there is a bucket, and no such object in it.
    pub fn is_absent_object(&self) -> bool {
        self.is_absence() && self.refusal().is_some_and(|refusal| refusal.is(&OF_AN_ABSENT_OBJECT))
    }

    /// Whether the condition of the call does not hold.
    pub fn is_conflict(&self) -> bool {
        self.is_absent_object() || self.refusal().is_some_and(StoreRefusal::is_of_a_condition)
    }
}

impl CallTrouble {
    /// The store answered an error.
    pub fn refused(refusal: StoreRefusal) -> Self {
        Self { host: None, reason: Reason::Refused(refusal) }
    }

    /// There is no answer, or only a part of it: the store `why`.
    pub fn no_answer(why: &str) -> Self {
        Self { host: None, reason: Reason::NoAnswer(why.to_owned()) }
    }

    /// There is an answer that cannot be read.
    pub fn unclear() -> Self {
        Self { host: None, reason: Reason::Unclear }
    }

    fn refusal(&self) -> Option<&StoreRefusal> {
        match self {
            Self { host: None, reason: Reason::Refused(refusal) } => Some(refusal),
            _ => None,
        }
    }

    /// Whether the answer is that there is no such object, or no such bucket.
    pub fn is_absence(&self) -> bool {
        self.refusal().is_some_and(|refusal| refusal.status == StatusCode::NOT_FOUND)
    }

    /// Whether nothing was asked, because there is no connection.
    pub fn is_unreached(&self) -> bool {
        matches!(self.reason, Reason::Unreached(_))
    }

    /// Whether another namenode of HDFS may answer.
    pub fn is_of_this_node(&self) -> bool {
        match &self.reason {
            Reason::Refused(refusal) => refusal.is(&[STANDBY]),
            Reason::Unreached(_) | Reason::NoAnswer(_) | Reason::Late => true,
            Reason::Unclear => false,
        }
    }

    /// Whether there is an answer, and it is an error.
    pub fn is_refusal(&self) -> bool {
        matches!(self.reason, Reason::Refused(_))
    }

    /// Says which datanode of HDFS cannot be reached, or does not answer.
    pub fn of_datanode(mut self, node: &str) -> Self {
        if let Reason::Unreached(why) | Reason::NoAnswer(why) = &mut self.reason {
            *why = format!("named the datanode {node}, which {why}");
        }
        self
    }

    /// Finds the cause in an error of the library.
    fn of(error: &object_store::Error) -> Self {
        let mut next: Option<&(dyn StdError + 'static)> = Some(error);
        while let Some(error) = next {
            if let Some(trouble) = error.downcast_ref::<Self>() {
                return trouble.clone();
            }
            if let Some(error) = error.downcast_ref::<HttpError>()
                && error.kind() != HttpErrorKind::Decode
                && error.source().is_none_or(|source| !source.is::<Self>())
            {
                return Self::no_answer(BROKEN);
            }
            next = error.source();
        }
        Self::unclear()
    }
}

impl Display for CallFailure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.action, self.on, self.trouble)
    }
}

impl StdError for CallFailure {}

/// The kind decides what the rest of the server does about it.
impl From<CallFailure> for StoreError {
    fn from(failure: CallFailure) -> Self {
        match failure.refusal().map_or(StoreOutcome::Unavailable, StoreRefusal::outcome) {
            StoreOutcome::Throttled => Self::Throttled(failure.into()),
            StoreOutcome::Full => Self::Full { what: "the store has no room", source: failure.into() },
            StoreOutcome::Denied => Self::Denied(failure.into()),
            StoreOutcome::Unavailable => Self::Unavailable(failure.into()),
            _ => Self::Fault(failure.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_for_an_error_is_read() {
        for (body, expected) in [
            ("<Error><Code>AccessDenied</Code><Message>SECRET</Message></Error>", "403 (AccessDenied)"),
            ("<Error><Code>SECRET of a message</Code></Error>", "403"),
            (r#"{"error":"invalid_client","error_description":"SECRET"}"#, "403 (invalid_client)"),
            (r#"{"error":{"message":"SECRET"}}"#, "403"),
            ("SECRET", "403"),
        ] {
            let refusal = StoreRefusal::read(StatusCode::FORBIDDEN, &HeaderMap::new(), body.as_bytes());
            assert_eq!(refusal.to_string(), expected);
        }
    }
}
