//! SIGHUP: the server reads tokens, certificate and credentials for the API server again. It also notices changed files
//! by itself; after the signal it does so at once.

use tokio::signal::unix::Signal;

use super::settings::ServeSettings;
use cloakroom_cluster::ApiServer;
use cloakroom_server::http::{ServerTls, TokenFile, UploadAuth};

/// The files that a running server can read again.
pub struct Files {
    tokens: Vec<TokenFile>,
    tls: Option<ServerTls>,
    cluster: Option<ApiServer>,
}

impl Files {
    /// The files of these settings. The properties file is not among them, because a running server never reads it
    /// again.
    pub fn new(settings: &ServeSettings) -> Self {
        let upload = match &settings.http.upload_auth {
            UploadAuth::Token(tokens) => Some(tokens.clone()),
            UploadAuth::None | UploadAuth::Kubernetes(_) => None,
        };
        let keys = settings.http.webhdfs.as_ref().and_then(|webhdfs| webhdfs.keys.clone());
        Self {
            tokens: [upload, settings.admin_tokens.clone(), keys].into_iter().flatten().collect(),
            tls: settings.http.tls.clone(),
            cluster: settings.cluster.clone(),
        }
    }

    /// Reads them at every `hangup`.
    pub async fn read_again_on(self, mut hangup: Signal) {
        while hangup.recv().await.is_some() {
            tracing::info!("got SIGHUP: reading tokens, certificates and credentials again");
            let (tokens, tls) = (self.tokens.clone(), self.tls.clone());
            let reading = tokio::task::spawn_blocking(move || {
                tokens.iter().for_each(TokenFile::read_again);
                tls.iter().for_each(ServerTls::read_again);
            });
            // Each of them logs what it could not read.
            let _ = reading.await;
            if let Some(cluster) = &self.cluster {
                cluster.read_again().await;
            }
        }
    }
}
