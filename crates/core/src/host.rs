//! The hosts that requests come from.

use std::net::{IpAddr, Ipv6Addr};

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
