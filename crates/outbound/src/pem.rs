//! Reads certificates to trust from PEM files.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use cloakroom_core::text::without_mark;

/// The reason why no certificates could be read from a file.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    /// The operating system refused to read the file.
    #[error("cannot read the CA file {path}", path = .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// The file is a Java key store.
    #[error(
        "the CA file {path} is a Java key store, and PEM is needed: \
         keytool -exportcert -rfc -keystore {path} -alias ALIAS -file ca.pem (keytool -list shows the aliases)",
        path = .path.display()
    )]
    JavaKeyStore { path: PathBuf },
    /// The file is a PKCS #12 store, or one certificate in DER.
    #[error(
        "the CA file {path} is PKCS #12 or DER, and PEM is needed: \
         openssl pkcs12 -in {path} -nokeys -out ca.pem (for a single certificate: \
         openssl x509 -inform der -in {path} -out ca.pem)",
        path = .path.display()
    )]
    Der { path: PathBuf },
    /// The file has no certificate.
    #[error("the CA file {path} has no “-----BEGIN CERTIFICATE-----” in it", path = .path.display())]
    NoCertificate { path: PathBuf },
    /// A certificate in the file is damaged.
    #[error("the CA file {path} has a certificate that cannot be read: {why}", path = .path.display())]
    Malformed { path: PathBuf, why: String },
}

/// Reads every certificate in the PEM file at `path`. There must be at least one. Keys are ignored.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let path = path.to_owned();
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(source) => return Err(PemError::Unreadable { path, source }),
    };
    certificates_of(&bytes, &path)
}

/// The same for a file that was read before.
pub fn certificates_of(bytes: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let path = path.to_owned();
    if bytes.starts_with(&[0xfe, 0xed, 0xfe, 0xed]) {
        return Err(PemError::JavaKeyStore { path });
    }
    if bytes.starts_with(&[0x30, 0x82]) {
        return Err(PemError::Der { path });
    }
    match CertificateDer::pem_slice_iter(&without_mark(bytes.to_vec())).collect::<Result<Vec<_>, _>>() {
        Ok(certificates) if certificates.is_empty() => Err(PemError::NoCertificate { path }),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(PemError::Malformed { path, why: error.to_string() }),
    }
}

/// The length of a line of PEM (RFC 7468, section 2).
const LINE: usize = 64;

/// Formats certificates as PEM.
pub(crate) fn to_pem(certificates: &[CertificateDer<'_>]) -> String {
    let mut text = String::new();
    for certificate in certificates {
        text += "-----BEGIN CERTIFICATE-----\n";
        let mut rest = STANDARD.encode(certificate);
        while !rest.is_empty() {
            let after = rest.split_off(rest.len().min(LINE));
            text += &rest;
            text.push('\n');
            rest = after;
        }
        text += "-----END CERTIFICATE-----\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_windows_is_read() {
        let pem = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap().cert.pem();
        let utf16 = pem.encode_utf16().flat_map(u16::to_le_bytes);
        for bytes in
            [[&[0xef, 0xbb, 0xbf], pem.as_bytes()].concat(), [0xff, 0xfe].into_iter().chain(utf16).collect()]
        {
            assert_eq!(certificates_of(&bytes, Path::new("ca.pem")).unwrap().len(), 1);
        }
    }

    fn refusal(content: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trust");
        std::fs::write(&path, content).unwrap();
        read_certificates(&path).unwrap_err().to_string()
    }

    #[test]
    fn java_stores_get_the_line_that_converts_them() {
        assert!(refusal(b"\xfe\xed\xfe\xed\0\0\0\x02").contains("keytool -exportcert -rfc -keystore /"));
        assert!(refusal(b"\x30\x82\x09\x01").contains("openssl pkcs12 -in /"));
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        assert!(refusal(b"hello").contains("/trust has no"));
        assert!(
            refusal(b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n")
                .contains("cannot be read")
        );
        let missing = read_certificates(Path::new("/nonexistent/ca.pem")).unwrap_err().to_string();
        assert_eq!(missing, "cannot read the CA file /nonexistent/ca.pem");
    }

    #[test]
    fn all_certificates_of_a_chain_are_read() {
        let pem = |name: &str| rcgen::generate_simple_self_signed([name.to_owned()]).unwrap().cert.pem();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, pem("a") + &pem("b")).unwrap();
        assert_eq!(read_certificates(&path).unwrap().len(), 2);
    }

    #[test]
    fn keys_beside_certificates_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("both.pem");
        let made = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
        let certificate = made.cert.pem().replace('\r', "");
        std::fs::write(&path, made.signing_key.serialize_pem() + "a note\n" + &certificate).unwrap();
        assert_eq!(to_pem(&read_certificates(&path).unwrap()), certificate);
    }
}
