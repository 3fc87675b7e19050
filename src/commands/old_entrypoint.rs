//! Other ways to start this program. Both images of kubespark take one argument, the path of a properties file. Other
//! programs start this one under the name spark-submit.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use cloakroom_core::size::format_size;
use cloakroom_kubespark::Role;
use cloakroom_spark::Properties;
use cloakroom_spark::arguments::{CommandLine, Script};

/// Under this name the program is not spark-submit, whatever its file is called.
const OWN_NAME: &str = "cloakroom";
/// The largest properties file in bytes. The limit is for what does not end, such as a device.
const LARGEST_PROPERTIES: u64 = 64 << 20;

/// The arguments of this process. If the only one is a properties file, `serve` or `fetch` is inserted before it.
/// `submit --` is inserted before the arguments of a submission, so that the parser leaves them unchanged.
pub fn arguments() -> anyhow::Result<Vec<OsString>> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(start) = submission(&arguments, std::env::current_exe().ok().as_deref()) {
        let name = arguments.first().cloned().unwrap_or_default();
        let before = [name, "submit".into(), "--".into()];
        arguments.splice(..start, before);
    } else if let [_, only] = arguments.as_slice()
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

/// Where spark-submit's arguments begin; `None` if this is no submission. It is one if the program is called
/// spark-submit, or if the first argument is `submit`, an option of spark-submit, or the name of one of Spark's
/// scripts.
fn submission(arguments: &[OsString], program: Option<&Path>) -> Option<usize> {
    let name = arguments.first().and_then(|name| Path::new(name).file_name());
    // If a link starts the program, the name of the linked file counts too, unless the link is called `cloakroom`.
    let file = program.and_then(Path::file_name).filter(|_| name != Some(OsStr::new(OWN_NAME)));
    if [name, file].into_iter().flatten().any(is_spark_submit) {
        return Some(1);
    }
    let first = arguments.get(1)?.to_string_lossy();
    match &*first {
        "submit" => Some(2),
        first => (CommandLine::is_option(first) || Script::named(first).is_some()).then_some(1),
    }
}

/// Matches `spark-submit`, and names such as `spark3-submit`, which distributions with several versions use.
fn is_spark_submit(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b"spark") && name.ends_with(b"-submit")
}

/// Whether it is a path, and neither a flag nor the name of a subcommand.
fn is_properties_file(argument: &Path) -> bool {
    let text = argument.to_string_lossy();
    !text.starts_with('-') && (text.contains('/') || text.ends_with(".properties"))
}

fn role(path: &Path) -> anyhow::Result<Role> {
    let text = read(path)?;
    Ok(Role::read(&Properties::parse(path, &text)?)?)
}

/// Reads a properties file as Spark does: as UTF-8, with a replacement character for invalid bytes.
pub fn read(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let failed = || format!("cannot read the properties file {shown}");
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(failed)?;
    file.take(LARGEST_PROPERTIES + 1).read_to_end(&mut bytes).with_context(failed)?;
    if bytes.len() as u64 > LARGEST_PROPERTIES {
        bail!("{}: it is larger than {}", failed(), format_size(LARGEST_PROPERTIES));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(program: &str, arguments: &[&str]) -> Option<usize> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        submission(&arguments, Some(Path::new(program)))
    }

    #[test]
    fn every_name_of_spark_submit_makes_it_a_submission() {
        const PROGRAM: &str = "/opt/cloakroom/bin/cloakroom";
        for name in ["spark-submit", "/usr/bin/spark2-submit", "bin/spark3-submit", "spark3.5-submit"] {
            assert_eq!(start(PROGRAM, &[name, "serve"]), Some(1), "{name}");
        }
        for name in ["cloakroom", "submit", "spark-submit.bak", "my-spark-submit", "spark-shell"] {
            assert_eq!(start(PROGRAM, &[name, "serve"]), None, "{name}");
        }
    }

    #[test]
    fn the_name_behind_a_link_counts_unless_the_link_is_called_cloakroom() {
        assert_eq!(start("/opt/spark3-submit", &["/usr/bin/prod", "app.jar"]), Some(1));
        assert_eq!(start("/opt/spark3-submit", &["/usr/bin/cloakroom", "serve"]), None);
    }

    #[test]
    fn options_of_spark_submit_make_it_a_submission_under_any_name() {
        for first in
            ["--master", "--master=yarn", "-c", "--dry-run", "-v", "run-example", "pyspark-shell-main"]
        {
            assert_eq!(start("/x", &["cloakroom", first]), Some(1), "{first}");
        }
        assert_eq!(start("/x", &["cloakroom", "submit", "--master"]), Some(2));
        for first in ["--help", "-h", "--version", "--bogus", "stage", "app.jar", "/etc/x.properties", "--"] {
            assert_eq!(start("/x", &["cloakroom", first]), None, "{first}");
        }
        assert_eq!(start("/x", &["cloakroom"]), None);
    }
}
