//! One composition root for each subcommand: the only places that read the environment and build clients.

pub mod fetch;
mod old_entrypoint;
pub mod serve;
pub mod stage;

pub use old_entrypoint::arguments;
