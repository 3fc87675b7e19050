//! The files of the pod templates for spark-submit.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use cloakroom_submit::plan::external_submitter::ExternalSubmission;

/// The first line of each file, for a reader who finds it later.
const HEAD: &str =
    "# Made by cloakroom stage for one application. It names a Secret, but holds nothing secret.\n";

/// Files to write. Their names are as unique as those of the objects, so that two runs in one folder do not collide.
pub struct Templates {
    pub driver: PathBuf,
    /// The executors', if they have one.
    pub executor: Option<PathBuf>,
    contents: Vec<(PathBuf, String)>,
}

impl Templates {
    /// Renders the templates for `folder`. It writes none of them yet, but it tries whether the folder can be written to,
    /// because a failure after the uploads would come too late.
    pub fn new(folder: &Path, external: &ExternalSubmission) -> anyhow::Result<Self> {
        let refused = || format!("cannot write pod templates to {} (--templates-to)", folder.display());
        let folder = folder.canonicalize().with_context(refused)?;
        let path = |whose: &str| folder.join(format!("{}-{whose}-pod-template.yaml", external.prefix));
        let driver = path("driver");
        File::create_new(&driver).and_then(|_| fs::remove_file(&driver)).with_context(refused)?;
        let mut contents = vec![(driver.clone(), yaml(&Value::Object(external.driver.clone()))?)];
        let mut executor = None;
        if let Some(text) = &external.executor {
            let path = path("executor");
            contents.push((path.clone(), yaml(&serde_json::from_str(text)?)?));
            executor = Some(path);
        }
        Ok(Self { driver, executor, contents })
    }

    /// Writes all of them, or none.
    pub fn write(&self) -> anyhow::Result<()> {
        for (path, text) in &self.contents {
            let written = File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
            if let Err(error) = written {
                self.take_back();
                return Err(error)
                    .with_context(|| format!("cannot write {} (--templates-to)", path.display()));
            }
        }
        Ok(())
    }

    /// Removes the files that were written.
    pub fn take_back(&self) {
        for (path, _) in &self.contents {
            // A file that was not written need not be removed.
            let _ = fs::remove_file(path);
        }
    }
}

fn yaml(pod: &Value) -> anyhow::Result<String> {
    Ok(format!("{HEAD}{}", super::messages::yaml(pod)?))
}
