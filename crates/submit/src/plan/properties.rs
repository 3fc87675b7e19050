//! The text of `spark.properties`, as `java.util.Properties.store(Writer)` writes it, but sorted.

use std::collections::BTreeMap;

use jiff::Timestamp;

use cloakroom_spark::properties_text;

/// The text of the driver's properties file. Java's order is that of a hash table. This order is always the same.
pub(super) fn properties_file(
    config_map: &str,
    now: Timestamp,
    properties: &BTreeMap<String, String>,
) -> String {
    let time = now.strftime("%a %b %d %H:%M:%S UTC %Y");
    let head =
        format!("#Java properties built from Kubernetes config map with name: {config_map}\n#{time}\n");
    head + &properties_text(properties)
}

#[cfg(test)]
mod tests {
    use super::*;

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
