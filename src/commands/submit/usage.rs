//! The text of `cloakroom submit --version`.

/// The version of Spark whose objects are created unless a setting names another one.
const NEWEST_SPARK: &str = cloakroom_submit::plan::NEWEST_SPARK;

/// Programs look for the word `version` and read what follows it.
pub fn version() -> String {
    format!(
        "Spark version {NEWEST_SPARK} (its objects are made; no Spark is needed here)\ncloakroom {}\n\
         Type --help for more information.",
        env!("CARGO_PKG_VERSION")
    )
}
