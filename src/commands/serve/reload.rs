//! What SIGHUP makes the server read again: tokens, certificate, credentials for the API server. It looks at all of them by
//! itself as well; this is for those who do not want to wait, and for old habits.

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
    /// All that the settings were made from and that may change. The properties file and the flags stay as they are.
    pub fn of(settings: &ServeSettings) -> Self {
        let upload = match &settings.server.upload_auth {
            UploadAuth::Token(tokens) => Some(tokens.clone()),
            UploadAuth::None | UploadAuth::Kubernetes(_) => None,
        };
        Self {
            tokens: upload.into_iter().chain(settings.admin_tokens.clone()).collect(),
            tls: settings.tls.clone(),
            cluster: settings.cluster.clone(),
        }
    }

    /// Reads them each time that `hangup` comes, for ever.
    pub async fn read_again_on(self, mut hangup: Signal) {
        while hangup.recv().await.is_some() {
            tracing::info!("got SIGHUP: reading tokens, certificates and credentials again");
            let (tokens, tls) = (self.tokens.clone(), self.tls.clone());
            let reading = tokio::task::spawn_blocking(move || {
                tokens.iter().for_each(TokenFile::read_again);
                tls.iter().for_each(ServerTls::read_again);
            });
            // It says itself what it could not read.
            let _ = reading.await;
            if let Some(cluster) = &self.cluster {
                cluster.read_again().await;
            }
        }
    }
}
