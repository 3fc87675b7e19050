//! Reads the staging server's properties file, in kubespark's format.

use std::path::PathBuf;
use std::time::Duration;

use super::reader::Reader;
use super::{PropertyError, java_store};
use cloakroom_core::text::SecretText;
use cloakroom_core::time::TimeUnit;
use cloakroom_spark::{Properties, keys};

#[cfg(test)]
mod tests;

/// The settings of `cloakroom serve` in a properties file. For missing ones the flags' defaults apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagingServerProperties {
    /// The port to listen on; with 0 the operating system chooses one.
    pub port: Option<u16>,
    /// How long a resource may stay unused; never zero.
    pub unused_timeout: Option<Duration>,
    /// The key and the certificate; `None` without TLS.
    pub tls: Option<TlsFiles>,
    /// How to reach the API server that knows the owners.
    pub api_server: ApiServerProperties,
    /// One sentence for each key without effect, with its file and line, never with its value.
    pub warnings: Vec<String>,
}

/// The files for serving TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The PEM file of the private key.
    pub key_pem: PathBuf,
    /// The PEM file of the certificate chain.
    pub cert_pem: PathBuf,
}

/// The address of the API server, and the credentials for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiServerProperties {
    /// The address, `http` or `https`; `None` means the cluster's own API server.
    pub url: Option<String>,
    /// The PEM file of the trusted CA certificate.
    pub ca_cert_file: Option<PathBuf>,
    /// The PEM file of the client certificate's key; set if and only if `client_cert_file` is.
    pub client_key_file: Option<PathBuf>,
    /// The PEM file of the client certificate; set if and only if `client_key_file` is.
    pub client_cert_file: Option<PathBuf>,
    /// The bearer token; excludes `oauth_token_file`.
    pub oauth_token: Option<SecretText>,
    /// The file of the bearer token; excludes `oauth_token`.
    pub oauth_token_file: Option<PathBuf>,
    /// Whether the mounted service account provides what is missing here; true by default.
    pub use_service_account_credentials: bool,
}

impl StagingServerProperties {
    /// Reads and checks the server's keys.
    pub fn from(properties: &Properties) -> Result<Self, PropertyError> {
        let mut reader = Reader::new(properties);
        Ok(Self {
            port: reader.port(&keys::SERVER_PORT)?,
            unused_timeout: reader.duration(&keys::SERVER_UNUSED_TIMEOUT, TimeUnit::Milliseconds)?,
            tls: tls(&mut reader)?,
            api_server: api_server(&mut reader)?,
            warnings: reader.finish("`cloakroom serve`"),
        })
    }
}

fn tls(reader: &mut Reader<'_>) -> Result<Option<TlsFiles>, PropertyError> {
    let sources = [keys::TLS_KEY_PEM.name(), &keys::TLS_SERVER_CERT_PEM, &keys::TLS_KEY_STORE];
    if !reader.boolean(&keys::TLS_ENABLED, false)? {
        let why = format!("TLS is off until `{}` is true", keys::TLS_ENABLED);
        for key in sources {
            reader.ignored(key, &why);
        }
        return Ok(None);
    }
    reader.exclusive(&keys::TLS_KEY_STORE, &keys::TLS_KEY_PEM)?;
    reader.exclusive(&keys::TLS_KEY_STORE, &keys::TLS_SERVER_CERT_PEM)?;
    if let Some(store) = reader.path(&keys::TLS_KEY_STORE)? {
        return Err(PropertyError::JavaStore {
            position: reader.position(&keys::TLS_KEY_STORE),
            key: &keys::TLS_KEY_STORE,
            commands: java_store::key_store_to_pem(&store, reader.text(&keys::TLS_KEY_STORE_TYPE)),
            next: format!(
                "set `{}` to the path of key.pem and `{}` to the path of cert.pem",
                keys::TLS_KEY_PEM,
                keys::TLS_SERVER_CERT_PEM
            ),
        });
    }
    let key = (keys::TLS_KEY_PEM.name(), reader.path(&keys::TLS_KEY_PEM)?);
    let certificate = (keys::TLS_SERVER_CERT_PEM.name(), reader.path(&keys::TLS_SERVER_CERT_PEM)?);
    match reader.both_or_neither(key, certificate)? {
        Some((key_pem, cert_pem)) => Ok(Some(TlsFiles { key_pem, cert_pem })),
        None => Err(PropertyError::TlsWithoutCertificate {
            position: reader.position(&keys::TLS_ENABLED),
            key: &keys::TLS_ENABLED,
        }),
    }
}

fn api_server(reader: &mut Reader<'_>) -> Result<ApiServerProperties, PropertyError> {
    reader.exclusive(&keys::AUTHENTICATE_OAUTH_TOKEN, &keys::AUTHENTICATE_OAUTH_TOKEN_FILE)?;
    let url = reader.http_url(&keys::API_SERVER_URL)?;
    let ca_cert_file = ca_cert_file(reader)?;
    let (client_key_file, client_cert_file) = client_certificate(reader)?;
    Ok(ApiServerProperties {
        url,
        ca_cert_file,
        client_key_file,
        client_cert_file,
        oauth_token: reader.text(&keys::AUTHENTICATE_OAUTH_TOKEN).map(SecretText::new),
        oauth_token_file: reader.path(&keys::AUTHENTICATE_OAUTH_TOKEN_FILE)?,
        use_service_account_credentials: reader.boolean(&keys::AUTHENTICATE_USE_SERVICE_ACCOUNT, true)?,
    })
}

/// kubespark has two keys for one file. As in kubespark, the key of the credentials wins.
fn ca_cert_file(reader: &mut Reader<'_>) -> Result<Option<PathBuf>, PropertyError> {
    let of_server = reader.path(&keys::API_SERVER_CA_CERT_FILE)?;
    let of_credentials = reader.path(&keys::AUTHENTICATE_CA_CERT_FILE)?;
    if of_server.is_some() && of_credentials.is_some() && of_server != of_credentials {
        let why = format!("`{}` wins", keys::AUTHENTICATE_CA_CERT_FILE);
        reader.ignored(&keys::API_SERVER_CA_CERT_FILE, &why);
    }
    Ok(of_credentials.or(of_server))
}

/// In kubespark a client certificate without its key has no effect. Here it has none either, and there is a warning.
fn client_certificate(reader: &mut Reader<'_>) -> Result<(Option<PathBuf>, Option<PathBuf>), PropertyError> {
    let key = reader.path(&keys::AUTHENTICATE_CLIENT_KEY_FILE)?;
    let certificate = reader.path(&keys::AUTHENTICATE_CLIENT_CERT_FILE)?;
    let (present, missing) = match (&key, &certificate) {
        (Some(_), None) => (keys::AUTHENTICATE_CLIENT_KEY_FILE.name(), keys::AUTHENTICATE_CLIENT_CERT_FILE),
        (None, Some(_)) => (keys::AUTHENTICATE_CLIENT_CERT_FILE.name(), keys::AUTHENTICATE_CLIENT_KEY_FILE),
        _ => return Ok((key, certificate)),
    };
    reader.ignored(present, &format!("it needs `{missing}` beside it"));
    Ok((None, None))
}
