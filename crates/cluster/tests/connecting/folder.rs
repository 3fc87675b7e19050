//! A folder with credentials, and servers that look at them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cloakroom_cluster::{
    Access, ApiFailure, ApiServer, ContentSource, Credentials, Given, PropertiesAccess, Timeouts,
};
use cloakroom_core::text::SecretText;
use cloakroom_testing::scripted::{Answer, Scripted};
use cloakroom_testing::tls::{self, Pem};
use cloakroom_testing::workspace::Workspace;

pub struct CredentialFolder(Workspace);

impl CredentialFolder {
    pub fn new() -> Self {
        Self(Workspace::new())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        self.0.write(name, text)
    }

    /// Puts a file in the place of another, as Kubernetes does with what it mounts.
    pub fn replace(&self, name: &str, text: &str) {
        let new = self.write(&format!("{name}.new"), text);
        std::fs::rename(new, self.path(name)).unwrap();
    }

    /// A mounted service account: the folder `account`.
    pub fn account(&self, token: &str, ca: Option<&Path>) {
        self.write("account/token", token);
        if let Some(ca) = ca {
            std::fs::copy(ca, self.path("account/ca.crt")).unwrap();
        }
    }

    /// A certificate for this machine, signed by a CA of its own, in a folder of this name.
    pub fn certificate(&self, name: &str) -> Pem {
        std::fs::create_dir_all(self.path(name)).unwrap();
        tls::signed_by_ca(&self.path(name), &["127.0.0.1", "localhost"])
    }

    /// A server over plain HTTP on this machine, without credentials.
    pub fn in_clear(&self, server: &Scripted) -> Access {
        without_credentials(&server.url())
    }

    /// Access with these credentials, which the service account fills in.
    pub fn access(&self, url: &str, credentials: Credentials) -> Access {
        self.access_in("account", url, credentials)
    }

    /// The same where no service account is mounted.
    pub fn access_without_account(&self, url: &str, credentials: Credentials) -> Access {
        self.access_in("nowhere", url, credentials)
    }

    fn access_in(&self, folder: &str, url: &str, credentials: Credentials) -> Access {
        let account = Some(named(self.path(folder), "useServiceAccountCredentials"));
        properties(url, credentials, account)
    }
}

/// Access without credentials.
pub fn without_credentials(url: &str) -> Access {
    properties(url, Credentials::default(), None)
}

fn properties(url: &str, credentials: Credentials, account: Option<Given<PathBuf>>) -> Access {
    let url = named(url.to_owned(), "url");
    Access::Properties(Box::new(PropertiesAccess {
        url,
        credentials,
        account,
        token_file_setting: "`oauthTokenFile`".to_owned(),
    }))
}

/// A value, with the setting that gives it.
pub fn named<T>(value: T, setting: &str) -> Given<T> {
    Given::new(value, format!("`{setting}`"))
}

/// The settings have the token itself.
pub fn token(text: &str) -> Credentials {
    let token = named(ContentSource::Inline(SecretText::new(text)), "oauthToken");
    Credentials { token: Some(token), ..Credentials::default() }
}

/// The settings name the token's file.
pub fn token_file(path: PathBuf) -> Credentials {
    let token = named(ContentSource::File(path), "oauthTokenFile");
    Credentials { token: Some(token), ..Credentials::default() }
}

pub fn ca(path: PathBuf) -> Credentials {
    let ca = named(ContentSource::File(path), "caCertFile");
    Credentials { ca_cert: Some(ca), ..Credentials::default() }
}

pub fn certificate(cert: PathBuf, key: PathBuf) -> Credentials {
    let file = |path, setting| named(ContentSource::File(path), setting);
    let files = (file(cert, "clientCertFile"), file(key, "clientKeyFile"));
    Credentials { client_cert: Some(files), ..Credentials::default() }
}

/// Files are looked at again before every call.
pub fn quick() -> Timeouts {
    Timeouts { look_again: Duration::ZERO, ..Timeouts::default() }
}

pub fn answer(status: u16, body: &str) -> Answer {
    Answer::new(status, body).header("content-type", "application/json")
}

/// Asks for the version: the simplest call there is.
pub async fn version(server: &ApiServer) -> Result<(), ApiFailure> {
    let client = server.client();
    server.call(client.apiserver_version()).await.map(drop)
}
