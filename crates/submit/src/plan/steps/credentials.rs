//! How the driver shows who it is: a service account, or credentials in a secret
//! (`DriverKubernetesCredentialsFeatureStep`).

use serde_json::{Map, Value, json};

use crate::plan::application::Application;
use crate::plan::error::PlanError;
use crate::plan::parts::credentials::{Credentials, PARTS};
use crate::plan::spec::DriverSpec;
use cloakroom_spark::{SparkConf, keys};

/// What the API server gives a pod that names none.
const DEFAULT_ACCOUNT: &str = "default";
const VOLUME: &str = "kubernetes-credentials";
const PATH: &str = "/mnt/secrets/spark-kubernetes-credentials";
/// Ends of keys whose values are tokens in clear.
const TOKEN: &str = "oauthToken";
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
            spec.spec.insert("serviceAccountName".to_owned(), json!(account));
            spec.spec.insert("serviceAccount".to_owned(), json!(account));
        }
        return Ok(spec);
    }
    if account.is_some() {
        let key = keys::DRIVER_SERVICE_ACCOUNT;
        let warning = format!("`{key}` has no effect: the driver gets credentials by other settings");
        spec.warnings.push(warning);
    }
    add_secret(application, data, &mut spec);
    Ok(spec)
}

/// The service account whose rights the driver of this pod has; none where settings give it credentials of its own, or say
/// where somebody has mounted them.
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
        // Somebody may have mounted another one in the same place.
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
