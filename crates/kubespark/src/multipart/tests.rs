use bytes::Bytes;

use super::*;

mod generated;

const OKHTTP: &str = "--3f2a\r\nContent-Disposition: form-data; name=\"resources\"\r\n\
    Content-Transfer-Encoding: binary\r\nContent-Type: multipart/form-data\r\nContent-Length: 6\r\n\r\n\
    \x1f\u{0}tar.\r\n--3f2a\r\nContent-Disposition: form-data; name=\"resourcesOwner\"\r\n\
    Content-Transfer-Encoding: binary\r\nContent-Type: application/json; charset=UTF-8\r\nContent-Length: 2\r\n\r\n\
    {}\r\n--3f2a--\r\n";

const CURL: &str = "--3f2a\r\nContent-Disposition: form-data; name=\"resources\"; filename=\"deps.tgz\"\r\n\
    Content-Type: application/octet-stream\r\n\r\nbytes\r\n--3f2a\r\n\
    Content-Disposition: form-data; name=\"resourcesOwner\"\r\nContent-Type: application/json\r\n\r\n{}\r\n\
    --3f2a--\r\n";

const REQUESTS: &str = "--3f2a\r\nContent-Disposition: form-data; name=\"resources\"; \
    filename*=utf-8''caf%C3%A9.tgz\r\n\r\nbytes\r\n--3f2a--\r\n";

const PART: &str = "Content-Disposition: form-data; name=a\r\n\r\n";

/// One part as its receiver sees it.
type Part = (PartHeaders, Vec<u8>);

fn boundary() -> Boundary {
    Boundary::parse("3f2a").unwrap()
}

/// All events up to the end or an error. Adjacent pieces of content are joined, because the chunks decide where they
/// are cut.
fn trace<'a>(
    limits: BodyLimits,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<BodyEvent>, Result<(), MultipartError>) {
    let mut parser = Parser::new(&boundary(), limits);
    let mut events: Vec<BodyEvent> = Vec::new();
    for chunk in chunks {
        parser.push(Bytes::copy_from_slice(chunk));
        while let Ok(Some(event)) = parser.next() {
            match (events.last_mut(), event) {
                (Some(BodyEvent::Data(before)), BodyEvent::Data(data)) => {
                    *before = [before.as_ref(), data.as_ref()].concat().into();
                }
                (_, event) => events.push(event),
            }
        }
    }
    (events, parser.finish())
}

fn events_of(limits: BodyLimits, body: &[u8]) -> Result<Vec<BodyEvent>, MultipartError> {
    let (events, end) = trace(limits, [body]);
    end.map(|()| events)
}

fn parts(body: &[u8]) -> Result<Vec<Part>, MultipartError> {
    let mut parts = Vec::new();
    for event in events_of(BodyLimits::default(), body)? {
        match event {
            BodyEvent::PartBegin(headers) => parts.push((headers, Vec::new())),
            BodyEvent::Data(data) => parts.last_mut().unwrap().1.extend_from_slice(&data),
            BodyEvent::PartEnd | BodyEvent::Done => {}
        }
    }
    Ok(parts)
}

fn contents(body: &str) -> Vec<String> {
    let contents = parts(body.as_bytes()).unwrap().into_iter();
    contents.map(|(_, content)| String::from_utf8(content).unwrap()).collect()
}

fn refusal(limits: BodyLimits, body: &str) -> String {
    events_of(limits, body.as_bytes()).unwrap_err().to_string()
}

#[test]
fn kubesparks_client_curl_and_requests_are_understood() {
    let okhttp = parts(OKHTTP.as_bytes()).unwrap();
    assert_eq!(okhttp[0].0.name, "resources");
    assert_eq!(okhttp[0].0.content_length, Some(6));
    assert_eq!(okhttp[0].1, b"\x1f\0tar.");
    assert_eq!(okhttp[1].0.content_type.as_deref(), Some("application/json; charset=UTF-8"));
    assert_eq!(okhttp[1].1, b"{}");
    let curl = parts(CURL.as_bytes()).unwrap();
    assert_eq!(curl[0].0.file_name.as_deref(), Some("deps.tgz"));
    assert_eq!((curl[0].1.as_slice(), curl[1].1.as_slice()), (&b"bytes"[..], &b"{}"[..]));
    let requests = parts(REQUESTS.as_bytes()).unwrap();
    assert_eq!(requests[0].0.file_name.as_deref(), Some("café.tgz"));
}

#[test]
fn events_come_in_order_and_the_body_ends_with_done() {
    let body = format!("preamble\r\n--3f2a \t\r\n{PART}x\r\n--3f2a-- \r\nepilogue");
    let events = events_of(BodyLimits::default(), body.as_bytes()).unwrap();
    assert!(matches!(&events[0], BodyEvent::PartBegin(headers) if headers.name == "a"));
    assert_eq!(events[1..], [BodyEvent::Data("x".into()), BodyEvent::PartEnd, BodyEvent::Done]);
}

#[test]
fn text_that_only_begins_like_a_boundary_is_content() {
    for content in [
        "\r\n--3f2",
        "\r\n--3f2ab",
        "\r\n--3f2ab\r\n--3f2ab\r\n--3f2a-\r\n--3f2",
        "\r\n--3f2a-",
        "\r\n--3f2a-x",
        "\r\n--3f2a\n",
        "\r\r\n--3f2",
        "\r\n\r\n-",
        "--3f2a",
        "x--3f2a--",
        "\n--3f2a\r\n",
        "\r",
        "\r\n",
        "\r\n--3f2\r\n--3f2",
        "\r\n--3f2a-\r",
        "-\r\n--",
    ] {
        let body = format!("--3f2a\r\n{PART}.{content}\r\n--3f2a--");
        assert_eq!(contents(&body), [format!(".{content}")]);
    }
}

#[test]
fn empty_parts_are_read_in_both_spellings() {
    let body = format!("--3f2a\r\n{PART}\r\n--3f2a\r\n{PART}--3f2a--");
    assert_eq!(contents(&body), ["", ""]);
    assert_eq!(contents("--3f2a--"), Vec::<String>::new());
}

#[test]
fn content_is_a_slice_of_the_chunk_and_not_a_copy() {
    let chunk = Bytes::from(format!("--3f2a\r\n{PART}content\r\n--3f2a--"));
    let mut parser = Parser::new(&boundary(), BodyLimits::default());
    parser.push(chunk.clone());
    while let Some(event) = parser.next().unwrap() {
        if let BodyEvent::Data(data) = event {
            assert!(chunk.as_ptr_range().contains(&data.as_ptr()));
        }
    }
}

/// Each slice becomes a write, so many small ones would cost far more than their bytes.
#[test]
fn content_that_is_full_of_almost_delimiters_is_one_slice_of_its_chunk() {
    for content in ["\r\n--3f2ax", "\r\n--3f2a-x", "\r\n--3f2", "\r\n--3f2a\n", "\r", "\r\n", "-"] {
        let content = format!(".{}.", content.repeat(1000));
        let chunk = Bytes::from(format!("--3f2a\r\n{PART}{content}\r\n--3f2a--"));
        let mut parser = Parser::new(&boundary(), BodyLimits::default());
        parser.push(chunk);
        let mut slices = Vec::new();
        while let Some(event) = parser.next().unwrap() {
            if let BodyEvent::Data(data) = event {
                slices.push(data);
            }
        }
        assert_eq!(slices, [content]);
    }
}

#[test]
fn every_limit_is_kept_and_named() {
    let limits = BodyLimits { preamble_bytes: 4, header_bytes: 64, headers: 2, parts: 2, epilogue_bytes: 4 };
    let part = format!("--3f2a\r\n{PART}\r\n");
    let cases = [
        ("12345\r\n--3f2a--".to_owned(), "too many bytes before its first part; at most 4"),
        (format!("--3f2a{}\r\n", " ".repeat(65)), "too many blanks behind a boundary; at most 64"),
        (format!("--3f2a\r\nX: {}", "y".repeat(64)), "too many bytes in the headers of one part; at most 64"),
        (format!("--3f2a\r\nA:\r\nB:\r\n{PART}"), "too many headers in one part; at most 2"),
        (format!("{part}{part}{part}--3f2a--"), "too many parts; at most 2"),
        ("--3f2a--12345".to_owned(), "too many bytes after its closing boundary; at most 4"),
    ];
    for (body, expected) in cases {
        let message = refusal(limits, &body);
        assert!(message.contains(expected), "{message}");
    }
    assert!(events_of(limits, format!("1234\r\n{part}{part}--3f2a--1234").as_bytes()).is_ok());
}

#[test]
fn malformed_bodies_are_refused_with_the_place() {
    let limits = BodyLimits::default();
    let cases = [
        (format!("--3f2a x\r\n{PART}"), "not alone on its line"),
        (format!("--3f2a\rx{PART}"), "not alone on its line"),
        ("--3f2a\r\n\r\n".to_owned(), "headers of part 1 of the multipart body cannot be read: there is no"),
    ];
    for (body, expected) in cases {
        let message = refusal(limits, &body);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_body_that_ends_too_early_is_refused_wherever_it_ends() {
    let whole = OKHTTP.strip_suffix("\r\n").unwrap().as_bytes();
    for end in 0..whole.len() {
        let message = refusal(BodyLimits::default(), &String::from_utf8_lossy(&whole[..end]));
        assert!(message.contains("before its closing boundary"), "{end}: {message}");
    }
    assert!(parts(whole).is_ok());
}

#[test]
fn after_an_error_every_call_returns_that_error() {
    let mut parser = Parser::new(&boundary(), BodyLimits::default());
    parser.push("--3f2a!".into());
    parser.push("--3f2a x".into());
    assert_eq!(parser.next(), Ok(None));
    parser.push("\r\n--3f2a x".into());
    let error = parser.next().unwrap_err();
    parser.push(OKHTTP.into());
    assert_eq!(parser.next(), Err(error.clone()));
    assert_eq!(parser.finish(), Err(error));
}
