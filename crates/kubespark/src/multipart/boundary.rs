//! The boundary between parts, as the request's `Content-Type` announces it.

use super::error::MultipartError;
use super::parameters::Parameters;
use cloakroom_core::text::escaped;

/// The longest boundary, in characters (RFC 2046 §5.1.1).
const LONGEST: usize = 70;

/// A boundary that follows RFC 2046 §5.1.1. So it has no line end in it, and the scanner relies on that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary(String);

impl Boundary {
    /// Checks a boundary: 1 to 70 characters of RFC 2046's `bchars`, no blank at the end.
    pub fn parse(text: &str) -> Result<Self, MultipartError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte);
        let problem = match text {
            "" => "is empty",
            text if text.len() > LONGEST => "is too long",
            text if !text.bytes().all(allowed) => "has a character that is not allowed",
            text if text.ends_with(' ') => "ends with a blank",
            text => return Ok(Self(text.to_owned())),
        };
        Err(MultipartError::BadBoundary { problem })
    }

    /// The boundary's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The boundary that the value of a request's `Content-Type` announces, quoted or bare.
pub fn boundary_of(content_type: &str) -> Result<Boundary, MultipartError> {
    let parameters = Parameters::parse(content_type)
        .map_err(|problem| MultipartError::MalformedContentType { problem })?;
    if !parameters.value.eq_ignore_ascii_case("multipart/form-data") {
        return Err(MultipartError::NotMultipart { found: escaped(parameters.value) });
    }
    let boundary = parameters.get("boundary").ok_or(MultipartError::NoBoundary)?;
    Boundary::parse(boundary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_is_read_as_clients_write_it() {
        let seventy = "x".repeat(70);
        let cases = [
            ("multipart/form-data; boundary=a-b_c", "a-b_c"),
            ("Multipart/Form-Data;charset=utf-8;BOUNDARY=\"a b:c=?\"", "a b:c=?"),
            ("multipart/form-data; boundary=a/b=c:d", "a/b=c:d"),
            (&format!("multipart/form-data; boundary={seventy}"), &seventy),
        ];
        for (text, boundary) in cases {
            assert_eq!(boundary_of(text).unwrap().as_str(), boundary, "{text}");
        }
    }

    #[test]
    fn a_content_type_without_a_usable_boundary_is_refused_with_the_reason() {
        let long = format!("multipart/form-data; boundary={}", "x".repeat(71));
        let cases = [
            ("application/gzip", "is `application/gzip`, and multipart/form-data is needed"),
            ("", "is ``, and multipart/form-data is needed"),
            ("multipart/mixed; boundary=a", "is `multipart/mixed`"),
            ("multipart/form-data", "has no boundary parameter"),
            ("multipart/form-data; boundary=", "is empty"),
            ("multipart/form-data; boundary=\"a \"", "ends with a blank"),
            ("multipart/form-data; boundary=\"a", "never closed"),
            ("multipart/form-data; boundary=a;boundary=b", "a name twice"),
            ("multipart/form-data; boundary=a\r\nb", "not allowed"),
            ("multipart/form-data; boundary=é", "not allowed"),
            (&long, "is too long"),
        ];
        for (text, expected) in cases {
            let message = boundary_of(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
