//! The text of `--version`.

use std::env::consts::{ARCH, OS};
use std::sync::LazyLock;

use cloakroom_spark::version::{NEWEST_SPARK, OLDEST_SPARK};

/// The commit: packaging/revision.rs sets it for release builds.
const REVISION: Option<&str> = option_env!("CLOAKROOM_REVISION");

/// The C library. Users need to know it, because it resolves host names.
const LIBRARY: &str = if cfg!(target_env = "musl") { "musl" } else { "gnu" };

/// The text after the program's name. `-V` prints only its first word.
pub static LONG: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    let revision = REVISION.filter(|revision| !revision.is_empty()).unwrap_or("unknown");
    format!(
        "{version}\nrevision: {revision}\ntarget: {ARCH}-{OS}-{LIBRARY}\nsubmits for Spark: {OLDEST_SPARK} to {NEWEST_SPARK}"
    )
});
