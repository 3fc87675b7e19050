//! The driver's credentials for the API server: a service account, or credentials in a secret
//! (`DriverKubernetesCredentialsFeatureStep`).

use serde_json::{Map, Value, json};

use crate::plan::application::Application;
use crate::plan::error::PlanError;
use crate::plan::parts::credentials::{Credentials, PARTS};
use crate::plan::spec::DriverSpec;
use cloakroom_spark::{SparkConf, keys};

/// The service account of a pod that names none (Kubernetes' admission sets it).
const DEFAULT_ACCOUNT: &str = "default";
const VOLUME: &str = "kubernetes-credentials";
const PATH: &str = "/mnt/secrets/spark-kubernetes-credentials";
/// Keys with this end have a token in clear as their value.
const TOKEN: &str = "oauthToken";
/// Spark's own text. The properties go into a config map, which is no place for tokens.
const IN_PLACE_OF_TOKENS: &str = "<present_but_redacted>";

#[expect(clippy::unnecessary_wraps, reason = "a step like all others")]
pub(super) fn step(application: &Application, mut spec: DriverSpec) -> Result<DriverSpec, PlanError> {
    let tokens: Vec<String> = spec.properties.keys().filter(|key| key.ends_with(TOKEN)).cloned().collect();
    for key in tokens {
        spec.set_property(&key, IN_PLACE_OF_TOKENS);
    }
    let Credentials(data) = &application.credentials;
    let account = application.conf.get(&keys::DRIVER_SERVICE_ACCOUNT);
    if data.is_empty() {
        if let Some(account) = account {
            // The second field is Kubernetes' old name for the first one. Spark sets both.
            spec.spec.insert("serviceAccountName".to_owned(), json!(account));
            spec.spec.insert("serviceAccount".to_owned(), json!(account));
        }
        return Ok(spec);
    }
    // Spark does not set the account beside credentials either. From 4.3 on, it warns.
    if account.is_some() {
        let key = keys::DRIVER_SERVICE_ACCOUNT;
        let warning = format!("`{key}` has no effect: the driver gets credentials by other settings");
        spec.warnings.push(warning);
    }
    add_secret(application, data, &mut spec);
    Ok(spec)
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

fn add_secret(application: &Application, data: &Map<String, Value>, spec: &mut DriverSpec) {
    let name = application.names.of("kubernetes-credentials");
    for (_, file, property) in PARTS {
        let key = keys::DRIVER_MOUNTED.of(&[property]);
        // If the user names a mounted file, that one counts.
        if data.contains_key(file) && !application.conf.contains(&key) {
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
