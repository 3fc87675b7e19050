//! The client of the API server that the other rooms use.

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

/// The longest time of one call, from its first byte to its last. Watches have limits of their own.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the client waits for the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a new connection, including TLS.
    pub connect: Duration,
    /// For the answer to one call ([`ApiServer::call`]).
    pub call: Duration,
    /// The longest silence on a connection. A watch asks the API server to end it after 200 s, so a longer silence
    /// means that the connection is dead.
    pub silence: Duration,
    /// The shortest time between two checks whether files with credentials have changed. They are checked before a
    /// call.
    pub look_again: Duration,
    /// For one run of a credential plugin.
    pub plugin: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            call: CALL_TIMEOUT,
            silence: Duration::from_secs(230),
            look_again: Duration::from_secs(10),
            plugin: Duration::from_secs(30),
        }
    }
}

/// A client of the API server. Clones share their connections.
#[derive(Clone)]
pub struct ApiServer {
    client: Client,
    address: String,
    proxy: Option<String>,
    credentials: String,
    call_timeout: Duration,
    /// Reads the files and builds the client again; `None` if the client was made elsewhere.
    connection: Option<Arc<Connection>>,
}

impl ApiServer {
    /// Reads and checks everything that `access` names. It sends nothing, so the API server may still be down, and starts
    /// no credential plugin. Must be called inside a tokio runtime.
    pub fn connect(access: &Access) -> Result<Self, ConnectError> {
        Self::connect_with(access, Timeouts::default())
    }

    /// Like [`Self::connect`], with other timeouts.
    pub fn connect_with(access: &Access, timeouts: Timeouts) -> Result<Self, ConnectError> {
        let connection = Arc::new(Connection::open(access, timeouts)?);
        Ok(Self {
            client: Arc::clone(&connection).client(),
            address: connection.address().to_owned(),
            proxy: connection.proxy().map(ToString::to_string),
            credentials: access.to_string(),
            call_timeout: timeouts.call,
            connection: Some(connection),
        })
    }

    /// Uses a client that was made elsewhere, such as one that calls a server in this process.
    pub fn with_client(client: Client, address: &str, call_timeout: Duration) -> Self {
        let (address, credentials) = (address.to_owned(), "its client says".to_owned());
        Self { client, address, proxy: None, credentials, call_timeout, connection: None }
    }

    /// Returns the same API server with every call counted in `metrics`.
    pub fn counted(self, metrics: Metrics) -> Self {
        Self { client: counted(self.client, metrics), ..self }
    }

    /// Reads kubeconfig, tokens and certificates again, even if they have not changed.
    pub async fn read_again(&self) {
        if let Some(connection) = &self.connection {
            connection.look().await;
        }
    }

    /// The longest time of one call.
    pub fn call_timeout(&self) -> Duration {
        self.call_timeout
    }

    /// The client for watches, and for calls inside of [`Self::call`]. It does not retry by itself, and it follows
    /// changes of the files.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The connection; `None` if the client was made elsewhere.
    pub(super) fn connection(&self) -> Option<&Arc<Connection>> {
        self.connection.as_ref()
    }

    /// The address, without credentials.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The namespace of the kubeconfig's context, if one was read.
    pub fn context_namespace(&self) -> Option<&str> {
        self.connection.as_ref().and_then(|connection| connection.context_namespace())
    }

    /// The address with the proxy on the way there, for people.
    pub fn way(&self) -> String {
        match &self.proxy {
            Some(proxy) => format!("{} through the proxy {proxy}", self.address),
            None => self.address.clone(),
        }
    }

    /// The source of the credentials, for people: `the pod's service account`.
    pub fn credentials(&self) -> &str {
        &self.credentials
    }

    /// Waits until there is a credential to send. Only a plugin takes time, and that time is not the API server's.
    pub async fn credential(&self) -> Result<(), ApiFailure> {
        match &self.connection {
            Some(connection) => connection.newest().await.map(drop).map_err(ApiFailure::from),
            None => Ok(()),
        }
    }

    /// Waits for the answer to one call, at most for the call timeout.
    pub async fn call<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, ApiFailure> {
        self.credential().await?;
        within(self.call_timeout, call).await
    }
}

/// Shows only the address, because the rest holds credentials.
impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer").field("address", &self.address).finish_non_exhaustive()
    }
}
