//! The API server, as the rooms above ask it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;

use super::access::Access;
use super::connect_error::ConnectError;
use super::connection::Connection;
use super::counted::counted;
use super::failure::{ApiFailure, within};
use cloakroom_core::metrics::Metrics;

/// How long one call may take, from its first byte to its last. Watches have bounds of their own.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to wait for the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection, TLS included.
    pub connect: Duration,
    /// For one call ([`ApiServer::call`]).
    pub call: Duration,
    /// The longest silence on a connection. A watch asks to be ended after 200 s, so a longer one is dead.
    pub silence: Duration,
    /// Files with credentials are looked at again before a call, at most this often.
    pub look_again: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            call: CALL_TIMEOUT,
            silence: Duration::from_secs(230),
            look_again: Duration::from_secs(10),
        }
    }
}

/// A way to ask the API server. Clones share their connections.
#[derive(Clone)]
pub struct ApiServer {
    client: Client,
    address: String,
    credentials: String,
    call_timeout: Duration,
    /// What the client is made of, unless it was made elsewhere.
    connection: Option<Arc<Connection>>,
}

impl ApiServer {
    /// Reads and checks everything that `access` names, and sends nothing: an API server that is down now may be up
    /// when it is asked. Must be called inside a tokio runtime.
    pub fn connect(access: &Access) -> Result<Self, ConnectError> {
        Self::connect_with(access, Timeouts::default())
    }

    /// The same with other timeouts.
    pub fn connect_with(access: &Access, timeouts: Timeouts) -> Result<Self, ConnectError> {
        let connection = Arc::new(Connection::open(access, timeouts)?);
        let address = connection.address().to_owned();
        let credentials = access.to_string();
        let client = Arc::clone(&connection).client();
        Ok(Self { client, address, credentials, call_timeout: timeouts.call, connection: Some(connection) })
    }

    /// An API server that is reached by a client made elsewhere, such as one in this process.
    pub fn with_client(client: Client, address: &str, call_timeout: Duration) -> Self {
        let (address, credentials) = (address.to_owned(), "its client says".to_owned());
        Self { client, address, credentials, call_timeout, connection: None }
    }

    /// The same API server, with every call counted.
    pub fn counted(self, metrics: Metrics) -> Self {
        Self { client: counted(self.client, metrics), ..self }
    }

    /// Reads kubeconfig, tokens and certificates again, changed or not.
    pub async fn read_again(&self) {
        if let Some(connection) = &self.connection {
            connection.look().await;
        }
    }

    /// How long one call may take.
    pub fn call_timeout(&self) -> Duration {
        self.call_timeout
    }

    /// For watches, and for calls inside of [`Self::call`]. It does not try again by itself, and follows files that
    /// change.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Where it is, without credentials.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Who asks, for people: `the pod's service account`.
    pub fn credentials(&self) -> &str {
        &self.credentials
    }

    /// Waits for the answer to one call, and no longer than the call timeout.
    pub async fn call<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, ApiFailure> {
        within(self.call_timeout, call).await
    }
}

/// Shows the address alone.
impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer").field("address", &self.address).finish_non_exhaustive()
    }
}
