//! The failures of calls to the API server.

use std::time::Duration;

use kube::core::Status;

use super::connection::NoClient;
use cloakroom_core::text::one_line;
use cloakroom_core::time::format_duration;
use cloakroom_outbound::causes::find;
use cloakroom_outbound::refusal::Refusal;
use cloakroom_outbound::tls::{NO_HTTP, TlsFailure};

/// A call that had no answer, or an answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiFailure {
    /// `401`: the API server rejects the credentials.
    #[error(
        "the API server does not accept this server's credentials (401 {message}): renew its token or certificate"
    )]
    Unauthorized { message: String },
    /// `403`: the credentials are valid, but the role lacks a permission.
    #[error("the API server does not allow it (403 {message}): the role in manifests/ has what is needed")]
    Forbidden { message: String },
    /// `404`: the object or the kind does not exist.
    #[error("the API server knows no such thing (404 {message})")]
    NotFound { message: String },
    /// `410`: a watch or a list is too old to be resumed and must start again.
    #[error("the API server has forgotten where this watch or list was (410 {message})")]
    Expired { message: String },
    /// `429`: the API server gets too many calls.
    #[error("the API server asks for fewer calls (429 {message})")]
    Throttled {
        message: String,
        /// The wait that the API server asks for, from `Retry-After`; `None` if it names none.
        retry_after: Option<Duration>,
    },
    /// Any other answer that is not a success.
    #[error("the API server answered {code} {message}")]
    Refused { code: u16, message: String },
    /// The answer did not come in time.
    #[error("the API server did not answer within {}", format_duration(*after))]
    TimedOut { after: Duration },
    /// There is no credential to send: the plugin gave none.
    #[error("{why}")]
    NoCredential { why: String },
    /// The connection could not be opened, or broke.
    #[error("the API server cannot be reached: {why}")]
    Unreachable { why: String },
    /// The certificate is not trusted, or is for another name.
    #[error("the API server cannot be reached: {why}")]
    Untrusted { why: String },
    /// The proxy on the way opened no connection, so nothing was sent.
    #[error(
        "the API server cannot be reached: no connection through the proxy {refusal}; {advice}",
        refusal = .0,
        advice = .0.advice()
    )]
    Proxy(Refusal),
    /// The answer does not have the expected form.
    #[error("the API server's answer is not understood: {why}")]
    Unreadable { why: String },
}

impl ApiFailure {
    /// The value of a metric's label, from a fixed set.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Unauthorized { .. } => "401",
            Self::Forbidden { .. } => "403",
            Self::NotFound { .. } => "404",
            Self::Expired { .. } => "410",
            Self::Throttled { .. } => "429",
            Self::Refused { code: 500.., .. } => "5xx",
            Self::Refused { .. } => "other",
            Self::TimedOut { .. } => "timeout",
            Self::NoCredential { .. } => "no-credential",
            Self::Unreachable { .. } | Self::Untrusted { .. } | Self::Proxy(_) => "unreachable",
            Self::Unreadable { .. } => "unreadable",
        }
    }

    /// Whether the same call may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Throttled { .. } | Self::TimedOut { .. } | Self::Unreachable { .. } => true,
            Self::Refused { code, .. } => *code >= 500,
            Self::Proxy(refusal) => refusal.is_transient(),
            _ => false,
        }
    }

    /// The time that the API server asks to wait before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Throttled { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Maps the status of an answer, or of an error in a watch's stream, to a failure.
    pub fn from_status(status: &Status) -> Self {
        let message = shortened(&status.message);
        match status.code {
            401 => Self::Unauthorized { message },
            403 => Self::Forbidden { message },
            404 => Self::NotFound { message },
            410 => Self::Expired { message },
            429 => Self::Throttled { message, retry_after: retry_after(status) },
            code => Self::Refused { code, message },
        }
    }
}

fn retry_after(status: &Status) -> Option<Duration> {
    let seconds = status.details.as_ref().map(|details| details.retry_after_seconds)?;
    (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)))
}

impl From<kube::Error> for ApiFailure {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::from_status(&status),
            kube::Error::SerdeError(error) => Self::Unreadable { why: shortened(&error.to_string()) },
            kube::Error::Service(error) if error.is::<NoClient>() => {
                Self::NoCredential { why: shortened(&error.to_string()) }
            }
            kube::Error::Service(error) if error.is::<Refusal>() => match error.downcast() {
                Ok(refusal) => Self::Proxy(*refusal),
                Err(error) => Self::Unreachable { why: shortened(&error.to_string()) },
            },
            error => {
                let why = shortened(&reason(&error));
                let detour = find::<Detour>(&error).map(|detour| detour.is_untrusted);
                if detour.unwrap_or_else(|| is_untrusted(&error)) {
                    Self::Untrusted { why }
                } else {
                    Self::Unreachable { why }
                }
            }
        }
    }
}

/// The metric's label of a call without an answer.
pub(super) fn label_of(error: &kube::Error) -> &'static str {
    match error {
        kube::Error::Service(error) if error.is::<NoClient>() => "no-credential",
        _ => "unreachable",
    }
}

/// A call that went through a proxy, which had opened a connection, and had no answer.
#[derive(Debug, thiserror::Error)]
#[error("through the proxy {proxy}: {why}")]
pub(super) struct Detour {
    /// The proxy's address without credentials, and the setting that names it.
    proxy: String,
    why: String,
    is_untrusted: bool,
}

impl Detour {
    pub(super) fn new(proxy: String, error: &kube::Error) -> Self {
        Self { proxy, why: reason(error), is_untrusted: is_untrusted(error) }
    }
}

fn is_untrusted(error: &kube::Error) -> bool {
    matches!(find::<rustls::Error>(error), Some(rustls::Error::InvalidCertificate(_)))
}

/// The reason for an error. The layers around the innermost one only say that a service failed.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(error) = find::<rustls::Error>(error) {
        return TlsFailure::from(error).to_string();
    }
    if find::<hyper::Error>(error).is_some_and(hyper::Error::is_parse) {
        return NO_HTTP.to_owned();
    }
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Makes one line for the log of a text from another server. 1000 characters are enough for the API server's reasons to
/// refuse a pod, which take a few hundred.
pub(super) fn shortened(text: &str) -> String {
    const LONGEST: usize = 1000;
    one_line(text, LONGEST)
}

/// Makes a call, and waits at most `patience` for its answer.
pub async fn within<T>(
    patience: Duration,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, ApiFailure> {
    match tokio::time::timeout(patience, call).await {
        Ok(answer) => answer.map_err(ApiFailure::from),
        Err(_) => Err(ApiFailure::TimedOut { after: patience }),
    }
}
