//! What `cloakroom submit --version` says.

/// The Spark whose objects are made unless a setting says otherwise.
const NEWEST_SPARK: &str = cloakroom_submit::plan::NEWEST_SPARK;

/// Programs look for `version` and what follows it.
pub fn version() -> String {
    format!(
        "Spark version {NEWEST_SPARK} (its objects are made; no Spark is needed here)\ncloakroom {}\n\
         Type --help for more information.",
        env!("CARGO_PKG_VERSION")
    )
}
