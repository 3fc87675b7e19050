//! What the driver shows to the API server, where settings give it credentials of its own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::plan::folder::read_file;
use crate::plan::machine::Machine;
use cloakroom_spark::{SettingError, SparkConf, keys};

/// What is read, as what it goes into the secret, and which property says where it is mounted.
pub(in crate::plan) const PARTS: [(&str, &str, &str); 4] = [
    (keys::DRIVER_TOKEN.name(), "oauth-token", "oauthTokenFile"),
    (keys::DRIVER_CA_CERT_FILE.name(), "ca-cert", "caCertFile"),
    (keys::DRIVER_CLIENT_KEY_FILE.name(), "client-key", "clientKeyFile"),
    (keys::DRIVER_CLIENT_CERT_FILE.name(), "client-cert", "clientCertFile"),
];

/// Data of the secret, in base64 by their key; none where the driver gets no credentials.
pub(in crate::plan) struct Credentials(pub Map<String, Value>);

impl Credentials {
    /// Reads the files that the settings name.
    pub fn read(conf: &SparkConf, machine: Machine) -> Result<Self, SettingError> {
        let mut data = Map::new();
        for (key, name, _) in PARTS {
            let Some(value) = conf.get(key) else { continue };
            let is_file = keys::find(key).is_some_and(|entry| entry.names_files);
            let bytes =
                if is_file { read_file(conf, key, value, machine)? } else { value.as_bytes().to_vec() };
            data.insert(name.to_owned(), json!(STANDARD.encode(bytes)));
        }
        Ok(Self(data))
    }
}
