//! The files of this machine that an entry of a list names, or why they cannot travel.

use std::io;
use std::path::{Path, PathBuf};

use super::file_names::file_uri;
use crate::plan::error::PlanError;
use crate::plan::facts::{Facts, Kind};
use crate::plan::needs::is_pattern;
use crate::plan::submitter::Machine;
use cloakroom_spark::{DependencyUri, FileUri};

/// Advice for a URL that a comma has split, or that counts as a path because of a blank.
const URL_RULE: &str = "in a URL a comma must be written %2C, and a blank %20";

/// Where Spark is in its images.
const SPARK_IN_THE_IMAGE: &str = "/opt/spark";

/// An entry that names files of this machine.
pub(super) struct LocalEntry<'a> {
    /// The key of the list, or `the application`.
    pub place: &'static str,
    pub uri: &'a FileUri,
    /// The position in the list, from 1.
    pub number: usize,
    /// The text of the entry before this one.
    pub before: Option<&'a str>,
}

impl LocalEntry<'_> {
    /// The file, or the files that match a pattern.
    pub fn files(&self, machine: Machine) -> Result<Vec<PathBuf>, PlanError> {
        let path = machine.path(self.uri.path());
        // A file whose name looks like a pattern is taken for itself.
        if !machine.facts.is_missing(&path) || !is_pattern(&path.to_string_lossy()) {
            return self.file(machine).map(|file| vec![file]);
        }
        let matches = machine.facts.matches(&path);
        let files = matches.map_err(|error| self.refuse(format!("cannot be looked up: {error}")))?;
        match files.len() {
            // Spark leaves out such a pattern without a message.
            0 => return Err(self.refuse("matches no file of this machine".to_owned())),
            1 => {}
            _ if self.uri.fragment().is_some() => {
                return Err(self.refuse("matches more than one file, and has one name for them".to_owned()));
            }
            _ => {}
        }
        for file in &files {
            if let Some(problem) = fault(file, machine.facts) {
                let file = file.display().to_string();
                return Err(PlanError::LocalFile { place: self.place, file, problem });
            }
        }
        Ok(files)
    }

    /// The file, for an entry that cannot be a pattern.
    pub fn file(&self, machine: Machine) -> Result<PathBuf, PlanError> {
        let path = machine.path(self.uri.path());
        match fault(&path, machine.facts) {
            None => Ok(path),
            Some(problem) => {
                let is_missing = machine.facts.is_missing(&path);
                let hint = if is_missing { self.hint(machine, &path) } else { None };
                Err(self.refuse(problem + hint.as_deref().unwrap_or_default()))
            }
        }
    }

    /// A hint at the file that was probably meant. Few users know where a `#` ends the path.
    fn hint(&self, machine: Machine, path: &Path) -> Option<String> {
        if let Ok(of_image) = self.uri.path().strip_prefix(SPARK_IN_THE_IMAGE) {
            return Some(format!(
                "; if it is in the image, write local://{SPARK_IN_THE_IMAGE}/{}",
                of_image.display()
            ));
        }
        if let Some(name) = self.uri.fragment() {
            let whole = machine.path(format!("{}#{name}", self.uri.path().display()));
            let uri = file_uri(whole.to_str()?);
            return machine.facts.has_file(&whole).then(|| {
                format!(
                    ", but {} is there: in the name of a file # is written %23, as {uri}",
                    whole.display()
                )
            });
        }
        // spark-submit takes `a b.txt#c` for the name of a file, because of the blank (`Utils.resolveURI`).
        let (before, name) = path.to_str()?.rsplit_once('#')?;
        let is_meant = machine.facts.has_file(Path::new(before));
        is_meant.then(|| {
            if name.contains(' ') {
                format!(", but {before} is there: a name behind # has no blanks")
            } else {
                format!(", but {before} is there: with a blank in it, write {}#{name}", file_uri(before))
            }
        })
    }

    fn refuse(&self, problem: String) -> PlanError {
        let (file, problem) = self.shown(problem);
        PlanError::LocalFile { place: self.place, file, problem }
    }

    /// The entry and the problem for a message. The entry may be a piece of a URL that a comma has split. Such a piece
    /// may be a secret, so it is not shown.
    fn shown(&self, problem: String) -> (String, String) {
        let path = self.uri.path().display().to_string();
        let entry = || format!("entry {}", self.number);
        let is_url_before =
            self.before.is_some_and(|before| before.contains("://") && !before.starts_with("file:"));
        if is_url_before && (path.contains('@') || self.before.is_some_and(|before| before.contains('?'))) {
            let problem = format!(
                "stands behind a URL, and is taken for a file of this machine, which it is not: {URL_RULE}"
            );
            return (entry(), problem);
        }
        if let Some(url) = url_in(&path) {
            let problem =
                format!("is taken for a file of this machine, because it is no URL as it stands: {URL_RULE}");
            return (url, problem);
        }
        if is_url_before {
            let shown = path.split('?').next().unwrap_or_default().to_owned();
            return (shown, format!("{problem}; if it belongs to the URL in front of it: {URL_RULE}"));
        }
        (path, problem)
    }
}

/// The URL that has become a part of a path, without user and query, which may be secrets. spark-submit takes every
/// text with a blank for a path, even with a scheme (`Utils.resolveURI`). One of the slashes is lost on the way.
fn url_in(path: &str) -> Option<String> {
    let (scheme, rest) = path.split_once(":/")?;
    let scheme = scheme.rsplit('/').next()?;
    match DependencyUri::parse(&format!("{scheme}://{}", rest.trim_start_matches('/'))) {
        Ok(uri @ (DependencyUri::Http(_) | DependencyUri::OtherScheme(_))) => Some(uri.redacted()),
        _ => None,
    }
}

/// Why a path is no file that can be read. It is `None` for a good file.
fn fault(path: &Path, facts: &Facts) -> Option<String> {
    match facts.kind(path) {
        Ok(Kind::File { is_zip, .. }) => is_zip.as_ref().err().map(|error| because(error)),
        Ok(Kind::Folder) => Some(
            "is a folder; name the files in it, or pack it (“cloakroom stage FOLDER” is for containers of your own)"
                .to_owned(),
        ),
        Ok(Kind::Special) => {
            Some("is a pipe, a socket or a device: write its content into a file first".to_owned())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && !facts.is_missing(path) => {
            Some("is a link to something that does not exist".to_owned())
        }
        Err(error) => Some(because(&error)),
    }
}

/// A warning about a file that no JVM takes for a jar: the driver would start, and miss its classes.
pub(super) fn no_jar(jar: &Path, facts: &Facts) -> Option<String> {
    let why = match facts.kind(jar) {
        Ok(Kind::File { size_bytes: 0, .. }) => "it is empty",
        Ok(Kind::File { is_zip: Ok(false), .. }) => "it is no zip file, or its end is missing",
        _ => return None,
    };
    Some(format!("{} is no jar, because {why}: the JVM will find no class in it", jar.display()))
}

fn because(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "does not exist on this machine".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "may not be read by you: check the permissions of the file and of the folders that it is in"
                .to_owned()
        }
        _ => format!("cannot be read: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_be_read_is_not_called_missing() {
        let because = |kind: io::ErrorKind| because(&kind.into());
        assert!(because(io::ErrorKind::PermissionDenied).starts_with("may not be read by you"));
        assert_eq!(because(io::ErrorKind::NotFound), "does not exist on this machine");
        assert!(because(io::ErrorKind::TimedOut).starts_with("cannot be read: "));
    }

    #[test]
    fn a_url_is_found_in_the_path_that_it_has_become() {
        for (path, url) in [
            ("/cwd/https:/u:hush@h/a b.jar?sig=hush", Some("https://h/a b.jar")),
            ("/cwd/s3a:/bucket/a b.jar", Some("s3a://bucket/a b.jar")),
            ("/cwd/a b.jar", None),
            ("/cwd/file:/x y.jar", None),
        ] {
            assert_eq!(url_in(path).as_deref(), url, "{path}");
        }
    }
}
