//! What somebody who submits can do where the staging server does not do what it should: the settings by their names.

use crate::client::Failure;
use crate::spark::keys;

/// What to check; it ends a sentence. Nothing where the server itself has said what to do.
pub(super) fn advice(failure: &Failure) -> Option<String> {
    let uri = keys::SERVER_URI;
    Some(match failure {
        Failure::Refused | Failure::ConnectTimeout { .. } | Failure::Unreachable { .. } => format!(
            "check the address (`{uri}`), that the server runs, and that no firewall or NetworkPolicy stands in between"
        ),
        Failure::UnknownHost { .. } => format!("check the host name in `{uri}`, and this machine's DNS"),
        Failure::UnknownIssuer => format!(
            "trust its CA's certificate, or its own, with `{}=true` and `{}=FILE` (cloakroom stage: --ca-file)",
            keys::TLS_ENABLED,
            keys::TLS_CLIENT_CERT_PEM
        ),
        Failure::Tls { .. } => format!(
            "check that the server speaks TLS at its address (`{uri}`), its certificate, and which one is trusted (`{}`)",
            keys::TLS_CLIENT_CERT_PEM
        ),
        Failure::Foreign { .. } | Failure::Redirected { .. } => {
            format!("check the address (`{uri}`): its host, port and path, and whether it is http or https")
        }
        Failure::Broken { .. } | Failure::Stalled { .. } | Failure::NoAnswer { .. } => {
            format!("check the address (`{uri}`), the network in between, and the server's log")
        }
        Failure::Answered(answer) if answer.code.is_none() && matches!(answer.status, 400 | 404 | 405) => {
            format!("check the address (`{uri}`), its port and its path")
        }
        other => return other.advice().map(str::to_owned),
    })
}

/// The same behind what has happened.
pub(super) fn and_advice(failure: &Failure) -> String {
    advice(failure).map(|advice| format!("; {advice}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_named_and_not_the_flags_of_other_commands() {
        let untrusted = advice(&Failure::UnknownIssuer).unwrap();
        assert!(
            untrusted.contains(
                "`spark.ssl.kubernetes.resourceStagingServer.enabled=true` and \
                 `spark.ssl.kubernetes.resourceStagingServer.clientCertPem=FILE`"
            ),
            "{untrusted}"
        );
        for failure in [
            Failure::Refused,
            Failure::UnknownHost { why: String::new() },
            Failure::Foreign { why: String::new() },
        ] {
            let advice = advice(&failure).unwrap();
            assert!(advice.contains("`spark.kubernetes.resourceStagingServer.uri`"), "{advice}");
        }
    }
}
