//! What a path names.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use uuid::Uuid;

use super::{ROOT, UploadKey};
use crate::resource::{FileName, ResourceSecret, is_dns_label};

/// How Spark names the folder of a file: this, and a random UUID.
const FOLDER: &str = "spark-upload-";

/// A folder of Spark, or the file in it: `NAMESPACE[/KEY]/spark-upload-UUID[/NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// For which namespace the file was staged.
    pub namespace: String,
    /// The right to upload for it; `None` if the path has none.
    pub key: Option<UploadKey>,
    /// The name of the file; `None` for the folder.
    pub name: Option<FileName>,
    folder: Uuid,
}

/// A path that Spark does not make of a usable setting. No part of the path is repeated, because that may have a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// It has too few parts or too many, or they are in another order.
    #[error(
        "this is no path of a file that Spark uploads: set spark.kubernetes.file.upload.path=webhdfs://HOST:PORT/NAMESPACE, \
         with /KEY behind it if the admin gave you a key (token-…)"
    )]
    Form,
    /// The first part is no namespace.
    #[error(
        "the first part of spark.kubernetes.file.upload.path is the namespace of the job, and this one is no name of a \
         namespace: webhdfs://HOST:PORT/NAMESPACE"
    )]
    Namespace,
    /// The folder is not one that Spark made.
    #[error(
        "the folder must be named spark-upload-UUID, with a random UUID (version 4) as Spark makes it: who knows the name may \
         read the file, so it must be hard to guess"
    )]
    Folder,
    /// The last part cannot be the name of a file.
    #[error(
        "the file's name is not usable: at most 255 bytes of UTF-8, no / and no \\, no control characters, neither . nor .."
    )]
    Name,
    /// The driver would not find a file of this name: Spark writes names into its properties as they are.
    #[error(
        "Spark's driver would not find a file of this name, because Spark writes it as it is into a list of addresses: rename the \
         file, without blanks and without any of % # , ? * [ ] {{ }} \" < > ^ ` |"
    )]
    NameOfSpark,
}

impl Place {
    /// Reads the path of a request, as it came.
    pub fn parse(path: &str) -> Result<Self, PlaceError> {
        let below =
            path.strip_prefix(ROOT).and_then(|below| below.strip_prefix('/')).ok_or(PlaceError::Form)?;
        let mut parts: Vec<&str> = below.split('/').collect();
        let namespace = parts.remove(0);
        if !is_dns_label(namespace) || namespace.starts_with(UploadKey::BEGINNING) {
            return Err(PlaceError::Namespace);
        }
        let key = parts.first().and_then(|part| UploadKey::parse(part));
        if key.is_some() {
            parts.remove(0);
        }
        let (folder, name) = match parts[..] {
            [folder] | [folder, ""] => (folder, None),
            [folder, name] => (folder, Some(name)),
            _ => return Err(PlaceError::Form),
        };
        let uuid = folder.strip_prefix(FOLDER).ok_or(PlaceError::Form)?;
        Ok(Self {
            namespace: namespace.to_owned(),
            key,
            name: name.map(file_name).transpose()?,
            folder: random_uuid(uuid).ok_or(PlaceError::Folder)?,
        })
    }

    /// The right to read the file. Only its hash is stored.
    pub fn secret(&self) -> ResourceSecret {
        ResourceSecret::from_text(format!("{}/{FOLDER}{}", self.namespace, self.folder))
    }
}

/// Only in the form in which Java writes it, so that each folder has one name.
fn random_uuid(text: &str) -> Option<Uuid> {
    let uuid = Uuid::try_parse(text).ok()?;
    (uuid.get_version_num() == 4 && uuid.hyphenated().to_string() == text).then_some(uuid)
}

fn file_name(part: &str) -> Result<FileName, PlaceError> {
    let name = percent_decode_str(part).decode_utf8().map_err(|_| PlaceError::Name)?;
    let name = FileName::parse(&name).map_err(|_| PlaceError::Name)?;
    if name.as_str().contains(|c: char| c.is_whitespace() || "%#,?*[]{}\"<>^`|".contains(c)) {
        return Err(PlaceError::NameOfSpark);
    }
    Ok(name)
}

/// A path of any request as it may be shown: of a path of WebHDFS the namespace and the name of the file, because what is between
/// them is a right.
pub fn shown_path(path: &str) -> Cow<'_, str> {
    let is_right =
        |part: &str| [UploadKey::BEGINNING, FOLDER].iter().any(|right| plain(part).contains(right));
    let shown = |part: &str| if is_right(part) { "…".to_owned() } else { part.to_owned() };
    let is_of_webhdfs = |part: &str| plain(part).contains("webhdfs");
    if path.split('/').find(|part| !part.is_empty()).is_some_and(is_of_webhdfs) {
        let Ok(Place { namespace, name, .. }) = Place::parse(path) else {
            return format!("{ROOT}/…").into();
        };
        let name = name.map_or_else(String::new, |name| shown(name.as_str()));
        return format!("{ROOT}/{}/…/{name}", shown(&namespace)).into();
    }
    if !path.split('/').any(is_right) {
        return path.into();
    }
    path.split('/').map(shown).collect::<Vec<_>>().join("/").into()
}

/// A part of a path, however it is written.
fn plain(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1";
    const KEY: &str = "token-0123456789abcdefghijABCDEFGHIJ_-";

    fn parse(below: &str) -> Result<Place, PlaceError> {
        Place::parse(&format!("{ROOT}/{below}"))
    }

    #[test]
    fn a_path_has_a_namespace_perhaps_a_key_a_folder_and_perhaps_a_file() {
        for (below, key, name) in [
            (format!("spark/spark-upload-{UUID}"), None, None),
            (format!("spark/spark-upload-{UUID}/"), None, None),
            (format!("spark/spark-upload-{UUID}/app.jar"), None, Some("app.jar")),
            (format!("spark/{KEY}/spark-upload-{UUID}"), Some(KEY), None),
            (
                format!("spark/{KEY}/spark-upload-{UUID}/d%C3%A4ta+é~&=;.txt"),
                Some(KEY),
                Some("däta+é~&=;.txt"),
            ),
        ] {
            let place = parse(&below).unwrap();
            assert_eq!(place.namespace, "spark");
            assert_eq!(place.key, key.and_then(UploadKey::parse), "{below}");
            assert_eq!(place.name.as_ref().map(FileName::as_str), name, "{below}");
            let secret = format!("spark/spark-upload-{UUID}");
            assert_eq!(place.secret().expose(), secret, "neither key nor name count");
            assert!(!format!("{place:?}").contains("token-"));
        }
    }

    #[test]
    fn any_other_path_is_refused() {
        let of_version_1 = UUID.replace("-4a1f", "-1a1f");
        for (below, error) in [
            (String::new(), PlaceError::Namespace),
            ("spark".to_owned(), PlaceError::Form),
            (format!("spark/{KEY}"), PlaceError::Form),
            (format!("Spark/spark-upload-{UUID}"), PlaceError::Namespace),
            (format!("spark-upload-{UUID}/app.jar"), PlaceError::Form),
            (format!("spark/team/spark-upload-{UUID}/app.jar"), PlaceError::Form),
            (format!("spark/{KEY}/{KEY}/spark-upload-{UUID}"), PlaceError::Form),
            (format!("spark/spark-upload-{UUID}/a/b"), PlaceError::Form),
            (format!("spark/spark-upload-{UUID}/a%2Fb"), PlaceError::Name),
            (format!("spark/spark-upload-{UUID}/.."), PlaceError::Name),
            (format!("spark/spark-upload-{UUID}/%ff"), PlaceError::Name),
            (format!("spark/spark-upload-{UUID}/my%20app.txt"), PlaceError::NameOfSpark),
            (format!("spark/spark-upload-{UUID}/a%23b.txt"), PlaceError::NameOfSpark),
            (format!("{KEY}/spark-upload-{UUID}/app.jar").to_lowercase(), PlaceError::Namespace),
            ("spark/spark-upload-/app.jar".to_owned(), PlaceError::Folder),
            (format!("spark/spark-upload-{}/app.jar", UUID.to_uppercase()), PlaceError::Folder),
            (format!("spark/spark-upload-{of_version_1}/app.jar"), PlaceError::Folder),
        ] {
            assert_eq!(parse(&below), Err(error), "{below}");
        }
        for path in ["/webhdfs/v1", "/webhdfs/v2/spark", "/", ""] {
            assert_eq!(Place::parse(path), Err(PlaceError::Form), "{path}");
        }
    }

    #[test]
    fn a_path_is_shown_without_its_rights() {
        for (path, shown) in [
            (format!("{ROOT}/spark/{KEY}/spark-upload-{UUID}/app.jar"), "/webhdfs/v1/spark/…/app.jar"),
            (format!("{ROOT}/spark/spark-upload-{UUID}"), "/webhdfs/v1/spark/…/"),
            (format!("{ROOT}/my-spark-upload-1/spark-upload-{UUID}/token-1"), "/webhdfs/v1/…/…/…"),
            (format!("{ROOT}/spark/%74oken-0123/spark%2dupload-{UUID}/app.jar"), "/webhdfs/v1/…"),
            (format!("{ROOT}/{}/spark-upload-{UUID}", KEY.to_lowercase()), "/webhdfs/v1/…"),
            (format!("//WebHDFS/v1/spark/{}/x", &KEY[6..]), "/webhdfs/v1/…"),
            (format!("/elsewhere/%74OKEN-x/spark-upload-{UUID}/a"), "/elsewhere/…/…/a"),
            ("/api/v1/resources".to_owned(), "/api/v1/resources"),
        ] {
            assert_eq!(shown_path(&path), shown);
        }
    }
}
