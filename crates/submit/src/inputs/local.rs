//! Reads the files of this machine, and small files from the web.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use super::{Inputs, globs};
use crate::plan::{Facts, Kind, Needs, PathFacts, Uncollected};
use cloakroom_core::size::format_size;
use cloakroom_spark::{RemoteUri, jar};
use cloakroom_transfer::bundle::{Disk, Sources};
use cloakroom_transfer::client::{HttpClient, Timeouts, Url};

/// The longest download. No object of Kubernetes can have so many bytes.
const LONGEST_DOWNLOAD: usize = 4 << 20;
/// The longest file that is read. It is far more than an object can have; the limit is for devices without an end.
const LONGEST_CONTENT: u64 = 64 << 20;

/// The source of files for a command on this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Local;

#[async_trait]
impl Inputs for Local {
    async fn collect(&self, needs: &Needs) -> Result<Facts, Uncollected> {
        let asked = needs.clone();
        // On a blocking thread, because a network folder may be slow.
        let read = tokio::task::spawn_blocking(move || read(&asked)).await;
        let mut facts = read.map_err(|error| Uncollected { problem: error.to_string() })?;
        for address in &needs.web {
            facts.web.insert(address.clone(), download(address).await);
        }
        Ok(facts)
    }

    fn sources(&self) -> Arc<dyn Sources> {
        Arc::new(Disk)
    }
}

pub(crate) fn read(needs: &Needs) -> Facts {
    let looked_at = |path: &PathBuf| (path.clone(), place(path));
    let mut facts = Facts { places: needs.places.iter().map(looked_at).collect(), ..Facts::default() };
    // A file whose name looks like a pattern is taken for itself.
    let is_missing = |path: &&PathBuf| facts.places.get(*path).is_some_and(|place| place.is_missing);
    for pattern in needs.patterns.iter().filter(is_missing) {
        facts.matches.insert(pattern.clone(), globs::expand(pattern).map_err(Arc::new));
    }
    facts.places.extend(facts.matches.values().flatten().flatten().map(looked_at));
    let listed = |folder: &PathBuf| (folder.clone(), regular_files(folder).map_err(Arc::new));
    facts.folders = needs.folders.iter().map(listed).collect();
    facts.contents = needs.contents.iter().map(|path| (path.clone(), content(path))).collect();
    let main_class = |jar: &PathBuf| Some((jar.clone(), jar::main_class(jar).ok()?));
    facts.main_classes = needs.manifests.iter().filter_map(main_class).collect();
    facts
}

/// The regular files of a folder with their sizes, hidden files and links to files included. A link that leads nowhere
/// is not. A path that is no folder has no files.
fn regular_files(folder: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let mut files = Vec::new();
    if !folder.is_dir() {
        return Ok(files);
    }
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
    // One byte more shows that the file is too large. A file that is cut off could be taken for a whole one.
    File::open(path)?.take(LONGEST_CONTENT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_CONTENT {
        let most = format_size(LONGEST_CONTENT);
        return Err(Arc::new(io::Error::other(format!("it is larger than {most}"))));
    }
    Ok(bytes)
}

fn place(path: &Path) -> PathFacts {
    let is_missing = fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let kind = fs::metadata(path).map_err(Arc::new).map(|metadata| match metadata {
        metadata if metadata.is_file() => Kind::File {
            size_bytes: metadata.len(),
            modified: metadata.modified().ok(),
            // Only opening it shows whether it may be read.
            is_zip: is_zip(path).map_err(Arc::new),
        },
        metadata if metadata.is_dir() => Kind::Folder,
        _ => Kind::Special,
    });
    PathFacts { is_missing, kind }
}

/// Whether a file has the record at its end that makes it a zip file. Its beginning may be anything, such as a script that
/// starts the jar.
fn is_zip(path: &Path) -> io::Result<bool> {
    /// The longest record with the longest comment behind it.
    const LONGEST_END_BYTES: u64 = 22 + 65_535;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LONGEST_END_BYTES)))?;
    let mut end = Vec::new();
    file.take(LONGEST_END_BYTES).read_to_end(&mut end)?;
    Ok(end.windows(4).any(|bytes| bytes == b"PK\x05\x06"))
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

    #[test]
    fn a_runtime_that_ends_is_an_error_and_not_a_machine_without_files() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let handle = runtime.handle().clone();
        runtime.shutdown_background();
        let error = handle.block_on(Local.collect(&Needs::default())).err().unwrap().to_string();
        assert!(error.starts_with("the files that the application names were not looked at: "), "{error}");
    }
}
