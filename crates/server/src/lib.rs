//! The server over HTTP, and the tasks that run beside its requests.
//!
//! - [`assembly`]: how the parts become a server
//! - [`http`]: the HTTP edge, the only room that knows axum
//! - [`cleaner`]: what is due for deletion, and its deletion
//! - [`owners`]: who exists, by watches and fresh reads
//! - [`descriptors`]: what the limit of open files leaves for each part
//! - [`shutdown`]: when to stop, told to everybody at once

pub mod assembly;
pub mod cleaner;
pub mod descriptors;
pub mod http;
pub mod owners;
pub mod shutdown;
