//! From a request to what is sent: what it needs is collected, the staging server is asked where only it knows, and then it
//! is planned.

use crate::submit::events::Log;
use crate::submit::inputs::Inputs;
use crate::submit::plan::handover::{self, Handover, HandoverRequest};
use crate::submit::plan::{self, Facts, Needs, PlanError, Question, Request};
use crate::submit::stage::Stager;
use crate::submit::{Drawn, Submission};

/// Plans an application.
pub async fn planned(
    request: &Request,
    inputs: &dyn Inputs,
    stager: &dyn Stager,
    drawn: &Drawn,
    log: &Log,
) -> Result<Submission, PlanError> {
    let needs = plan::needs(request)?;
    let facts = collected(inputs, &needs, stager, log, |facts| plan::question(request, facts, drawn)).await?;
    let submission = plan::plan(request, &facts, drawn)?;
    log.warn(&submission.warnings);
    Ok(submission)
}

/// Plans what is staged for an application that is not submitted here.
pub async fn handed_over(
    request: &HandoverRequest,
    inputs: &dyn Inputs,
    stager: &dyn Stager,
    drawn: &Drawn,
    log: &Log,
) -> Result<Handover, PlanError> {
    let needs = handover::needs(request)?;
    let facts =
        collected(inputs, &needs, stager, log, |facts| handover::question(request, facts, drawn)).await?;
    let handover = handover::hand_over(request, &facts, drawn)?;
    log.warn(&handover.warnings);
    Ok(handover)
}

async fn collected(
    inputs: &dyn Inputs,
    needs: &Needs,
    stager: &dyn Stager,
    log: &Log,
    question: impl FnOnce(&Facts) -> Result<Option<Question>, PlanError> + Send,
) -> Result<Facts, PlanError> {
    let mut facts = inputs.collect(needs).await;
    if let Some(question) = question(&facts)? {
        facts.image = Some(stager.image(&question, log).await?);
    }
    Ok(facts)
}
