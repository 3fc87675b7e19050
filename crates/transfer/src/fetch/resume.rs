//! Downloads one representation to its end. If a download breaks, it resumes where it stopped.

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::error::SourceCause;
use super::plan::{Origin, Source};
use super::source_retries::SourceRetries;
use super::stream::Piece;
use super::ticket::Promise;
use crate::client::{Answer, DownloadAnswer, Failure, HttpClient, Representation, Resume};
use cloakroom_core::protocol::problem::Code;

/// How a download ended.
pub(super) enum Ended {
    /// All bytes arrived, and their digest is the announced one.
    Complete { sha256: [u8; 32], size_bytes: u64 },
    /// The server's current bytes are not those that the download began with. `next` is the new answer, if it begins at
    /// 0.
    StartOver { why: &'static str, next: Option<Box<DownloadAnswer>> },
    /// The reader stopped; the reader has the reason.
    ReaderStopped,
}

/// The state of the download so far.
struct Transfer<'a> {
    promise: Promise,
    retries: &'a SourceRetries,
    sink: &'a mpsc::Sender<Piece>,
    representation: Option<Representation>,
    received_bytes: u64,
    sha256: Sha256,
}

/// How reading the body of one answer ended.
enum Poured {
    ToTheEnd,
    Broke(Failure),
    ReaderStopped,
}

/// Downloads `source` into `sink`. `first` is an answer that is open already.
pub(super) async fn download(
    source: &Source,
    http: &HttpClient,
    retries: &SourceRetries,
    mut first: Option<Box<DownloadAnswer>>,
    sink: &mpsc::Sender<Piece>,
) -> Result<Ended, SourceCause> {
    let mut transfer = Transfer {
        promise: source.promise(),
        retries,
        sink,
        representation: None,
        received_bytes: 0,
        sha256: Sha256::new(),
    };
    loop {
        let resume = match transfer.resume() {
            Ok(resume) => resume,
            Err(why) => return Ok(Ended::StartOver { why, next: None }),
        };
        let opened = match first.take() {
            Some(download) => Ok(*download),
            None => open(source, http, resume.as_ref()).await,
        };
        let failure = match opened {
            Ok(next) if !transfer.continues_with(&next) => {
                let why = "the server has other bytes now, or cannot go on in the middle";
                return Ok(Ended::StartOver { why, next: begins_at_zero(next) });
            }
            Ok(next) => match transfer.pour(next).await? {
                Poured::ToTheEnd => return transfer.complete().await,
                Poured::ReaderStopped => return Ok(Ended::ReaderStopped),
                Poured::Broke(failure) => failure,
            },
            Err(failure) if resume.is_some() && is_about_the_range(&failure) => {
                return Ok(Ended::StartOver { why: "the server refuses to go on in the middle", next: None });
            }
            Err(failure) => failure,
        };
        if !failure.is_transient() {
            return Err(transfer.cause(source, failure));
        }
        retries.wait(failure).await;
    }
}

async fn open(
    source: &Source,
    http: &HttpClient,
    resume: Option<&Resume>,
) -> Result<DownloadAnswer, Failure> {
    match &source.origin {
        Origin::Staged { server, id, secret, .. } => http.open_resource(server, *id, secret, resume).await,
        Origin::Remote(file) => http.open_file(&file.url, resume).await,
    }
}

fn begins_at_zero(download: DownloadAnswer) -> Option<Box<DownloadAnswer>> {
    (download.offset == 0).then(|| Box::new(download))
}

/// Status 416, or 206 with another range than the requested one.
fn is_about_the_range(failure: &Failure) -> bool {
    matches!(failure, Failure::Answered(answer) if matches!(answer.status, 206 | 416))
}

/// Only a cloakroom server can say this. A 404 of another server means that the address is wrong.
fn is_unknown(answer: &Answer) -> bool {
    answer.has_code(Code::NotFound)
}

impl Transfer<'_> {
    /// The range of the next request: `None` if no byte has arrived. An error says why the download cannot resume.
    fn resume(&self) -> Result<Option<Resume>, &'static str> {
        if self.received_bytes == 0 {
            return Ok(None);
        }
        match self.representation.as_ref().and_then(|representation| representation.etag.clone()) {
            Some(etag) => Ok(Some(Resume { offset: self.received_bytes, etag })),
            None => Err("the connection broke, and without a strong ETag the download cannot resume"),
        }
    }

    /// Whether the body of `next` begins exactly where this download stopped.
    fn continues_with(&self, next: &DownloadAnswer) -> bool {
        let Some(known) = self.representation.as_ref().filter(|_| self.received_bytes > 0) else {
            return next.offset == 0;
        };
        let is_same = |known: Option<u64>, new: Option<u64>| known.is_none() || new.is_none() || known == new;
        let same_digest = match (known.sha256, next.representation.sha256) {
            (Some(known), Some(new)) => known == new,
            _ => true,
        };
        next.offset == self.received_bytes
            && same_digest
            && is_same(known.size_bytes, next.representation.size_bytes)
    }

    /// Reads the body of an answer. It is an error if the answer announces another size or digest than the ticket.
    async fn pour(&mut self, mut download: DownloadAnswer) -> Result<Poured, SourceCause> {
        if self.received_bytes == 0 {
            let Representation { size_bytes, sha256, .. } = download.representation;
            self.keep_promise(size_bytes, sha256)?;
            self.representation = Some(download.representation.clone());
        }
        Ok(self.pour_on(&mut download).await)
    }

    async fn pour_on(&mut self, download: &mut DownloadAnswer) -> Poured {
        loop {
            let next = tokio::select! {
                next = download.chunk() => next,
                () = self.sink.closed() => return Poured::ReaderStopped,
            };
            match next {
                Ok(Some(bytes)) => {
                    if !self.take(bytes).await {
                        return Poured::ReaderStopped;
                    }
                }
                Ok(None) if self.is_short() => {
                    return Poured::Broke(Failure::Broken { why: "the answer ended early".to_owned() });
                }
                Ok(None) => return Poured::ToTheEnd,
                Err(failure) => return Poured::Broke(failure),
            }
        }
    }

    async fn take(&mut self, bytes: Bytes) -> bool {
        self.sha256.update(&bytes);
        self.received_bytes += bytes.len() as u64;
        self.retries.progressed(self.received_bytes, self.size_bytes());
        self.sink.send(Piece::Bytes(bytes)).await.is_ok()
    }

    /// The cause for a failure that no retry can cure. A 404 after the first bytes means something else than a 404 at
    /// once.
    fn cause(&self, source: &Source, failure: Failure) -> SourceCause {
        match (&source.origin, failure) {
            (Origin::Staged { .. }, Failure::Answered(answer)) if is_unknown(&answer) => {
                SourceCause::Unknown { answer, has_begun: self.received_bytes > 0 }
            }
            (_, failure) => SourceCause::Failure(failure),
        }
    }

    fn keep_promise(&self, size_bytes: Option<u64>, sha256: Option<[u8; 32]>) -> Result<(), SourceCause> {
        self.promise
            .broken_by(size_bytes, sha256)
            .map_or(Ok(()), |how| Err(SourceCause::OtherThanTicket { how }))
    }

    fn size_bytes(&self) -> Option<u64> {
        self.representation.as_ref().and_then(|representation| representation.size_bytes)
    }

    fn is_short(&self) -> bool {
        self.size_bytes().is_some_and(|size_bytes| self.received_bytes < size_bytes)
    }

    /// Sends the end only if all bytes are right.
    async fn complete(self) -> Result<Ended, SourceCause> {
        let came: [u8; 32] = self.sha256.clone().finalize().into();
        self.keep_promise(Some(self.received_bytes), Some(came))?;
        if let Some(announced) = self.representation.and_then(|representation| representation.sha256)
            && announced != came
        {
            return Err(SourceCause::Damaged { announced, came });
        }
        match self.sink.send(Piece::End).await {
            Ok(()) => Ok(Ended::Complete { sha256: came, size_bytes: self.received_bytes }),
            Err(_) => Ok(Ended::ReaderStopped),
        }
    }
}
