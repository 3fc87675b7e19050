//! What this user has staged before: the ticket of each bundle, and its segments. Each bundle has a file that only the
//! user can read, because a ticket is a secret. Nothing here fails an upload: what cannot be read or written is told at
//! level debug.

use std::cmp::Reverse;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use cloakroom_core::protocol::digest;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::ResourceId;
use cloakroom_core::text::chain;
use jiff::{SignedDuration, Timestamp};
use rustix::process::geteuid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::bundle::Segment;
use crate::client::ServerAddress;

/// How many bundles of a server and a namespace are remembered.
const MOST: usize = 8;

/// For how long a bundle is remembered. A job may use it for longer than its ticket says.
const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);

/// How the names of files with tickets begin.
const TICKET: &str = "ticket-";

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
        let beginning = format!("{}-", &digest::to_hex(&Sha256::digest(&place).into())[..16]);
        Memory { folder: self.folder.clone(), beginning, place }
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

/// What is remembered of one server and one namespace. Several processes may use it at once.
#[derive(Debug)]
pub(in crate::client) struct Memory {
    folder: PathBuf,
    /// How the names of its files begin. The id of the resource follows.
    beginning: String,
    /// The server and the namespace.
    place: String,
}

#[derive(Serialize, Deserialize)]
struct Content {
    form: u32,
    place: String,
    bundle: Known,
}

/// A ticket that may be given again.
#[derive(Serialize, Deserialize)]
struct KeptTicket {
    form: u32,
    place: String,
    /// What the server was asked for.
    asked: String,
    ticket: String,
}

impl Memory {
    /// The bundles, the newest first.
    pub fn known(&self) -> Vec<Known> {
        let Some(files) = told(&self.folder, "read", self.files()) else { return Vec::new() };
        let read = files.iter().filter_map(|file| told(file, "read", self.read(file)));
        let mut known: Vec<Known> = read.collect();
        known.sort_by_key(|known| Reverse(known.staged_at));
        known.truncate(MOST);
        known
    }

    /// Remembers a bundle, and forgets those that are too old, too many, or not readable.
    pub fn add(&self, bundle: Known) {
        let file = self.file_of(&bundle.resource_id);
        let content = Content { form: FORM, place: self.place.clone(), bundle };
        told(&file, "written", self.write(&file, &content));
        let keep: Vec<PathBuf> = self.known().iter().map(|known| self.file_of(&known.resource_id)).collect();
        for file in self.files().unwrap_or_default() {
            if !keep.contains(&file) {
                told(&file, "removed", fs::remove_file(&file));
            }
        }
    }

    /// Forgets a bundle that the server has no more.
    pub fn forget(&self, resource_id: &str) {
        let file = self.file_of(resource_id);
        told(&file, "removed", fs::remove_file(&file));
    }

    /// The ticket that was kept for these words, as the server wrote it.
    pub fn ticket(&self, asked: &str) -> Option<String> {
        let file = self.ticket_file(asked);
        if !file.exists() || told(&self.folder, "read", self.check()).is_none() {
            return None;
        }
        let kept: Option<KeptTicket> = told(&file, "read", read(&file));
        let kept =
            kept.filter(|kept| kept.form == FORM && kept.place == self.place && kept.asked == asked)?;
        Some(kept.ticket)
    }

    /// Keeps a ticket for a later run that asks for the same in the same words.
    pub fn keep_ticket(&self, asked: &str, ticket: &str) {
        let file = self.ticket_file(asked);
        let (place, asked, ticket) = (self.place.clone(), asked.to_owned(), ticket.to_owned());
        let kept = KeptTicket { form: FORM, place, asked, ticket };
        self.forget_ticket(&kept.asked);
        told(&file, "written", self.write(&file, &kept));
        self.forget_old_tickets();
    }

    fn forget_old_tickets(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let written = entry.metadata().and_then(|found| found.modified());
            let is_old =
                written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age > LONGEST.unsigned_abs()));
            if is_old && entry.file_name().to_string_lossy().starts_with(TICKET) {
                told(&entry.path(), "removed", fs::remove_file(entry.path()));
            }
        }
    }

    pub fn forget_ticket(&self, asked: &str) {
        let file = self.ticket_file(asked);
        if file.exists() {
            told(&file, "removed", fs::remove_file(&file));
        }
    }

    fn ticket_file(&self, asked: &str) -> PathBuf {
        let digest = digest::to_hex(&Sha256::digest(format!("{}\n{asked}", self.place)).into());
        self.folder.join(format!("{TICKET}{}.json", &digest[..16]))
    }

    fn file_of(&self, resource_id: &str) -> PathBuf {
        self.folder.join(format!("{}{resource_id}.json", self.beginning))
    }

    /// A folder that others can write to is an error.
    fn check(&self) -> io::Result<()> {
        let found = fs::metadata(&self.folder)?;
        if found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
            return Err(io::Error::other("the folder is another user's, or others can write to it"));
        }
        Ok(())
    }

    /// The files of this place.
    fn files(&self) -> io::Result<Vec<PathBuf>> {
        match self.check() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            checked => checked?,
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&self.beginning) {
                files.push(entry.path());
            }
        }
        Ok(files)
    }

    fn read(&self, file: &Path) -> io::Result<Known> {
        let Content { form, place, bundle } = read(file)?;
        let is_own = form == FORM && place == self.place && ResourceId::parse(&bundle.resource_id).is_ok();
        let since = Timestamp::now().saturating_sub(LONGEST).unwrap_or(Timestamp::MIN);
        match bundle.staged_at > since {
            true if is_own => Ok(bundle),
            true => Err(damaged()),
            false => Err(io::Error::other("it is too old")),
        }
    }

    /// A file that is not written to its end is damaged, and counts as none.
    fn write(&self, file: &Path, content: &impl Serialize) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        self.check()?;
        let text = serde_json::to_vec(content)?;
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?.write_all(&text)
    }
}

fn read<T: DeserializeOwned>(file: &Path) -> io::Result<T> {
    if !fs::symlink_metadata(file)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    // The error of the library could repeat a secret.
    serde_json::from_slice(&fs::read(file)?).map_err(|_| damaged())
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is not what this version writes")
}

/// Says at level debug what could not be done to a file: the reason why all of a bundle is sent.
fn told<T>(what: &Path, done: &str, result: io::Result<T>) -> Option<T> {
    let tell =
        |error: &io::Error| tracing::debug!(error = %chain(error), "{} cannot be {done}", what.display());
    result.inspect_err(tell).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, SystemTime};

    use super::*;

    fn memory(folder: &Path, namespace: &str) -> Memory {
        let before =
            StagedBefore::of_user(|name| (name == "XDG_CACHE_HOME").then(|| folder.to_owned())).unwrap();
        before.at(&ServerAddress::parse("http://h:1").unwrap(), namespace)
    }

    /// A bundle that was staged so many seconds ago.
    fn known(seconds: i64) -> Known {
        Known {
            resource_id: id(seconds),
            resource_secret: "hush".to_owned(),
            staged_at: Timestamp::now() - SignedDuration::from_secs(seconds),
            segments: vec![Segment { length: 5, crc: 7 }],
        }
    }

    fn id(number: i64) -> String {
        format!("00000000-0000-4000-8000-{number:012}")
    }

    fn ids(memory: &Memory) -> Vec<String> {
        memory.known().into_iter().map(|known| known.resource_id).collect()
    }

    #[test]
    fn the_newest_eight_of_a_place_are_known_until_they_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let (demo, other) = (memory(folder.path(), "demo"), memory(folder.path(), "other"));
        assert_eq!(ids(&demo), [""; 0]);
        [3, 10, 1, 9, 2, 4, 8, 5, 7, 6].map(known).into_iter().for_each(|bundle| demo.add(bundle));
        other.add(known(99));
        demo.forget(&id(4));
        demo.add(Known { staged_at: Timestamp::now() - LONGEST, ..known(20) });
        assert_eq!(ids(&demo), [1, 2, 3, 5, 6, 7, 8].map(id));
        assert_eq!(ids(&other), [id(99)]);
        assert_eq!(demo.files().unwrap().len(), 7, "the others are removed");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&demo.file_of(&id(1))), mode(&demo.folder)), (0o600, 0o700));
    }

    #[test]
    fn a_file_that_cannot_be_read_counts_as_none_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let memory = memory(folder.path(), "demo");
        memory.add(known(1));
        let file = memory.file_of(&id(1));
        let text = fs::read_to_string(&file).unwrap();
        let others = [("\"form\":1", "\"form\":2"), ("demo", "x"), ("0000-4000", "../4000")];
        let others = others.map(|(from, to)| text.replace(from, to));
        for damaged in ["", "{", "[]", &text[1..], &text[..text.len() - 1]]
            .into_iter()
            .chain(others.iter().map(|text| &**text))
        {
            fs::write(&file, damaged).unwrap();
            assert_eq!(ids(&memory), [""; 0], "{damaged}");
        }
        memory.add(known(2));
        assert_eq!((ids(&memory), file.exists()), (vec![id(2)], false));
        fs::remove_dir_all(folder.path()).unwrap();
        fs::write(folder.path(), "a file").unwrap();
        memory.add(known(3));
        assert_eq!(ids(&memory), [""; 0]);
    }

    #[test]
    fn a_ticket_is_kept_for_the_words_it_was_asked_for_in_and_for_one_place() {
        let folder = tempfile::tempdir().unwrap();
        let (demo, other) = (memory(folder.path(), "demo"), memory(folder.path(), "other"));
        demo.keep_ticket("kind=Job", "old");
        demo.keep_ticket("kind=Job", "new");
        demo.add(known(1));
        assert_eq!(demo.ticket("kind=Job").as_deref(), Some("new"));
        assert_eq!((demo.ticket("kind=Pod"), other.ticket("kind=Job")), (None, None));
        let file = demo.ticket_file("kind=Job");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let aged = fs::File::options().write(true).open(&file).unwrap();
        aged.set_modified(SystemTime::now() - LONGEST.unsigned_abs() - Duration::from_mins(1)).unwrap();
        demo.keep_ticket("kind=Pod", "pod");
        assert!(!file.exists(), "it is too old");
        fs::write(demo.ticket_file("kind=Pod"), "{").unwrap();
        assert_eq!(demo.ticket("kind=Pod"), None);
        demo.keep_ticket("kind=Pod", "pod");
        fs::set_permissions(&demo.folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(demo.ticket("kind=Pod"), None);
        demo.forget_ticket("kind=Pod");
        assert!(!demo.ticket_file("kind=Pod").exists());
    }

    #[test]
    fn what_others_could_have_put_there_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let (memory, victim) = (memory(folder.path(), "demo"), folder.path().join("victim"));
        memory.add(known(1));
        fs::write(&victim, "theirs").unwrap();
        std::os::unix::fs::symlink(&victim, memory.file_of(&id(2))).unwrap();
        memory.add(known(2));
        assert_eq!((fs::read_to_string(&victim).unwrap(), ids(&memory)), ("theirs".to_owned(), vec![id(1)]));
        fs::set_permissions(&memory.folder, fs::Permissions::from_mode(0o777)).unwrap();
        memory.add(known(3));
        assert_eq!(ids(&memory), [""; 0]);
        assert!(!memory.file_of(&id(3)).exists());
    }

    #[test]
    fn without_a_home_nothing_is_remembered() {
        let of =
            |home: &'static str| StagedBefore::of_user(move |name| (name == "HOME").then(|| home.into()));
        assert_eq!(of("/home/me").unwrap().folder, Path::new("/home/me/.cache/cloakroom"));
        assert!(of("").is_none() && of("relative").is_none());
    }
}
