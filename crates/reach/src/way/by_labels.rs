//! Services of staging servers that have another name than the usual one.

use cloakroom_cluster::ApiServer;
use cloakroom_cluster::calls::Calls;

/// Manifests and chart give it to all that they make.
const SELECTOR: &str = "app.kubernetes.io/name=cloakroom";

/// They give it to the Service of the operational port only.
const COMPONENT: &str = "app.kubernetes.io/component";

/// The largest number of Services that are looked at.
const MOST_SERVICES: usize = 100;

/// The names of the Services for clients in a namespace. There are none for a user who may not list them.
pub(super) async fn names(api_server: &ApiServer, namespace: &str) -> Vec<String> {
    let services = Calls::new(api_server, namespace).list("services", SELECTOR, MOST_SERVICES).await;
    let services = services.unwrap_or_default().into_iter();
    let for_clients = services.filter(|service| service["metadata"]["labels"][COMPONENT].is_null());
    let mut names: Vec<String> =
        for_clients.filter_map(|service| service["metadata"]["name"].as_str().map(str::to_owned)).collect();
    names.sort();
    names
}
