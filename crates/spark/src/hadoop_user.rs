//! The name of a user in Hadoop: the short name of a Kerberos principal (`KerberosName`).

use thiserror::Error;

/// The text is not a principal.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{origin} is `{name}`, which is not the name of a user: write it without @, or as a Kerberos principal, such as \
     etl@EXAMPLE.COM or etl/host@EXAMPLE.COM"
)]
pub struct NoUser {
    /// The setting that has the name, such as `--proxy-user`.
    pub origin: &'static str,
    pub name: String,
}

/// Returns the first part of `NAME[/HOST][@REALM]`. This is Hadoop's own rule without Kerberos. Any other text without
/// `@` is itself the name.
pub fn short_name<'a>(name: &'a str, origin: &'static str) -> Result<&'a str, NoUser> {
    let is_part = |part: &str| !part.is_empty() && !part.contains(['/', '@']);
    let (local, realm) = name.split_once('@').map_or((name, None), |(local, realm)| (local, Some(realm)));
    let (service, host) =
        local.split_once('/').map_or((local, None), |(service, host)| (service, Some(host)));
    if is_part(service) && [host, realm].into_iter().flatten().all(is_part) {
        return Ok(service);
    }
    if realm.is_some() { Err(NoUser { origin, name: name.to_owned() }) } else { Ok(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_name_of_a_principal_is_what_stands_before_host_and_realm() {
        for (name, short) in [
            ("analyst", "analyst"),
            ("a@R", "a"),
            ("a/b@C.D", "a"),
            ("a b@R", "a b"),
            ("a/b", "a"),
            ("a/b/c", "a/b/c"),
            ("a/", "a/"),
            ("/b", "/b"),
            ("\u{fc}@R", "\u{fc}"),
            ("a\\b", "a\\b"),
            ("", ""),
        ] {
            assert_eq!(short_name(name, "HADOOP_USER_NAME"), Ok(short), "{name}");
        }
    }

    #[test]
    fn a_name_that_is_no_principal_is_refused_with_what_said_it() {
        for name in ["@R", "a@", "a@R@S", "a/b/c@R", "a@R/x", "/b@R", "a/@R"] {
            let said = short_name(name, "--proxy-user").unwrap_err().to_string();
            assert!(
                said.starts_with(&format!("--proxy-user is `{name}`, which is not the name of a user")),
                "{said}"
            );
        }
    }
}
