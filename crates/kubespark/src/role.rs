//! Decides which command a properties file is for. kubespark's images get the path of a file as their only argument.

use thiserror::Error;

use cloakroom_spark::Properties;
use cloakroom_spark::keys::{INIT_CONTAINER_ONLY, SERVER_ONLY};

/// The command for a properties file that is the only argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `cloakroom serve`
    Serve,
    /// `cloakroom fetch`
    Fetch,
}

/// The reason why a properties file names no command.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RoleError {
    /// The file has no key that belongs to only one command.
    #[error(
        "{file} has neither a staging server's key, such as `{}`, nor an init-container's, such as `{}`, \
         so it is not known what to do; set one of them, or write `cloakroom serve` or `cloakroom fetch`",
        cloakroom_spark::keys::SERVER_PORT,
        cloakroom_spark::keys::SERVER_URI
    )]
    Neither { file: String },
    /// The file has keys of both commands.
    #[error(
        "{file} has a staging server's key, `{server_key}` on line {server_line}, and an init-container's, \
         `{init_key}` on line {init_line}, so it is not known what to do; remove one of them, or write \
         `cloakroom serve` or `cloakroom fetch`"
    )]
    Both { file: String, server_key: String, server_line: usize, init_key: String, init_line: usize },
}

impl Role {
    /// Decides by the keys that belong to only one command. `spark.ssl.kubernetes.resourceStagingServer.enabled`
    /// belongs to both, so it does not count.
    pub fn read(properties: &Properties) -> Result<Self, RoleError> {
        let first_of = |patterns: &[&str]| {
            properties.iter().find(|property| patterns.iter().any(|pattern| matches(pattern, property.key)))
        };
        match (first_of(&SERVER_ONLY), first_of(&INIT_CONTAINER_ONLY)) {
            (Some(_), None) => Ok(Self::Serve),
            (None, Some(_)) => Ok(Self::Fetch),
            (None, None) => Err(RoleError::Neither { file: properties.file().to_owned() }),
            (Some(server), Some(init)) => Err(RoleError::Both {
                file: properties.file().to_owned(),
                server_key: server.key.to_owned(),
                server_line: server.line,
                init_key: init.key.to_owned(),
                init_line: init.line,
            }),
        }
    }
}

fn matches(pattern: &str, key: &str) -> bool {
    key == pattern || (pattern.ends_with('.') && key.starts_with(pattern))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloakroom_spark::keys;

    fn role(text: &str) -> Result<Role, RoleError> {
        Role::read(&Properties::parse("f.properties", text).unwrap())
    }

    #[test]
    fn kubesparks_own_files_decide_by_themselves() {
        let server = "spark.kubernetes.resourceStagingServer.port=10000\n\
                      spark.ssl.kubernetes.resourceStagingServer.enabled=false\n";
        assert_eq!(role(server), Ok(Role::Serve));
        let init = "spark.kubernetes.resourceStagingServer.uri=http://h:10000\n\
                    spark.ssl.kubernetes.resourceStagingServer.enabled=true\n";
        assert_eq!(role(init), Ok(Role::Fetch));
    }

    #[test]
    fn every_key_of_one_role_decides_alone() {
        for key in [
            keys::SERVER_UNUSED_TIMEOUT.name(),
            keys::API_SERVER_URL.name(),
            keys::AUTHENTICATE_OAUTH_TOKEN_FILE.name(),
            keys::TLS_SERVER_CERT_PEM.name(),
            keys::TLS_KEY_STORE.name(),
        ] {
            assert_eq!(role(key), Ok(Role::Serve), "{key}");
        }
        for key in [
            keys::INIT_REMOTE_JARS.name(),
            keys::MOUNT_TIMEOUT.name(),
            keys::TLS_CLIENT_CERT_PEM.name(),
            keys::TLS_TRUST_STORE.name(),
        ] {
            assert_eq!(role(key), Ok(Role::Fetch), "{key}");
        }
    }

    #[test]
    fn a_file_without_a_key_of_either_role_is_refused() {
        for text in ["", "spark.ssl.kubernetes.resourceStagingServer.enabled=true", "other=1"] {
            let message = role(text).unwrap_err().to_string();
            assert!(message.starts_with("f.properties has neither"), "{message}");
            assert!(message.contains("resourceStagingServer.port"), "{message}");
        }
    }

    #[test]
    fn a_file_with_keys_of_both_roles_is_refused_with_both_lines() {
        let text = "spark.kubernetes.resourceStagingServer.uri=http://h\n\
                    # a comment\n\
                    spark.kubernetes.resourceStagingServer.port=1\n";
        let message = role(text).unwrap_err().to_string();
        assert_eq!(
            message,
            "f.properties has a staging server's key, `spark.kubernetes.resourceStagingServer.port` on line 3, and an \
             init-container's, `spark.kubernetes.resourceStagingServer.uri` on line 1, so it is not known what to do; \
             remove one of them, or write `cloakroom serve` or `cloakroom fetch`"
        );
    }
}
