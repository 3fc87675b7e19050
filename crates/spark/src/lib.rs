//! The formats that Spark's users write: command lines, properties files, property keys, URIs.

pub mod hadoop_user;
pub mod jar;
mod java_store;
mod java_system;
mod java_text;
mod property_error;
mod reader;

pub mod arguments;
pub mod conf;
pub mod driver_properties;
pub mod init_properties;
pub mod keys;
pub mod properties;
pub mod role;
pub mod server_properties;
pub mod submission_credentials;
pub mod uri;
pub mod version;

pub use arguments::{MainResource, SubmitArguments};
pub use conf::{Origin, SettingError, SparkConf};
pub use driver_properties::with_fetched_files;
pub use init_properties::{DEFAULT_FILES_DIR, DEFAULT_JARS_DIR, InitContainerProperties, TicketFile};
pub use java_store::trust_store_to_pem;
pub use java_system::properties_of_options;
pub use properties::{Properties, PropertiesError, Property, properties_text};
pub use property_error::{Position, PropertyError};
pub use role::{Role, RoleError};
pub use server_properties::{ApiServerProperties, StagingServerProperties, TlsFiles};
pub use submission_credentials::SubmissionCredentials;
pub use uri::{DependencyUri, FileUri, RemoteUri, UriError, parse_list, split_list};
