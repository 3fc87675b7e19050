//! The reasons why an exchange with a server fails, and what to check.

use std::error::Error as StdError;
use std::io::ErrorKind;
use std::time::Duration;

use super::answer::{Answer, one_line};
use cloakroom_core::time::format_duration;
use cloakroom_outbound::causes::find;
use cloakroom_outbound::proxies::Proxy;
use cloakroom_outbound::refusal::Refusal;
use cloakroom_outbound::tls::{NO_HTTP, TlsFailure};

/// The reason why one exchange with a server failed. The text says why, and [`Failure::advice`] what to check. Neither
/// contains the address, and neither can contain a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No process listens at the address.
    #[error("connection refused")]
    Refused,
    /// The host name does not resolve.
    #[error("the host name does not resolve ({why})")]
    UnknownHost { why: String },
    /// The connection was not there in time.
    #[error("no connection within {}", format_duration(*.after))]
    ConnectTimeout { after: Duration },
    /// The connection failed for another reason.
    #[error("no connection ({why})")]
    Unreachable { why: String },
    /// TLS failed.
    #[error("{0}")]
    Tls(TlsFailure),
    /// The proxy cannot be reached, or opens no connection.
    #[error("no connection through the proxy {0}")]
    Proxy(Refusal),
    /// The variable that should name the proxy names none.
    #[error("{why}")]
    Unusable { why: String },
    /// The connection broke, or its data ended early.
    #[error("the connection broke ({why})")]
    Broken { why: String },
    /// No bytes moved in either direction.
    #[error("nothing came for {}", format_duration(*.after))]
    Stalled { after: Duration },
    /// The request was sent, and no answer came.
    #[error("no answer within {}", format_duration(*.after))]
    NoAnswer { after: Duration },
    /// The carrier of the requests, such as the API server, refused or failed.
    #[error("{why}")]
    Way {
        why: String,
        /// The status of its answer; `None` if it gave none.
        status: Option<u16>,
        /// Whether the same request may succeed a moment later.
        is_transient: bool,
        /// Whether the server may have taken the request all the same.
        may_have_arrived: bool,
    },
    /// The API server gave no token for the upload.
    #[error("{why}")]
    NoToken {
        why: String,
        /// Whether the same request may succeed a moment later.
        is_transient: bool,
    },
    /// The server answered with an error.
    #[error("{0}")]
    Answered(Answer),
    /// The answer is not of the expected protocol or server.
    #[error("{why}")]
    Foreign { why: String },
    /// The answer redirects to an address that is not followed.
    #[error("{why}")]
    Redirected { why: String },
}

impl Failure {
    /// Whether the same request may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Refused
            | Self::UnknownHost { .. }
            | Self::ConnectTimeout { .. }
            | Self::Unreachable { .. }
            | Self::Broken { .. }
            | Self::Stalled { .. }
            | Self::NoAnswer { .. } => true,
            Self::Proxy(refusal) => refusal.is_transient(),
            Self::Way { is_transient, .. } | Self::NoToken { is_transient, .. } => *is_transient,
            Self::Answered(answer) => matches!(answer.status, 408 | 429 | 502..=504),
            Self::Tls(_) | Self::Unusable { .. } | Self::Foreign { .. } | Self::Redirected { .. } => false,
        }
    }

    /// How long the server wants the client to wait; `None` if the server does not say.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Answered(answer) => answer.retry_after,
            _ => None,
        }
    }

    /// The status of the answer; `None` if there is none.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Answered(answer) => Some(answer.status),
            Self::Way { status, .. } => *status,
            _ => None,
        }
    }

    /// Whether the exchange broke while bytes were moving, so that the number of bytes is worth showing. The server may
    /// have taken them all.
    pub fn is_interruption(&self) -> bool {
        let has_gone_on = matches!(self, Self::Stalled { .. } | Self::NoAnswer { .. });
        has_gone_on || matches!(self, Self::Broken { .. } | Self::Way { may_have_arrived: true, .. })
    }

    /// Whether a connection broke, here or further on the way. A gateway that waited in vain (504) has seen none break.
    pub fn is_break(&self) -> bool {
        match self {
            Self::Broken { .. } => true,
            Self::Way { may_have_arrived, status, .. } => *may_have_arrived && *status != Some(504),
            _ => false,
        }
    }

    /// Whether the server took the request and did not answer. Another attempt may then take just as long.
    pub fn is_silence(&self) -> bool {
        matches!(self, Self::NoAnswer { .. })
    }

    /// What to check, as the end of a sentence. `None` if the answer already says what to do, as every cloakroom
    /// server's answer does.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::Refused => "check that it is running and reachable from here",
            Self::UnknownHost { .. } => "check the host name and this machine's DNS",
            Self::ConnectTimeout { .. } | Self::Unreachable { .. } => {
                "check the address, and that no firewall or NetworkPolicy stands in between"
            }
            Self::Tls(TlsFailure::UnknownIssuer) => {
                "give the certificate of its CA, or its own, with --ca-file (clientCertPem for an init-container)"
            }
            Self::Tls(TlsFailure::WrongName(_)) => {
                "use a name from its certificate, or give it a certificate with this one as subjectAltName"
            }
            Self::Tls(_) => "check that it speaks TLS at this address, and its certificate",
            Self::Proxy(refusal) => refusal.advice(),
            Self::Broken { .. } | Self::Stalled { .. } | Self::NoAnswer { .. } => {
                "check the network in between and the server's log"
            }
            Self::Answered(answer) => return advice_on(answer),
            Self::Unusable { .. } | Self::Way { .. } | Self::NoToken { .. } => return None,
            Self::Foreign { .. } => "check the address, its port, and whether it is http or https",
            Self::Redirected { .. } => "check the address",
        })
    }
}

fn advice_on(answer: &Answer) -> Option<&'static str> {
    match answer.status {
        _ if answer.code.is_some() => None,
        // An upload is sent with its length after the first such answer.
        411 => Some(
            "a proxy in between asks for a length that was sent: its admin lets Content-Length pass, or give an address of the \
             server that leads past it (--server, the server's --public-url, NO_PROXY)",
        ),
        _ if answer.proxy.is_some() && answer.status != 407 => Some(
            "check what this proxy allows and reaches, or add the server's host to NO_PROXY; if the answer is the server's, its \
             log says more",
        ),
        500..=599 => Some("check the server's log, and that its pod is ready"),
        407 => Some(
            "write a user and a password that it accepts into its variable: http://USER:PASSWORD@HOST:3128",
        ),
        413 => Some(
            "a proxy in between takes no larger body: raise its limit (client_max_body_size of nginx, proxy-body-size of its \
             Ingress)",
        ),
        401 | 403 => Some("check the secret or token that was given"),
        _ => Some("check the address"),
    }
}

/// Classifies an error of reqwest. Its text is never used, because it can contain the URL, and a URL can be secret.
/// `proxy` is the one that the request went through.
pub(super) fn classify(error: &reqwest::Error, proxy: Option<&Proxy>, connect_timeout: Duration) -> Failure {
    if error.is_redirect() {
        return Failure::Redirected { why: deepest(error) };
    }
    if let Some(error) = find::<rustls::Error>(error) {
        return Failure::Tls(error.into());
    }
    if error.is_connect() {
        let failure = connect_failure(error, connect_timeout);
        return match proxy {
            // Behind a proxy the host itself is looked up and reached by the proxy.
            Some(proxy) => {
                let told = Refusal::from_error(error, proxy)
                    .filter(|_| matches!(failure, Failure::Unreachable { .. }));
                Failure::Proxy(told.unwrap_or_else(|| Refusal::new(proxy, &failure.to_string())))
            }
            None => failure,
        };
    }
    if find::<hyper::Error>(error).is_some_and(hyper::Error::is_parse) {
        return Failure::Foreign { why: NO_HTTP.to_owned() };
    }
    Failure::Broken { why: broken(error) }
}

fn connect_failure(error: &reqwest::Error, connect_timeout: Duration) -> Failure {
    let why = deepest(error);
    if error.is_dns() {
        return Failure::UnknownHost { why };
    }
    match find::<std::io::Error>(error).map(std::io::Error::kind) {
        Some(ErrorKind::ConnectionRefused) => Failure::Refused,
        Some(ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe) => {
            Failure::Broken { why }
        }
        _ if error.is_timeout() => Failure::ConnectTimeout { after: connect_timeout },
        _ => Failure::Unreachable { why },
    }
}

/// The reason for a connection that the other end closed.
const CLOSED: &str = "the server closed it";

fn broken(error: &reqwest::Error) -> String {
    match find::<hyper::Error>(error) {
        Some(error) if error.is_incomplete_message() => CLOSED.to_owned(),
        // Over TLS, this is a connection that was closed without TLS's close message. rustls's own text is for
        // programmers.
        _ if find::<std::io::Error>(error).is_some_and(|error| error.kind() == ErrorKind::UnexpectedEof) => {
            CLOSED.to_owned()
        }
        _ => deepest(error),
    }
}

/// The message of the innermost error, which is the most exact one and never contains the URL.
fn deepest(error: &reqwest::Error) -> String {
    let mut last: Option<&dyn StdError> = None;
    let mut next = error.source();
    while let Some(error) = next {
        last = Some(error);
        next = error.source();
    }
    one_line(&last.map_or_else(|| "no reason given".to_owned(), ToString::to_string))
}

#[cfg(test)]
mod tests {
    use rustls::CertificateError;

    use super::*;

    #[test]
    fn certificates_fail_with_what_to_do_about_it() {
        let tls = |error| Failure::Tls((&rustls::Error::InvalidCertificate(error)).into());
        for unknown in [CertificateError::UnknownIssuer, CertificateError::BadSignature] {
            let untrusted = tls(unknown);
            assert_eq!(untrusted, Failure::Tls(TlsFailure::UnknownIssuer));
            assert!(untrusted.advice().unwrap().contains("--ca-file"));
        }
        let other_name = tls(CertificateError::NotValidForName);
        assert!(other_name.advice().unwrap().contains("subjectAltName"));
        assert!(!other_name.is_transient());
    }

    #[test]
    fn only_failures_that_may_pass_are_tried_again() {
        let answered = |status| {
            Failure::Answered(Answer {
                status,
                code: None,
                detail: String::new(),
                retry_after: None,
                proxy: None,
            })
            .is_transient()
        };
        let transient: Vec<u16> = (400..600).filter(|status| answered(*status)).collect();
        assert_eq!(transient, [408, 429, 502, 503, 504]);
        assert!(Failure::Refused.is_transient());
    }
}
