//! The server's addresses: bound before anything else is touched, so that one in use is found out first.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

use super::settings::ServeSettings;
use cloakroom::server::{Listener, ServerTls, Serves};

/// Says whether the addresses could be served on, and lets them go. It does not listen: no client is let in.
pub fn check(settings: &ServeSettings) -> anyhow::Result<()> {
    let addresses = [("--listen", Some(settings.listen)), ("--ops-listen", settings.ops_listen)];
    for (flag, address) in addresses.into_iter().filter_map(|(flag, address)| Some((flag, address?))) {
        bind(address).map_err(|error| refused(flag, address, error))?;
    }
    Ok(())
}

fn bind(address: SocketAddr) -> io::Result<()> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // As for the listeners: what a stopped server left in the kernel is no obstacle.
    socket.set_reuseaddr(true)?;
    socket.bind(address)
}

fn refused(flag: &str, address: SocketAddr, error: io::Error) -> anyhow::Error {
    let why = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another process listens there, perhaps a server that is running already; stop that one, or choose another \
             address with"
        }
        _ => "another address can be chosen with",
    };
    anyhow::Error::new(error).context(format!("cannot listen on {address} ({why} {flag})"))
}

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
        let bind = async |flag, address| {
            TcpListener::bind(address).await.map_err(|error| refused(flag, address, error))
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
