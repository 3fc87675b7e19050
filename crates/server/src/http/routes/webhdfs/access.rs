//! Who may upload: a client with the key of the namespace, or everyone where uploads need nothing.

use std::net::IpAddr;

use super::Call;
use crate::http::auth::{UploadAuth, Uploader};
use crate::http::error::ApiError;
use crate::http::routes::address::is_encrypted;
use crate::http::state::Settings;
use crate::http::webhdfs::WebHdfs;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::protocol::webhdfs::UploadKey;

/// The key, of the path or of a header, must be one of the namespace of the path.
pub(super) async fn check(webhdfs: &WebHdfs, call: &Call) -> Result<Uploader, ApiError> {
    let (settings, headers, peer) = (&call.state.settings, &call.head.headers, call.peer.ip());
    let in_header = || headers.keys().find_map(|name| UploadKey::from_header_name(name.as_str()));
    let Some(key) = &call.place.key.clone().or_else(in_header) else {
        return match settings.upload_auth {
            UploadAuth::None => Ok(Uploader::Unnamed),
            UploadAuth::Token(_) | UploadAuth::Kubernetes(_) => Err(forbidden(
                "uploads need a key here: ask the admin of this server for one of your namespace, and set \
                 spark.kubernetes.file.upload.path=webhdfs://HOST:PORT/NAMESPACE/token-…",
            )),
        };
    };
    let is_safe = is_encrypted(settings, peer, headers)
        || is_of_this_machine(settings, peer)
        || webhdfs.takes_plain_keys;
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
    Ok(Uploader::UploadKey(call.place.namespace.as_str().into()))
}

async fn is_key_of(webhdfs: &WebHdfs, key: &UploadKey, namespace: &str) -> bool {
    let Some(keys) = &webhdfs.keys else { return false };
    keys.find(key.expose()).await.is_some_and(|known| known.name.as_deref() == Some(namespace))
}

/// What a trusted proxy on this machine passes on may come from elsewhere.
fn is_of_this_machine(settings: &Settings, peer: IpAddr) -> bool {
    peer.to_canonical().is_loopback() && !settings.trusted_proxies.trusts(peer)
}

fn forbidden(detail: &str) -> ApiError {
    ApiError::new(Code::Forbidden, detail)
}
