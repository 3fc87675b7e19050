//! Ends a connection whose client may still be sending a refused body. The server has answered and says that it sends
//! nothing more, and then reads on for a while. If it closed at once, the kernel would reset the connection, and the
//! client would see a broken pipe in place of the answer (decision 8).

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, sleep_until, timeout};

use super::slots::Visitor;
use cloakroom_core::client::Host;
use cloakroom_core::lock::lock;

/// How long every refused body is read, in time and bytes.
pub(super) const SHORT_TIME: Duration = Duration::from_secs(2);
pub(super) const SHORT_BYTES: u64 = 256 << 20;

/// How long the first byte is awaited of a client that said that it waits for `100 Continue`. Most of these close the
/// connection when they have the answer. A proxy often sends the body all the same.
const FIRST_BYTE: Duration = Duration::from_secs(1);

/// How long some connections go on after that. Apache's proxy reads no answer before it has sent the body, and nginx reads
/// on for as long as this.
pub const LINGER: Duration = Duration::from_secs(30);
/// The speed of that, in bytes in a second. The client is slowed down, so that a refused body costs little.
const LONG_RATE: u32 = 8 << 20;
/// A client that sends nothing for so long has sent all. Some proxies, such as Apache's, keep the connection open
/// nevertheless, until they need one again.
const SILENCE: Duration = Duration::from_secs(2);
/// So many of a listener's connections may do so at once: one of this number.
const LONG_SHARE: usize = 8;

const BUFFER_BYTES: usize = 64 << 10;

/// What is left of a request's body when its answer has been written. Clones belong to the same connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Remains(Arc<AtomicU8>);

const NOTHING: u8 = 0;
const PERHAPS: u8 = 1;
const MORE: u8 = 2;

impl Remains {
    /// Tells that the client may send a body, although it said that it waits.
    pub(super) fn may_come(&self) {
        self.0.store(PERHAPS, Ordering::Relaxed);
    }

    /// Tells that a part of the body was read, and the client goes on sending.
    pub(super) fn goes_on(&self) {
        self.0.store(MORE, Ordering::Relaxed);
    }

    /// Whether the connection has to end after this answer.
    pub(super) fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed) != NOTHING
    }
}

/// The connections of a listener that read on for long. Clones share them.
#[derive(Clone)]
pub(super) struct Lingering {
    most: usize,
    longest: Duration,
    hosts: Arc<Mutex<Vec<Host>>>,
}

impl Lingering {
    /// For a listener with so many connections. `longest` is the time of those that read on for long.
    pub(super) fn new(connections: usize, longest: Duration) -> Self {
        Self { most: (connections / LONG_SHARE).max(1), longest, hosts: Arc::default() }
    }

    /// Reads on after an answer, until the client closes or a bound is reached.
    pub(super) async fn read_on(
        &self,
        client: &mut (impl AsyncRead + Unpin),
        visitor: Visitor,
        remains: &Remains,
    ) {
        let reader = Reader { client, buffer: vec![0; BUFFER_BYTES] };
        match remains.0.load(Ordering::Relaxed) {
            NOTHING => {}
            PERHAPS => self.read_from_the_first_byte(reader, visitor).await,
            _ => self.read_long(reader, visitor).await,
        }
    }

    async fn read_from_the_first_byte(
        &self,
        mut reader: Reader<'_, impl AsyncRead + Unpin>,
        visitor: Visitor,
    ) {
        if let Ok(Some(_)) = timeout(FIRST_BYTE, reader.next()).await
            && let Ok(Some(())) | Err(_) = timeout(SHORT_TIME, reader.pass_over(SHORT_BYTES)).await
        {
            self.read_long(reader, visitor).await;
        }
    }

    /// A host that is one client does this with one connection at a time.
    async fn read_long(&self, mut reader: Reader<'_, impl AsyncRead + Unpin>, visitor: Visitor) {
        let Some(_place) = self.enter(visitor) else { return };
        // The end of the time is an end like any other.
        let _ = timeout(self.longest, reader.pass_over_slowly()).await;
    }

    fn enter(&self, Visitor { host, is_single }: Visitor) -> Option<Place> {
        let mut hosts = lock(&self.hosts);
        if hosts.len() >= self.most || is_single && hosts.contains(&host) {
            return None;
        }
        hosts.push(host);
        Some(Place { lingering: self.clone(), host })
    }
}

/// One connection that reads on for long. Dropping it lets another one.
struct Place {
    lingering: Lingering,
    host: Host,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut hosts = lock(&self.lingering.hosts);
        if let Some(at) = hosts.iter().position(|host| *host == self.host) {
            hosts.swap_remove(at);
        }
    }
}

struct Reader<'a, C> {
    client: &'a mut C,
    buffer: Vec<u8>,
}

impl<C: AsyncRead + Unpin> Reader<'_, C> {
    /// How many bytes came; `None` if the client has closed.
    async fn next(&mut self) -> Option<u64> {
        self.client.read(&mut self.buffer).await.ok().filter(|bytes| *bytes > 0).map(|bytes| bytes as u64)
    }

    /// Reads up to so many bytes; `None` if the client closed before.
    async fn pass_over(&mut self, most: u64) -> Option<()> {
        let mut passed = 0;
        while passed < most {
            passed += self.next().await?;
        }
        Some(())
    }

    /// Reads at [`LONG_RATE`], until the client closes or falls silent.
    async fn pass_over_slowly(&mut self) {
        let mut due = Instant::now();
        while let Ok(Some(bytes)) = timeout(SILENCE, self.next()).await {
            due += Duration::from_secs(bytes) / LONG_RATE;
            sleep_until(due).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tokio::io::AsyncWriteExt as _;

    use super::*;

    fn visitor(last: u8, is_single: bool) -> Visitor {
        Visitor { host: IpAddr::from([10, 0, 0, last]).into(), is_single }
    }

    #[tokio::test]
    async fn it_ends_when_the_client_has_closed_and_slows_the_client_down() {
        let (mut client, mut server) = tokio::io::duplex(1 << 20);
        let sending = tokio::spawn(async move { client.write_all(&vec![7; 4 << 20]).await });
        let remains = Remains::default();
        Lingering::new(1, LINGER).read_on(&mut server, visitor(1, true), &remains).await;
        assert!(!sending.is_finished(), "a connection without a body reads nothing");
        remains.goes_on();
        let began = Instant::now();
        Lingering::new(1, LINGER).read_on(&mut server, visitor(1, true), &remains).await;
        sending.await.unwrap().unwrap();
        assert!(began.elapsed() >= Duration::from_millis(400), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_client_that_has_sent_all_and_stays_gives_its_place_up() {
        let (mut client, mut server) = tokio::io::duplex(1 << 20);
        client.write_all(b"the end of a body").await.unwrap();
        let remains = Remains::default();
        remains.goes_on();
        let began = Instant::now();
        Lingering::new(1, LINGER).read_on(&mut server, visitor(1, true), &remains).await;
        assert!(began.elapsed() >= SILENCE && began.elapsed() < LINGER, "{:?}", began.elapsed());
        drop(client);
    }

    #[test]
    fn an_eighth_of_the_connections_linger_and_one_for_each_host_but_proxies() {
        let lingering = Lingering::new(32, LINGER);
        let first = lingering.enter(visitor(1, true)).unwrap();
        assert!(lingering.enter(visitor(1, true)).is_none());
        let proxies = [lingering.enter(visitor(2, false)), lingering.enter(visitor(2, false))];
        assert!(proxies.iter().all(Option::is_some));
        let _last = lingering.enter(visitor(3, true)).unwrap();
        assert!(lingering.enter(visitor(4, true)).is_none());
        drop(first);
        assert!(lingering.enter(visitor(1, true)).is_some());
    }
}
