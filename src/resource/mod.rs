//! What was staged: one bundle with its ticket, its owner and its state. No I/O.

mod file_name;
mod id;
mod namespaces;
mod owner;
mod record;
mod secret;
mod sighting;
mod state;

pub use file_name::{FileName, FileNameError};
pub use id::{InvalidResourceId, ResourceId};
pub use namespaces::Namespaces;
pub use owner::{Owner, OwnerError, OwnerKind, OwnerKinds, POD};
pub use record::{Bundle, Life, Lifetime, Resource};
pub use secret::{ResourceSecret, SecretHash};
pub use sighting::Sighting;
pub use state::{DeletionReason, State, UnknownName};
