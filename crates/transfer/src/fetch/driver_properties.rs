//! Gives the driver its own properties with what was fetched in them, where a stock spark-submit wrote them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::own_file::write_whole;
use cloakroom_spark::{Properties, PropertiesError, with_fetched_files};

/// Which properties, and where the driver finds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverProperties {
    /// As spark-submit wrote them.
    pub from: PathBuf,
    /// With `file:` for the `local:` of what was fetched. It is written whole or not at all.
    pub to: PathBuf,
}

/// Why the driver does not get its properties.
#[derive(Debug, thiserror::Error)]
pub enum DriverPropertiesError {
    /// They are not there.
    #[error(
        "cannot read the driver's properties {path}: check that the volume of spark-submit's own config map \
         (spark-conf-volume-driver) is mounted in this init-container",
        path = .path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A folder is there in their place.
    #[error(
        "the driver's properties {path} are a folder: the kubelet makes one in spark-submit's config map for every mount \
         path below it; in the driver's pod template, write the mountPath of spark.properties without its first slash \
         (opt/spark/conf/spark.properties), or stage again and take the new template",
        path = .path.display()
    )]
    Folder {
        /// Where they should be.
        path: PathBuf,
    },
    /// They are none.
    #[error(transparent)]
    Parse(#[from] PropertiesError),
    /// There is no place for them.
    #[error("cannot write the driver's properties to {path}: check that the volume is mounted and writable", path = .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl DriverProperties {
    /// Writes them, with what is in `folders` as files.
    pub fn write(&self, folders: &[&Path]) -> Result<(), DriverPropertiesError> {
        let text = fs::read_to_string(&self.from).map_err(|source| self.unread(source))?;
        let text = with_fetched_files(&Properties::parse(&self.from, &text)?, folders);
        let mut draft = self.to.clone().into_os_string();
        draft.push(".draft");
        write_whole(Path::new(&draft), &self.to, text.as_bytes())
            .map_err(|source| DriverPropertiesError::Write { path: self.to.clone(), source })
    }

    fn unread(&self, source: io::Error) -> DriverPropertiesError {
        let path = self.from.clone();
        match source.kind() {
            io::ErrorKind::IsADirectory => DriverPropertiesError::Folder { path },
            _ => DriverPropertiesError::Read { path, source },
        }
    }
}
