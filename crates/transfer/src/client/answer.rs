//! Turns unexpected answers into words for the user.

use std::fmt;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode, Url};
use tokio::time::timeout;

use cloakroom_core::protocol::WireName;
use cloakroom_core::protocol::problem::{self, Code, Problem};
use cloakroom_core::text;
use cloakroom_outbound::proxies::Proxy;

/// How much of a short body is read.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// How long the client waits for a short body.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How much of a text from outside is shown.
const MAX_SHOWN_CHARS: usize = 500;

/// An answer that is not the expected one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// The stable error code; `None` if the answer is not from a cloakroom server.
    pub code: Option<WireName<Code>>,
    /// The server's own message, or a description of the answer.
    pub detail: String,
    /// How long the server wants the client to wait; `None` if it does not say.
    pub retry_after: Option<Duration>,
    /// The proxy that may have answered in the server's place, because the request went through it unencrypted and the
    /// answer is not from a cloakroom server.
    pub proxy: Option<String>,
}

impl Answer {
    /// Whether the answer is from a cloakroom server and has this code.
    pub fn has_code(&self, code: Code) -> bool {
        self.code == Some(WireName::Known(code))
    }

    /// Reads an answer with a limited part of its body. Removes the request's `secrets` from the text. `proxy` is the one
    /// that the request went through unencrypted.
    pub(super) async fn read(response: Response, secrets: &[&str], proxy: Option<&Proxy>) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let base = response.url().clone();
        let body = bounded_body(response).await;
        let mut answer = Self::from_parts(status, &headers, &body, secrets);
        answer.proxy = proxy.filter(|_| answer.code.is_none()).map(ToString::to_string);
        if status.is_redirection() {
            answer.detail = text::without(&redirection(&base, &headers), secrets).into_owned();
        }
        answer
    }

    fn from_parts(status: StatusCode, headers: &HeaderMap, body: &[u8], secrets: &[&str]) -> Self {
        let problem = problem(headers, body);
        let shown = |words: &str| one_line(&text::without(words, secrets));
        let detail = match &problem {
            Some(problem) if !problem.detail.is_empty() => shown(&problem.detail),
            Some(problem) if !problem.title.is_empty() => shown(&problem.title),
            _ => described(status, headers, &text::without(&String::from_utf8_lossy(body), secrets)),
        };
        let code =
            problem.map(|problem| shown(&problem.code)).filter(|code| !code.is_empty()).map(WireName::read);
        Self { status: status.as_u16(), code, detail, retry_after: retry_after(headers), proxy: None }
    }
}

/// `the bundle is larger than … (413 too-large)`.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, detail, .. } = self;
        match (&self.code, &self.proxy) {
            (Some(code), _) => write!(f, "{detail} ({status} {code})"),
            (None, Some(proxy)) => write!(f, "{detail} ({status}, perhaps of the proxy {proxy})"),
            (None, None) => write!(f, "{detail} ({status})"),
        }
    }
}

/// Makes text from outside fit for one line of a message: harmless, limited in length, without a full stop at its end.
pub(super) fn one_line(words: &str) -> String {
    text::one_line(words, MAX_SHOWN_CHARS).trim_end_matches('.').to_owned()
}

/// Reads the body of an error, up to the limits of size and time.
async fn bounded_body(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    // If the connection breaks or the time is over, the part that has come is still useful.
    let _ = timeout(BODY_TIMEOUT, read_into(&mut body, &mut response)).await;
    body
}

/// Reads the body, up to the limit of size.
pub(super) async fn read_into(body: &mut Vec<u8>, response: &mut Response) -> reqwest::Result<()> {
    while body.len() < MAX_BODY_BYTES
        && let Some(chunk) = response.chunk().await?
    {
        let room = MAX_BODY_BYTES - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    Ok(())
}

/// Whether the content type begins with `expected`.
pub(super) fn has_content_type(headers: &HeaderMap, expected: &str) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.get(..expected.len()).is_some_and(|start| start.eq_ignore_ascii_case(expected))
}

fn problem(headers: &HeaderMap, body: &[u8]) -> Option<Problem> {
    if has_content_type(headers, problem::CONTENT_TYPE) { serde_json::from_slice(body).ok() } else { None }
}

fn described(status: StatusCode, headers: &HeaderMap, body: &str) -> String {
    let reason = status.canonical_reason().unwrap_or("an unknown status").to_lowercase();
    if has_content_type(headers, "text/html") {
        let title = title(body).map(|title| format!(" “{title}”")).unwrap_or_default();
        return format!("{reason}, as an HTML page{title}, perhaps of a proxy in between");
    }
    match one_line(body) {
        text if has_content_type(headers, "text/plain") && !text.is_empty() => format!("{reason}: {text}"),
        _ => reason,
    }
}

fn title(html: &str) -> Option<String> {
    let (_, rest) = html.split_once("<title>").or_else(|| html.split_once("<TITLE>"))?;
    let title = one_line(rest.split('<').next()?);
    (!title.is_empty()).then_some(title)
}

fn redirection(base: &Url, headers: &HeaderMap) -> String {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    match location.and_then(|location| base.join(location).ok()) {
        Some(to) => {
            format!("it redirects to {}, which is not followed: give that address instead", super::shown(&to))
        }
        None => "it redirects to nowhere".to_owned(),
    }
}

/// Parses `Retry-After` in seconds. The form with a date is ignored, because servers and proxies do not use it here.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn answer(status: u16, content_type: &'static str, body: &str) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(RETRY_AFTER, HeaderValue::from_static("7"));
        Answer::from_parts(
            StatusCode::from_u16(status).unwrap(),
            &headers,
            body.as_bytes(),
            &["s3cret-of-mine"],
        )
    }

    #[test]
    fn a_problem_is_shown_in_the_servers_own_words_with_its_code() {
        let body = r#"{"status":413,"code":"too-large","detail":"the bundle is larger than 8GiB."}"#;
        let answer = answer(413, "application/problem+json", body);
        assert_eq!(answer.to_string(), "the bundle is larger than 8GiB (413 too-large)");
        assert_eq!(answer.retry_after, Some(Duration::from_secs(7)));
    }

    #[test]
    fn a_proxys_page_is_recognised_as_one() {
        let shown = answer(502, "text/html; charset=utf-8", "<html><title>Bad\n Gateway</title>").to_string();
        assert_eq!(shown, "bad gateway, as an HTML page “Bad Gateway”, perhaps of a proxy in between (502)");
    }

    #[test]
    fn other_bodies_are_shown_on_one_line_or_not_at_all() {
        assert_eq!(
            answer(403, "text/plain", "no\x1b[31m\nway\n").to_string(),
            "forbidden: no [31m way (403)"
        );
        assert_eq!(answer(500, "application/json", "{}").to_string(), "internal server error (500)");
        assert!(answer(500, "text/plain", &"x".repeat(10_000)).to_string().len() < 600);
    }
}
