//! What a failed call to the API server means.

use std::time::Duration;

use kube::core::Status;

use cloakroom_core::text::one_line;

/// A call that gave no answer, or another one than was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiFailure {
    /// `401`: the credentials are not, or no longer, good.
    #[error(
        "the API server does not accept this server's credentials (401 {message}): renew its token or certificate"
    )]
    Unauthorized {
        /// What the API server said.
        message: String,
    },
    /// `403`: the credentials are good, the role is not.
    #[error("the API server does not allow it (403 {message}): the role in manifests/ has what is needed")]
    Forbidden {
        /// What the API server said; it names verb, kind and namespace.
        message: String,
    },
    /// `404`: no such object, or no such kind.
    #[error("the API server knows no such thing (404 {message})")]
    NotFound {
        /// What the API server said.
        message: String,
    },
    /// `410`: a watch or a list is too old to be resumed and must begin anew.
    #[error("the API server has forgotten where this watch or list was (410 {message})")]
    Expired {
        /// What the API server said.
        message: String,
    },
    /// `429`: too many calls.
    #[error("the API server asks for fewer calls (429 {message})")]
    Throttled {
        /// What the API server said.
        message: String,
        /// How long it asked to wait.
        retry_after: Option<Duration>,
    },
    /// Any other answer that is not a success.
    #[error("the API server answered {code} {message}")]
    Refused {
        /// HTTP status.
        code: u16,
        /// What the API server said.
        message: String,
    },
    /// No answer in time.
    #[error("the API server did not answer within {} s", after.as_secs_f32())]
    TimedOut {
        /// How long it was waited for.
        after: Duration,
    },
    /// No connection, or one that broke.
    #[error("the API server cannot be reached: {why}")]
    Unreachable {
        /// What the network, TLS or the credentials' file said.
        why: String,
    },
    /// An answer that is not what this version understands.
    #[error("the API server's answer is not understood: {why}")]
    Unreadable {
        /// What was wrong with it.
        why: String,
    },
}

impl ApiFailure {
    /// One of a few words, for a metric's label.
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
            Self::Unreachable { .. } => "unreachable",
            Self::Unreadable { .. } => "unreadable",
        }
    }

    /// How long the API server asks to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Throttled { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// What an error in a watch's stream or an answer's status stands for.
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
            error => Self::Unreachable { why: shortened(&innermost(&error)) },
        }
    }
}

/// The layers around it only repeat that a service failed.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Text from another server goes into one line of a log. What is wrong with a pod takes the API server a few hundred
/// characters to say.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 1000;
    one_line(text, LONGEST)
}

/// Makes a call, and waits `patience` for its answer.
pub async fn within<T>(
    patience: Duration,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, ApiFailure> {
    match tokio::time::timeout(patience, call).await {
        Ok(answer) => answer.map_err(ApiFailure::from),
        Err(_) => Err(ApiFailure::TimedOut { after: patience }),
    }
}
