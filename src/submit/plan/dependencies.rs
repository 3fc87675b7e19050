//! Jars, files, archives and Python files: what is on this machine, what is copied where, what the driver is told.

use std::path::PathBuf;

use rand::Rng;

use super::error::PlanError;
use super::submitter::Submitter;
use super::upload::Upload;
use super::{globs, names};
use crate::spark::{DependencyUri, FileUri, MainResource, SparkConf, keys, split_list};

/// The lists, in the order in which Spark goes through them.
const LISTS: [&str; 4] = ["spark.jars", "spark.files", ARCHIVES, "spark.submit.pyFiles"];
/// The only list whose entries keep what stands behind `#`.
const ARCHIVES: &str = "spark.archives";
const UPLOAD_PATH: &str = "spark.kubernetes.file.upload.path";
const APPLICATION: &str = "the application";
/// The driver finds a jar that was copied in `spark.jars`.
const FOUND_IN_JARS: &str = "spark-internal";

/// What the driver is told, and what has to be copied for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Dependencies {
    /// Lists that changed: key and value.
    pub lists: Vec<(&'static str, String)>,
    /// The application itself.
    pub resource: String,
    pub uploads: Vec<Upload>,
}

/// Finds every file of this machine, and draws where it goes. Copies nothing.
pub(super) fn resolve(
    conf: &SparkConf,
    resource: &MainResource,
    submitter: &Submitter,
    random: &mut dyn Rng,
    warnings: &mut Vec<String>,
) -> Result<Dependencies, PlanError> {
    if conf.contains(UPLOAD_PATH) && conf.contains(keys::SERVER_URI) {
        warnings.push(format!(
            "`{}` has no effect on submit in this version: files of this machine are copied to `{UPLOAD_PATH}`",
            keys::SERVER_URI
        ));
    }
    let mut resolver = Resolver { conf, submitter, random, uploads: Vec::new() };
    let mut lists = Vec::new();
    for key in LISTS {
        lists.extend(resolver.list(key)?.map(|value| (key, value)));
    }
    let resource = resolver.resource(resource)?;
    Ok(Dependencies { lists, resource, uploads: resolver.uploads })
}

/// The folder that files are copied to: as it was written, and where it is.
struct Target {
    uri: String,
    folder: PathBuf,
}

/// Asked only when there is something to copy: an application without files of this machine may have any path.
fn target(conf: &SparkConf, submitter: &Submitter) -> Result<Option<Target>, PlanError> {
    let Some(uri) = conf.get(UPLOAD_PATH) else { return Ok(None) };
    match DependencyUri::parse(uri).map_err(|error| conf.refuse(UPLOAD_PATH, error.to_string()))? {
        DependencyUri::Submitter(file) => {
            let folder = submitter.working_folder.join(file.whole_path());
            Ok(Some(Target { uri: uri.to_owned(), folder }))
        }
        other => {
            let problem = "it must be a folder that this machine and the pods see under the same path, such as \
                           file:///mnt/shared: other file systems need Spark's own libraries; put the files into the \
                           image (local:///…) or on a web server instead"
                .to_owned();
            Err(PlanError::Remote { key: UPLOAD_PATH, uri: other.redacted(), problem })
        }
    }
}

struct Resolver<'a> {
    conf: &'a SparkConf,
    submitter: &'a Submitter,
    random: &'a mut dyn Rng,
    uploads: Vec<Upload>,
}

impl Resolver<'_> {
    /// The list with copies in place of files of this machine, which come first; `None` if nothing changes.
    fn list(&mut self, key: &'static str) -> Result<Option<String>, PlanError> {
        let (mut local, mut others) = (Vec::new(), Vec::new());
        for entry in split_list(self.conf.get(key).unwrap_or_default()) {
            match DependencyUri::parse(entry).map_err(|error| self.conf.refuse(key, error.to_string()))? {
                DependencyUri::Submitter(file) => local.extend(self.copies(key, &file)?),
                DependencyUri::OtherScheme(remote)
                    if remote.scheme() != "ftp" && globs::is_pattern(entry) =>
                {
                    let problem = "patterns are expanded on this machine only; name each file".to_owned();
                    return Err(PlanError::Remote { key, uri: remote.redacted(), problem });
                }
                other => others.push(other.as_str().to_owned()),
            }
        }
        let has_local = !local.is_empty();
        local.append(&mut others);
        Ok(has_local.then(|| local.join(",")))
    }

    fn copies(&mut self, key: &'static str, uri: &FileUri) -> Result<Vec<String>, PlanError> {
        let files = self.files(key, uri)?;
        let copies = files.into_iter().map(|file| {
            let copy = self.copy(key, file)?;
            Ok(match uri.fragment().filter(|_| key == ARCHIVES) {
                Some(fragment) => format!("{}#{fragment}", one_slash(&copy)),
                None if key == ARCHIVES => one_slash(&copy),
                None => copy,
            })
        });
        copies.collect()
    }

    /// The file, or those that match where it is a pattern.
    fn files(&self, key: &'static str, uri: &FileUri) -> Result<Vec<PathBuf>, PlanError> {
        let path = self.submitter.working_folder.join(uri.path());
        let refuse = |problem: String| {
            let file = uri.path().display().to_string();
            PlanError::LocalFile { place: key, file, problem }
        };
        if path.is_file() {
            return Ok(vec![path]);
        }
        if path.is_dir() {
            return Err(refuse("is a folder; name the files in it, or pack it".to_owned()));
        }
        if !globs::is_pattern(&path.to_string_lossy()) {
            return Err(refuse("does not exist on this machine".to_owned()));
        }
        let files = globs::expand(&path).map_err(|error| refuse(format!("cannot be looked up: {error}")))?;
        match files.len() {
            0 => Err(refuse("matches no file of this machine".to_owned())),
            1 => Ok(files),
            _ if uri.fragment().is_some() => {
                Err(refuse("matches more than one file, and has one name for them".to_owned()))
            }
            _ => Ok(files),
        }
    }

    /// Draws where the file goes, and gives its URI there.
    fn copy(&mut self, place: &'static str, from: PathBuf) -> Result<String, PlanError> {
        let name = from.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(target) = target(self.conf, self.submitter)? else {
            let problem = format!(
                "is on this machine, where no pod can reach it: put it into the image and write local:///…, give an \
                 http(s) URL, or set `{UPLOAD_PATH}` to a folder that pods see as well"
            );
            return Err(PlanError::LocalFile { place, file: from.display().to_string(), problem });
        };
        let folder = format!("spark-upload-{}", names::uuid(self.random));
        let to = target.folder.join(&folder).join(&name);
        self.uploads.push(Upload { from, to });
        Ok(format!("{}/{folder}/{name}", target.uri))
    }

    /// What the driver is told to run.
    fn resource(&mut self, resource: &MainResource) -> Result<String, PlanError> {
        let uri = resource.uri();
        let refuse =
            |problem: String| PlanError::LocalFile { place: APPLICATION, file: uri.to_owned(), problem };
        // Words such as `spark-internal` are no files.
        if uri == FOUND_IN_JARS {
            return Ok(uri.to_owned());
        }
        let parsed = DependencyUri::parse(uri).map_err(|error| refuse(format!("cannot be read: {error}")))?;
        let DependencyUri::Submitter(file) = parsed else { return Ok(uri.to_owned()) };
        let path = self.submitter.working_folder.join(file.path());
        if !path.is_file() {
            return Err(refuse("does not exist on this machine".to_owned()));
        }
        match resource {
            // It is in `spark.jars` as well, and was copied with them.
            MainResource::Java(_) => Ok(FOUND_IN_JARS.to_owned()),
            MainResource::Python(_) | MainResource::R(_) => self.copy(APPLICATION, path),
        }
    }
}

/// `file:/x` for `file:///x`, as Java's builder of URIs writes it.
fn one_slash(uri: &str) -> String {
    match uri.strip_prefix("file:///") {
        Some(path) => format!("file:/{path}"),
        None => uri.to_owned(),
    }
}
