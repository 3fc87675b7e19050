//! The formats that Spark's users write: command lines, properties files, property keys, URIs.

pub mod hadoop_user;
pub mod jar;
mod java_system;
mod java_text;

pub mod arguments;
pub mod conf;
pub mod driver_properties;
pub mod keys;
pub mod properties;
pub mod submission_credentials;
pub mod uri;
pub mod version;

pub use arguments::{MainResource, SubmitArguments};
pub use conf::{Origin, SettingError, SparkConf};
pub use driver_properties::with_fetched_files;
pub use java_system::properties_of_options;
pub use properties::{Properties, PropertiesError, Property, properties_text};
pub use submission_credentials::SubmissionCredentials;
pub use uri::{DependencyUri, FileUri, RemoteUri, UriError, parse_list, split_list};
