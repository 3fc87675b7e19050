//! How many connections and bundles the limit of open files allows.

use super::settings::ServeSettings;
use cloakroom_server::descriptors::{self, Allotment, Demand};

/// Raises the limit as far as possible, and divides it. Warns if it is too low for what the settings allow. It is an error
/// if it is too low for any use.
pub fn allot(settings: &ServeSettings) -> anyhow::Result<Allotment> {
    let demand = demand(settings);
    let limit = descriptors::raise().unwrap_or(usize::MAX);
    let allotment = demand.allot(limit)?;
    if limit < demand.descriptors() {
        tracing::warn!(
            "the limit of open files is {limit}, and the flags could need {}: at most {} connections and {} bundles are open \
             at once; raise the limit (ulimit -n, LimitNOFILE), or lower --max-connections",
            demand.descriptors(),
            allotment.connections,
            allotment.bundles
        );
    }
    Ok(allotment)
}

/// The value for the line of `--check`.
pub fn summary(settings: &ServeSettings, allotment: &Allotment) -> String {
    let (connections, requested) = (allotment.connections, settings.connections.max);
    if connections < requested {
        format!("{connections} of {requested}: the limit of open files is too low")
    } else {
        connections.to_string()
    }
}

fn demand(settings: &ServeSettings) -> Demand {
    let watches = settings.cluster.as_ref().map_or(0, |_| {
        let namespaces = settings.http.namespaces.as_ref().map_or(1, |namespaces| namespaces.iter().count());
        // Pods have two watches: of all pods, and of unfinished ones.
        namespaces.saturating_mul(settings.http.owner_kinds.count() + 1)
    });
    Demand {
        connections: settings.connections.max,
        has_operations: settings.ops_listen.is_some(),
        uploads: settings.limits.max_concurrent_uploads,
        downloads: settings.limits.max_concurrent_downloads,
        watches,
    }
}
