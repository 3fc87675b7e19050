//! What both test binaries are made of.

#[path = "../it/support/api_server/mod.rs"]
#[expect(dead_code, reason = "shared with the other test binary")]
pub mod api_server;
#[path = "../it/support/cable.rs"]
pub mod cable;
#[path = "../it/support/cluster/mod.rs"]
pub mod cluster;
#[path = "../it/support/port.rs"]
pub mod port;
#[path = "../it/support/process.rs"]
#[expect(dead_code, reason = "shared with the other test binary")]
pub mod process;
#[path = "../it/support/submitter.rs"]
pub mod submitter;
#[path = "../it/support/tls.rs"]
pub mod tls;
#[path = "../it/support/wait.rs"]
#[expect(dead_code, reason = "shared with the other test binary")]
pub mod wait;
