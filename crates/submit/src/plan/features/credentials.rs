//! The driver's credentials for the API server: a service account, or credentials of its own in a secret
//! (`spark.kubernetes.authenticate.driver.*`, `DriverKubernetesCredentialsFeatureStep`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{Context, Feature, Reader};
use crate::plan::error::PlanError;
use crate::plan::folder::read_file;
use crate::plan::needs::{FileKey, How};
use crate::plan::spec::DriverSpec;
use cloakroom_spark::{SparkConf, keys};

/// For each credential: the setting, the key in the secret, and the end of the property with its mounted path. All
/// three are Spark's names.
const PARTS: [(&str, &str, &str); 4] = [
    (keys::DRIVER_TOKEN.name(), "oauth-token", "oauthTokenFile"),
    (keys::DRIVER_CA_CERT_FILE.name(), "ca-cert", "caCertFile"),
    (keys::DRIVER_CLIENT_KEY_FILE.name(), "client-key", "clientKeyFile"),
    (keys::DRIVER_CLIENT_CERT_FILE.name(), "client-cert", "clientCertFile"),
];

/// The service account of a pod that names none (Kubernetes' admission sets it).
const DEFAULT_ACCOUNT: &str = "default";
const VOLUME: &str = "kubernetes-credentials";
const PATH: &str = "/mnt/secrets/spark-kubernetes-credentials";
/// Keys with this end have a token in clear as their value.
const TOKEN: &str = "oauthToken";
/// Spark's own text. The properties go into a config map, which is no place for tokens.
const IN_PLACE_OF_TOKENS: &str = "<present_but_redacted>";

/// The keys that name files.
pub(in crate::plan) const KEYS: [FileKey; 3] = [
    FileKey::new(keys::DRIVER_CA_CERT_FILE.name(), How::Path),
    FileKey::new(keys::DRIVER_CLIENT_KEY_FILE.name(), How::Path),
    FileKey::new(keys::DRIVER_CLIENT_CERT_FILE.name(), How::Path),
];

/// The data of the secret: base64 by key. It is empty if no setting gives the driver credentials.
pub(super) struct Credentials(Map<String, Value>);

impl Credentials {
    /// Reads the files that the settings name.
    pub fn read(from: &Reader) -> Result<Self, PlanError> {
        let Reader { conf, machine, .. } = *from;
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

impl Feature for Credentials {
    fn add(self: Box<Self>, context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
        let tokens: Vec<String> =
            spec.properties.keys().filter(|key| key.ends_with(TOKEN)).cloned().collect();
        for key in tokens {
            spec.set_property(&key, IN_PLACE_OF_TOKENS);
        }
        let Self(data) = *self;
        let account = context.conf.get(&keys::DRIVER_SERVICE_ACCOUNT);
        if data.is_empty() {
            if let Some(account) = account {
                // The second field is Kubernetes' old name for the first one. Spark sets both.
                spec.spec.insert("serviceAccountName".to_owned(), json!(account));
                spec.spec.insert("serviceAccount".to_owned(), json!(account));
            }
            return Ok(());
        }
        // Spark does not set the account beside credentials either. From 4.3 on, it warns.
        if account.is_some() {
            let key = keys::DRIVER_SERVICE_ACCOUNT;
            let warning = format!("`{key}` has no effect: the driver gets credentials by other settings");
            spec.warnings.push(warning);
        }
        add_secret(context, &data, spec);
        Ok(())
    }
}

/// The service account whose rights the driver of this pod has. It is none if settings give the driver its own
/// credentials, or name a path at which such credentials are mounted.
pub(in crate::plan) fn account(conf: &SparkConf, pod: &Value) -> Option<String> {
    let is_own =
        |rest: &str| rest.contains(TOKEN) || rest.contains("clientKey") || rest.contains("clientCert");
    if conf.prefixed(keys::OF_DRIVER_CREDENTIALS).any(|(rest, _)| is_own(rest)) {
        return None;
    }
    let named = ["serviceAccountName", "serviceAccount"].map(|field| pod["spec"][field].as_str());
    let named = named.into_iter().flatten().find(|name| !name.is_empty());
    Some(named.unwrap_or(DEFAULT_ACCOUNT).to_owned())
}

fn add_secret(context: &Context, data: &Map<String, Value>, spec: &mut DriverSpec) {
    let name = context.names.of("kubernetes-credentials");
    for (_, file, property) in PARTS {
        let key = keys::DRIVER_MOUNTED.of(&[property]);
        // If the user names a mounted file, that one counts.
        if data.contains_key(file) && !context.conf.contains(&key) {
            spec.set_property(&key, format!("{PATH}/{file}"));
        }
    }
    spec.add_volume(json!({"name": VOLUME, "secret": {"secretName": name}}));
    spec.mount(VOLUME, PATH);
    spec.after_pod.push(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "data": data,
        "immutable": true,
    }));
}
