//! The server's sockets. They are bound before anything else starts, so that an address in use is found first.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

use super::settings::ServeSettings;
use cloakroom_server::http::{Listener, ServerTls, Serves};

/// How many connections may wait in the kernel. A client that finds no place tries again after a second. Linux allows
/// at most `net.core.somaxconn`, whose default is 4096 as well.
const BACKLOG: u32 = 4096;

/// Checks that the addresses are free, and releases them. It does not listen, so no client can connect.
pub fn check(settings: &ServeSettings) -> anyhow::Result<()> {
    let addresses = [("--listen", Some(settings.listen)), ("--ops-listen", settings.ops_listen)];
    for (flag, address) in addresses.into_iter().filter_map(|(flag, address)| Some((flag, address?))) {
        bind(flag, address)?;
    }
    Ok(())
}

fn bind(flag: &str, address: SocketAddr) -> anyhow::Result<TcpSocket> {
    let bind = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // Connections that a stopped server left in the kernel do not block the address.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(socket)
    };
    bind().map_err(|error| refused(flag, address, error))
}

fn listen(flag: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    bind(flag, address)?.listen(BACKLOG).map_err(|error| refused(flag, address, error))
}

fn refused(flag: &str, address: SocketAddr, error: io::Error) -> anyhow::Error {
    let why = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another process listens there, perhaps a running server; stop that process, or choose another address \
             with"
        }
        _ => "you can choose another address with",
    };
    anyhow::Error::new(error).context(format!("cannot listen on {address} ({why} {flag})"))
}

/// Bound sockets.
pub struct Sockets {
    staging: TcpListener,
    operational: Option<TcpListener>,
}

/// The addresses of bound sockets, with the real port if port 0 was given.
pub struct Addresses {
    staging: SocketAddr,
    operational: Option<SocketAddr>,
}

impl Sockets {
    pub fn bind(settings: &ServeSettings) -> anyhow::Result<Self> {
        let staging = listen("--listen", settings.listen)?;
        let operational = settings.ops_listen.map(|address| listen("--ops-listen", address)).transpose()?;
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
    /// Whether all addresses are loopback, so that no other machine reaches the server.
    pub fn are_local(&self) -> bool {
        [Some(self.staging), self.operational].into_iter().flatten().all(|address| address.ip().is_loopback())
    }

    /// The URL for uploads and downloads.
    pub fn staging_url(&self, settings: &ServeSettings) -> String {
        let scheme = if settings.http.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.staging)
    }

    /// The URL of `/admin`.
    pub fn admin_url(&self, settings: &ServeSettings) -> String {
        self.operational.map_or_else(|| self.staging_url(settings), |address| format!("http://{address}"))
    }

    /// The URL of `/admin` for commands on this machine; `None` if they cannot reach it, or if other machines reach it on the
    /// port for clients.
    pub fn admin_url_here(&self, settings: &ServeSettings) -> Option<String> {
        match self.operational {
            None => self.are_local().then(|| self.admin_url(settings)),
            Some(address) => {
                let here = match address.ip() {
                    IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
                    IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
                    ip => ip,
                };
                here.is_loopback().then(|| format!("http://{}", SocketAddr::new(here, address.port())))
            }
        }
    }

    /// Log lines for a server that is ready. Users and scripts wait for the last one.
    pub fn announcement(&self, settings: &ServeSettings) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(self.operational.map(|address| format!("health checks are on http://{address}")));
        lines.push(match &settings.cluster {
            Some(cluster) => {
                format!("the API server at {} is asked about owners, as {}", cluster.way(), cluster.credentials())
            }
            None => format!(
                "no API server is asked about owners: unused resources end after {}, used ones by their ttl or DELETE",
                cloakroom_core::time::format_duration(settings.http.lifetimes.unused_timeout)
            ),
        });
        lines.push(format!(
            "cloakroom {} serves on {}",
            env!("CARGO_PKG_VERSION"),
            self.staging_url(settings)
        ));
        lines
    }
}
