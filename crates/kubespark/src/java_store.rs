//! The shell commands that convert Java key stores and trust stores into PEM files.
//!
//! Cloakroom reads no Java stores; users convert them once. The commands ask for passwords and never contain one.

use std::path::Path;

use cloakroom_core::text::shell_word;

/// The commands that write `key.pem` and `cert.pem` from a key store. Without a type, `keytool` detects it.
pub(super) fn key_store_to_pem(store: &Path, store_type: Option<&str>) -> String {
    let store = shell_word(&store.display().to_string());
    let (first, pkcs12) = match store_type {
        Some(kind) if kind.eq_ignore_ascii_case("PKCS12") => (String::new(), store),
        kind => (
            format!(
                "    keytool -importkeystore -srckeystore {store}{} -destkeystore staging-server.p12 -deststoretype PKCS12\n",
                option("-srcstoretype", kind)
            ),
            "staging-server.p12".to_owned(),
        ),
    };
    format!(
        "{first}    openssl pkcs12 -in {pkcs12} -nodes -nocerts -out key.pem\n    \
         openssl pkcs12 -in {pkcs12} -nokeys -out cert.pem"
    )
}

/// The command that writes `ca.pem`: every certificate of a trust store, under any alias.
pub fn trust_store_to_pem(store: &Path, store_type: Option<&str>) -> String {
    format!(
        "    keytool -list -rfc -keystore {}{} > ca.pem",
        shell_word(&store.display().to_string()),
        option("-storetype", store_type)
    )
}

fn option(name: &str, value: Option<&str>) -> String {
    value.map_or_else(String::new, |value| format!(" {name} {}", shell_word(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // These lines were run with the keytool of OpenJDK 17 and OpenSSL 3.0 on stores of both types.

    #[test]
    fn a_key_store_of_java_goes_through_pkcs12() {
        assert_eq!(
            key_store_to_pem(Path::new("/mnt/my store.jks"), Some("JKS")),
            "    keytool -importkeystore -srckeystore '/mnt/my store.jks' -srcstoretype JKS \
             -destkeystore staging-server.p12 -deststoretype PKCS12\n    \
             openssl pkcs12 -in staging-server.p12 -nodes -nocerts -out key.pem\n    \
             openssl pkcs12 -in staging-server.p12 -nokeys -out cert.pem"
        );
    }

    #[test]
    fn a_pkcs12_store_needs_no_keytool() {
        assert_eq!(
            key_store_to_pem(Path::new("/mnt/s.p12"), Some("pkcs12")),
            "    openssl pkcs12 -in /mnt/s.p12 -nodes -nocerts -out key.pem\n    \
             openssl pkcs12 -in /mnt/s.p12 -nokeys -out cert.pem"
        );
    }

    #[test]
    fn a_store_without_a_type_is_left_to_keytool_to_recognise() {
        assert!(
            key_store_to_pem(Path::new("s"), None)
                .starts_with("    keytool -importkeystore -srckeystore s -destkeystore staging-")
        );
        assert_eq!(trust_store_to_pem(Path::new("t"), None), "    keytool -list -rfc -keystore t > ca.pem");
    }

    #[test]
    fn a_hostile_path_stays_one_word_of_the_shell() {
        assert_eq!(
            trust_store_to_pem(Path::new("a'; rm -rf $HOME;'"), Some("J KS")),
            r"    keytool -list -rfc -keystore 'a'\''; rm -rf $HOME;'\''' -storetype 'J KS' > ca.pem"
        );
    }
}
