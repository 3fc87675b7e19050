//! Clients that share a server, as far as they can be told apart.

use crate::host::Host;
use crate::resource::Holder;

/// One of several clients that take turns. Each of them also has a share of some limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Client {
    /// The server itself.
    #[default]
    Server,
    /// The host that a request comes from, as far as the server knows.
    Host(Host),
    /// The namespace or the user of a token that the API server has confirmed. Many of them can have one address, such as
    /// that of the API server's proxy.
    Holder(Holder),
}
