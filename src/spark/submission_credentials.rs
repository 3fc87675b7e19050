//! `spark.kubernetes.authenticate.submission.*`: what the submitting machine shows to the API server.

use std::path::PathBuf;

use super::conf::{SettingError, SparkConf};
use super::server_properties::OauthToken;
use super::uri::DependencyUri;

/// Bearer token, in clear: a secret. Excludes [`OAUTH_TOKEN_FILE`].
pub const OAUTH_TOKEN: &str = "spark.kubernetes.authenticate.submission.oauthToken";
/// File of the bearer token.
pub const OAUTH_TOKEN_FILE: &str = "spark.kubernetes.authenticate.submission.oauthTokenFile";
/// PEM file of the CA certificate to trust.
pub const CA_CERT_FILE: &str = "spark.kubernetes.authenticate.submission.caCertFile";
/// PEM file of the client certificate's key.
pub const CLIENT_KEY_FILE: &str = "spark.kubernetes.authenticate.submission.clientKeyFile";
/// PEM file of the client certificate.
pub const CLIENT_CERT_FILE: &str = "spark.kubernetes.authenticate.submission.clientCertFile";
/// Whether any certificate of the API server is taken.
pub const TRUST_CERTIFICATES: &str = "spark.kubernetes.trust.certificates";

/// Credentials that settings give; what they leave out, the kubeconfig or the pod's service account fills in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubmissionCredentials {
    /// Bearer token; excludes `oauth_token_file`.
    pub oauth_token: Option<OauthToken>,
    /// File of the bearer token; excludes `oauth_token`.
    pub oauth_token_file: Option<PathBuf>,
    /// PEM file of the CA certificate to trust.
    pub ca_cert_file: Option<PathBuf>,
    /// PEM file of the client certificate's key; there if and only if `client_cert_file` is.
    pub client_key_file: Option<PathBuf>,
    /// PEM file of the client certificate; there if and only if `client_key_file` is.
    pub client_cert_file: Option<PathBuf>,
    /// Whether any certificate of the API server is taken.
    pub trust_certificates: bool,
}

impl SubmissionCredentials {
    /// Reads and checks the keys; no file is opened.
    pub fn from(conf: &SparkConf) -> Result<Self, SettingError> {
        let oauth_token = conf.get(OAUTH_TOKEN).map(|token| OauthToken::new(token.trim()));
        let oauth_token_file = path(conf, OAUTH_TOKEN_FILE)?;
        if oauth_token.is_some() && oauth_token_file.is_some() {
            let problem = format!("`{OAUTH_TOKEN}` is set as well; remove one of them");
            return Err(conf.refuse(OAUTH_TOKEN_FILE, problem));
        }
        let client_key_file = path(conf, CLIENT_KEY_FILE)?;
        let client_cert_file = path(conf, CLIENT_CERT_FILE)?;
        for (one, is_set, other) in [
            (CLIENT_KEY_FILE, client_cert_file.is_none(), CLIENT_CERT_FILE),
            (CLIENT_CERT_FILE, client_key_file.is_none(), CLIENT_KEY_FILE),
        ] {
            if conf.contains(one) && is_set {
                return Err(conf.refuse(one, format!("`{other}` is not set; set both or neither")));
            }
        }
        Ok(Self {
            oauth_token,
            oauth_token_file,
            ca_cert_file: path(conf, CA_CERT_FILE)?,
            client_key_file,
            client_cert_file,
            trust_certificates: conf.boolean(TRUST_CERTIFICATES)?.unwrap_or_default(),
        })
    }

    /// Whether they say who asks.
    pub fn identify(&self) -> bool {
        self.oauth_token.is_some() || self.oauth_token_file.is_some() || self.client_cert_file.is_some()
    }
}

/// A file of this machine: a path, or `file:` or `local:` before it.
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
    use crate::spark::Origin;

    fn read(settings: &[(&str, &str)]) -> Result<SubmissionCredentials, String> {
        let mut conf = SparkConf::default();
        for (key, value) in settings {
            conf.set(*key, *value, Origin::Conf);
        }
        SubmissionCredentials::from(&conf).map_err(|error| error.to_string())
    }

    #[test]
    fn a_token_and_a_token_file_exclude_each_other_and_no_token_is_shown() {
        let message = read(&[(OAUTH_TOKEN, "hunter2"), (OAUTH_TOKEN_FILE, "/t")]).unwrap_err();
        assert!(message.contains(OAUTH_TOKEN_FILE) && !message.contains("hunter2"), "{message}");
        let credentials = read(&[(OAUTH_TOKEN, "hunter2")]).unwrap();
        assert!(credentials.identify() && !format!("{credentials:?}").contains("hunter2"));
    }

    #[test]
    fn a_certificate_needs_its_key() {
        let message = read(&[(CLIENT_CERT_FILE, "/c.pem")]).unwrap_err();
        assert!(
            message.ends_with(&format!("`{CLIENT_KEY_FILE}` is not set; set both or neither")),
            "{message}"
        );
        let both = read(&[(CLIENT_CERT_FILE, "/c.pem"), (CLIENT_KEY_FILE, "file:/k.pem")]).unwrap();
        assert_eq!(both.client_key_file, Some(PathBuf::from("/k.pem")));
    }
}
