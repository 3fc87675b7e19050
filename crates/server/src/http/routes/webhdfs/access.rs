//! Who may upload: a client with the key of the namespace, or everyone where uploads need nothing.

use super::Call;
use crate::http::auth::UploadAuth;
use crate::http::error::ApiError;
use crate::http::proxies::Sender;
use crate::http::routes::address::is_encrypted;
use crate::http::webhdfs::WebHdfs;
use cloakroom_core::client::Client;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::protocol::webhdfs::UploadKey;
use cloakroom_core::resource::Holder;

/// A client that may upload.
pub(super) struct Uploader {
    pub(super) sender: Sender,
    /// The namespace whose key it has; `None` if it needs none.
    key_of: Option<String>,
}

impl Uploader {
    /// Whether it has shown a key that this server knows.
    pub(super) fn is_known(&self) -> bool {
        self.key_of.is_some()
    }

    /// Whose turn it is when uploads wait for memory.
    pub(super) fn client(&self) -> Client {
        match &self.key_of {
            Some(namespace) => Client::Holder(Holder::namespace(namespace)),
            None => Client::Host(self.sender.address.into()),
        }
    }

    /// How it is called in the ledger and in the log.
    pub(super) fn called(&self) -> String {
        match &self.key_of {
            Some(namespace) => format!("upload-key:{namespace}"),
            None => self.sender.address.to_string(),
        }
    }
}

/// The key, of the path or of a header, must be one of the namespace of the path.
pub(super) async fn check(webhdfs: &WebHdfs, call: &Call) -> Result<Uploader, ApiError> {
    let (settings, headers, peer) = (&call.state.settings, &call.head.headers, call.peer.ip());
    let sender = settings.trusted_proxies.sender(peer, headers);
    let in_header = || headers.keys().find_map(|name| UploadKey::from_header_name(name.as_str()));
    let Some(key) = &call.place.key.clone().or_else(in_header) else {
        return match settings.upload_auth {
            UploadAuth::None => Ok(Uploader { sender, key_of: None }),
            UploadAuth::Token(_) | UploadAuth::Kubernetes(_) => Err(forbidden(
                "uploads need a key here: ask the admin of this server for one of your namespace, and set \
                 spark.kubernetes.file.upload.path=webhdfs://HOST:PORT/NAMESPACE/token-…",
            )),
        };
    };
    let is_safe =
        is_encrypted(settings, peer, headers) || is_of_this_machine(&sender) || webhdfs.takes_plain_keys;
    if !is_safe {
        return Err(forbidden(
            "a key counts only if it comes over TLS (swebhdfs://…), because others could read it on the way: this one did not, so \
             it should be replaced; in a network that you trust the admin can allow it (--webhdfs-plain-keys)",
        ));
    }
    if !is_key_of(webhdfs, key, &call.place.namespace).await {
        return Err(forbidden(
            "this is no upload key of this namespace, or no longer one: ask the admin of this server for a current one",
        ));
    }
    Ok(Uploader { sender, key_of: Some(call.place.namespace.clone()) })
}

async fn is_key_of(webhdfs: &WebHdfs, key: &UploadKey, namespace: &str) -> bool {
    let Some(keys) = &webhdfs.keys else { return false };
    keys.find(key.expose()).await.is_some_and(|known| known.name.as_deref() == Some(namespace))
}

/// A trusted proxy on this machine is none of its clients.
fn is_of_this_machine(sender: &Sender) -> bool {
    sender.proxy.is_none() && sender.address.to_canonical().is_loopback()
}

fn forbidden(detail: &str) -> ApiError {
    ApiError::new(Code::Forbidden, detail)
}
