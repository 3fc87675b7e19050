//! Plans a request: collects its files in two rounds, asks the staging server for the image if needed, and makes the
//! plan.

use crate::events::Log;
use crate::inputs::Inputs;
use crate::plan::external_submitter::{self, ExternalRequest, ExternalSubmission};
use crate::plan::{self, PlanError, Question, Request};
use crate::stage::Stager;
use crate::{Drawn, Submission};

/// Plans an application, and reports the warnings.
pub async fn planned(
    request: &Request,
    inputs: &dyn Inputs,
    stager: &dyn Stager,
    drawn: &Drawn,
    log: &Log,
) -> Result<Submission, PlanError> {
    let mut facts = inputs.collect(&plan::needs(request)?).await?;
    let begun = plan::Begun::new(request, &facts, drawn)?;
    facts.append(inputs.collect(&begun.needs(&facts)).await?);
    let application = begun.gather(&facts)?;
    let image = advertised(application.question(), stager, log).await?;
    let submission = plan::plan(application, image)?;
    log.warn(&submission.warnings);
    Ok(submission)
}

/// Plans the staging for an application of an external submitter, and reports the warnings.
pub async fn handed_over(
    request: &ExternalRequest,
    inputs: &dyn Inputs,
    stager: &dyn Stager,
    drawn: &Drawn,
    log: &Log,
) -> Result<ExternalSubmission, PlanError> {
    let mut facts = inputs.collect(&external_submitter::needs(request)?).await?;
    let begun = external_submitter::Begun::new(request, &facts, drawn)?;
    facts.append(inputs.collect(&begun.needs(&facts)).await?);
    let gathered = begun.gather(&facts)?;
    let image = advertised(gathered.question(), stager, log).await?;
    let external = external_submitter::hand_over(gathered, image)?;
    log.warn(&external.warnings);
    Ok(external)
}

/// The staging server's answer, if there is a question.
async fn advertised(
    question: Option<Question>,
    stager: &dyn Stager,
    log: &Log,
) -> Result<Option<String>, PlanError> {
    match question {
        Some(question) => stager.image(&question, log).await,
        None => Ok(None),
    }
}
