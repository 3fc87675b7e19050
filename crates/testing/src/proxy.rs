//! A proxy that leads every name to one address: for CONNECT, in clear or over TLS, and for SOCKS 5.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A running proxy. It ends with the runtime.
pub struct Proxy {
    /// `HOST:PORT`, without a scheme.
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Listens, and leads all connections `to` this address.
    pub async fn start(to: SocketAddr) -> Self {
        Self::listen(to, None).await
    }

    /// The same over TLS.
    pub async fn start_tls(to: SocketAddr, tls: ServerConfig) -> Self {
        Self::listen(to, Some(TlsAcceptor::from(Arc::new(tls)))).await
    }

    async fn listen(to: SocketAddr, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (tls, kept) = (tls.clone(), Arc::clone(&kept));
                tokio::spawn(async move {
                    // A client that goes away is none of the proxy's business.
                    let _ = match tls {
                        Some(tls) => match tls.accept(client).await {
                            Ok(client) => lead(client, to, &kept).await,
                            Err(error) => Err(error),
                        },
                        None => lead(client, to, &kept).await,
                    };
                });
            }
        });
        Self { address, asked }
    }

    /// The destinations that clients asked for: the head of each CONNECT, or `socks5 HOST:PORT`.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn lead(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    to: SocketAddr,
    asked: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    const SOCKS: u8 = 5;
    let first = client.read_u8().await?;
    let target = if first == SOCKS { socks(&mut client).await? } else { connect(&mut client, first).await? };
    asked.lock().unwrap().push(target);
    let mut server = TcpStream::connect(to).await?;
    let opened: &[u8] = match first {
        SOCKS => &[SOCKS, 0, 0, 1, 0, 0, 0, 0, 0, 0],
        _ => b"HTTP/1.1 200 Connection established\r\n\r\n",
    };
    client.write_all(opened).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

/// The head of a CONNECT, which began with the byte `first`.
async fn connect(client: &mut (impl AsyncRead + Unpin), first: u8) -> std::io::Result<String> {
    let mut head = vec![first];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).trim_end().to_owned())
}

/// The destination of SOCKS 5 (RFC 1928), without a login.
async fn socks(client: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> std::io::Result<String> {
    const ADDRESS: u8 = 1;
    const DOMAIN: u8 = 3;
    let methods = client.read_u8().await?;
    client.read_exact(&mut vec![0; methods.into()]).await?;
    client.write_all(&[5, 0]).await?;
    let mut request = [0; 4];
    client.read_exact(&mut request).await?;
    let [5, 1, 0, kind] = request else { panic!("no connection is asked for: {request:?}") };
    let host = match kind {
        ADDRESS => std::net::Ipv4Addr::from(client.read_u32().await?).to_string(),
        DOMAIN => {
            let mut name = vec![0; client.read_u8().await?.into()];
            client.read_exact(&mut name).await?;
            String::from_utf8_lossy(&name).into_owned()
        }
        kind => panic!("another kind of address: {kind}"),
    };
    Ok(format!("socks5 {host}:{}", client.read_u16().await?))
}
