//! Files that are in use, and are read again together when one of them changes. If that fails, the old content stays in
//! use, because a failed rotation must not lock clients out.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Files, each with the stamp that it had before it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen(Vec<(PathBuf, Stamp)>);

/// The properties of a file that change with its content: time, length and inode. The inode is needed because
/// Kubernetes updates a mounted file by changing a symbolic link, perhaps within one tick of the file system's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp(Option<(SystemTime, u64, u64)>);

impl Stamp {
    fn read(path: &Path) -> Self {
        let metadata = fs::metadata(path).ok();
        Self(metadata.and_then(|metadata| Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))))
    }
}

impl Seen {
    /// Adds a file. Its stamp is taken before the content is read, so that a change in between is noticed the next
    /// time.
    pub fn add(&mut self, path: &Path) {
        self.0.push((path.to_owned(), Stamp::read(path)));
    }

    /// The same files with their present stamps.
    fn again(&self) -> Self {
        Self(self.0.iter().map(|(path, _)| (path.clone(), Stamp::read(path))).collect())
    }
}

impl<'p> FromIterator<&'p Path> for Seen {
    fn from_iter<I: IntoIterator<Item = &'p Path>>(paths: I) -> Self {
        let mut seen = Self::default();
        paths.into_iter().for_each(|path| seen.add(path));
        seen
    }
}

/// The state of files that are read again when they change.
#[derive(Debug)]
pub struct Reload {
    /// The stamps at the time when the content in use was read.
    used: Seen,
    /// The stamps of files that could not be used, so that the log has one line for each such state.
    unusable: Option<Seen>,
    /// The time of the last check.
    looked: Instant,
}

impl Reload {
    /// Begins with the stamps of the first reading.
    pub fn new(used: Seen) -> Self {
        Self { used, unusable: None, looked: Instant::now() }
    }

    /// Whether the last check was at least this long ago.
    pub fn is_due(&self, every: Duration) -> bool {
        self.looked.elapsed() >= every
    }

    /// Takes the present stamps of the files. It blocks.
    pub fn look(&mut self) -> Seen {
        self.looked = Instant::now();
        self.used.again()
    }

    /// The same for a reading that a person asked for: its failure is logged even if it was logged before.
    pub fn look_anew(&mut self) -> Seen {
        self.unusable = None;
        self.look()
    }

    /// Whether files with the stamps `now` differ from those in use.
    pub fn has_changed(&self, now: &Seen) -> bool {
        self.used != *now
    }

    /// Handles the result of reading the files, which had the stamps `now` before. `None` is a failure that was logged
    /// before: it is logged once for each state of the files.
    pub fn take<T, E>(&mut self, now: Seen, read: Result<(T, Seen), E>) -> Option<Result<T, E>> {
        match read {
            Ok((content, used)) => {
                (self.used, self.unusable) = (used, None);
                Some(Ok(content))
            }
            Err(error) => (self.unusable.replace(now.clone()) != Some(now)).then_some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A content that is a number.
    struct Number {
        path: PathBuf,
        reload: Reload,
        used: u32,
    }

    impl Number {
        fn read(path: &Path) -> Result<(u32, Seen), std::num::ParseIntError> {
            let seen = Seen::from_iter([path]);
            fs::read_to_string(path).unwrap_or_default().parse().map(|number| (number, seen))
        }

        /// Whether there is something to tell: a new content or a new failure.
        fn is_news(&mut self) -> bool {
            let now = self.reload.look();
            if !self.reload.has_changed(&now) {
                return false;
            }
            let read = self.reload.take(now, Self::read(&self.path));
            if let Some(Ok(number)) = read {
                self.used = number;
            }
            read.is_some()
        }
    }

    #[test]
    fn a_file_that_cannot_be_used_leaves_the_old_content_and_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("number");
        fs::write(&path, "1").unwrap();
        let (used, seen) = Number::read(&path).unwrap();
        let mut number = Number { path: path.clone(), reload: Reload::new(seen), used };
        assert!(!number.is_news());
        for (content, is_news, used) in
            [("22", true, 22), ("22", false, 22), ("x33", true, 22), ("x33", false, 22), ("4444", true, 4444)]
        {
            if is_news {
                fs::write(&path, content).unwrap();
            }
            assert_eq!((number.is_news(), number.used), (is_news, used), "{content}");
        }
        fs::remove_file(&path).unwrap();
        assert!(number.is_news() && !number.is_news());
        let now = number.reload.look_anew();
        assert!(number.reload.take(now, Number::read(&path)).is_some(), "somebody asked");
    }

    #[test]
    fn a_file_that_takes_the_name_of_another_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["used", "other"].map(|name| folder.path().join(name));
        for file in [&path, &other] {
            fs::write(file, "x").unwrap();
            let file = fs::File::options().write(true).open(file).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        let mut reload = Reload::new(Seen::from_iter([path.as_path()]));
        fs::rename(&other, &path).unwrap();
        let now = reload.look();
        assert!(reload.has_changed(&now));
        assert!(!reload.is_due(Duration::from_hours(1)) && reload.is_due(Duration::ZERO));
    }
}
