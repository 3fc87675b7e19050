//! The two folders in which the driver finds staged files. They must not hide files of Spark's image.

use std::path::Path;

use cloakroom_kubespark::{DEFAULT_FILES_DIR, DEFAULT_JARS_DIR};
use cloakroom_spark::{SettingError, SparkConf, keys};

/// Spark's folder in its images.
const SPARK: &str = "/opt/spark";
/// The folders that Spark needs in there. `work-dir` is the driver's working directory: Spark copies every file into
/// it, and first deletes the target. A file that was staged there would be deleted before it is copied.
const NEEDED: [&str; 6] = ["bin", "conf", "jars", "pod-template", "python", "work-dir"];
/// Characters that a path cannot have. For Spark they make a pattern or a second entry of it; Kubernetes refuses `:`.
const UNFIT: [char; 9] = [':', ',', '*', '?', '[', ']', '{', '}', '\\'];

/// The folder for jars and the folder for other files. They must not overlap.
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

/// Whether Kubernetes takes the path as a mount path, and Spark takes it in a list.
fn is_folder(path: &str) -> bool {
    let has_name = path.split('/').any(|part| !matches!(part, "" | "."));
    path.starts_with('/') && has_name && !path.contains(UNFIT) && !path.split('/').any(|part| part == "..")
}

/// Whether a mount at this path would hide files of the image, or files in it would be copied onto themselves.
fn hides_spark(path: &Path) -> bool {
    let spark = Path::new(SPARK);
    spark.starts_with(path) || NEEDED.iter().any(|needed| path.starts_with(spark.join(needed)))
}
