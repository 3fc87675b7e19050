//! The text of the executors' pod template.

use crate::plan::error::PlanError;
use crate::plan::folder::text_by;
use crate::plan::machine::Machine;
use crate::plan::source;
use crate::plan::template;
use cloakroom_spark::SparkConf;
use cloakroom_spark::keys::EXECUTOR_POD_TEMPLATE;
use cloakroom_spark::version::SparkVersion;

/// The template's text. The driver reads it as a pod, and Spark sends any text. So a mistake in it is only a warning
/// here.
pub(in crate::plan) fn read(
    conf: &SparkConf,
    machine: Machine,
    warnings: &mut Vec<String>,
) -> Result<Option<String>, PlanError> {
    let bytes = source::read_bytes(conf, &EXECUTOR_POD_TEMPLATE, machine)?;
    let Some(bytes) = bytes else { return Ok(None) };
    let version = SparkVersion::of(conf)?.0;
    let text = text_by(version, bytes).map_err(|problem| conf.refuse(&EXECUTOR_POD_TEMPLATE, problem))?;
    if let Err(problem) = template::parse_pod(&text, version) {
        warnings.push(format!("the driver will refuse the file of `{EXECUTOR_POD_TEMPLATE}`: {problem}"));
    }
    Ok(Some(text))
}
