//! A client that is built again when one of its files changes, because tokens, certificates and CAs rotate.
//!
//! kube itself reads token files and the CA of a pod again once a minute, but not client certificates and kubeconfigs.
//! Here the same rule holds for all of them.

use std::process::Output;
use std::sync::Arc;

use hyper::http::{Request, Response};
use kube::Client;
use kube::client::{AuthError, Body};
use tokio::sync::Mutex;

use super::access::{Access, Reading};
use super::api_server::Timeouts;
use super::client_keys;
use super::connect_error::ConnectError;
use super::throttled::with_retry_after;
use cloakroom_core::reload::{Reload, Seen};
use cloakroom_core::text::{chain, one_line};

/// How long before its expiry the certificate of a plugin is renewed.
const BEFORE_EXPIRY: jiff::SignedDuration = jiff::SignedDuration::from_secs(60);

/// Sends each request with the newest client.
pub(super) struct Connection {
    access: Access,
    timeouts: Timeouts,
    address: String,
    current: Mutex<Current>,
}

struct Current {
    client: Client,
    files: Reload,
}

impl Connection {
    /// Reads the files and builds the first client.
    pub(super) fn open(access: &Access, timeouts: Timeouts) -> Result<Self, ConnectError> {
        let reading = access.read()?;
        let (address, files) = (reading.address.clone(), Reload::new(reading.seen.clone()));
        let current = Mutex::new(Current { client: build(reading, timeouts)?, files });
        Ok(Self { access: access.clone(), timeouts, address, current })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// A client that sends all its requests through this connection.
    pub(super) fn client(self: Arc<Self>) -> Client {
        let service = tower::service_fn(move |request| Arc::clone(&self).send(request));
        Client::new(service, "default")
    }

    async fn send(self: Arc<Self>, request: Request<Body>) -> kube::Result<Response<Body>> {
        let client = self.newest().await;
        client.send(request).await.map(with_retry_after).map_err(without_output)
    }

    async fn newest(&self) -> Client {
        let mut current = self.current.lock().await;
        if current.files.is_due(self.timeouts.look_again) {
            let now = current.files.look();
            if current.files.has_changed(&now) || is_expiring(&current.client) {
                self.renew(&mut current, now).await;
            }
        }
        current.client.clone()
    }

    /// Reads all files again, even if they have not changed.
    pub(super) async fn look(&self) {
        let mut current = self.current.lock().await;
        let now = current.files.look_anew();
        self.renew(&mut current, now).await;
    }

    /// Builds a new client. If the files cannot be used, for example half-written ones, the old client stays.
    async fn renew(&self, current: &mut Current, now: Seen) {
        match current.files.take(now, self.read_again().await) {
            Some(Ok(client)) => {
                tracing::info!("read the credentials for the API server again");
                current.client = client;
            }
            Some(Err(error)) => {
                tracing::warn!(error = %chain(&error), "the credentials for the API server stay as they were");
            }
            None => {}
        }
    }

    /// Reads the files on a thread that may block, because a kubeconfig can name a plugin to run.
    async fn read_again(&self) -> Result<(Client, Seen), ConnectError> {
        let (access, timeouts, old) = (self.access.clone(), self.timeouts, self.address.clone());
        let failed = |why: String| ConnectError::Setup { address: self.address.clone(), why };
        let reading = tokio::task::spawn_blocking(move || {
            let reading = access.read()?;
            // A watch on another cluster would report all owners as absent.
            if reading.address != old {
                return Err(ConnectError::Moved { old, new: reading.address });
            }
            let seen = reading.seen.clone();
            Ok((build(reading, timeouts)?, seen))
        });
        reading.await.map_err(|error| failed(error.to_string()))?
    }
}

fn build(reading: Reading, timeouts: Timeouts) -> Result<Client, ConnectError> {
    let Reading { mut config, address, plugin, .. } = reading;
    config.default_retry = false;
    config.connect_timeout = Some(timeouts.connect);
    config.read_timeout = Some(timeouts.silence);
    config.write_timeout = Some(timeouts.silence);
    // Without this, the time that a connection waited unused in the pool would count as silence.
    config.reset_reader_on_write = true;
    client_keys::install();
    Client::try_from(config).map_err(|error| {
        let why = match (&error, plugin) {
            (kube::Error::Auth(error), Some(plugin)) => format!("{plugin} {}", plugin_failure(error)),
            (error, _) => chain(error),
        };
        ConnectError::Setup { address, why }
    })
}

fn is_expiring(client: &Client) -> bool {
    client.valid_until().is_some_and(|end| jiff::Timestamp::now() + BEFORE_EXPIRY >= end)
}

/// Removes the output of a plugin from an error: it can hold a token.
fn without_output(error: kube::Error) -> kube::Error {
    match &error {
        kube::Error::Service(source) => match source.downcast_ref::<AuthError>() {
            Some(failure) => {
                kube::Error::Service(format!("the credential plugin {}", plugin_failure(failure)).into())
            }
            None => error,
        },
        _ => error,
    }
}

/// Shows stderr only: a plugin writes its messages there, and the credential to stdout.
fn failed_run(out: &Output) -> String {
    const LONGEST: usize = 300;
    let said = String::from_utf8_lossy(&out.stderr);
    match one_line(&said, LONGEST).as_str() {
        "" => format!("failed ({}): run it by hand to see why", out.status),
        said => format!("failed ({}): {said}", out.status),
    }
}

fn plugin_failure(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecStart(error) => format!("cannot be started: {error}"),
        AuthError::AuthExecRun { out, .. } => failed_run(out),
        AuthError::MissingCommand => "has no command".to_owned(),
        _ => "gave no usable credential: run it by hand to see why".to_owned(),
    }
}
