//! What somebody who stages can do where the staging server does not do what it should: the settings by the names that they were
//! given by.

use crate::client::Failure;
use crate::spark::{Origin, SparkConf, keys};

/// How the settings that lead to the staging server were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// As Spark's settings.
    BySettings,
    /// By the flags of `cloakroom stage`.
    ByFlags,
}

impl Named {
    /// As the server's address was given.
    pub(super) fn of(conf: &SparkConf) -> Self {
        match conf.origin(&keys::SERVER_URI) {
            Some(Origin::Option(_)) => Self::ByFlags,
            _ => Self::BySettings,
        }
    }

    /// What has the address.
    pub(super) fn address(self) -> String {
        match self {
            Self::BySettings => format!("`{}`", keys::SERVER_URI),
            Self::ByFlags => "--server".to_owned(),
        }
    }

    /// What has the init-container's image.
    pub(super) fn image(self) -> String {
        match self {
            Self::BySettings => format!("`{}`", keys::INIT_CONTAINER_IMAGE),
            Self::ByFlags => "--fetch-image".to_owned(),
        }
    }

    fn certificate(self) -> String {
        match self {
            Self::BySettings => format!("`{}`", keys::TLS_CLIENT_CERT_PEM),
            Self::ByFlags => "--ca-file".to_owned(),
        }
    }

    fn trust(self) -> String {
        match self {
            Self::BySettings => {
                format!("`{}=true` and `{}=FILE`", keys::TLS_ENABLED, keys::TLS_CLIENT_CERT_PEM)
            }
            Self::ByFlags => "--ca-file FILE".to_owned(),
        }
    }
}

/// What to check; it ends a sentence. Nothing where the server itself has said what to do.
pub(super) fn advice(failure: &Failure, named: Named) -> Option<String> {
    let address = named.address();
    Some(match failure {
        Failure::Refused | Failure::ConnectTimeout { .. } | Failure::Unreachable { .. } => format!(
            "check the address ({address}), that the server runs, and that no firewall or NetworkPolicy stands in between"
        ),
        Failure::UnknownHost { .. } => format!("check the host name in {address}, and this machine's DNS"),
        Failure::UnknownIssuer => {
            format!("trust its CA's certificate, or its own, with {}", named.trust())
        }
        Failure::Tls { .. } => format!(
            "check that the server speaks TLS at its address ({address}), its certificate, and which one is trusted ({})",
            named.certificate()
        ),
        Failure::Foreign { .. } | Failure::Redirected { .. } => {
            format!("check the address ({address}): its host, port and path, and whether it is http or https")
        }
        Failure::Broken { .. } | Failure::Stalled { .. } | Failure::NoAnswer { .. } => {
            format!("check the address ({address}), the network in between, and the server's log")
        }
        Failure::Answered(answer) if answer.code.is_none() && matches!(answer.status, 400 | 404 | 405) => {
            format!("check the address ({address}), its port and its path")
        }
        other => return other.advice().map(str::to_owned),
    })
}

/// The same behind what has happened.
pub(super) fn and_advice(failure: &Failure, named: Named) -> String {
    advice(failure, named).map(|advice| format!("; {advice}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_named_as_they_were_given() {
        let failures = [
            Failure::Refused,
            Failure::UnknownHost { why: String::new() },
            Failure::Foreign { why: String::new() },
        ];
        for (named, trust, address) in [
            (
                Named::BySettings,
                "`spark.ssl.kubernetes.resourceStagingServer.enabled=true` and \
                 `spark.ssl.kubernetes.resourceStagingServer.clientCertPem=FILE`",
                "`spark.kubernetes.resourceStagingServer.uri`",
            ),
            (Named::ByFlags, "with --ca-file FILE", "--server"),
        ] {
            let untrusted = advice(&Failure::UnknownIssuer, named).unwrap();
            assert!(untrusted.contains(trust), "{untrusted}");
            assert_eq!(untrusted.contains("spark."), named == Named::BySettings, "{untrusted}");
            for failure in &failures {
                let advice = advice(failure, named).unwrap();
                assert!(advice.contains(address), "{advice}");
                assert_eq!(advice.contains("spark."), named == Named::BySettings, "{advice}");
            }
        }
    }
}
