//! Removes objects of earlier runs of `cloakroom stage --for`: config maps and secrets without an owner whose files are
//! gone.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::stream::StreamExt as _;
use rand::seq::SliceRandom as _;
use serde_json::Value;
use tokio::time::timeout;

use super::plan::external_submitter::{LABEL, MANAGED_BY, MANAGER};
use super::plan::{Tickets, tickets_of};
use super::stage::{StagePlan, Stager};
use cloakroom_cluster::calls::{Calls, ObjectPath};
use cloakroom_cluster::{ApiFailure, ApiServer};

/// The longest time for all of it. It is a service beside the real work.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The largest number of objects of one kind that are read.
const MOST_OBJECTS: usize = 500;

/// The largest number of runs that are checked. They are chosen at random. Otherwise runs that stay would hide the
/// others.
const MOST_RUNS: usize = 50;

/// Removes the objects of earlier runs in `namespace` if the server of `plan` says that it has deleted all their
/// tickets. Returns the names of the removed secrets. Objects stay if they belong to another server, if the server
/// gives no answer, or if they were changed. If the role does not allow it, nothing is removed.
pub async fn remove_leftovers(
    server: &ApiServer,
    namespace: &str,
    stager: &dyn Stager,
    plan: &StagePlan,
) -> Vec<String> {
    let mut removed = Vec::new();
    let calls = Calls::new(server, namespace);
    let removing = async {
        let runs = runs(&calls).await?;
        let is_ours = |run: &Run| Some(run.tickets.server.as_str()) == plan.objects.server();
        let mut ours: Vec<Run> = runs.into_iter().filter(is_ours).collect();
        ours.shuffle(&mut rand::rng());
        ours.truncate(MOST_RUNS);
        let mut gone = stager.gone(plan, ours.iter().map(|run| run.tickets.tickets.clone()).collect());
        while let Some(index) = gone.next().await {
            removed.extend(ours[index].remove(&calls).await?);
        }
        Ok::<(), ApiFailure>(())
    };
    if let Ok(Err(failure)) = timeout(LONGEST_WAIT, removing).await {
        tracing::debug!(error = %failure, "leftovers of earlier runs stay");
    }
    removed.sort();
    removed
}

/// The objects of one earlier run.
struct Run {
    tickets: Tickets,
    config_map: Option<Value>,
    secret: Value,
}

/// The earlier runs whose objects have the form in which they were created.
async fn runs(calls: &Calls) -> Result<Vec<Run>, ApiFailure> {
    let selector = format!("{MANAGED_BY}={MANAGER},{LABEL}");
    let mut by_run: BTreeMap<String, [Vec<Value>; 2]> = BTreeMap::new();
    for (kind, plural) in ["configmaps", "secrets"].into_iter().enumerate() {
        for object in calls.list(plural, &selector, MOST_OBJECTS).await? {
            let run = object["metadata"]["labels"][LABEL].as_str().unwrap_or_default().to_owned();
            by_run.entry(run).or_default()[kind].push(object);
        }
    }
    Ok(by_run.into_values().filter_map(run).collect())
}

/// A run of one secret and at most one config map, both without an owner. It is `None` for any other set of objects.
fn run([config_maps, secrets]: [Vec<Value>; 2]) -> Option<Run> {
    let is_free = |object: &Value| object["metadata"]["ownerReferences"].is_null();
    if !config_maps.iter().chain(&secrets).all(is_free) || config_maps.len() > 1 {
        return None;
    }
    let Ok([secret]) = <[Value; 1]>::try_from(secrets) else { return None };
    let config_map = config_maps.into_iter().next();
    Some(Run { tickets: tickets_of(config_map.as_ref(), &secret)?, config_map, secret })
}

impl Run {
    /// Deletes the objects, each only with the unique id that was seen. The secret comes last: without it, the next run
    /// could not ask the server. Returns the secret's name, unless another run has removed it at the same time.
    async fn remove(&self, calls: &Calls) -> Result<Option<String>, ApiFailure> {
        let mut is_removed = false;
        let config_map = self.config_map.iter().map(|object| ("ConfigMap", object));
        for (kind, object) in config_map.chain([("Secret", &self.secret)]) {
            // The items of a list have no `kind` and no `apiVersion`.
            let mut whole = object.clone();
            (whole["apiVersion"], whole["kind"]) = ("v1".into(), kind.into());
            let Ok(path) = ObjectPath::new(&whole, calls.namespace()) else { continue };
            match calls.delete(&path, object["metadata"]["uid"].as_str()).await {
                Ok(_) => is_removed = true,
                Err(ApiFailure::NotFound { .. } | ApiFailure::Refused { code: 409, .. }) => {
                    is_removed = false;
                }
                Err(failure) => return Err(failure),
            }
        }
        let name = self.secret["metadata"]["name"].as_str().map(str::to_owned);
        Ok(name.filter(|_| is_removed))
    }
}
