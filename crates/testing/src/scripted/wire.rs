//! HTTP/1.1 on a connection, as far as tests need it.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{Answer, End, Request};

/// How much of the body is still read after an early answer, as the real server does.
const DRAIN_BYTES: usize = 1024 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(2);

pub async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Option<(Request, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        let is_tls = bytes.first() == Some(&0x16);
        if is_tls || stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let header =
        |line: &str| line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
    Some((Request { method, target, headers: lines.filter_map(header).collect() }, bytes[end + 4..].to_vec()))
}

/// Reads a body of announced length, or a chunked one; `None` if it breaks off.
pub async fn read_body(
    stream: &mut (impl AsyncRead + Unpin),
    request: &Request,
    mut buffer: Vec<u8>,
) -> Option<Vec<u8>> {
    let Some(length) = request.header("content-length").and_then(|length| length.parse().ok()) else {
        return read_chunked(stream, buffer).await;
    };
    while buffer.len() < length {
        fill(stream, &mut buffer).await?;
    }
    Some(buffer)
}

/// Reads a chunked body (RFC 9112 section 7.1) without trailers; `None` if it breaks off.
async fn read_chunked(stream: &mut (impl AsyncRead + Unpin), mut buffer: Vec<u8>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = loop {
            if let Some(end) = buffer.windows(2).position(|window| window == b"\r\n") {
                break end;
            }
            fill(stream, &mut buffer).await?;
        };
        let length = usize::from_str_radix(std::str::from_utf8(&buffer[..line]).ok()?, 16).ok()?;
        while buffer.len() < line + 2 + length + 2 {
            fill(stream, &mut buffer).await?;
        }
        body.extend_from_slice(&buffer[line + 2..line + 2 + length]);
        buffer.drain(..line + 2 + length + 2);
        if length == 0 {
            return Some(body);
        }
    }
}

async fn fill(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> Option<()> {
    buffer.reserve(64 * 1024);
    (stream.read_buf(buffer).await.ok()? > 0).then_some(())
}

pub async fn send(stream: &mut (impl AsyncWrite + Unpin), answer: &Answer) {
    let mut head = format!(
        "HTTP/1.1 {} x\r\nconnection: close\r\ncontent-length: {}\r\n",
        answer.status,
        answer.body.len()
    );
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let body = match answer.end {
        End::Whole => &answer.body[..],
        End::CutAfter(bytes) | End::HangAfter(bytes) => &answer.body[..bytes],
    };
    // Errors are ignored: the client may be gone already.
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body).await;
    let _ = stream.flush().await;
    if matches!(answer.end, End::HangAfter(_)) {
        std::future::pending::<()>().await;
    }
}

/// Reads a bounded part of the remaining body, so that the client sees the answer and not a reset.
pub async fn drain(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    let _ = stream.shutdown().await;
    let mut rest = stream.take(DRAIN_BYTES as u64);
    let _ = tokio::time::timeout(DRAIN_TIME, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}
