//! A download from a bucket. If the connection breaks, it goes on where it was.

use std::ops::Range;
use std::sync::Arc;
use std::vec;

use bytes::Bytes;
use cloakroom_core::client::Client;
use cloakroom_storage::store::{BlobStream, StoreError, with_first_piece};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use object_store::path::Path;
use tokio::time::timeout;

use super::api::Meta;
use super::calls::{Attempts, Bucket, PATIENCE};
use super::failure::{BROKEN, CallFailure};
use super::pool::Pause;

/// How much memory a connection takes while it is read.
pub(super) const MEMORY_BYTES: u64 = 512 << 10;

/// How many bytes are passed on at a time. They wait for the client outside of the pool, as bytes from a disk do.
const LARGEST_PIECE: usize = 64 << 10;

const ACTION: &str = "read";

struct Download {
    bucket: Arc<Bucket>,
    path: Path,
    size_bytes: u64,
    /// The bytes that were not read yet of the present range.
    left: Range<u64>,
    later: vec::IntoIter<Range<u64>>,
    /// How many ranges were begun before the present one.
    range: usize,
    /// The version of the object that the first answer was about.
    etag: Option<String>,
    /// The answer that is being read, while the reader pauses. The pool may take it back if others wait for its memory.
    answer: Option<Pause<Answer>>,
    /// The attempts since the first failure after the last piece.
    attempts: Option<Attempts>,
    /// Whether there was a piece.
    has_begun: bool,
    /// For whom the memory counts.
    client: Client,
}

/// An answer, as far as it was not passed on.
struct Answer {
    /// The number of the range that it is about.
    range: usize,
    pieces: BoxStream<'static, object_store::Result<Bytes>>,
    /// What is left of the piece that was read last.
    rest: Bytes,
}

impl Answer {
    /// The next bytes; `None` if the answer is over. They have memory of their own: a piece that the connection has read keeps all
    /// of its buffer, and would keep it after the pool has taken the answer back.
    async fn next(&mut self) -> Option<object_store::Result<Bytes>> {
        if self.rest.is_empty() {
            match self.pieces.next().await? {
                Ok(piece) => self.rest = piece,
                Err(error) => return Some(Err(error)),
            }
        }
        let passed_on = self.rest.split_to(self.rest.len().min(LARGEST_PIECE));
        Some(Ok(Bytes::copy_from_slice(&passed_on)))
    }
}

/// Opens `ranges` of a blob; see `BlobStore::open`.
pub(super) async fn open(
    bucket: &Arc<Bucket>,
    path: Path,
    size_bytes: u64,
    mut ranges: Vec<Range<u64>>,
    client: &Client,
) -> Result<BlobStream, StoreError> {
    ranges.retain(|range| !range.is_empty());
    let mut later = ranges.into_iter();
    let Some(left) = later.next() else {
        let found = bucket.facts(&path).await?.map(|facts| facts.size_bytes);
        return match found {
            Some(found) if found == size_bytes => Ok(stream::empty().boxed()),
            found => Err(missing(bucket, &path, size_bytes, found)),
        };
    };
    let download = Download {
        bucket: Arc::clone(bucket),
        path,
        size_bytes,
        left,
        later,
        range: 0,
        etag: None,
        answer: None,
        attempts: None,
        has_begun: false,
        client: client.clone(),
    };
    with_first_piece(stream::try_unfold(download, Download::next).boxed()).await
}

/// Why there is no piece.
enum NoPiece {
    /// The call failed. Another attempt may succeed.
    Failed(CallFailure),
    /// There is no such blob, or the store cannot be asked whether there is.
    Ended(StoreError),
}

impl From<StoreError> for NoPiece {
    fn from(error: StoreError) -> Self {
        Self::Ended(error)
    }
}

impl From<CallFailure> for NoPiece {
    fn from(failure: CallFailure) -> Self {
        Self::Failed(failure)
    }
}

/// The error if there is no blob of that size. `found` is the size of the one that there is.
fn missing(bucket: &Bucket, path: &Path, size_bytes: u64, found: Option<u64>) -> StoreError {
    let why = match found {
        Some(found) => format!("it has {found} bytes, and not {size_bytes}"),
        None => "there is no such blob".to_owned(),
    };
    StoreError::Missing(format!("cannot read {}: {why}", bucket.location.shown(path)).into())
}

impl Download {
    /// The next piece, and the rest.
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, StoreError> {
        while self.has_more() {
            let failure = match self.piece().await {
                Ok(piece) => {
                    (self.attempts, self.has_begun) = (None, true);
                    self.left.start += piece.len() as u64;
                    return Ok(Some((piece, self)));
                }
                Err(NoPiece::Failed(failure)) => failure,
                Err(NoPiece::Ended(error)) => return Err(error),
            };
            // Without a version, the next answer may be about another object.
            let may_go_on = self.etag.is_some() || !self.has_begun;
            // Who has a part of it loses more by a broken answer than by waiting.
            let may_help = failure.is_temporary() && (self.has_begun || !failure.is_late());
            let attempts = self.attempts.get_or_insert_with(Attempts::begin);
            if !may_go_on || !may_help || !attempts.another().await {
                return Err(failure.into());
            }
        }
        Ok(None)
    }

    /// Begins the next range if this one is over. Returns `false` if there is none.
    fn has_more(&mut self) -> bool {
        if self.left.is_empty()
            && let Some(next) = self.later.next()
        {
            (self.left, self.range) = (next, self.range + 1);
        }
        !self.left.is_empty()
    }

    /// How much memory the longest range needs. All of them are read with that, so no later range waits for more.
    fn memory_bytes(&self) -> u64 {
        let ranges = self.later.as_slice().iter().chain([&self.left]);
        ranges.map(|range| range.end - range.start).max().unwrap_or(0).min(MEMORY_BYTES)
    }

    /// The next piece of the answer, or of a new one. The time counts while the store is waited for, and not while the reader
    /// pauses.
    async fn piece(&mut self) -> Result<Bytes, NoPiece> {
        let (answer, memory) = self.answer.take().and_then(Pause::end).unzip();
        let memory = match memory {
            Some(memory) => memory,
            None => self.bucket.pool_of(&self.client).take(&self.client, self.memory_bytes()).await,
        };
        let mut answer = match answer.filter(|answer| answer.range == self.range) {
            Some(answer) => answer,
            None => self.ask().await?,
        };
        let path = &self.path;
        let piece = match timeout(PATIENCE, answer.next()).await {
            Err(_) => return Err(self.bucket.late(ACTION, path).into()),
            Ok(None) => return Err(self.bucket.no_answer(ACTION, path, BROKEN).into()),
            Ok(Some(piece)) => piece.map_err(|error| self.bucket.failure(ACTION, path, &error))?,
        };
        if piece.len() as u64 > self.left.end - self.left.start {
            return Err(self.bucket.no_answer(ACTION, path, "sent more bytes than there are").into());
        }
        let pool = self.bucket.pool_of(&self.client);
        // Without a version that can be compared byte by byte it could not go on (RFC 9110, section 13.1.1).
        let can_go_on = self.etag.as_ref().is_some_and(|etag| !etag.starts_with("W/"));
        self.answer =
            Some(if can_go_on { pool.pause_download(answer, memory) } else { pool.keep(answer, memory) });
        Ok(piece)
    }

    /// Asks for all that is left.
    async fn ask(&mut self) -> Result<Answer, NoPiece> {
        let (bucket, path) = (&self.bucket, &self.path);
        let asked = bucket.api.get(path, Some(self.left.clone()), self.etag.as_deref());
        let found = match bucket.once(ACTION, path, PATIENCE, asked).await {
            Err(failure) if failure.is_absence() || failure.is_out_of_range() => {
                let found = bucket.facts(path).await?.map(|facts| facts.size_bytes);
                if found == Some(self.size_bytes) {
                    return Err(failure.into());
                }
                return Err(missing(bucket, path, self.size_bytes, found).into());
            }
            found => found?,
        };
        let Meta { facts, version, .. } = found.meta;
        if facts.size_bytes != self.size_bytes {
            return Err(missing(bucket, path, self.size_bytes, Some(facts.size_bytes)).into());
        }
        if self.etag.is_some() && self.etag != version.e_tag {
            return Err(bucket.no_answer(ACTION, path, "sent another version of the object").into());
        }
        self.etag = version.e_tag;
        Ok(Answer { range: self.range, pieces: found.pieces, rest: Bytes::new() })
    }
}
