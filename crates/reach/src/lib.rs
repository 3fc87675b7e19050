//! How a client finds the staging server and gets to it.
//!
//! - `choice`: what flags, settings and variables say of its place
//! - `place`: an address, or a Service of the cluster
//! - `way`: through the API server to the Service, or by the address that the server behind it names
//! - `tokens`: requested from the API server for uploads, for an account of `uploader`
//! - `advice`: what to do when it is not reached, in the words that the user has used

mod advice;
mod choice;
mod place;
mod tokens;
mod way;

pub use advice::{NamedBy, advice, and_advice};
pub use choice::{BadChoice, Said, ServerChoice};
pub use place::{ServerPlace, ServerService};
pub use tokens::{RequestedTokens, UploadAccount};
pub use way::{Reached, unusable};
