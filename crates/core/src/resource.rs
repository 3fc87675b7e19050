//! What was staged: one bundle with its ticket, its owner and its state. This room does no I/O.

mod blob;
mod file_name;
mod holder;
mod id;
mod keep_reason;
mod kind;
mod named;
mod namespaces;
mod owner;
mod owner_error;
mod owner_history;
mod record;
mod secret;
mod state;
mod syntax;

pub use blob::{BlobKey, UploadHandle};
pub use file_name::{FileName, FileNameError};
pub use holder::Holder;
pub use id::{InvalidResourceId, ResourceId};
pub use keep_reason::{KeepReason, Unknown};
pub use kind::{OwnerKind, OwnerKinds, POD};
pub(crate) use named::named;
pub use named::{Named, UnknownName};
pub use namespaces::Namespaces;
pub use owner::Owner;
pub use owner_error::OwnerError;
pub use owner_history::OwnerHistory;
pub use record::{Arrival, Bundle, Ending, History, Life, Lifetime, Ready, Resource, StateData, Tombstone};
pub use secret::{ReadKey, ResourceSecret, SecretHash};
pub use state::{DeletionReason, State};
pub use syntax::{
    is_annotation_key, is_dns_label, is_dns_subdomain, is_label_key, is_label_value, is_quantity,
};
