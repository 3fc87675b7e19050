//! The files that the programs of the control plane read: certificates, keys, tokens, kubeconfigs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rcgen::KeyPair;

use crate::cluster::{CLOAKROOM_USER, kubeconfig};
use crate::tls;

/// The token of the group system:masters.
pub const ADMIN_TOKEN: &str = "admin-of-the-tests";

/// A token of the server's service account that every cluster with these files accepts, just as clusters with the same
/// client CA accept the same certificates.
pub const LASTING_TOKEN: &str = "cloakroom-of-the-tests";

/// The CA that signed the client certificate of version 1 beside it.
const CLIENTS_CA: &str = tls::of_version_1::CA;

/// The paths of the files.
pub struct Files {
    pub ca: PathBuf,
    /// The CAs that may sign certificates of clients.
    pub client_cas: PathBuf,
    pub cert: PathBuf,
    pub key: PathBuf,
    pub service_account_key: PathBuf,
    pub service_account_public_key: PathBuf,
    pub tokens: PathBuf,
    pub admin_kubeconfig: PathBuf,
}

impl Files {
    pub fn write(folder: &Path, api_server: SocketAddr) -> Self {
        let pem = tls::signed_by_ca(folder, &["127.0.0.1", "localhost", "kubernetes.default.svc"]);
        let key = KeyPair::generate().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let admin = kubeconfig(Some(&pem.ca), api_server, ADMIN_TOKEN);
        let ca = std::fs::read_to_string(&pem.ca).unwrap();
        Self {
            client_cas: file("client-cas.pem", &format!("{ca}{CLIENTS_CA}")),
            service_account_key: file("service-account.key", &key.serialize_pem()),
            service_account_public_key: file("service-account.pub", &key.public_key_pem()),
            tokens: file(
                "tokens.csv",
                &format!(
                    "{ADMIN_TOKEN},admin,admin,system:masters\n\
                     {LASTING_TOKEN},{CLOAKROOM_USER},cloakroom,system:serviceaccounts\n"
                ),
            ),
            admin_kubeconfig: file("admin.kubeconfig", &admin),
            ca: pem.ca,
            cert: pem.cert,
            key: pem.key,
        }
    }
}
