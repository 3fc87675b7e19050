//! The account whose tokens are requested for uploads.

use cloakroom_core::protocol::v1::UploadAuthKind;
use cloakroom_core::protocol::{WireName, upload_audience};

/// The service account whose tokens are requested, and what they are good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadAccount {
    /// The name of the account, in the namespace of the owner.
    pub account: String,
    /// The audience. It comes from the place of the server, and never from the server: a server could name another one.
    pub audience: String,
    /// Whether the server is known to want such tokens.
    pub is_wanted: bool,
}

impl UploadAccount {
    /// The account that `manifests/submitter` makes.
    pub const ACCOUNT: &str = "cloakroom-uploader";

    /// The account for servers in `namespace`.
    pub fn to_server_in(namespace: &str, account: Option<&str>) -> Self {
        let account = account.unwrap_or(Self::ACCOUNT).to_owned();
        Self { account, audience: upload_audience(namespace), is_wanted: false }
    }

    /// The same for a server that says this of its uploads; `None` if it wants no such tokens. A server that says nothing
    /// is asked once it refuses an upload.
    pub fn answered(self, upload_auth: Option<&WireName<UploadAuthKind>>) -> Option<Self> {
        let is_wanted = upload_auth == Some(&WireName::Known(UploadAuthKind::Kubernetes));
        (is_wanted || upload_auth.is_none()).then_some(Self { is_wanted, ..self })
    }
}
