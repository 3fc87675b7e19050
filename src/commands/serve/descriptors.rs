//! How many connections and bundles the limit of open files allows.

use super::settings::ServeSettings;
use crate::cli::ServeArgs;
use cloakroom_server::descriptors::{self, Allotment, Demand};

/// Raises the limit as far as possible, and divides it. Warns if it is too low for what the flags allow. It is an error
/// if it is too low for any use.
pub fn allot(args: &ServeArgs, settings: &ServeSettings) -> anyhow::Result<Allotment> {
    let demand = demand(args, settings);
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
pub fn summary(args: &ServeArgs, allotment: &Allotment) -> String {
    let (connections, requested) = (allotment.connections, args.network.max_connections);
    if connections < requested {
        format!("{connections} of {requested}: the limit of open files is too low")
    } else {
        connections.to_string()
    }
}

fn demand(args: &ServeArgs, settings: &ServeSettings) -> Demand {
    let watches = settings.cluster.as_ref().map_or(0, |_| {
        let namespaces =
            settings.server.namespaces.as_ref().map_or(1, |namespaces| namespaces.iter().count());
        // Pods have two watches: of all pods, and of unfinished ones.
        namespaces.saturating_mul(settings.server.owner_kinds.count() + 1)
    });
    Demand {
        connections: args.network.max_connections,
        has_operations: args.network.ops_listen.is_some(),
        uploads: args.storage.max_concurrent_uploads,
        downloads: args.storage.max_concurrent_downloads,
        watches,
    }
}
