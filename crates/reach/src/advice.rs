//! Advice for failures of the staging server. It names each setting in the way in which the user has set it: as a
//! setting, a flag or an environment variable.

use super::choice::ServerChoice;
use cloakroom_spark::{Origin, keys};
use cloakroom_transfer::client::{Failure, TlsFailure};

/// How the user has set the staging server's place and certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedBy {
    address: Given,
    is_service: bool,
    trust: Given,
}

/// How a setting got its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    /// One of Spark's settings.
    Setting,
    /// A flag of `cloakroom stage`.
    Flag,
    /// A variable of the environment.
    Variable,
    /// The default value.
    Default,
}

impl From<&Origin> for Given {
    fn from(origin: &Origin) -> Self {
        match origin {
            Origin::Option(_) => Self::Flag,
            Origin::Variable(_) => Self::Variable,
            _ => Self::Setting,
        }
    }
}

impl NamedBy {
    /// `trust` says who has given the certificate. For one that is not given, advice names a setting, flag or variable as for the
    /// address.
    pub fn new(choice: &ServerChoice, trust: Option<&Origin>) -> Self {
        let address = choice.naming().map_or(Given::Default, |(_, said)| Given::from(&said.origin));
        Self { address, is_service: choice.address.is_none(), trust: trust.map_or(address, Given::from) }
    }

    /// The name of the setting, flag or variable of the address, or of the Service's namespace.
    pub fn address(self) -> String {
        let (setting, flag, variable) = if self.is_service {
            (&keys::CLOAKROOM_SERVER_NAMESPACE, "--server-namespace", "CLOAKROOM_SERVER_NAMESPACE")
        } else {
            (&keys::SERVER_URI, "--server", "CLOAKROOM_SERVER")
        };
        match self.address {
            Given::Setting | Given::Default => format!("`{setting}`"),
            Given::Flag => flag.to_owned(),
            Given::Variable => variable.to_owned(),
        }
    }

    /// The name of the setting or flag of the init-container's image. There is no variable for it.
    pub fn image(self) -> String {
        match self.address {
            Given::Setting | Given::Variable => format!("`{}`", keys::INIT_CONTAINER_IMAGE),
            Given::Flag => "--fetch-image".to_owned(),
            Given::Default => format!("`{}` (--fetch-image of stage)", keys::INIT_CONTAINER_IMAGE),
        }
    }

    fn certificate(self) -> String {
        match self.trust {
            Given::Setting | Given::Default => format!("`{}`", keys::TLS_CLIENT_CERT_PEM),
            Given::Flag => "--ca-file".to_owned(),
            Given::Variable => "CLOAKROOM_CA_FILE".to_owned(),
        }
    }

    fn trust(self) -> String {
        match self.trust {
            Given::Setting | Given::Default => {
                format!("`{}=true` and `{}=FILE`", keys::TLS_ENABLED, keys::TLS_CLIENT_CERT_PEM)
            }
            Given::Flag => "--ca-file FILE".to_owned(),
            Given::Variable => "CLOAKROOM_CA_FILE=FILE".to_owned(),
        }
    }
}

/// Advice as the end of a sentence. It is `None` if the server itself has said what to do.
pub fn advice(failure: &Failure, named: NamedBy) -> Option<String> {
    let address = named.address();
    if named.is_service && matches!(failure, Failure::Foreign { .. } | Failure::Redirected { .. }) {
        return Some(format!("check that the Service is that of a staging server ({address})"));
    }
    Some(match failure {
        Failure::Refused | Failure::ConnectTimeout { .. } | Failure::Unreachable { .. } => format!(
            "check the address ({address}), that the server runs, and that no firewall or NetworkPolicy stands in between"
        ),
        Failure::UnknownHost { .. } => format!("check the host name in {address}, and this machine's DNS"),
        Failure::Tls(TlsFailure::UnknownIssuer) => {
            format!("trust its CA's certificate, or its own, with {}", named.trust())
        }
        Failure::Tls(TlsFailure::Certificate(_) | TlsFailure::Other(_)) => format!(
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

/// The same advice with a semicolon before it, or an empty text.
pub fn and_advice(failure: &Failure, named: NamedBy) -> String {
    advice(failure, named).map(|advice| format!("; {advice}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Said;

    fn named(origin: Origin, trust: Option<&Origin>) -> NamedBy {
        let address = Some(Said { value: "https://h".to_owned(), origin });
        NamedBy::new(&ServerChoice { address, ..ServerChoice::default() }, trust)
    }

    #[test]
    fn settings_are_named_as_they_were_given() {
        let failures = [
            Failure::Refused,
            Failure::UnknownHost { why: String::new() },
            Failure::Foreign { why: String::new() },
        ];
        let setting = |key: &str| format!("`{key}`");
        let by_settings = format!("`{}=true` and `{}=FILE`", keys::TLS_ENABLED, keys::TLS_CLIENT_CERT_PEM);
        for (origin, trust, address) in [
            (Origin::Conf, by_settings.as_str(), setting(&keys::SERVER_URI)),
            (Origin::Option("--server"), "with --ca-file FILE", "--server".to_owned()),
            (
                Origin::Variable("CLOAKROOM_SERVER"),
                "with CLOAKROOM_CA_FILE=FILE",
                "CLOAKROOM_SERVER".to_owned(),
            ),
        ] {
            let named = named(origin.clone(), None);
            let untrusted = advice(&Failure::Tls(TlsFailure::UnknownIssuer), named).unwrap();
            assert!(untrusted.contains(trust), "{untrusted}");
            assert_eq!(untrusted.contains("spark."), origin == Origin::Conf, "{untrusted}");
            for failure in &failures {
                let advice = advice(failure, named).unwrap();
                assert!(advice.contains(&address), "{advice}");
                assert_eq!(advice.contains("spark."), origin == Origin::Conf, "{advice}");
            }
        }
    }

    #[test]
    fn a_certificate_is_named_as_it_was_given_however_the_address_was() {
        let untrusted = |trust| {
            advice(&Failure::Tls(TlsFailure::UnknownIssuer), named(Origin::Conf, Some(&trust))).unwrap()
        };
        let by_variable = untrusted(Origin::Variable("CLOAKROOM_CA_FILE"));
        assert_eq!(by_variable, "trust its CA's certificate, or its own, with CLOAKROOM_CA_FILE=FILE");
        assert!(untrusted(Origin::Conf).contains("clientCertPem=FILE"));
    }
}
