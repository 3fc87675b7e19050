//! Plans a request: collects its files in two rounds, asks the staging server if needed, and makes the
//! plan.

use crate::events::Log;
use crate::inputs::Inputs;
use crate::plan::external_submitter::{self, ExternalRequest, ExternalSubmission};
use crate::plan::{self, Answer, PlanError, Question, Request};
use crate::stage::Stager;
use crate::{Randomness, Submission};

/// Plans an application, and reports the warnings.
pub async fn planned(
    request: &Request,
    inputs: &dyn Inputs,
    stager: &dyn Stager,
    randomness: &Randomness,
    log: &Log,
) -> Result<Submission, PlanError> {
    let mut facts = inputs.collect(&plan::needs(request)?).await?;
    let begun = plan::Begun::new(request, &facts, randomness)?;
    facts.append(inputs.collect(&begun.needs(&facts)).await?);
    let application = begun.gather(&facts)?;
    let answer = answer(application.question(), stager, log).await?;
    let submission = plan::plan(application, answer)?;
    log.warn(&submission.warnings);
    Ok(submission)
}

/// Plans the staging for an application of an external submitter, and reports the warnings.
pub async fn handed_over(
    request: &ExternalRequest,
    inputs: &dyn Inputs,
    stager: &dyn Stager,
    randomness: &Randomness,
    log: &Log,
) -> Result<ExternalSubmission, PlanError> {
    let mut facts = inputs.collect(&external_submitter::needs(request)?).await?;
    let begun = external_submitter::Begun::new(request, &facts, randomness)?;
    facts.append(inputs.collect(&begun.needs(&facts)).await?);
    let gathered = begun.gather(&facts)?;
    let answer = answer(gathered.question(), stager, log).await?;
    let external = external_submitter::hand_over(gathered, answer)?;
    log.warn(&external.warnings);
    Ok(external)
}

/// The staging server's answer, if there is a question.
async fn answer(
    question: Option<Question>,
    stager: &dyn Stager,
    log: &Log,
) -> Result<Option<Answer>, PlanError> {
    match question {
        Some(question) => stager.ask(&question, log).await.map(Some),
        None => Ok(None),
    }
}
