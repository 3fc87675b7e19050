//! Which image the staging server says that init-containers are to have.

use crate::plan::{PlanError, Question};
use cloakroom_core::text::chain;
use cloakroom_transfer::client::{HttpClient, Timeouts, Told};

/// Asks the server. It may know none.
pub async fn advertised(question: &Question, told: Told<'_>) -> Result<Option<String>, PlanError> {
    let http = HttpClient::trusting(&question.trusted, Timeouts::default())
        .map_err(|error| PlanError::NoClient { problem: chain(&error) })?;
    let server = &question.server;
    let asked = http.retried(server, question.policy, told, || http.server_info(server));
    let info = asked.await.map_err(|given_up| PlanError::ServerNotAsked {
        server: server.to_string(),
        given_up: Box::new(given_up),
        named: question.named,
    })?;
    Ok(info.fetch_image)
}
