//! `cloakroom stage --for spark-operator -f FILE`: the application's file is read, and printed with what was staged in it.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::cli::{StageArgs, SubmitterChoice};
use crate::commands::{refuse, tell};

use cloakroom_cluster::ApiServer;
use cloakroom_submit::create::{Existing, existing};
use cloakroom_submit::plan::handover::operator::ApplicationFile;

/// Stands for stdin.
const STDIN: &str = "-";

/// The file that `-f` names, if it names one.
pub fn read(args: &StageArgs, choice: SubmitterChoice) -> anyhow::Result<Option<ApplicationFile>> {
    let Some(path) = &args.handover.filename else { return Ok(None) };
    if choice != SubmitterChoice::SparkOperator {
        refuse!("-f takes the file of a SparkApplication: it goes with --for spark-operator");
    }
    let (called, text) = if path == Path::new(STDIN) {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("cannot read the application from stdin (-f -)")?;
        ("stdin".to_owned(), text)
    } else {
        let called = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {called} (-f)"))?;
        (called, text)
    };
    Ok(Some(ApplicationFile::parse(&called, &text, args.name.as_deref())?))
}

/// The application with what was staged in it, and to whom the objects are to belong.
pub struct Merged {
    /// What is printed.
    pub file: ApplicationFile,
    /// The application's unique id, where it is in the cluster already.
    pub uid: Option<String>,
}

impl Merged {
    /// Looks whether the application is there.
    pub async fn find(
        &mut self,
        server: &ApiServer,
        namespace: &str,
        stop: &CancellationToken,
    ) -> anyhow::Result<()> {
        match existing(server, namespace, self.file.application(), stop).await? {
            Existing::Uid(uid) => self.uid = Some(uid),
            Existing::Absent => {}
            Existing::NotAllowed(message) => {
                let (kind, name) = (self.file.kind(), self.file.name());
                tell(&format!(
                    "warning: whether the {kind} {name} is there already cannot be told, so that it will not own its config map and \
                     secret: 403 {message}"
                ));
            }
        }
        Ok(())
    }

    /// Everything, in the order in which it is to be applied.
    pub fn documents(&self, namespace: &str, objects: Vec<Value>) -> Vec<Value> {
        let objects = objects.into_iter().map(|mut object| {
            object["metadata"]["namespace"] = json!(namespace);
            if let Some(uid) = &self.uid {
                object["metadata"]["ownerReferences"] = self.file.owner_reference(uid);
            }
            object
        });
        self.file.with_objects(objects.collect())
    }
}
