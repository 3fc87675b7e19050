//! Streams to ports of pods, by WebSocket in the protocol `v4.channel.k8s.io`: each message begins with the number of its
//! channel. The first port has the channels 0 (data) and 1 (errors), and both begin with the port's number.

use std::net::SocketAddr;

use axum::body::Body;
use axum::http::header::{
    AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use axum::response::Response;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role};

use super::Shared;
use super::access::Attributes;
use super::answers::Refusal;

const PROTOCOL: &str = "v4.channel.k8s.io";
const DATA: u8 = 0;

/// A request for a stream.
pub struct Wanted {
    request: axum::extract::Request,
    namespace: String,
    pod: String,
    port: u16,
}

impl Wanted {
    /// Returns any other request as it is.
    pub fn read(request: axum::extract::Request) -> Result<Self, Box<axum::extract::Request>> {
        let uri = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let (path, query) = uri.split_once('?').unwrap_or_default();
        let parts: Vec<&str> = path.split('/').collect();
        let port = query.split('&').find_map(|pair| pair.strip_prefix("ports=")?.parse().ok());
        match (&parts[..], port) {
            (["", "api", "v1", "namespaces", namespace, "pods", pod, "portforward"], Some(port)) => {
                Ok(Self { namespace: (*namespace).to_owned(), pod: (*pod).to_owned(), port, request })
            }
            _ => Err(Box::new(request)),
        }
    }

    pub fn answer(self, shared: &Shared) -> Result<Response, Refusal> {
        let Self { mut request, namespace, pod, port } = self;
        let header =
            |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let to = {
            let inside = shared.lock();
            let token = header(AUTHORIZATION).strip_prefix("Bearer ").unwrap_or_default();
            let user = inside.access.user(token).ok_or_else(|| Refusal::new(401, "Unauthorized"))?;
            // An upgrade is a GET, and since 1.35 it takes the right to create as well.
            for verb in ["get", "create"] {
                let wanted = Attributes {
                    verb: verb.to_owned(),
                    group: String::new(),
                    resource: "pods/portforward".to_owned(),
                    namespace: namespace.clone(),
                    name: pod.clone(),
                };
                if !inside.access.allows(&user.name, &user.groups, &wanted) {
                    return Err(Refusal::new(403, wanted.refusal(&user.name)));
                }
            }
            inside.pod_ports.get(&(namespace, pod.clone(), port)).copied()
        };
        let to = to.ok_or_else(|| Refusal::new(404, format!("pods \"{pod}\" not found")))?;
        if !header(SEC_WEBSOCKET_PROTOCOL).split(", ").any(|offered| offered == PROTOCOL) {
            return Err(Refusal::new(400, format!("this server speaks {PROTOCOL} alone")));
        }
        let accept = derive_accept_key(header(SEC_WEBSOCKET_KEY).as_bytes());
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let Ok(upgraded) = upgrade.await else { return };
            let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
            // The client sees that the stream ends.
            let _ = carry(socket, to, port).await;
        });
        let response = axum::http::Response::builder().status(101);
        let response = response.header(UPGRADE, "websocket").header(CONNECTION, "Upgrade");
        let response = response.header(SEC_WEBSOCKET_ACCEPT, accept).header(SEC_WEBSOCKET_PROTOCOL, PROTOCOL);
        Ok(response.body(Body::empty()).unwrap())
    }
}

async fn carry(
    mut socket: WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>,
    to: SocketAddr,
    port: u16,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    for channel in [DATA, DATA + 1] {
        let [low, high] = port.to_le_bytes();
        socket.send(Message::binary(vec![channel, low, high])).await?;
    }
    let (mut from_pod, mut to_pod) = TcpStream::connect(to).await?.into_split();
    let (mut to_client, mut from_client) = socket.split();
    let up = async {
        while let Some(message) = from_client.next().await {
            let message = message?.into_data();
            if message.first() == Some(&DATA) {
                to_pod.write_all(&message[1..]).await?;
            }
        }
        to_pod.shutdown().await?;
        Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    };
    let down = async {
        let mut piece = vec![0; 32 << 10];
        loop {
            let length = from_pod.read(&mut piece[1..]).await?;
            if length == 0 {
                return to_client.close().await.map_err(Into::into);
            }
            piece[0] = DATA;
            to_client.send(Message::binary(piece[..=length].to_vec())).await?;
        }
    };
    tokio::try_join!(up, down).map(|((), ())| ())
}
