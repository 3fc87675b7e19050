//! The config map with `spark.properties` and the files of `SPARK_CONF_DIR` (`KubernetesClientUtils.loadSparkConfDirFiles`).
//!
//! In Spark this is no feature step: its `Client` adds the map after all of them. So it is the last object that is
//! created.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Context, Feature, Reader};
use crate::plan::error::PlanError;
use crate::plan::facts::Facts;
use crate::plan::folder::{self, FolderFile};
use crate::plan::spec::DriverSpec;
use crate::plan::submitter::Machine;
use cloakroom_spark::keys::{self, CONFIG_MAP_MAX_SIZE};
use cloakroom_spark::{SettingError, SparkConf, properties_text};

const VARIABLE: &str = "SPARK_CONF_DIR";
/// Spark's default of `spark.kubernetes.configMap.maxSize`. etcd takes objects of about this size.
const DEFAULT_MAX_SIZE: u64 = 1024 * 1024;

/// The folder that Spark's images read their configuration from (`SPARK_CONF_DIR_INTERNAL`).
pub(in crate::plan) const PATH: &str = "/opt/spark/conf";
/// The volume of the config map. A stock spark-submit has the same name for it, on which `plan::external_submitter` relies.
pub(in crate::plan) const VOLUME: &str = "spark-conf-volume-driver";
/// The file in [`PATH`] that the driver is started with (`--properties-file`).
pub(in crate::plan) const PROPERTIES: &str = "spark.properties";
/// `rw-r--r--`. Spark sends it as the decimal number 420.
const MODE: u32 = 0o644;

/// Name and text of each file.
type Files = BTreeMap<String, String>;

/// The properties are complete when this is added.
pub(super) struct ConfVolume(Files);

impl ConfVolume {
    pub fn read(from: &mut Reader) -> Result<Self, PlanError> {
        let (files, skipped) = read(from.conf, from.machine)?;
        from.warnings.extend(skipped);
        Ok(Self(files))
    }
}

impl Feature for ConfVolume {
    fn add(self: Box<Self>, context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
        let name = &context.names.config_map;
        let properties = properties_file(name, context.now, &spec.properties);
        let mut data: BTreeMap<&str, &str> =
            self.0.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
        data.insert(PROPERTIES, &properties);
        let item = |file: &&str| json!({"key": file, "mode": MODE, "path": file});
        let items: Vec<Value> = data.keys().map(item).collect();
        // Spark puts the namespace into the map, and not into the volume: it is behind `items`.
        data.insert(&keys::NAMESPACE, &context.namespace);
        spec.after_pod.push(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": context.namespace},
            "data": data,
            "immutable": true,
        }));
        spec.add_variable("SPARK_CONF_DIR", PATH);
        spec.mount(VOLUME, PATH);
        spec.add_volume(json!({"name": VOLUME, "configMap": {"name": name, "items": items}}));
        Ok(())
    }
}

/// Reads `SPARK_CONF_DIR`, else `conf` in `SPARK_HOME`. A file that is left out is a warning.
fn read(conf: &SparkConf, machine: Machine) -> Result<(Files, Vec<String>), PlanError> {
    let max_size = max_size(conf)?;
    let Some(path) = machine.submitter.spark_conf_folder() else {
        return Ok((Files::new(), Vec::new()));
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
    let mut folder = Files::new();
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
pub(in crate::plan) fn contents(conf: &SparkConf, machine: Machine) -> Vec<PathBuf> {
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

/// The text of the driver's properties file, as `java.util.Properties.store(Writer)` writes it, but sorted. Java's order is that of a hash table. This order is always the same.
fn properties_file(config_map: &str, now: Timestamp, properties: &BTreeMap<String, String>) -> String {
    let time = now.strftime("%a %b %d %H:%M:%S UTC %Y");
    let head =
        format!("#Java properties built from Kubernetes config map with name: {config_map}\n#{time}\n");
    head + &properties_text(properties)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::read_here;
    use crate::plan::{Needs, Submitter};
    use cloakroom_spark::Origin;
    use std::fs;

    fn read_folder(files: &[(&str, &[u8])], max_size: &str) -> (Files, Vec<String>) {
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

    #[test]
    fn the_file_begins_with_two_lines_of_java_and_is_sorted() {
        let properties = BTreeMap::from([
            ("spark.master".to_owned(), "k8s://http://127.0.0.1:8902".to_owned()),
            ("spark.app.name".to_owned(), " a b".to_owned()),
            ("spark.x y".to_owned(), "#!=ü\t\n\r\u{c}\\".to_owned()),
        ]);
        let now = Timestamp::from_second(1_795_223_153).unwrap();
        assert_eq!(
            properties_file("spark-drv-1-conf-map", now, &properties),
            "#Java properties built from Kubernetes config map with name: spark-drv-1-conf-map\n\
             #Sat Nov 21 01:05:53 UTC 2026\n\
             spark.app.name=\\ a b\n\
             spark.master=k8s\\://http\\://127.0.0.1\\:8902\n\
             spark.x\\ y=\\#\\!\\=ü\\t\\n\\r\\f\\\\\n"
        );
    }
}
