//! Writes the driver's properties anew, if a stock spark-submit wrote them: entries of fetched files then lead to those
//! files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::bundle::Folder;
use cloakroom_spark::{Properties, PropertiesError, with_fetched_files};

/// The driver's properties before and after the fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverProperties {
    /// The file that spark-submit wrote.
    pub from: PathBuf,
    /// The file that the driver reads, with `file:` in place of `local:` for fetched files. It is written whole or not
    /// at all.
    pub to: PathBuf,
}

/// The reason why the driver does not get its properties.
#[derive(Debug, thiserror::Error)]
pub enum DriverPropertiesError {
    /// The file is missing or unreadable.
    #[error(
        "cannot read the driver's properties {path}: check that the volume of spark-submit's own config map \
         (spark-conf-volume-driver) is mounted in this init-container",
        path = .path.display()
    )]
    Read { path: PathBuf, source: io::Error },
    /// A folder has the name of the file.
    #[error(
        "the driver's properties {path} are a folder: the kubelet makes one in spark-submit's config map for every mount \
         path below it; in the driver's pod template, write the mountPath of spark.properties without its first slash \
         (opt/spark/conf/spark.properties), or stage again and take the new template",
        path = .path.display()
    )]
    Folder { path: PathBuf },
    /// The file is not a valid properties file.
    #[error(transparent)]
    Parse(#[from] PropertiesError),
    /// The target file cannot be written.
    #[error("cannot write the driver's properties to {path}: check that the volume is mounted and writable", path = .path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl DriverProperties {
    /// Writes [`Self::to`]. Files in `folders` get `file:` in place of `local:`.
    pub fn write(&self, folders: &[&Path]) -> Result<(), DriverPropertiesError> {
        let text = fs::read_to_string(&self.from).map_err(|source| self.unread(source))?;
        let text = with_fetched_files(&Properties::parse(&self.from, &text)?, folders);
        self.write_text(&text)
            .map_err(|source| DriverPropertiesError::Write { path: self.to.clone(), source })
    }

    fn write_text(&self, text: &str) -> io::Result<()> {
        let name = self.to.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let folder = self.to.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut draft = name.to_owned();
        draft.push(".draft");
        Folder::open(folder.unwrap_or(Path::new(".")))?.write_whole(draft, name, text.as_bytes())
    }

    fn unread(&self, source: io::Error) -> DriverPropertiesError {
        let path = self.from.clone();
        match source.kind() {
            io::ErrorKind::IsADirectory => DriverPropertiesError::Folder { path },
            _ => DriverPropertiesError::Read { path, source },
        }
    }
}
