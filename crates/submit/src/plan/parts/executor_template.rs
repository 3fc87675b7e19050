//! The text of the executors' pod template.

use serde_json::Value;

use crate::plan::error::PlanError;
use crate::plan::folder::text_by;
use crate::plan::machine::Machine;
use crate::plan::parts::MOST_BYTES;
use crate::plan::source;
use crate::plan::template;
use cloakroom_spark::SparkConf;
use cloakroom_spark::keys::EXECUTOR_POD_TEMPLATE;
use cloakroom_spark::version::SparkVersion;

/// The template's text for the driver. A template that can be read here is written anew, as JSON without merge keys,
/// aliases, tags and the like: the driver's reader refuses some of these, and drops others without a message. Spark sends
/// any text, so a template that cannot be read is sent as it is, with a warning. So is one whose JSON alone would be too
/// large for its config map.
pub(in crate::plan) fn read(
    conf: &SparkConf,
    machine: Machine,
    warnings: &mut Vec<String>,
) -> Result<Option<String>, PlanError> {
    let bytes = source::read_bytes(conf, &EXECUTOR_POD_TEMPLATE, machine)?;
    let Some(bytes) = bytes else { return Ok(None) };
    let version = SparkVersion::of(conf)?.0;
    let text = text_by(version, bytes).map_err(|problem| conf.refuse(&EXECUTOR_POD_TEMPLATE, problem))?;
    Ok(Some(match template::parse_pod(&text, version) {
        Ok(pod) => {
            let plain = Value::Object(pod).to_string();
            if plain.len() > MOST_BYTES && text.len() <= MOST_BYTES { text } else { plain }
        }
        Err(problem) => {
            warnings.push(format!(
                "the file of `{EXECUTOR_POD_TEMPLATE}` is sent as it is, and the driver may refuse it: {problem}"
            ));
            text
        }
    }))
}
