//! `multipart/form-data`, cut into frames anywhere. The input is two bytes that say where, the boundary up to a NUL,
//! and the body.
#![no_main]

use bytes::Bytes;
use cloakroom_kubespark::multipart::{BodyEvent, BodyLimits, Boundary, MultipartError, Parser, boundary_of};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((cuts, rest)) = input.split_first_chunk::<2>() else { return };
    let middle = rest.iter().position(|&byte| byte == 0).unwrap_or(0);
    let (boundary, body) = rest.split_at(middle);
    let body = body.strip_prefix(b"\0").unwrap_or(body);
    let boundary = std::str::from_utf8(boundary).unwrap_or_default();
    if let Ok(boundary) = boundary_of(boundary) {
        assert_eq!(Boundary::parse(boundary.as_str()), Ok(boundary.clone()));
    }
    let Ok(boundary) = Boundary::parse(boundary) else { return };
    let whole = read(&boundary, [body]);
    assert_eq!(read(&boundary, frames(body, *cuts)), whole, "cut into frames");
    assert_eq!(read(&boundary, body.chunks(1)), whole, "byte by byte");
    compare(&whole, &plain_reading(boundary.as_str(), body));
});

type Outcome = (Vec<BodyEvent>, Result<(), MultipartError>);

/// The events, with adjacent content joined.
fn read<'a>(boundary: &Boundary, frames: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut parser = Parser::new(boundary, BodyLimits::default());
    let mut events = Vec::new();
    for frame in frames {
        parser.push(Bytes::copy_from_slice(frame));
        while let Ok(Some(event)) = parser.next() {
            match (events.last_mut(), event) {
                (Some(BodyEvent::Data(before)), BodyEvent::Data(data)) => {
                    assert!(!data.is_empty());
                    *before = [before.as_ref(), data.as_ref()].concat().into();
                }
                (_, event) => events.push(event),
            }
        }
    }
    (events, parser.finish())
}

/// Pieces of lengths that two bytes give.
fn frames(body: &[u8], [first, step]: [u8; 2]) -> Vec<&[u8]> {
    let mut rest = body;
    let mut length = usize::from(first % 32);
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let (frame, after) = rest.split_at(length.min(rest.len()));
        frames.push(frame);
        rest = after;
        length = (length + usize::from(step)) % 40 + 1;
    }
    frames
}

/// The contents of all parts, as a reader finds them who has the whole body; nothing where there is no closing boundary
/// or something else than the line's end behind a boundary.
fn plain_reading(boundary: &str, body: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    let (_, mut at, mut closes) = delimiter(boundary, body, 0)?;
    while !closes {
        at += body[at..].iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
        let headers = body[at..].windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
        if !body[at..].starts_with(b"\r\n") {
            return None;
        }
        let begin = at + headers + 4;
        let end;
        (end, at, closes) = delimiter(boundary, body, begin)?;
        parts.push(body[begin..end].to_vec());
    }
    Some(parts)
}

/// Where the content ends, where the rest of the boundary's line begins, and whether it is the last one.
fn delimiter(boundary: &str, body: &[u8], from: usize) -> Option<(usize, usize, bool)> {
    let marker = format!("\r\n--{boundary}");
    (from..=body.len()).find_map(|at| {
        let rest = &body[at..];
        // The line end in front of it is the one that ended the headers, or the beginning of the body.
        let short = (at == from).then(|| rest.strip_prefix(&marker.as_bytes()[2..])).flatten();
        let rest = short.or_else(|| rest.strip_prefix(marker.as_bytes()))?;
        let end = body.len() - rest.len();
        match rest {
            [b'-', b'-', ..] => Some((at, end + 2, true)),
            [b'\r' | b' ' | b'\t', ..] => Some((at, end, false)),
            _ => None,
        }
    })
}

fn compare((events, end): &Outcome, plain: &Option<Vec<Vec<u8>>>) {
    match (end, plain) {
        (Ok(()), None) => panic!("accepted, and has no end: {events:?}"),
        (Ok(()), Some(parts)) => assert_eq!(&contents(events), parts),
        (Err(MultipartError::Truncated { place }), Some(_)) => panic!("whole, and ends {place}"),
        (Err(_), _) => {}
    }
}

fn contents(events: &[BodyEvent]) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for event in events {
        match event {
            BodyEvent::PartBegin(_) => parts.push(Vec::new()),
            BodyEvent::Data(data) => parts.last_mut().expect("content has a part").extend_from_slice(data),
            BodyEvent::PartEnd | BodyEvent::Done => {}
        }
    }
    parts
}
