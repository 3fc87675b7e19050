//! The address that a server behind a Service names for clients outside of the cluster. Where this machine reaches it, the bytes
//! need not pass the API server.

use std::time::Duration;

use tokio::time::timeout;

use cloakroom_transfer::client::{Failure, HttpClient, ServerAddress};

/// How much longer this address may take to answer than the API server took.
const HEAD_START: Duration = Duration::from_millis(300);

/// The result of trying the address.
pub(super) enum Directly {
    /// The server answered, and its certificate was verified.
    Reached(ServerAddress),
    /// Its certificate cannot be verified. The text is a warning.
    Unverified(String),
    /// This machine does not reach it.
    No,
}

/// Asks the server at `url`. Only https proves which server that is, so no other address is tried.
pub(super) async fn ask(url: Option<&str>, http: &HttpClient, way_took: Duration) -> Directly {
    let address = url.and_then(|url| ServerAddress::parse(url).ok());
    let Some(address) = address.filter(|address| address.scheme() == "https") else { return Directly::No };
    match timeout(HEAD_START + way_took, http.server_info(&address)).await {
        Ok(Ok(_)) => Directly::Reached(address),
        Ok(Err(failure)) if is_about_the_certificate(&failure) => Directly::Unverified(format!(
            "the server is not asked at {address}, its address outside of the cluster: {failure}; to trust its CA, give \
             --ca-file or CLOAKROOM_CA_FILE"
        )),
        _ => Directly::No,
    }
}

fn is_about_the_certificate(failure: &Failure) -> bool {
    matches!(failure, Failure::Tls(_))
}
