//! Turns settings into the objects that Spark would send. It checks everything, and reads and sends nothing.
//!
//! [`needs()`] says which places to look at. [`Begun`] finds which files travel, and says which contents to read. The
//! features are read into the [`Application`]. [`plan()`] adds Spark's `features` and then ours to the driver.

mod aliases;
mod application;
mod checks;
mod dependencies;
mod download_folders;
mod error;
pub mod external_submitter;
mod facts;
mod features;
pub(crate) mod fetch_container;
mod folder;
mod init_container;
mod left_to_spark;
mod memory;
mod metadata;
mod names;
mod needs;
mod object_sizes;
mod ports;
mod read_keys;
mod request;
mod source;
mod spec;
mod stage_plan;
mod submitter;
mod template;
#[cfg(test)]
mod tests;
mod volumes;
mod yaml_reason;

use std::collections::BTreeMap;

use serde_json::Value;

use super::{FollowSettings, Submission};
use cloakroom_spark::{MainResource, Origin, arguments, keys};
use spec::DriverSpec;

pub use application::{Application, Begun, needs};
pub use cloakroom_spark::version::NEWEST_SPARK;
pub use error::PlanError;
pub use facts::{Facts, Kind, PathFacts, Uncollected, Unread};
pub use init_container::InitObjects;
pub(super) use init_container::{Tickets, tickets_of};
pub use needs::{FileKey, How, Needs, is_pattern};
pub use read_keys::file_keys;
pub use request::{Answer, Asking, Question, Request};
pub use submitter::Submitter;

/// Makes the objects of a submission. The same request, facts and draws give the same objects. The result of a preview
/// cannot be submitted. `answer` is the staging server's, if there was a question.
pub fn plan(mut application: Application, answer: Option<Answer>) -> Result<Submission, PlanError> {
    application.answered(answer)?;
    let follow = checks::follow_settings(&application.context.conf)?;
    let mut spec = beginning(&application);
    for feature in std::mem::take(&mut application.features) {
        feature.add(&application.context, &mut spec)?;
    }
    object_sizes::check(&application, &spec)?;
    let submission = submission(application, spec, follow)?;
    check_names(&submission)?;
    Ok(submission)
}

/// The driver before the first feature: the template, and every setting as a property.
fn beginning(application: &Application) -> DriverSpec {
    let context = &application.context;
    // Our keys and variables mean nothing to the driver, and the submitter's passwords are not for it.
    let is_of_variable =
        |key: &str| context.conf.origin(key) == Some(&Origin::Variable(arguments::CA_VARIABLE));
    let is_ours = |key: &str| {
        key.starts_with(keys::CLOAKROOM_PREFIX)
            || keys::SUBMITTERS_PASSWORDS.contains(&key)
            || is_of_variable(key)
    };
    let settings = context.conf.iter().filter(|(key, _)| !is_ours(key));
    let mut properties: BTreeMap<String, String> =
        settings.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    // Spark sets these too, even if they are empty: `spark.jars` for JVM applications only.
    let time = context.now.as_millisecond().to_string();
    properties.entry(keys::SUBMIT_TIME.to_owned()).or_insert(time);
    properties.entry(keys::PY_FILES.to_owned()).or_default();
    if matches!(application.resource, MainResource::Java(_)) {
        properties.entry(keys::JARS.to_owned()).or_default();
    }
    let template = application.template.clone();
    DriverSpec {
        pod: template.pod,
        metadata: template.metadata,
        spec: template.spec,
        container: template.container,
        properties,
        warnings: application.warnings.clone(),
        ..DriverSpec::default()
    }
}

fn submission(
    application: Application,
    mut spec: DriverSpec,
    follow: FollowSettings,
) -> Result<Submission, PlanError> {
    let (before_pod, after_pod) = (std::mem::take(&mut spec.before_pod), std::mem::take(&mut spec.after_pod));
    let warnings = std::mem::take(&mut spec.warnings);
    let pod = spec.into_pod();
    let staging = stage_plan::staging(&application)?;
    let Application { context, dependencies, .. } = application;
    Ok(Submission {
        app_name: context.app_name().to_owned(),
        driver_account: features::credentials::account(&context.conf, &pod),
        pod_name: context.pod_name(),
        pod,
        before_pod,
        after_pod,
        warnings,
        staging,
        namespace: context.namespace,
        app_id: context.names.app_id,
        uploads: dependencies.uploads,
        follow,
    })
}

/// The longest name of an object (a DNS subdomain of RFC 1123). Spark does not shorten names, except the service's.
const LONGEST_NAME: usize = 253;

fn check_names(submission: &Submission) -> Result<(), PlanError> {
    let objects = submission.before_pod.iter().chain([&submission.pod]).chain(&submission.after_pod);
    for object in objects {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let length = text(&object["metadata"]["name"]).len();
        if length > LONGEST_NAME {
            return Err(PlanError::LongName { kind: text(&object["kind"]), length });
        }
    }
    Ok(())
}
