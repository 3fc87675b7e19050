//! The ways on which tenants reach the server.

use std::net::Ipv4Addr;

/// How both tenants reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Each from addresses of its own. The honest tenant has a token that the server knows.
    Directly,
    /// By the one address that a proxy such as the API server's has. The honest tenant requests a new token for each upload,
    /// as the program does. Its pods fetch directly.
    ThroughOneAddress,
}

const PODS: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);
const PROXY: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 2);

impl Reach {
    pub fn of_uploads(self) -> Ipv4Addr {
        match self {
            Self::Directly => PODS,
            Self::ThroughOneAddress => PROXY,
        }
    }

    pub fn of_downloads(self) -> Ipv4Addr {
        PODS
    }

    /// One of several addresses, as pods of one namespace have.
    pub fn of_abuser(self, hand: u64) -> Ipv4Addr {
        match self {
            Self::Directly => Ipv4Addr::new(127, 0, 0, 2 + (hand % 16) as u8),
            Self::ThroughOneAddress => PROXY,
        }
    }
}
