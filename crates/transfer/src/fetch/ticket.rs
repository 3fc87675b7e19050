//! Parses a ticket as the server gave it: resource id, secret, server address, and the promised size and digest.

use serde::Deserialize;

use crate::client::is_secret;
use cloakroom_core::protocol::{digest, v1};
use cloakroom_core::resource::{ResourceId, ResourceSecret};

/// What is wrong with a ticket. The text repeats nothing of the ticket.
type Wrong = &'static str;

/// The size and digest that a ticket promises. A ticket of kubespark's protocol promises neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Promise {
    pub size_bytes: Option<u64>,
    pub sha256: Option<[u8; 32]>,
}

impl Promise {
    /// Compares with the server's size and digest. Returns the difference in words for the user; unknown values are not
    /// compared.
    pub fn broken_by(&self, size_bytes: Option<u64>, sha256: Option<[u8; 32]>) -> Option<String> {
        let size = differing(self.size_bytes, size_bytes);
        let digest = differing(self.sha256, sha256);
        match (size, digest) {
            (Some((ours, theirs)), _) => {
                Some(format!("{ours} bytes by the ticket and {theirs} by the server"))
            }
            (None, Some((ours, theirs))) => Some(format!(
                "the SHA-256 {} by the ticket and {} by the server",
                digest::to_hex(&ours),
                digest::to_hex(&theirs)
            )),
            (None, None) => None,
        }
    }
}

fn differing<T: PartialEq>(ours: Option<T>, theirs: Option<T>) -> Option<(T, T)> {
    ours.zip(theirs).filter(|(ours, theirs)| ours != theirs)
}

/// A parsed and checked ticket.
pub(super) struct ReadTicket {
    pub id: ResourceId,
    pub secret: ResourceSecret,
    /// The server's address; `None` if the ticket's URL is missing or only a path. A server sends only a path if the
    /// request that staged the bundle had no `Host`.
    pub server: Option<String>,
    pub promise: Promise,
}

/// The JSON of both versions of the protocol.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TicketJson {
    resource_id: String,
    resource_secret: String,
    url: Option<String>,
    size_bytes: Option<u64>,
    sha256: Option<String>,
}

impl ReadTicket {
    /// Parses a ticket. With `has_server` the caller knows the address, and the ticket's address is not checked.
    pub fn parse(json: &str, has_server: bool) -> Result<Self, Wrong> {
        // The parser's own message could repeat the secret.
        let ticket: TicketJson = serde_json::from_str(json).map_err(
            |_| "it must be the one line of JSON that “cloakroom stage” or the server has answered",
        )?;
        let id =
            ResourceId::parse_any_case(&ticket.resource_id).map_err(|_| "its resourceId is not an id")?;
        if !is_secret(&ticket.resource_secret) {
            return Err("its resourceSecret must be one line of printable ASCII");
        }
        let sha256 = ticket.sha256.as_deref().map(|text| digest::from_hex(text).ok_or(text)).transpose();
        let promise = Promise {
            size_bytes: ticket.size_bytes,
            sha256: sha256.map_err(|_| "its sha256 is not a digest: it must be 64 hexadecimal digits")?,
        };
        let url = ticket.url.filter(|_| !has_server);
        let server = url.map(|url| server_of(&url, id)).transpose()?.filter(|server| !server.is_empty());
        Ok(Self { id, secret: ResourceSecret::from_text(ticket.resource_secret), server, promise })
    }
}

/// The server's address at the beginning of a ticket's URL.
fn server_of(url: &str, id: ResourceId) -> Result<String, Wrong> {
    let server = url.strip_suffix(&v1::resource_path(id)).ok_or(
        "its url is not one of a bundle, because it does not end with /api/v1/resources/ and the ticket's resourceId: \
         give the server's address by --server",
    )?;
    Ok(server.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_both_say_can_differ() {
        let promise = Promise { size_bytes: Some(3), sha256: Some([1; 32]) };
        assert_eq!(promise.broken_by(Some(3), Some([1; 32])), None);
        assert_eq!(promise.broken_by(None, None), None);
        assert_eq!(Promise::default().broken_by(Some(4), Some([2; 32])), None);
        assert_eq!(promise.broken_by(Some(4), None).unwrap(), "3 bytes by the ticket and 4 by the server");
        assert!(promise.broken_by(Some(3), Some([2; 32])).unwrap().starts_with("the SHA-256 0101"));
    }
}
