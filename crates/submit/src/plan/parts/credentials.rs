//! Credentials of the driver's own for the API server (`spark.kubernetes.authenticate.driver.*`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::plan::folder::read_file;
use crate::plan::machine::Machine;
use cloakroom_spark::{SettingError, SparkConf, keys};

/// For each credential: the setting, the key in the secret, and the end of the property with its mounted path. All
/// three are Spark's names.
pub(in crate::plan) const PARTS: [(&str, &str, &str); 4] = [
    (keys::DRIVER_TOKEN.name(), "oauth-token", "oauthTokenFile"),
    (keys::DRIVER_CA_CERT_FILE.name(), "ca-cert", "caCertFile"),
    (keys::DRIVER_CLIENT_KEY_FILE.name(), "client-key", "clientKeyFile"),
    (keys::DRIVER_CLIENT_CERT_FILE.name(), "client-cert", "clientCertFile"),
];

/// The data of the secret: base64 by key. It is empty if no setting gives the driver credentials.
pub(in crate::plan) struct Credentials(pub Map<String, Value>);

impl Credentials {
    /// Reads the files that the settings name.
    pub fn read(conf: &SparkConf, machine: Machine) -> Result<Self, SettingError> {
        let mut data = Map::new();
        for (key, name, _) in PARTS {
            let Some(value) = conf.get(key) else { continue };
            // The token is the setting's value itself; the others are files.
            let is_file = keys::find(key).is_some_and(|entry| entry.names_files);
            let bytes =
                if is_file { read_file(conf, key, value, machine)? } else { value.as_bytes().to_vec() };
            data.insert(name.to_owned(), json!(STANDARD.encode(bytes)));
        }
        Ok(Self(data))
    }
}
