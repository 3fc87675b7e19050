//! Clients that share a server, as far as they can be told apart.

use std::net::{IpAddr, Ipv6Addr};

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

/// A host, as far as its address tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Host(IpAddr);

impl From<IpAddr> for Host {
    /// In IPv6, a host mostly has a network of 64 bits to itself.
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address @ IpAddr::V4(_) => address,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_ipv6_are_networks() {
        let of = |text: &str| Host::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
