//! Files on the web: GET requests to `http` and `https` addresses, each into one file.

use std::io::{self, Read};

use crate::client::Url;

use super::error::SourceCause;
use super::plan::FetchPlanError;
use crate::bundle::{Folder, UnpackedFile};
use crate::client::shown;
use crate::modes;
use cloakroom_core::resource::FileName;
use cloakroom_core::size::format_size;
use cloakroom_spark::RemoteUri;

/// All users may read the file, because Spark's images run as user 185.
const FILE_MODE: u32 = 0o644;

/// A file on the web, and its name in the target folder.
#[derive(Clone)]
pub(super) struct RemoteFile {
    pub url: Url,
    pub name: String,
}

impl RemoteFile {
    /// Takes the last segment of the path as the name, percent-decoded. Refuses names that begin with the prefix of
    /// this room's own hidden files.
    pub(super) fn new(uri: &RemoteUri) -> Result<Self, FetchPlanError> {
        let unusable = |why: String| FetchPlanError::Remote { uri: uri.redacted(), why };
        let mut url = Url::parse(uri.as_str()).map_err(|error| unusable(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(unusable("its scheme is neither http nor https".to_owned()));
        }
        url.set_fragment(None);
        let name = uri.file_name().map_err(|error| FetchPlanError::RemoteName(error.to_string()))?;
        let is_hidden = name.starts_with(crate::bundle::RESERVED_PREFIX);
        if is_hidden || FileName::parse(&name).is_err() {
            return Err(unusable("its last segment is not usable as a file name".to_owned()));
        }
        Ok(Self { url, name })
    }

    /// The address for messages, without the parts that can be secret.
    pub(super) fn shown(&self) -> String {
        shown(&self.url)
    }
}

/// Writes the bytes of `input` to `folder`/`name`. Refuses more than `max_bytes`.
pub(super) fn save(
    input: &mut impl Read,
    folder: &Folder,
    name: &str,
    max_bytes: u64,
) -> Result<UnpackedFile, SourceCause> {
    let path = folder.path().join(name);
    let disk = |source: io::Error| SourceCause::Disk { path: path.clone(), source };
    let mut file = folder.create_file(name).map_err(disk)?;
    let size_bytes = io::copy(&mut input.take(max_bytes.saturating_add(1)), &mut file).map_err(disk)?;
    if size_bytes > max_bytes {
        return Err(SourceCause::TooLarge { limit: format_size(max_bytes) });
    }
    modes::set(&file, FILE_MODE).map_err(disk)?;
    Ok(UnpackedFile { name: name.to_owned(), size_bytes })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use cloakroom_spark::DependencyUri;

    fn remote(text: &str) -> Result<RemoteFile, FetchPlanError> {
        match DependencyUri::parse(text).unwrap() {
            DependencyUri::Http(uri) => RemoteFile::new(&uri),
            other => panic!("{other:?} is not remote"),
        }
    }

    #[test]
    fn the_name_is_the_last_segment_decoded_without_query() {
        for (text, expected) in [
            ("https://h/a/b.jar", "b.jar"),
            ("https://h/a/my%20lib%2B1.jar?sig=s3cret#x", "my lib+1.jar"),
            ("http://u:p@h:8080/b.jar", "b.jar"),
        ] {
            let file = remote(text).unwrap();
            assert_eq!(file.name, expected);
            assert!(!file.shown().contains("s3cret") && !file.shown().contains("u:p"), "{}", file.shown());
        }
    }

    #[test]
    fn hostile_names_are_refused_without_their_secrets() {
        for text in [
            "https://h/a/%2e%2e%2fpasswd?sig=s3cret",
            "https://h/a/..%2f?sig=s3cret",
            "https://h/a/%2e%2e?sig=s3cret",
            "https://h/?sig=s3cret",
            "https://h?sig=s3cret",
            "https://h/a%00b?sig=s3cret",
            "https://h/a%0ab?sig=s3cret",
            "https://h/%ff?sig=s3cret",
            "https://h/.cloakroom-x.json?sig=s3cret",
        ] {
            let refusal = remote(text).err().unwrap().to_string();
            assert!(!refusal.contains("s3cret") && refusal.contains('h'), "{refusal}");
        }
    }

    #[test]
    fn a_file_is_readable_for_all_and_bounded() {
        let outer = tempfile::tempdir().unwrap();
        let folder = Folder::at(outer.path()).unwrap();
        let file = save(&mut &b"12345"[..], &folder, "a", 5).unwrap();
        assert_eq!(file.size_bytes, 5);
        let mode = std::fs::metadata(outer.path().join("a")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        assert!(matches!(save(&mut &b"12345"[..], &folder, "b", 4), Err(SourceCause::TooLarge { .. })));
    }
}
