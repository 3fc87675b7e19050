//! What this user has staged before: the tickets, and the segments of the bundles. It is in files that only the user can read,
//! because a ticket is a secret. Nothing here fails an upload: what cannot be read or written is told at level debug.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use cloakroom_core::protocol::digest;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::text::chain;
use jiff::{SignedDuration, Timestamp};
use rustix::fs::OFlags;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::bundle::Segment;
use crate::client::ServerAddress;

/// How many bundles of a server and a namespace are remembered.
const MOST: usize = 8;

/// For how long a bundle is remembered. A job may use it for longer than its ticket says.
const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);

/// How often the lock of the folder is tried, and how long the wait is in between. It is held for some milliseconds.
const LOCK_LOOKS: usize = 50;
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

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
        // The URL, which has the API server in it where the way goes through that.
        let place = format!("{}\n{namespace}", server.join("/"));
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
        let found = match fs::symlink_metadata(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found?,
        };
        if !found.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let text = fs::read(&self.file)?;
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
        // What an interrupted run has left; the lock keeps others out.
        let new = self.file.with_extension("new");
        let _ = fs::remove_file(&new);
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?.write_all(&text)?;
        fs::rename(&new, &self.file)
    }

    /// Keeps other processes out of the folder, which is made if it is missing. One that another process holds for long, or that
    /// other users can write to, is not used.
    fn locked(&self) -> io::Result<File> {
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let found = fs::metadata(folder)?;
        if found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
            return Err(io::Error::other("the folder is another user's, or others can write to it"));
        }
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let lock = options.open(folder.join("lock"))?;
        for _ in 0..LOCK_LOOKS {
            match lock.try_lock() {
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_INTERVAL),
                locked => return locked.map(|()| lock).map_err(io::Error::from),
            }
        }
        Err(io::Error::other("another process has locked the folder for long"))
    }

    fn told<T>(&self, what: &str, done: io::Result<T>) -> Option<T> {
        done.inspect_err(|error| {
            let file = self.file.display();
            tracing::debug!(error = %chain(error), "{file} cannot be {what}, so all of a bundle is sent");
        })
        .ok()
    }
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
    fn what_others_could_have_put_there_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let memory = memory(folder.path(), "demo");
        memory.add(known("1"));
        let (own, victim) = (memory.file.parent().unwrap(), folder.path().join("victim"));
        fs::write(&victim, "theirs").unwrap();
        std::os::unix::fs::symlink(&victim, memory.file.with_extension("new")).unwrap();
        memory.add(known("2"));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "theirs");
        assert_eq!(ids(&memory), ["2", "1"]);
        let holder = File::open(own.join("lock")).unwrap();
        holder.lock().unwrap();
        assert_eq!(ids(&memory), Vec::<String>::new(), "another process holds it");
        drop(holder);
        fs::set_permissions(own, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(ids(&memory), Vec::<String>::new(), "others can write there");
    }

    #[test]
    fn without_a_home_nothing_is_remembered() {
        let of =
            |home: &'static str| StagedBefore::of_user(move |name| (name == "HOME").then(|| home.into()));
        assert_eq!(of("/home/me").unwrap().folder, Path::new("/home/me/.cache/cloakroom"));
        assert!(of("").is_none() && of("relative").is_none());
    }
}
