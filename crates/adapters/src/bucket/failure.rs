//! Turns failed calls into errors. The library's texts contain URLs with signatures. So an error has only the action, the
//! object, the status and the store's own code.

use std::error::Error as StdError;
use std::fmt::{self, Display, Formatter};

use cloakroom_core::metrics::StoreOutcome;
use cloakroom_storage::store::StoreError;
use hyper::http::StatusCode;
use object_store::client::{HttpError, HttpErrorKind};

use super::refusal::StoreRefusal;

/// Says of a store that its answer has ended early.
pub(super) const BROKEN: &str = "broke the connection";

/// Says of a store that its answer did not come.
pub(super) const LATE: &str = "did not answer in time";

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
        self.refusal().is_some_and(|refusal| refusal.is("InvalidPart"))
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
        self.refusal().is_some_and(StoreRefusal::is_absent_object)
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

    /// The answer of the store, if it is an error.
    pub fn refusal(&self) -> Option<&StoreRefusal> {
        match self {
            Self { host: None, reason: Reason::Refused(refusal) } => Some(refusal),
            _ => None,
        }
    }

    /// Whether the answer is that there is no such object, or no such bucket.
    pub fn is_absence(&self) -> bool {
        self.refusal().is_some_and(|refusal| refusal.status == StatusCode::NOT_FOUND)
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
