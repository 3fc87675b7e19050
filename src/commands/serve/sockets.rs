//! The server's addresses: bound before anything else is touched, so that one in use is found out first.

use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::net::TcpListener;

use super::settings::ServeSettings;
use cloakroom::server::{Listener, ServerTls, Serves};

/// Bound sockets.
pub struct Sockets {
    staging: TcpListener,
    operational: Option<TcpListener>,
}

/// Where they are: also known when port 0 was asked for.
pub struct Addresses {
    staging: SocketAddr,
    operational: Option<SocketAddr>,
}

impl Sockets {
    pub async fn bind(settings: &ServeSettings) -> anyhow::Result<Self> {
        let bind = async |flag: &str, address| {
            TcpListener::bind(address).await.with_context(|| {
                format!("cannot listen on {address} (another address can be chosen with {flag})")
            })
        };
        let staging = bind("--listen", settings.listen).await?;
        let operational = match settings.ops_listen {
            Some(address) => Some(bind("--ops-listen", address).await?),
            None => None,
        };
        Ok(Self { staging, operational })
    }

    pub fn addresses(&self) -> anyhow::Result<Addresses> {
        Ok(Addresses {
            staging: self.staging.local_addr()?,
            operational: self.operational.as_ref().map(TcpListener::local_addr).transpose()?,
        })
    }

    pub fn listeners(self, tls: Option<ServerTls>) -> Vec<Listener> {
        let serves = if self.operational.is_some() { Serves::Resources } else { Serves::Everything };
        let mut listeners = vec![Listener { socket: self.staging, tls, serves }];
        let operational = |socket| Listener { socket, tls: None, serves: Serves::Operations };
        listeners.extend(self.operational.map(operational));
        listeners
    }
}

impl Addresses {
    /// What the log says once the server serves. People and scripts wait for the last line.
    pub fn announcement(&self, settings: &ServeSettings) -> Vec<String> {
        let scheme = if settings.tls.is_some() { "https" } else { "http" };
        let mut lines = Vec::new();
        lines.extend(self.operational.map(|address| format!("health checks are on http://{address}")));
        lines.push(match &settings.cluster {
            Some(cluster) => {
                format!("owners are asked for at {}, as {}", cluster.address(), cluster.credentials())
            }
            None => format!(
                "owners are not asked for: unused resources go after {}, used ones stay until their ttl or DELETE",
                cloakroom::spark::format_duration(settings.server.lifetimes.unused_timeout)
            ),
        });
        lines.push(format!("cloakroom {} serves on {scheme}://{}", env!("CARGO_PKG_VERSION"), self.staging));
        lines
    }
}
