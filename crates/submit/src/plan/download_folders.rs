//! Where the driver sees staged files: two folders that hide nothing of Spark's.

use std::path::Path;

use cloakroom_spark::{DEFAULT_FILES_DIR, DEFAULT_JARS_DIR, SettingError, SparkConf, keys};

/// Where Spark is in its images.
const SPARK: &str = "/opt/spark";
/// What Spark needs in there. It copies everything into the working directory, and deletes what has such a name first.
const NEEDED: [&str; 6] = ["bin", "conf", "jars", "pod-template", "python", "work-dir"];
/// What makes a pattern or an entry of its own of a path, for Spark or for Kubernetes.
const UNFIT: [char; 9] = [':', ',', '*', '?', '[', ']', '{', '}', '\\'];

/// Where jars and files go.
pub(super) fn folders(conf: &SparkConf) -> Result<(String, String), SettingError> {
    let jars = folder(conf, &keys::JARS_DOWNLOAD_DIR, DEFAULT_JARS_DIR)?;
    let files = folder(conf, &keys::FILES_DOWNLOAD_DIR, DEFAULT_FILES_DIR)?;
    let overlap = match (Path::new(&jars), Path::new(&files)) {
        (jars, files) if jars == files => "is the same folder",
        (jars, files) if files.starts_with(jars) => "is a folder that this one is in",
        (jars, files) if jars.starts_with(files) => "is a folder in this one",
        _ => return Ok((jars, files)),
    };
    let problem = format!("`{}` {overlap}: choose another one", keys::JARS_DOWNLOAD_DIR);
    Err(conf.refuse(&keys::FILES_DOWNLOAD_DIR, problem))
}

fn folder(conf: &SparkConf, key: &str, default: &str) -> Result<String, SettingError> {
    match conf.get(key).map(str::trim) {
        None => Ok(default.to_owned()),
        Some(path) if !is_folder(path) => Err(conf.refuse(
            key,
            "it must be an absolute path without .. and the characters : , * ? [ ] { } \\, such as /var/spark-data/x",
        )),
        Some(path) if hides_spark(Path::new(path)) => Err(conf.refuse(
            key,
            format!("it would hide what Spark itself has in {SPARK}: choose a folder elsewhere, such as /var/spark-data/x"),
        )),
        Some(path) => Ok(path.trim_end_matches('/').to_owned()),
    }
}

/// What Kubernetes takes as a mount path, and Spark as a part of a list.
fn is_folder(path: &str) -> bool {
    let has_name = path.split('/').any(|part| !matches!(part, "" | "."));
    path.starts_with('/') && has_name && !path.contains(UNFIT) && !path.split('/').any(|part| part == "..")
}

/// Mounted there, it would be in the place of what the image has, or be copied onto itself.
fn hides_spark(path: &Path) -> bool {
    let spark = Path::new(SPARK);
    spark.starts_with(path) || NEEDED.iter().any(|needed| path.starts_with(spark.join(needed)))
}
