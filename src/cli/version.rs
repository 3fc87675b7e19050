//! What `--version` says.

use std::env::consts::{ARCH, OS};
use std::sync::LazyLock;

use cloakroom_spark::version::{NEWEST_SPARK, OLDEST_SPARK};

/// The commit. The release's script sets it; a build by hand may, and any other build says that it is not known.
const REVISION: Option<&str> = option_env!("CLOAKROOM_REVISION");

/// The C library, which decides how names are resolved.
const LIBRARY: &str = if cfg!(target_env = "musl") { "musl" } else { "gnu" };

/// After the program's name; `-V` says the first word alone.
pub static LONG: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    let revision = REVISION.filter(|revision| !revision.is_empty()).unwrap_or("unknown");
    format!(
        "{version}\nrevision: {revision}\ntarget: {ARCH}-{OS}-{LIBRARY}\nsubmits for Spark: {OLDEST_SPARK} to {NEWEST_SPARK}"
    )
});
