//! Credentials for the API server from settings, each with its key for messages.

use std::path::Path;

use cloakroom_cluster::{ContentSource, Credentials, Given};
use cloakroom_core::text::SecretText;
use cloakroom_kubespark::ApiServerProperties;
use cloakroom_spark::{SubmissionCredentials, keys};

/// The credentials in the staging server's properties file.
pub fn of_server(properties: &ApiServerProperties) -> Credentials {
    let ApiServerProperties { oauth_token, oauth_token_file, .. } = properties;
    Credentials {
        token: token(
            (oauth_token.as_ref(), &keys::AUTHENTICATE_OAUTH_TOKEN),
            (oauth_token_file.as_deref(), &keys::AUTHENTICATE_OAUTH_TOKEN_FILE),
        ),
        ca_cert: file(properties.ca_cert_file.as_deref(), &keys::AUTHENTICATE_CA_CERT_FILE),
        client_cert: file(properties.client_cert_file.as_deref(), &keys::AUTHENTICATE_CLIENT_CERT_FILE)
            .zip(file(properties.client_key_file.as_deref(), &keys::AUTHENTICATE_CLIENT_KEY_FILE)),
        ..Credentials::default()
    }
}

/// The credentials in a submission's settings.
pub fn of_submission(credentials: &SubmissionCredentials) -> Credentials {
    let SubmissionCredentials { oauth_token, oauth_token_file, .. } = credentials;
    Credentials {
        token: token(
            (oauth_token.as_ref(), &keys::SUBMISSION_TOKEN),
            (oauth_token_file.as_deref(), &keys::SUBMISSION_TOKEN_FILE),
        ),
        ca_cert: file(credentials.ca_cert_file.as_deref(), &keys::SUBMISSION_CA_CERT_FILE),
        client_cert: file(credentials.client_cert_file.as_deref(), &keys::SUBMISSION_CLIENT_CERT_FILE)
            .zip(file(credentials.client_key_file.as_deref(), &keys::SUBMISSION_CLIENT_KEY_FILE)),
        ..Credentials::default()
    }
}

/// A key, as messages quote it.
pub fn quoted(key: &str) -> String {
    format!("`{key}`")
}

fn file(path: Option<&Path>, key: &str) -> Option<Given<ContentSource>> {
    path.map(|path| Given::new(ContentSource::File(path.to_owned()), quoted(key)))
}

fn token(
    (text, text_key): (Option<&SecretText>, &str),
    (path, path_key): (Option<&Path>, &str),
) -> Option<Given<ContentSource>> {
    let text = text.map(|text| Given::new(ContentSource::Inline(text.clone()), quoted(text_key)));
    text.or_else(|| file(path, path_key))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use cloakroom_kubespark::StagingServerProperties;
    use cloakroom_spark::{Origin, Properties, SparkConf};

    use super::*;

    const OF_SERVER: &str = "spark.kubernetes.authenticate.resourceStagingServer";
    const OF_SUBMISSION: &str = "spark.kubernetes.authenticate.submission";
    const LEAVES: [&str; 4] = ["oauthTokenFile", "caCertFile", "clientCertFile", "clientKeyFile"];

    fn server(lines: &str) -> Credentials {
        let properties = Properties::parse(Path::new("server.properties"), lines).unwrap();
        of_server(&StagingServerProperties::from(&properties).unwrap().api_server)
    }

    fn submission(settings: &[(String, &str)]) -> Credentials {
        let mut conf = SparkConf::default();
        for (key, value) in settings {
            conf.set(key, *value, Origin::Conf);
        }
        of_submission(&SubmissionCredentials::from(&conf).unwrap())
    }

    fn expected(prefix: &str) -> Credentials {
        let given = |leaf: &str| {
            let path = PathBuf::from(format!("/{leaf}"));
            Given::new(ContentSource::File(path), format!("`{prefix}.{leaf}`"))
        };
        Credentials {
            token: Some(given(LEAVES[0])),
            ca_cert: Some(given(LEAVES[1])),
            client_cert: Some((given(LEAVES[2]), given(LEAVES[3]))),
            ..Credentials::default()
        }
    }

    #[test]
    fn each_file_is_named_by_its_key() {
        let lines = LEAVES.map(|leaf| format!("{OF_SERVER}.{leaf}=/{leaf}\n"));
        assert_eq!(server(&lines.concat()), expected(OF_SERVER));
        let values = LEAVES.map(|leaf| format!("/{leaf}"));
        let settings: Vec<_> = LEAVES
            .iter()
            .zip(&values)
            .map(|(leaf, value)| (format!("{OF_SUBMISSION}.{leaf}"), value.as_str()))
            .collect();
        assert_eq!(submission(&settings), expected(OF_SUBMISSION));
    }

    #[test]
    fn a_token_in_the_settings_is_named_by_its_key() {
        let named = |prefix: &str| {
            let token = ContentSource::Inline(SecretText::new("t0ken"));
            Some(Given::new(token, format!("`{prefix}.oauthToken`")))
        };
        assert_eq!(server(&format!("{OF_SERVER}.oauthToken=t0ken\n")).token, named(OF_SERVER));
        let settings = [(format!("{OF_SUBMISSION}.oauthToken"), "t0ken")];
        assert_eq!(submission(&settings).token, named(OF_SUBMISSION));
    }
}
