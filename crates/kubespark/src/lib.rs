//! What kubespark's clients and servers of 2017 speak and are told, as far as users still have it.
//!
//! - [`v0`] and [`multipart`]: its protocol, whose routes are in the server
//! - `server_properties` and `init_properties`: the properties files of its two programs, and `role`: which of the two a file
//!   is for
//! - `java_store`: the line that makes PEM of a store of Java's

mod init_properties;
mod java_store;
pub mod multipart;
mod property_error;
mod reader;
mod role;
mod server_properties;
pub mod v0;

pub use init_properties::{DEFAULT_FILES_DIR, DEFAULT_JARS_DIR, InitContainerProperties, TicketFile};
pub use java_store::trust_store_to_pem;
pub use property_error::{FilePosition, PropertyError};
pub use role::{Role, RoleError};
pub use server_properties::{ApiServerProperties, StagingServerProperties, TlsFiles};
