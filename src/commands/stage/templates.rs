//! The pod templates that spark-submit is to be given, as files.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::Value;

use cloakroom::submit::plan::handover::Handover;

/// The first line of what may be written again.
const MARK: &str =
    "# Made by cloakroom stage. It names a Secret and a ConfigMap, and holds no secret itself.";

/// Files that are yet to be written.
pub struct Templates {
    /// The driver's.
    pub driver: PathBuf,
    /// The executors', if they have one.
    pub executor: Option<PathBuf>,
    contents: Vec<(PathBuf, String)>,
}

/// Files that were written, with what was there before.
pub struct Written(Vec<(PathBuf, Option<Vec<u8>>)>);

impl Templates {
    /// Refuses to overwrite what somebody else wrote.
    pub fn new(folder: &Path, handover: &Handover) -> anyhow::Result<Self> {
        let folder = folder.canonicalize().with_context(|| {
            format!("cannot write pod templates to {} (--templates-to)", folder.display())
        })?;
        let driver = folder.join("driver-pod-template.yaml");
        let mut contents = vec![(driver.clone(), yaml(&Value::Object(handover.driver.clone()))?)];
        let mut executor = None;
        if let Some(text) = &handover.executor {
            let path = folder.join("executor-pod-template.yaml");
            contents.push((path.clone(), yaml(&serde_json::from_str(text)?)?));
            executor = Some(path);
        }
        for (path, _) in &contents {
            refuse_foreign(path)?;
        }
        Ok(Self { driver, executor, contents })
    }

    /// Writes all of them, or none.
    pub fn write(&self) -> anyhow::Result<Written> {
        let mut written = Written(Vec::new());
        for (path, text) in &self.contents {
            let before = fs::read(path).ok();
            written.0.push((path.clone(), before));
            if let Err(error) = fs::write(path, text) {
                written.take_back();
                return Err(error)
                    .with_context(|| format!("cannot write {} (--templates-to)", path.display()));
            }
        }
        Ok(written)
    }
}

impl Written {
    /// What was there before is there again.
    pub fn take_back(self) {
        for (path, before) in self.0 {
            let _ = match before {
                Some(bytes) => fs::write(path, bytes),
                None => fs::remove_file(path),
            };
        }
    }
}

fn refuse_foreign(path: &Path) -> anyhow::Result<()> {
    match fs::read(path) {
        Ok(bytes) if bytes.starts_with(MARK.as_bytes()) => Ok(()),
        Ok(_) => bail!(
            "{} is there already and was not made here, so it is not overwritten: name another folder by --templates-to; \
             a pod template of yours is given by --conf spark.kubernetes.driver.podTemplateFile=…",
            path.display()
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot look at {}", path.display())),
    }
}

fn yaml(pod: &Value) -> anyhow::Result<String> {
    Ok(format!("{MARK}\n{}", super::words::yaml(pod)?))
}
