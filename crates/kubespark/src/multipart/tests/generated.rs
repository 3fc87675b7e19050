use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Text that is likely to come close to a boundary and to break the machine.
fn fragments() -> impl Strategy<Value = Vec<u8>> {
    let fragment = prop::sample::select(vec![
        "\r\n--3f2a",
        "--3f2a",
        "\r\n",
        "\r",
        "\n",
        "-",
        "--",
        "3f2a",
        "\r\n--3f2",
        " ",
        "\t",
        PART,
        "x",
        "\r\n\r\n",
        "Content-Type: a/b\r\n",
        "Content-Disposition: form-data; name=\"",
        "\"",
        ";",
        "=",
        "\\",
        "\u{0}",
    ])
    .prop_map(|text| text.as_bytes().to_vec());
    let noise = vec(any::<u8>(), 0..4);
    vec(prop_oneof![9 => fragment, 1 => noise], 0..24).prop_map(|pieces| pieces.concat())
}

/// The same without the boundary, as RFC 2046 requires of a part's content.
fn content() -> impl Strategy<Value = Vec<u8>> {
    fragments().prop_map(|bytes| {
        let text: String = bytes.into_iter().map(char::from).collect();
        let text = text.replace("3f2a", "3F2A");
        text.chars().map(|character| character as u8).collect()
    })
}

/// Encodes parts whose contents do not contain the boundary.
fn encode(parts: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, content) in parts {
        let headers = format!("--3f2a\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        body.extend_from_slice(headers.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--3f2a--\r\n");
    body
}

/// Cuts a body at any places.
fn cut<'a>(body: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut rest = body;
    let mut chunks: Vec<_> = lengths
        .iter()
        .map(|length| rest.split_off(..(*length).min(rest.len())).unwrap_or_default())
        .collect();
    chunks.push(rest);
    chunks
}

fn tight() -> BodyLimits {
    BodyLimits { preamble_bytes: 40, header_bytes: 120, headers: 3, parts: 3, epilogue_bytes: 20 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_splitting_gives_the_same_events(body in fragments(), lengths in vec(0_usize..12, 0..64)) {
        let body = [b"--3f2a\r\n", PART.as_bytes(), &body, b"\r\n--3f2a--"].concat();
        let whole = trace(tight(), [body.as_slice()]);
        // The bytes that are held back when the body breaks off depend only on the body, so even these are the same.
        prop_assert_eq!(&trace(tight(), cut(&body, &lengths)), &whole);
        prop_assert_eq!(&trace(tight(), body.chunks(1)), &whole);
    }

    // Invariant: the memory of the multipart parser has a bound for any input.
    #[test]
    fn arbitrary_bytes_never_panic_and_never_fill_the_memory(
        body in fragments(),
        lengths in vec(0_usize..12, 0..64),
    ) {
        let mut parser = Parser::new(&boundary(), tight());
        let (mut given, mut taken) = (0, 0);
        for chunk in cut(&body, &lengths) {
            parser.push(Bytes::copy_from_slice(chunk));
            given += chunk.len();
            while let Ok(Some(event)) = parser.next() {
                if let BodyEvent::Data(data) = event {
                    prop_assert!(!data.is_empty());
                    taken += data.len();
                }
            }
            prop_assert!(parser.held_bytes() <= tight().header_bytes);
            prop_assert!(taken <= given);
        }
        let _ = parser.finish();
    }

    #[test]
    fn the_parser_keeps_bounded_bytes_between_any_number_of_small_frames(
        body in vec(fragments(), 0..8),
        length in 1_usize..4,
    ) {
        let mut parser = Parser::new(&boundary(), tight());
        let body = [b"--3f2a\r\n", PART.as_bytes(), &body.concat()].concat();
        // A vector doubles its capacity, and the queue keeps room for four chunks after the first one.
        let most = 2 * tight().header_bytes + 4 * size_of::<Bytes>() + length;
        for frame in body.chunks(length) {
            parser.push(Bytes::copy_from_slice(frame));
            while let Ok(Some(_)) = parser.next() {}
            prop_assert!(parser.kept_bytes() <= most, "{} bytes after frames of {}", parser.kept_bytes(), length);
        }
    }

    #[test]
    fn what_is_held_back_of_content_is_never_longer_than_a_delimiter(body in fragments()) {
        let mut parser = Parser::new(&boundary(), BodyLimits::default());
        parser.push(format!("--3f2a\r\n{PART}").into());
        let _ = parser.next();
        let mut taken = 0;
        for (index, byte) in body.iter().enumerate() {
            parser.push(Bytes::copy_from_slice(&[*byte]));
            while let Ok(Some(event)) = parser.next() {
                match event {
                    BodyEvent::Data(data) => taken += data.len(),
                    _ => return Ok(()),
                }
            }
            prop_assert!(index + 1 - taken <= "\r\n--3f2a-".len());
            prop_assert_eq!(index + 1 - taken, parser.held_bytes());
        }
    }

    #[test]
    fn parts_that_are_encoded_are_read_back(
        sent in vec(("[a-z]{1,8}", content()), 0..6),
        lengths in vec(0_usize..32, 0..64),
    ) {
        let body = encode(&sent);
        let read = parts(&body).unwrap();
        let read: Vec<_> = read.into_iter().map(|(headers, content)| (headers.name, content)).collect();
        prop_assert_eq!(read, sent);
        prop_assert!(trace(BodyLimits::default(), cut(&body, &lengths)).1.is_ok());
    }
}
