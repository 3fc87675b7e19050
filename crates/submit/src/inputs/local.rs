//! The files of this machine, and what is on the web.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use super::{Inputs, globs};
use crate::plan::{Facts, FolderNeed, Kind, Needs, Place};
use cloakroom_core::size::format_size;
use cloakroom_spark::{RemoteUri, jar};
use cloakroom_transfer::bundle::{Disk, Sources};
use cloakroom_transfer::client::{HttpClient, Timeouts, Url};

/// More than any object of Kubernetes may have.
const LONGEST_DOWNLOAD: usize = 4 << 20;
/// Far more than any file that goes into an object has: a device may have no end.
const LONGEST_CONTENT: u64 = 64 << 20;

/// Reads this machine's files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Local;

#[async_trait]
impl Inputs for Local {
    async fn collect(&self, needs: &Needs) -> Facts {
        let asked = needs.clone();
        // A folder on the network may be slow.
        let mut facts = match tokio::task::spawn_blocking(move || read(&asked)).await {
            Ok(facts) => facts,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends.
                Err(_) => Facts::default(),
            },
        };
        for address in &needs.web {
            facts.web.insert(address.clone(), download(address).await);
        }
        facts
    }

    fn sources(&self) -> Arc<dyn Sources> {
        Arc::new(Disk)
    }
}

pub(crate) fn read(needs: &Needs) -> Facts {
    let mut facts = Facts::default();
    for pattern in &needs.patterns {
        // Only where no file has that name itself.
        if place(pattern).is_missing {
            facts.matches.insert(pattern.clone(), globs::expand(pattern).map_err(Arc::new));
        }
    }
    let found: Vec<&PathBuf> = facts.matches.values().flatten().flatten().collect();
    facts.places = needs.places.iter().chain(found).map(|path| (path.clone(), place(path))).collect();
    for (path, place) in &facts.places {
        if let (Ok(Kind::File { size_bytes, .. }), Some(most)) = (&place.kind, needs.small_bytes)
            && *size_bytes <= most
        {
            facts.contents.insert(path.clone(), content(path));
        }
    }
    for path in &needs.contents {
        facts.contents.insert(path.clone(), content(path));
    }
    for (folder, need) in needs.folders.iter().filter(|(folder, _)| folder.is_dir()) {
        let files = regular_files(folder);
        for (path, _) in files.iter().flatten().filter(|(path, size)| is_wanted(need, path, *size)) {
            facts.contents.insert(path.clone(), content(path));
        }
        facts.folders.insert(folder.clone(), files.map_err(Arc::new));
    }
    let main_class = |jar: &PathBuf| Some((jar.clone(), jar::main_class(jar).ok()?));
    facts.main_classes = needs.manifests.iter().filter_map(main_class).collect::<BTreeMap<_, _>>();
    facts
}

fn is_wanted(need: &FolderNeed, path: &Path, size_bytes: u64) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    size_bytes <= need.most_bytes && name.is_some_and(need.is_wanted)
}

/// Hidden ones and links to files included; a link that leads nowhere is none.
fn regular_files(folder: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if let Some(metadata) = fs::metadata(&path).ok().filter(Metadata::is_file) {
            files.push((path, metadata.len()));
        }
    }
    Ok(files)
}

fn content(path: &Path) -> Result<Vec<u8>, Arc<io::Error>> {
    let mut bytes = Vec::new();
    // A byte more is enough to know that it is too large: what is cut off could be taken for the whole.
    File::open(path)?.take(LONGEST_CONTENT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_CONTENT {
        let most = format_size(LONGEST_CONTENT);
        return Err(Arc::new(io::Error::other(format!("it is larger than {most}"))));
    }
    Ok(bytes)
}

fn place(path: &Path) -> Place {
    let is_missing = fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let kind = fs::metadata(path).map_err(Arc::new).map(|metadata| match metadata {
        metadata if metadata.is_file() => Kind::File {
            size_bytes: metadata.len(),
            modified: metadata.modified().ok(),
            // Nothing else tells whether it may be read.
            opened: File::open(path).map(drop).map_err(Arc::new),
        },
        metadata if metadata.is_dir() => Kind::Folder,
        _ => Kind::Special,
    });
    Place { is_missing, kind }
}

async fn download(address: &RemoteUri) -> Result<Vec<u8>, String> {
    let url = Url::parse(address.as_str()).map_err(|error| error.to_string())?;
    let client = HttpClient::new(&[], Timeouts::default()).map_err(|error| error.to_string())?;
    let mut download = client.open_file(&url, None).await.map_err(|failure| failure.to_string())?;
    let mut bytes = Vec::new();
    while let Some(chunk) = download.chunk().await.map_err(|failure| failure.to_string())? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > LONGEST_DOWNLOAD {
            let most = format_size(LONGEST_DOWNLOAD as u64);
            return Err(format!("it is larger than {most}, which no object of Kubernetes can be"));
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_large_is_not_cut_off_without_a_word() {
        let folder = tempfile::tempdir().unwrap();
        let [fits, large] = ["fits", "large"].map(|name| folder.path().join(name));
        File::create(&fits).unwrap().set_len(LONGEST_CONTENT).unwrap();
        File::create(&large).unwrap().set_len(LONGEST_CONTENT + 1).unwrap();
        let needs = Needs { contents: [fits.clone(), large.clone()].into(), ..Needs::default() };
        let facts = read(&needs);
        assert_eq!(facts.contents[&fits].as_ref().unwrap().len() as u64, LONGEST_CONTENT);
        let error = facts.contents[&large].as_ref().unwrap_err().to_string();
        assert_eq!(error, "it is larger than 64 MiB");
    }
}
