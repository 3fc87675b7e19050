//! One GET request, for a whole file or for the rest of it after a break.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, IF_RANGE, RANGE};
use reqwest::{RequestBuilder, Response, StatusCode, Url};

use super::address::ServerAddress;
use super::failure::Failure;
use super::http::HttpClient;
use cloakroom_core::protocol::{REPR_DIGEST, digest, v1};
use cloakroom_core::resource::{ResourceId, ResourceSecret};

/// Where a download resumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    /// How many bytes have arrived already.
    pub offset: u64,
    /// The strong entity tag of the representation that these bytes belong to.
    pub etag: String,
}

/// What a server says about the whole representation (RFC 9110 section 3.2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Representation {
    /// The size of the whole, if the server says it.
    pub size_bytes: Option<u64>,
    /// The SHA-256 of the whole, if the server says it.
    pub sha256: Option<[u8; 32]>,
    /// The strong entity tag. Without one, nothing proves that two answers have the same bytes.
    pub etag: Option<String>,
}

/// An answer whose body has not been read yet.
#[derive(Debug)]
pub struct DownloadAnswer {
    pub representation: Representation,
    /// The position of the body's first byte: 0, or the requested offset.
    pub offset: u64,
    response: Response,
    http: HttpClient,
}

impl HttpClient {
    /// Begins to download a bundle. Even with `resume` the answer may begin at 0: see [`DownloadAnswer::offset`].
    pub async fn open_resource(
        &self,
        server: &ServerAddress,
        id: ResourceId,
        secret: &ResourceSecret,
        resume: Option<&Resume>,
    ) -> Result<DownloadAnswer, Failure> {
        let url = server.join(&v1::resource_path(id));
        let request = self.to_server().get(url).bearer_auth(secret.expose());
        self.open(request, |request| self.send(request), resume, &[secret.expose()]).await
    }

    /// Begins to download any file. Even with `resume` the answer may begin at 0: see [`DownloadAnswer::offset`].
    pub async fn open_file(&self, url: &Url, resume: Option<&Resume>) -> Result<DownloadAnswer, Failure> {
        let secrets: Vec<&str> = url.password().into_iter().chain(url.query()).collect();
        let send = async |request: RequestBuilder| request.send().await.map_err(|error| self.failure(&error));
        self.open(self.to_web().get(url.clone()), send, resume, &secrets).await
    }

    async fn open(
        &self,
        request: RequestBuilder,
        send: impl AsyncFnOnce(RequestBuilder) -> Result<Response, Failure>,
        resume: Option<&Resume>,
        secrets: &[&str],
    ) -> Result<DownloadAnswer, Failure> {
        // Ranges count the stored bytes. A server that compresses the answer would count other bytes.
        let mut request = request.header(ACCEPT_ENCODING, "identity");
        if let Some(resume) = resume {
            request =
                request.header(RANGE, format!("bytes={}-", resume.offset)).header(IF_RANGE, &resume.etag);
        }
        let patience = self.timeouts().connect + self.timeouts().stall;
        let response = within(patience, send(request)).await??;
        match opened(response.status(), response.headers(), resume) {
            Some((representation, offset)) => {
                Ok(DownloadAnswer { representation, offset, response, http: self.clone() })
            }
            None => Err(self.answered(response, secrets).await),
        }
    }
}

impl DownloadAnswer {
    /// Returns the next bytes; `None` at the end of the body.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        let next = within(self.http.timeouts().stall, self.response.chunk()).await?;
        next.map_err(|error| self.http.failure(&error))
    }
}

async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::time::timeout(limit, work).await.map_err(|_| Failure::Stalled { after: limit })
}

/// Returns the representation and the offset of a successful answer; `None` for every other answer.
fn opened(status: StatusCode, headers: &HeaderMap, resume: Option<&Resume>) -> Option<(Representation, u64)> {
    let mut representation = Representation {
        size_bytes: text(headers, CONTENT_LENGTH.as_str()).and_then(|length| length.parse().ok()),
        sha256: text(headers, REPR_DIGEST).and_then(|value| digest::parse(value).ok()),
        etag: text(headers, ETAG.as_str()).filter(|etag| etag.starts_with('"')).map(str::to_owned),
    };
    match (status, resume) {
        (StatusCode::OK, _) => Some((representation, 0)),
        (StatusCode::PARTIAL_CONTENT, Some(resume)) => {
            let (first, size_bytes) = content_range(text(headers, CONTENT_RANGE.as_str())?)?;
            representation.size_bytes = size_bytes;
            (first == resume.offset).then_some((representation, first))
        }
        _ => None,
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Parses the first position and the size of the whole, from `bytes 5-9/10` or `bytes 5-9/*`.
fn content_range(value: &str) -> Option<(u64, Option<u64>)> {
    let (range, size) = value.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let _: u64 = last.parse().ok()?;
    let size_bytes = if size == "*" { None } else { Some(size.parse().ok()?) };
    Some((first.parse().ok()?, size_bytes))
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        pairs.collect()
    }

    fn resume() -> Resume {
        Resume { offset: 5, etag: "\"a\"".to_owned() }
    }

    #[test]
    fn a_part_tells_the_size_of_the_whole() {
        let headers =
            headers(&[("content-length", "5"), ("content-range", "bytes 5-9/10"), ("etag", "\"a\"")]);
        let (representation, offset) =
            opened(StatusCode::PARTIAL_CONTENT, &headers, Some(&resume())).unwrap();
        assert_eq!((representation.size_bytes, offset), (Some(10), 5));
    }

    #[test]
    fn a_part_that_begins_elsewhere_or_was_not_asked_for_is_not_taken() {
        let headers = headers(&[("content-range", "bytes 4-9/10")]);
        assert!(opened(StatusCode::PARTIAL_CONTENT, &headers, Some(&resume())).is_none());
        assert!(opened(StatusCode::PARTIAL_CONTENT, &headers, None).is_none());
        for value in ["", "bytes", "bytes 5-/10", "bytes */10", "bytes 5-9/x", "items 5-9/10"] {
            assert_eq!(content_range(value), None, "{value}");
        }
    }

    #[test]
    fn a_weak_tag_proves_nothing() {
        let (representation, _) = opened(StatusCode::OK, &headers(&[("etag", "W/\"a\"")]), None).unwrap();
        assert_eq!(representation.etag, None);
    }
}
