//! Changes the driver's properties of a stock spark-submit, so that they lead to the files that an init-container
//! fetched.
//!
//! spark-submit takes every `file:` entry for a file of its own machine. Staged files are therefore `local:` entries.
//! Spark's driver does not pass `local:` entries to its executors: no version passes archives, and only Spark 4 and
//! later pass the rest. So the init-container writes the properties anew, with `file:` for the fetched files.

use std::collections::BTreeMap;
use std::path::Path;

use super::keys::DEPENDENCY_LISTS;
use super::uri::{DependencyUri, split_list};
use super::{Properties, properties_text};

/// Returns the text of the properties file. Each `local:` entry of the lists that is in one of `folders` becomes
/// `file:`.
pub fn with_fetched_files(properties: &Properties, folders: &[&Path]) -> String {
    let rewritten: BTreeMap<String, String> = properties
        .iter()
        .map(|property| {
            let is_list = DEPENDENCY_LISTS.contains(&property.key);
            let value = if is_list { list(property.value, folders) } else { property.value.to_owned() };
            (property.key.to_owned(), value)
        })
        .collect();
    properties_text(&rewritten)
}

fn list(value: &str, folders: &[&Path]) -> String {
    let entries = split_list(value).map(|entry| match DependencyUri::parse(entry) {
        Ok(DependencyUri::Image(file)) if folders.iter().any(|folder| file.path().starts_with(folder)) => {
            entry.replacen("local:", "file:", 1)
        }
        _ => entry.to_owned(),
    });
    entries.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_fetched_files_change_and_those_of_the_image_stay() {
        let text = "spark.jars=local\\:///data/jars/a%20b.jar,local\\:///opt/x.jar,https\\://h/y.jar\n\
                    spark.archives=local\\:/data/files/env.tgz\\#env\n\
                    spark.files=local\\:///data/files2/a.txt\n\
                    spark.note=local\\:///data/jars/a.jar\n";
        let properties = Properties::parse("spark.properties", text).unwrap();
        let folders = [Path::new("/data/jars"), Path::new("/data/files")];
        let rewritten = with_fetched_files(&properties, &folders);
        let rewritten = Properties::parse("rewritten", &rewritten).unwrap();
        for (key, value) in [
            ("spark.jars", "file:///data/jars/a%20b.jar,local:///opt/x.jar,https://h/y.jar"),
            ("spark.archives", "file:/data/files/env.tgz#env"),
            ("spark.files", "local:///data/files2/a.txt"),
            ("spark.note", "local:///data/jars/a.jar"),
        ] {
            assert_eq!(rewritten.get(key), Some(value), "{key}");
        }
        assert_eq!(rewritten.iter().count(), 4);
    }
}
