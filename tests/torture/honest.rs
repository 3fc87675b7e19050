//! The honest tenant: uploads and downloads at fixed times, whatever became of the ones before.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use rand::Rng as _;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::connection::Connection;
use crate::figures::{Direction, Measured, Record};
use crate::reach::Reach;
use crate::secrets::Secrets;
use crate::tenants::{HONEST, Server, TwoTenants};

/// When requests are due, in each second: two uploads and four downloads.
const SCHEDULES: [(u64, Direction); 6] = [
    (0, Direction::Upload),
    (125, Direction::Download),
    (375, Direction::Download),
    (500, Direction::Upload),
    (625, Direction::Download),
    (875, Direction::Download),
];

/// A request that has not succeeded by then has failed. The project's clients try for three times as long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Before another attempt where the server says no time of its own.
const PAUSE: Duration = Duration::from_millis(500);

/// How many bundles there are before the load begins, so that downloads have something to fetch.
const STOCK: usize = 4;

/// One tenant with one bundle's bytes.
pub struct Honest {
    server: Arc<Server>,
    reach: Reach,
    tenants: &'static TwoTenants,
    /// Tokens that the server has not seen yet.
    fresh: Mutex<Vec<String>>,
    bundle: Bytes,
    secrets: Arc<Secrets>,
    /// Ids and secrets of what is staged, the latest last.
    stock: Mutex<Vec<(String, String)>>,
}

/// Why an attempt did not succeed.
enum Trouble {
    /// As the clients have it: the connection broke, or the server says that it may go later (429, 502 to 504).
    Again(Duration, String),
    /// Everything else: another answer, other bytes.
    Final(String),
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self::Again(PAUSE, error.to_string())
    }
}

impl Honest {
    pub fn new(
        server: &Arc<Server>,
        (tenants, reach): (&'static TwoTenants, Reach),
        size_bytes: usize,
        secrets: &Arc<Secrets>,
    ) -> Arc<Self> {
        let mut bundle = vec![0; size_bytes];
        rand::rng().fill_bytes(&mut bundle);
        Arc::new(Self {
            server: Arc::clone(server),
            reach,
            tenants,
            fresh: Mutex::default(),
            bundle: bundle.into(),
            secrets: Arc::clone(secrets),
            stock: Mutex::default(),
        })
    }

    /// Stages what the first downloads fetch.
    pub async fn fill_the_stock(self: &Arc<Self>) {
        self.request_tokens(STOCK).await;
        for _ in 0..STOCK {
            let record = Arc::clone(self).request(Direction::Upload, Instant::now(), Duration::ZERO).await;
            record.result.unwrap();
        }
    }

    /// How many bundles are staged.
    pub fn staged(&self) -> usize {
        self.stock.lock().unwrap().len()
    }

    /// Makes all requests of so many seconds, and waits until each has succeeded or failed.
    pub async fn load(self: &Arc<Self>, seconds: u64) -> Measured {
        let uploads = SCHEDULES.iter().filter(|(_, direction)| *direction == Direction::Upload).count();
        self.request_tokens(uploads * seconds as usize).await;
        let begin = Instant::now();
        let mut requests = JoinSet::new();
        for second in 0..seconds {
            for (offset_ms, direction) in SCHEDULES {
                let due = Duration::from_millis(second * 1000 + offset_ms);
                requests.spawn(Arc::clone(self).request(direction, begin, due));
            }
        }
        Measured(requests.join_all().await)
    }

    /// Requests a token for each of so many uploads, if each is to have a new one.
    async fn request_tokens(&self, uploads: usize) {
        if self.reach == Reach::Directly {
            return;
        }
        for _ in 0..uploads {
            let token = self.tenants.fresh_honest_token().await;
            self.secrets.keep_token(&token);
            self.fresh.lock().unwrap().push(token);
        }
    }

    /// Releases everything, as if the applications were over, and stages for the next ones.
    pub async fn renew_the_stock(self: &Arc<Self>) {
        self.release().await;
        self.fill_the_stock().await;
    }

    /// Releases everything.
    async fn release(&self) {
        let stock = std::mem::take(&mut *self.stock.lock().unwrap());
        for (id, secret) in stock {
            let request = format!(
                "DELETE /api/v1/resources/{id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n\r\n"
            );
            let mut connection = self.connect(Direction::Upload).await.unwrap();
            let answer = connection.ask(request).await.unwrap();
            assert_eq!(answer.head.status, 204, "{}", answer.outcome());
        }
    }

    /// Makes a request that is due so long after the beginning of the round.
    async fn request(self: Arc<Self>, direction: Direction, begin: Instant, after: Duration) -> Record {
        let due = begin + after;
        sleep_until(due).await;
        let (mut retries, mut why) = (0, "nothing came back".to_owned());
        let token = self.token_for(direction);
        let result = loop {
            let attempt = async {
                match direction {
                    Direction::Upload => self.upload(&token).await,
                    Direction::Download => self.download().await,
                }
            };
            match timeout_at(due + PATIENCE, attempt).await {
                Ok(Ok(())) => break Ok(due.elapsed()),
                Ok(Err(Trouble::Again(pause, reason))) => {
                    (retries, why) = (retries + 1, reason);
                    sleep(pause).await;
                }
                Ok(Err(Trouble::Final(reason))) => break Err(format!("{direction:?}: {reason}")),
                Err(_) => {
                    break Err(format!("{direction:?}: not within {} s: {why}", PATIENCE.as_secs()));
                }
            }
        };
        Record { direction, due: after, result, retries }
    }

    /// The token of all attempts of one request.
    fn token_for(&self, direction: Direction) -> String {
        let fresh = (direction == Direction::Upload).then(|| self.fresh.lock().unwrap().pop()).flatten();
        fresh.unwrap_or_else(|| self.tenants.honest_token.clone())
    }

    async fn connect(&self, direction: Direction) -> std::io::Result<Connection> {
        let from = match direction {
            Direction::Upload => self.reach.of_uploads(),
            Direction::Download => self.reach.of_downloads(),
        };
        Connection::open(from, self.server.address()).await
    }

    async fn upload(&self, token: &str) -> Result<(), Trouble> {
        let head = format!(
            "PUT /api/v1/resources/deps.tgz?namespace={HONEST}&label=app%3Dhonest HTTP/1.1\r\nHost: x\r\n\
             Authorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
            token,
            self.bundle.len()
        );
        let mut connection = self.connect(Direction::Upload).await?;
        connection.send(head).await?;
        let answer = connection.ask(&self.bundle).await?;
        if answer.head.status != 201 {
            return Err(trouble(answer.head.status, answer.head.header("retry-after"), answer.outcome()));
        }
        let ticket = self.secrets.keep_ticket(&answer);
        let ticket = ticket.ok_or_else(|| Trouble::Final("a 201 without a ticket".to_owned()))?;
        self.stock.lock().unwrap().push(ticket);
        Ok(())
    }

    async fn download(&self) -> Result<(), Trouble> {
        let latest = self.stock.lock().unwrap().last().cloned();
        let (id, secret) = latest.ok_or_else(|| Trouble::Final("nothing was staged before".to_owned()))?;
        let mut connection = self.connect(Direction::Download).await?;
        let request = format!(
            "GET /api/v1/resources/{id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n\r\n"
        );
        connection.send(request).await?;
        let head = connection.head().await?;
        if head.status != 200 {
            return Err(trouble(head.status, head.header("retry-after"), head.status.to_string()));
        }
        let (mut at, mut is_same) = (0, true);
        let compare = |piece: &[u8]| {
            is_same &= self.bundle.get(at..at + piece.len()) == Some(piece);
            at += piece.len();
        };
        connection.body(&head, compare).await?;
        let is_whole = is_same && at == self.bundle.len();
        is_whole.then_some(()).ok_or_else(|| Trouble::Final("other bytes than were staged".to_owned()))
    }
}

fn trouble(status: u16, retry_after: &str, outcome: String) -> Trouble {
    match status {
        429 | 502..=504 => Trouble::Again(retry_after.parse().map_or(PAUSE, Duration::from_secs), outcome),
        _ => Trouble::Final(outcome),
    }
}
