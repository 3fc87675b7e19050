//! `spark.kubernetes.authenticate.submission.*`: the submitter's credentials for the API server.

use std::path::PathBuf;

use cloakroom_core::text::SecretText;

use super::conf::{SettingError, SparkConf};
use super::keys::{self, SUBMISSION_TOKEN};
use super::uri::DependencyUri;

/// The credentials in the settings. The kubeconfig or the pod's service account provides what is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubmissionCredentials {
    /// The bearer token; excludes `oauth_token_file`.
    pub oauth_token: Option<SecretText>,
    /// The file of the bearer token; excludes `oauth_token`.
    pub oauth_token_file: Option<PathBuf>,
    /// The PEM file of the trusted CA certificate.
    pub ca_cert_file: Option<PathBuf>,
    /// The PEM file of the client certificate's key; set if and only if `client_cert_file` is.
    pub client_key_file: Option<PathBuf>,
    /// The PEM file of the client certificate; set if and only if `client_key_file` is.
    pub client_cert_file: Option<PathBuf>,
    /// Whether every certificate of the API server is accepted.
    pub trust_certificates: bool,
}

impl SubmissionCredentials {
    /// Reads and checks the keys. Opens no file.
    pub fn from(conf: &SparkConf) -> Result<Self, SettingError> {
        // Spark's client ignores an empty token.
        let token = conf.get(&keys::SUBMISSION_TOKEN).map(str::trim).filter(|token| !token.is_empty());
        let oauth_token = token.map(SecretText::new);
        let oauth_token_file = path(conf, &keys::SUBMISSION_TOKEN_FILE)?;
        if conf.contains(&keys::SUBMISSION_TOKEN) && oauth_token_file.is_some() {
            let problem = format!("`{SUBMISSION_TOKEN}` is set as well; remove one of them");
            return Err(conf.refuse(&keys::SUBMISSION_TOKEN_FILE, problem));
        }
        let path_if_given = |key: &str| if is_given(conf, key) { path(conf, key) } else { Ok(None) };
        let client_key_file = path_if_given(&keys::SUBMISSION_CLIENT_KEY_FILE)?;
        let client_cert_file = path_if_given(&keys::SUBMISSION_CLIENT_CERT_FILE)?;
        for (one, is_set, other) in [
            (keys::SUBMISSION_CLIENT_KEY_FILE, client_cert_file.is_none(), keys::SUBMISSION_CLIENT_CERT_FILE),
            (keys::SUBMISSION_CLIENT_CERT_FILE, client_key_file.is_none(), keys::SUBMISSION_CLIENT_KEY_FILE),
        ] {
            if is_given(conf, &one) && is_set {
                return Err(conf.refuse(&one, format!("`{other}` is not set; set both or neither")));
            }
        }
        Ok(Self {
            oauth_token,
            oauth_token_file,
            ca_cert_file: path_if_given(&keys::SUBMISSION_CA_CERT_FILE)?,
            client_key_file,
            client_cert_file,
            trust_certificates: conf.read(&keys::TRUST_CERTIFICATES)?.unwrap_or_default(),
        })
    }

    /// Whether they contain a token or a client certificate.
    pub fn identify(&self) -> bool {
        self.oauth_token.is_some() || self.oauth_token_file.is_some() || self.client_cert_file.is_some()
    }
}

/// Whether a key has a value. Spark's client takes no notice of certificates with an empty name, and opens a token's file
/// of any name.
fn is_given(conf: &SparkConf, key: &str) -> bool {
    conf.get(key).is_some_and(|value| !value.is_empty())
}

/// A file of this machine: a path, with or without `file:` or `local:`.
fn path(conf: &SparkConf, key: &str) -> Result<Option<PathBuf>, SettingError> {
    let Some(text) = conf.get(key) else { return Ok(None) };
    match DependencyUri::parse(text) {
        Ok(DependencyUri::Submitter(file) | DependencyUri::Image(file)) => {
            Ok(Some(file.whole_path().to_owned()))
        }
        _ => Err(conf.refuse(key, "it must be the path of a file of this machine")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;

    fn read(settings: &[(&str, &str)]) -> Result<SubmissionCredentials, String> {
        let mut conf = SparkConf::default();
        for (key, value) in settings {
            conf.set(key, *value, Origin::Conf);
        }
        SubmissionCredentials::from(&conf).map_err(|error| error.to_string())
    }

    #[test]
    fn a_token_and_a_token_file_exclude_each_other_and_no_token_is_shown() {
        let message =
            read(&[(keys::SUBMISSION_TOKEN.name(), "hunter2"), (keys::SUBMISSION_TOKEN_FILE.name(), "/t")])
                .unwrap_err();
        assert!(
            message.contains(keys::SUBMISSION_TOKEN_FILE.name()) && !message.contains("hunter2"),
            "{message}"
        );
        let credentials = read(&[(keys::SUBMISSION_TOKEN.name(), "hunter2")]).unwrap();
        assert!(credentials.identify() && !format!("{credentials:?}").contains("hunter2"));
        assert!(!read(&[(keys::SUBMISSION_TOKEN.name(), " ")]).unwrap().identify());
    }

    #[test]
    fn empty_names_of_certificates_count_as_not_set() {
        let names = [
            keys::SUBMISSION_CA_CERT_FILE,
            keys::SUBMISSION_CLIENT_KEY_FILE,
            keys::SUBMISSION_CLIENT_CERT_FILE,
        ];
        for name in &names {
            assert_eq!(read(&[(name.name(), "")]), Ok(SubmissionCredentials::default()), "{name}");
        }
        let half = [(names[1].name(), ""), (names[2].name(), "/c.pem")];
        assert!(read(&half).unwrap_err().ends_with("is not set; set both or neither"));
        let token_file = read(&[(keys::SUBMISSION_TOKEN_FILE.name(), "")]).unwrap_err();
        assert!(token_file.contains("is empty: "), "{token_file}");
    }

    #[test]
    fn a_certificate_needs_its_key() {
        let message = read(&[(keys::SUBMISSION_CLIENT_CERT_FILE.name(), "/c.pem")]).unwrap_err();
        assert!(
            message.ends_with(&format!(
                "`{}` is not set; set both or neither",
                keys::SUBMISSION_CLIENT_KEY_FILE
            )),
            "{message}"
        );
        let both = read(&[
            (keys::SUBMISSION_CLIENT_CERT_FILE.name(), "/c.pem"),
            (keys::SUBMISSION_CLIENT_KEY_FILE.name(), "file:/k.pem"),
        ])
        .unwrap();
        assert_eq!(both.client_key_file, Some(PathBuf::from("/k.pem")));
    }
}
