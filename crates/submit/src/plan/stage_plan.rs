//! The plan of staging: what goes to the server, and for which owner.

use std::sync::Arc;

use super::application::Application;
use super::dependencies::Dependencies;
use super::error::PlanError;
use super::init_container::InitContainer;
use super::names::APP_ID_LABEL;
use crate::StagePlan;
use cloakroom_core::resource::{Owner, OwnerKind, POD};
use cloakroom_transfer::bundle::PackPlan;

/// The plan for a submission. The bundles belong to the driver's pod. Only this pod has this value of
/// `spark-app-selector`.
pub(super) fn staging(application: &Application) -> Result<Option<StagePlan>, PlanError> {
    let Some(init) = &application.context.init_container else { return Ok(None) };
    let label = (APP_ID_LABEL.to_owned(), application.context.names.app_id.clone());
    let kind = OwnerKind::parse(POD).map_err(PlanError::Owner)?;
    let owner =
        Owner::new(kind, &application.context.namespace, vec![label], None).map_err(PlanError::Owner)?;
    Ok(stage_plan(init, &application.dependencies, owner))
}

/// The plan for any owner. It is `None` if nothing goes to a server.
pub(super) fn stage_plan(
    init: &InitContainer,
    dependencies: &Dependencies,
    owner: Owner,
) -> Option<StagePlan> {
    let server = init.server.as_ref()?;
    let bundle = |bundle: &Option<PackPlan>| bundle.clone().map(Arc::new);
    Some(StagePlan {
        server: server.place.clone(),
        owner,
        ttl: None,
        unused_timeout: None,
        policy: server.policy,
        may_reuse: server.may_reuse,
        named: server.named,
        token: server.token.clone(),
        uploader: server.uploader.clone(),
        trusted: server.trusted.clone(),
        jars: bundle(&dependencies.jars),
        files: bundle(&dependencies.files),
        objects: init.objects.clone(),
    })
}
