//! The headers of one part.

use super::parameters::Parameters;

/// The headers of a part that matter here. All others are skipped: `OkHttp` sends `Content-Transfer-Encoding: binary`,
/// which RFC 7578 §4.7 lets receivers ignore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartHeaders {
    /// `name` of the `Content-Disposition`.
    pub name: String,
    /// `filename*` or `filename` of the `Content-Disposition`, exactly as it was sent. It is not safe to use as a path.
    pub file_name: Option<String>,
    /// `Content-Type`, unchecked: kubespark's client sends `multipart/form-data` without a boundary.
    pub content_type: Option<String>,
    /// `Content-Length` in bytes, if it is a number. It is only a hint: the boundary ends the part.
    pub content_length: Option<u64>,
}

impl PartHeaders {
    /// Reads a header block without the empty line at its end. Bytes that are not UTF-8 are replaced, because they can
    /// only stand in file names, and these are shown but never opened.
    pub(super) fn parse(block: &[u8], most: usize) -> Result<Self, HeaderFault> {
        let block = String::from_utf8_lossy(block);
        let fields = fields(&block)?;
        if fields.len() > most {
            return Err(HeaderFault::TooMany);
        }
        let get = |name: &str| {
            let found = fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.as_str())
        };
        let disposition = get("content-disposition").ok_or(NO_DISPOSITION)?;
        let disposition = Parameters::parse(disposition).map_err(|_| UNREADABLE_DISPOSITION)?;
        if !disposition.value.eq_ignore_ascii_case("form-data") {
            return Err(NOT_FORM_DATA);
        }
        Ok(Self {
            name: disposition.get("name").ok_or(NO_NAME)?.to_owned(),
            file_name: disposition.get_extended("filename"),
            content_type: get("content-type").map(str::to_owned),
            content_length: get("content-length").and_then(|length| length.parse().ok()),
        })
    }
}

/// Why a header block is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderFault {
    TooMany,
    Malformed(&'static str),
}

const NO_DISPOSITION: HeaderFault = HeaderFault::Malformed(
    "there is no Content-Disposition; send `Content-Disposition: form-data; name=\"…\"`",
);
const UNREADABLE_DISPOSITION: HeaderFault = HeaderFault::Malformed(
    "the parameters of Content-Disposition are malformed; send `form-data; name=\"…\"`",
);
const NOT_FORM_DATA: HeaderFault =
    HeaderFault::Malformed("the Content-Disposition is not form-data; send `form-data; name=\"…\"`");
const NO_NAME: HeaderFault =
    HeaderFault::Malformed("the Content-Disposition has no name; send `form-data; name=\"…\"`");
const NO_COLON: HeaderFault =
    HeaderFault::Malformed("a line is not `Name: value`; send each header on a line of its own");
const CONTROL: HeaderFault =
    HeaderFault::Malformed("there is a control character in them; end lines with CR LF");
const TWICE: HeaderFault = HeaderFault::Malformed("one of them is there twice; send each header once");

/// Splits the block into names and values, and joins folded lines (RFC 5322 §2.2.3).
fn fields(block: &str) -> Result<Vec<(&str, String)>, HeaderFault> {
    let mut fields: Vec<(&str, String)> = Vec::new();
    for line in block.split("\r\n").filter(|line| !line.is_empty()) {
        if line.contains(|character: char| character.is_ascii_control() && character != '\t') {
            return Err(CONTROL);
        }
        if line.starts_with([' ', '\t']) {
            let (_, value) = fields.last_mut().ok_or(NO_COLON)?;
            value.push(' ');
            value.push_str(line.trim());
            continue;
        }
        let (name, value) = line.split_once(':').ok_or(NO_COLON)?;
        let name = name.trim_end();
        if name.is_empty() {
            return Err(NO_COLON);
        }
        if fields.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            return Err(TWICE);
        }
        fields.push((name, value.trim().to_owned()));
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(block: &str) -> Result<PartHeaders, HeaderFault> {
        PartHeaders::parse(block.as_bytes(), 4)
    }

    #[test]
    fn kubesparks_client_is_understood() {
        let headers = parse(
            "Content-Disposition: form-data; name=\"resources\"\r\nContent-Transfer-Encoding: binary\r\n\
             Content-Type: multipart/form-data\r\nContent-Length: 1234",
        );
        assert_eq!(
            headers,
            Ok(PartHeaders {
                name: "resources".to_owned(),
                file_name: None,
                content_type: Some("multipart/form-data".to_owned()),
                content_length: Some(1234),
            })
        );
    }

    #[test]
    fn names_have_any_case_lines_may_be_folded_and_a_bad_length_is_no_length() {
        let headers = parse(
            "content-disposition : form-data;\r\n\tname=a;\r\n  filename=\"b.jar\"\r\nCONTENT-LENGTH: -1",
        )
        .unwrap();
        assert_eq!((headers.name.as_str(), headers.content_length), ("a", None));
        assert_eq!(headers.file_name.as_deref(), Some("b.jar"));
    }

    #[test]
    fn a_file_name_that_is_not_utf8_is_no_reason_to_refuse() {
        let block = b"Content-Disposition: form-data; name=\"a\"; filename=\"caf\xe9\"";
        let headers = PartHeaders::parse(block, 4).unwrap();
        assert_eq!(headers.file_name.as_deref(), Some("caf\u{fffd}"));
    }

    #[test]
    fn headers_that_cannot_be_read_are_refused_with_the_reason() {
        let disposition = "Content-Disposition: form-data; name=a";
        let cases = [
            (String::new(), NO_DISPOSITION),
            ("Content-Type: a/b".to_owned(), NO_DISPOSITION),
            ("Content-Disposition: attachment; name=a".to_owned(), NOT_FORM_DATA),
            ("Content-Disposition: form-data; filename=a".to_owned(), NO_NAME),
            ("Content-Disposition: form-data; name=\"a".to_owned(), UNREADABLE_DISPOSITION),
            (format!("{disposition}\r\nno colon"), NO_COLON),
            (format!("{disposition}\r\n: x"), NO_COLON),
            (format!(" folded\r\n{disposition}"), NO_COLON),
            (format!("{disposition}\nX: y"), CONTROL),
            (format!("{disposition}\r\n{disposition}"), TWICE),
            (format!("{disposition}\r\nA:\r\nB:\r\nC:\r\nD:"), HeaderFault::TooMany),
        ];
        for (block, fault) in cases {
            assert_eq!(parse(&block), Err(fault), "{block}");
        }
    }
}
