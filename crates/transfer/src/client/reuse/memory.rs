//! What this user has staged before: the tickets, and the segments of the bundles. It is in files that only the user can read,
//! because a ticket is a secret. Nothing here fails an upload: what cannot be read or written is told at level debug.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use cloakroom_core::protocol::digest;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::text::chain;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::bundle::Segment;
use crate::client::ServerAddress;

/// How many bundles of a server and a namespace are remembered.
const MOST: usize = 8;

/// For how long a bundle is remembered. A job may use it for longer than its ticket says.
const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The form of the files.
const FORM: u32 = 1;

/// Where this user's memory is.
#[derive(Debug, Clone)]
pub struct StagedBefore {
    folder: PathBuf,
}

impl StagedBefore {
    /// In `$XDG_CACHE_HOME/cloakroom`, or else in `$HOME/.cache/cloakroom`; `None` if there is neither.
    pub fn of_user(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<Self> {
        let absolute = |name| variable(name).filter(|path| path.is_absolute());
        let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(Self { folder: caches.join("cloakroom") })
    }

    /// What was staged for a namespace at a server.
    pub(in crate::client) fn at(&self, server: &ServerAddress, namespace: &str) -> Memory {
        let place = format!("{server}\n{namespace}");
        let name = &digest::to_hex(&Sha256::digest(&place).into())[..16];
        Memory { file: self.folder.join(format!("staged-{name}.json")), place }
    }
}

/// A bundle that was staged before.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::client) struct Known {
    pub resource_id: String,
    pub resource_secret: String,
    pub staged_at: Timestamp,
    pub segments: Vec<Segment>,
}

impl Known {
    pub fn new(ticket: &Ticket, segments: Vec<Segment>) -> Self {
        let Ticket { resource_id, resource_secret, created_at, .. } = ticket.clone();
        Self { resource_id, resource_secret, staged_at: created_at, segments }
    }
}

/// The file of one server and one namespace.
#[derive(Debug)]
pub(in crate::client) struct Memory {
    file: PathBuf,
    /// The server and the namespace.
    place: String,
}

#[derive(Serialize, Deserialize)]
struct Content {
    form: u32,
    place: String,
    /// The newest first.
    bundles: Vec<Known>,
}

impl Memory {
    /// The bundles, the newest first.
    pub fn known(&self) -> Vec<Known> {
        self.told("read", self.locked().and_then(|_lock| self.read())).unwrap_or_default()
    }

    /// Remembers a bundle.
    pub fn add(&self, bundle: Known) {
        self.change(|bundles| bundles.insert(0, bundle));
    }

    /// Forgets a bundle that the server has no more.
    pub fn forget(&self, resource_id: &str) {
        self.change(|bundles| bundles.retain(|known| known.resource_id != resource_id));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Known>)) {
        let changed = self.locked().and_then(|_lock| {
            let mut bundles = self.told("read", self.read()).unwrap_or_default();
            change(&mut bundles);
            bundles.truncate(MOST);
            self.write(bundles)
        });
        self.told("written", changed);
    }

    fn read(&self) -> io::Result<Vec<Known>> {
        let text = match fs::read(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read?,
        };
        // The error of the library could repeat a secret.
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "it is not what this version writes");
        let content: Content = serde_json::from_slice(&text).map_err(|_| damaged())?;
        if content.form != FORM || content.place != self.place {
            return Err(damaged());
        }
        let since = Timestamp::now().saturating_sub(LONGEST).unwrap_or(Timestamp::MIN);
        Ok(content.bundles.into_iter().filter(|known| known.staged_at > since).collect())
    }

    /// Writes another file in its place, so that a reader never sees half of one.
    fn write(&self, bundles: Vec<Known>) -> io::Result<()> {
        let text = serde_json::to_vec(&Content { form: FORM, place: self.place.clone(), bundles })?;
        let new = self.file.with_extension("new");
        let mut file = private(OpenOptions::new().write(true).create(true).truncate(true), &new)?;
        file.write_all(&text)?;
        fs::rename(&new, &self.file)
    }

    /// Waits until no other process uses the folder, which is made if it is missing.
    fn locked(&self) -> io::Result<File> {
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let lock =
            private(OpenOptions::new().write(true).create(true).truncate(false), &folder.join("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    fn told<T>(&self, what: &str, done: io::Result<T>) -> Option<T> {
        done.inspect_err(|error| {
            let file = self.file.display();
            tracing::debug!(error = %chain(error), "{file} cannot be {what}, so all of a bundle is sent");
        })
        .ok()
    }
}

fn private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn memory(folder: &Path, namespace: &str) -> Memory {
        let before =
            StagedBefore::of_user(|name| (name == "XDG_CACHE_HOME").then(|| folder.to_owned())).unwrap();
        before.at(&ServerAddress::parse("http://h:1").unwrap(), namespace)
    }

    fn known(id: &str) -> Known {
        let segments = vec![Segment { length: 5, crc: 7 }];
        Known {
            resource_id: id.to_owned(),
            resource_secret: "hush".to_owned(),
            staged_at: Timestamp::now(),
            segments,
        }
    }

    fn ids(memory: &Memory) -> Vec<String> {
        memory.known().into_iter().map(|known| known.resource_id).collect()
    }

    #[test]
    fn the_newest_eight_of_a_place_are_known_until_they_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let (demo, other) = (memory(folder.path(), "demo"), memory(folder.path(), "other"));
        assert_eq!(ids(&demo), Vec::<String>::new());
        (0..10).for_each(|number| demo.add(known(&number.to_string())));
        other.add(known("elsewhere"));
        demo.forget("7");
        assert_eq!(ids(&demo), ["9", "8", "6", "5", "4", "3", "2"]);
        assert_eq!(ids(&other), ["elsewhere"]);
        demo.add(Known { staged_at: Timestamp::now() - LONGEST, ..known("old") });
        assert!(!ids(&demo).contains(&"old".to_owned()));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&demo.file), mode(demo.file.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn a_file_that_cannot_be_read_counts_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let memory = memory(folder.path(), "demo");
        memory.add(known("1"));
        let text = fs::read_to_string(&memory.file).unwrap();
        for damaged in
            ["", "{", "[]", &text[1..], &text.replace("\"form\":1", "\"form\":2"), &text.replace("demo", "x")]
        {
            fs::write(&memory.file, damaged).unwrap();
            assert_eq!(ids(&memory), Vec::<String>::new(), "{damaged}");
        }
        memory.add(known("2"));
        assert_eq!(ids(&memory), ["2"]);
        fs::remove_dir_all(folder.path()).unwrap();
        fs::write(folder.path(), "a file").unwrap();
        memory.add(known("3"));
        assert_eq!(ids(&memory), Vec::<String>::new());
    }

    #[test]
    fn without_a_home_nothing_is_remembered() {
        let of =
            |home: &'static str| StagedBefore::of_user(move |name| (name == "HOME").then(|| home.into()));
        assert_eq!(of("/home/me").unwrap().folder, Path::new("/home/me/.cache/cloakroom"));
        assert!(of("").is_none() && of("relative").is_none());
    }
}
