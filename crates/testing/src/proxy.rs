//! A proxy that leads every name to one address: for CONNECT, in clear or over TLS, and for SOCKS 5.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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
        Self::listen(to, None, None).await
    }

    /// The same for those who show this `USER:PASSWORD`.
    pub async fn start_with_login(to: SocketAddr, login: &'static str) -> Self {
        Self::listen(to, None, Some(login)).await
    }

    /// The same over TLS.
    pub async fn start_tls(to: SocketAddr, tls: ServerConfig) -> Self {
        Self::listen(to, Some(TlsAcceptor::from(Arc::new(tls))), None).await
    }

    async fn listen(to: SocketAddr, tls: Option<TlsAcceptor>, login: Option<&'static str>) -> Self {
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
                            Ok(client) => lead(client, to, login, &kept).await,
                            Err(error) => Err(error),
                        },
                        None => lead(client, to, login, &kept).await,
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
    login: Option<&str>,
    asked: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    const SOCKS: u8 = 5;
    let first = client.read_u8().await?;
    let target = if first == SOCKS {
        socks(&mut client, login).await?
    } else {
        connect(&mut client, first, login).await?
    };
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
async fn connect(
    client: &mut (impl AsyncRead + AsyncWrite + Unpin),
    first: u8,
    login: Option<&str>,
) -> std::io::Result<String> {
    let mut head = vec![first];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).trim_end().to_owned();
    if login.is_some_and(|login| !head.contains(&format!("Basic {}", STANDARD.encode(login)))) {
        client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n").await?;
        return Err(ErrorKind::PermissionDenied.into());
    }
    Ok(head)
}

/// The destination of SOCKS 5 (RFC 1928), with a login as in RFC 1929.
async fn socks(
    client: &mut (impl AsyncRead + AsyncWrite + Unpin),
    login: Option<&str>,
) -> std::io::Result<String> {
    const ADDRESS: u8 = 1;
    const DOMAIN: u8 = 3;
    const LOGIN: u8 = 2;
    let methods = short(client).await?;
    match login {
        None => client.write_all(&[5, 0]).await?,
        Some(_) if !methods.contains(&LOGIN) => {
            client.write_all(&[5, 0xff]).await?;
            return Err(ErrorKind::PermissionDenied.into());
        }
        Some(login) => {
            client.write_all(&[5, LOGIN]).await?;
            client.read_u8().await?;
            let shown = [short(client).await?, short(client).await?].join(&b':');
            let is_right = shown == login.as_bytes();
            client.write_all(&[1, u8::from(!is_right)]).await?;
            if !is_right {
                return Err(ErrorKind::PermissionDenied.into());
            }
        }
    }
    let mut request = [0; 4];
    client.read_exact(&mut request).await?;
    let [5, 1, 0, kind] = request else { panic!("no connection is asked for: {request:?}") };
    let host = match kind {
        ADDRESS => std::net::Ipv4Addr::from(client.read_u32().await?).to_string(),
        DOMAIN => String::from_utf8_lossy(&short(client).await?).into_owned(),
        kind => panic!("another kind of address: {kind}"),
    };
    Ok(format!("socks5 {host}:{}", client.read_u16().await?))
}

/// Bytes with their number before them.
async fn short(client: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}
