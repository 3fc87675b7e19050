//! `cloakroom stage --for spark-operator -f FILE`: reads the file of the SparkApplication.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;

use crate::cli::{StageArgs, SubmitterChoice};
use crate::commands::refuse;

use cloakroom_submit::plan::external_submitter::operator::ApplicationFile;

/// The path that means stdin.
const STDIN: &str = "-";

/// The file that `-f` names, if it names one.
pub fn read(args: &StageArgs, choice: SubmitterChoice) -> anyhow::Result<Option<ApplicationFile>> {
    let Some(path) = &args.external.filename else { return Ok(None) };
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
