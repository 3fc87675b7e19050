//! What the test binaries have in common.

#[path = "../it/support/cluster/mod.rs"]
#[expect(dead_code, unused_imports, reason = "shared with the other test binaries")]
pub mod cluster;
#[path = "../it/support/port.rs"]
#[expect(dead_code, reason = "shared with the other test binaries")]
pub mod port;
#[path = "../it/support/process.rs"]
#[expect(dead_code, reason = "shared with the other test binaries")]
pub mod process;
#[path = "../it/support/tls.rs"]
#[expect(dead_code, reason = "shared with the other test binaries")]
pub mod tls;
#[path = "../it/support/wait.rs"]
#[expect(dead_code, reason = "shared with the other test binaries")]
pub mod wait;
