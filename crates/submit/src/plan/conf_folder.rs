//! The files of `SPARK_CONF_DIR`, which travel to the driver beside `spark.properties`
//! (`KubernetesClientUtils.loadSparkConfDirFiles`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::error::PlanError;
use super::facts::Facts;
use super::folder::{self, FolderFile};
use super::machine::Machine;
use cloakroom_spark::keys::CONFIG_MAP_MAX_SIZE;
use cloakroom_spark::{SettingError, SparkConf};

const VARIABLE: &str = "SPARK_CONF_DIR";
/// Spark's default of `spark.kubernetes.configMap.maxSize`. etcd takes objects of about this size.
const DEFAULT_MAX_SIZE: u64 = 1024 * 1024;

/// Name and text of each file.
pub(super) type ConfFolder = BTreeMap<String, String>;

/// Reads `SPARK_CONF_DIR`, else `conf` in `SPARK_HOME`. A file that is left out is a warning.
pub(super) fn read(conf: &SparkConf, machine: Machine) -> Result<(ConfFolder, Vec<String>), PlanError> {
    let max_size = max_size(conf)?;
    let Some(path) = machine.submitter.spark_conf_folder() else {
        return Ok((ConfFolder::new(), Vec::new()));
    };
    let unreadable = |error| PlanError::Variable {
        variable: VARIABLE,
        value: path.clone(),
        problem: format!("this folder of configuration cannot be read: {error}"),
    };
    let (files, mut warnings) = folder::regular_files(&path, machine.facts).map_err(unreadable)?;
    let mut files: Vec<FolderFile> = files.into_iter().filter(|file| is_for_the_driver(&file.name)).collect();
    // As in Spark, the smallest files come first, so that as many as possible fit. The sort is stable, so files of one
    // size stay in the order of their names.
    files.sort_by_key(|file| file.size_bytes + file.name.len() as u64);
    let mut folder = ConfFolder::new();
    let mut size = 0;
    for file in files {
        match fitting(&file, machine.facts, size, max_size) {
            Ok((text, its_size)) => {
                size += its_size;
                folder.insert(file.name, text);
            }
            Err(why) => warnings.push(format!("{} is left out: {why}", file.path.display())),
        }
    }
    Ok((folder, warnings))
}

/// The files to read. Which of them travel depends on their texts.
pub(super) fn contents(conf: &SparkConf, machine: Machine) -> Vec<PathBuf> {
    let max_size = max_size(conf).unwrap_or_default();
    let folder = machine.submitter.spark_conf_folder();
    let found = folder.and_then(|folder| folder::regular_files(&folder, machine.facts).ok());
    let files = found.into_iter().flat_map(|(files, _)| files);
    let fitting = files.filter(|file| is_for_the_driver(&file.name) && file.size_bytes <= max_size);
    fitting.map(|file| file.path).collect()
}

/// The limit in bytes. Spark accepts numbers below zero; then no file fits.
fn max_size(conf: &SparkConf) -> Result<u64, SettingError> {
    let size = conf.read(&CONFIG_MAP_MAX_SIZE)?;
    Ok(size.map_or(DEFAULT_MAX_SIZE, |size| size.try_into().unwrap_or_default()))
}

/// Spark's own filter. Files of settings are read already. It leaves out templates and archives too.
fn is_for_the_driver(name: &str) -> bool {
    let is_settings = name.starts_with("spark") && (name.ends_with("conf") || name.ends_with("properties"));
    let endings = [".template", ".gz", ".zip", ".jar", ".tar"];
    !is_settings && !endings.iter().any(|ending| name.ends_with(ending))
}

/// The text and the size of a file, if it fits beside `taken`. Like Spark, it must stay below the limit.
fn fitting(file: &FolderFile, facts: &Facts, taken: u64, max_size: u64) -> Result<(String, u64), String> {
    let too_large = || format!("it does not fit; `{CONFIG_MAP_MAX_SIZE}` is {max_size}");
    if file.size_bytes > max_size {
        return Err(too_large());
    }
    let bytes = facts.read(&file.path).map_err(|error| folder::unreadable(&error))?;
    let text = str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?.to_owned();
    // Spark adds up `String.length`, which counts UTF-16 units.
    let size = (file.name.len() + text.encode_utf16().count()) as u64;
    if taken + size < max_size { Ok((text, size)) } else { Err(too_large()) }
}

#[cfg(test)]
mod tests {
    use super::super::needs::Needs;
    use super::super::submitter::Submitter;
    use super::*;
    use crate::inputs::read_here;
    use cloakroom_spark::Origin;
    use std::fs;

    fn read_folder(files: &[(&str, &[u8])], max_size: &str) -> (ConfFolder, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        for (name, bytes) in files {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        let submitter = Submitter {
            system: BTreeMap::new(),
            variables: BTreeMap::from([(VARIABLE.to_owned(), folder.path().display().to_string())]),
            user: Ok(String::new()),
            working_folder: PathBuf::from("/"),
        };
        let mut conf = SparkConf::default();
        conf.set(&CONFIG_MAP_MAX_SIZE, max_size, Origin::Conf);
        let asked =
            Needs { folders: submitter.spark_conf_folder().into_iter().collect(), ..Needs::default() };
        let mut facts = read_here(&asked);
        let contents = contents(&conf, Machine { submitter: &submitter, facts: &facts });
        facts.append(read_here(&Needs { contents: contents.into_iter().collect(), ..Needs::default() }));
        read(&conf, Machine { submitter: &submitter, facts: &facts }).unwrap()
    }

    #[test]
    fn settings_templates_archives_and_what_is_no_text_stay_behind() {
        let (folder, warnings) = read_folder(
            &[
                ("spark-defaults.conf", b"x"),
                ("spark-env.sh", b"a=1"),
                ("log4j2.properties", b"b"),
                ("sparkling.properties", b"x"),
                ("x.template", b"x"),
                ("x.jar", b"x"),
                (".hidden", b""),
                ("latin1.txt", b"\xfc"),
                ("with blank", b"x"),
            ],
            "1048576",
        );
        assert_eq!(folder.keys().collect::<Vec<_>>(), [".hidden", "log4j2.properties", "spark-env.sh"]);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].contains("with blank is left out"), "{warnings:?}");
        assert!(warnings[1].contains("latin1.txt is left out: it is not UTF-8 text"), "{warnings:?}");
    }

    #[test]
    fn the_smallest_files_go_first_while_there_is_room() {
        let files: [(&str, &[u8]); 3] = [("c", b"12345"), ("b", b"123"), ("a", b"123456789")];
        // 4 for b and 6 for c: together 10, which must stay below the limit.
        let (folder, warnings) = read_folder(&files, "11");
        assert_eq!(folder.keys().collect::<Vec<_>>(), ["b", "c"]);
        assert!(
            warnings[0]
                .ends_with("a is left out: it does not fit; `spark.kubernetes.configMap.maxSize` is 11")
        );
        assert_eq!(read_folder(&files, "10").0.keys().collect::<Vec<_>>(), ["b"]);
    }
}
