//! The other names of this program: both images of the original took one argument, the path of a properties file, and
//! other programs start `spark-submit`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use anyhow::Context as _;
use cloakroom::spark::{Properties, Role};

/// The name under which other programs start a submission.
const SPARK_SUBMIT: &str = "spark-submit";

/// The arguments of this process, with `serve` or `fetch` put before a properties file that is the only one, and with
/// `submit` behind the name `spark-submit`.
pub fn arguments() -> anyhow::Result<Vec<OsString>> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.first().is_some_and(|name| Path::new(name).file_name() == Some(OsStr::new(SPARK_SUBMIT))) {
        arguments.insert(1, "submit".into());
        return Ok(arguments);
    }
    if let [_, only] = arguments.as_slice()
        && is_properties_file(Path::new(only))
    {
        let role = match role(Path::new(only))? {
            Role::Serve => "serve",
            Role::Fetch => "fetch",
        };
        arguments.insert(1, role.into());
    }
    Ok(arguments)
}

/// A path, and neither a flag nor the name of a subcommand.
fn is_properties_file(argument: &Path) -> bool {
    let text = argument.to_string_lossy();
    !text.starts_with('-') && (text.contains('/') || text.ends_with(".properties"))
}

fn role(path: &Path) -> anyhow::Result<Role> {
    let text = read(path)?;
    Ok(Role::of(&Properties::parse(path, &text)?)?)
}

/// Reads a properties file as Spark does: as UTF-8, with a replacement character for what is none.
pub fn read(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read the properties file {shown}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
