//! The flags that say where bundles are.

use std::path::PathBuf;

use clap::builder::{BoolishValueParser, StringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};

use cloakroom_core::size::ByteSize;
use cloakroom_core::text::SecretText;
use cloakroom_core::time::SparkDuration;
use cloakroom_storage::log::Position;

/// How a bucket is named in addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AddressingChoice {
    /// `https://BUCKET.HOST/KEY`
    Virtual,
    /// `https://HOST/BUCKET/KEY`
    Path,
}

#[derive(Debug, Args)]
#[expect(clippy::doc_markdown, reason = "the comments are the help texts, where names have no backticks")]
#[command(next_help_heading = "Store")]
pub struct StoreArgs {
    /// Keep the bundles in a bucket: s3://BUCKET/PREFIX, az://CONTAINER/PREFIX or gs://BUCKET/PREFIX, or in HDFS:
    /// webhdfs://NAMENODE:PORT/FOLDER. The ledger is there, too. Credentials come from the environment [default:
    /// bundles are in --data-dir]
    #[arg(long, env = "CLOAKROOM_STORE", hide_env_values = true, value_name = "URL", value_parser = hidden())]
    pub store: Option<SecretText>,

    /// Address of a store that is not in its usual place [default: that of the cloud; for s3:// before it AWS_ENDPOINT_URL_S3 and
    /// AWS_ENDPOINT_URL]
    #[arg(long, env = "CLOAKROOM_STORE_ENDPOINT", hide_env_values = true, value_name = "URL", value_parser = hidden(),
          requires = "store")]
    pub store_endpoint: Option<SecretText>,

    /// Region of the bucket of s3:// [default: AWS_REGION, AWS_DEFAULT_REGION, or us-east-1 at an endpoint]
    #[arg(long, env = "CLOAKROOM_STORE_REGION", value_name = "REGION", requires = "store")]
    pub store_region: Option<String>,

    /// Storage account of the container of az:// [default: AZURE_STORAGE_ACCOUNT]
    #[arg(long, env = "CLOAKROOM_STORE_ACCOUNT", value_name = "NAME", requires = "store")]
    pub store_account: Option<String>,

    /// User of the folder of webhdfs:// [default: HADOOP_USER_NAME]
    #[arg(long, env = "CLOAKROOM_STORE_USER", value_name = "NAME", requires = "store")]
    pub store_user: Option<String>,

    /// How addresses name the bucket of s3:// [default: path at an endpoint, otherwise virtual]
    #[arg(long, env = "CLOAKROOM_STORE_ADDRESSING", value_name = "WAY", requires = "store")]
    pub store_addressing: Option<AddressingChoice>,

    /// Certificates of CAs in PEM to trust for the store, besides the system's [default: none]
    #[arg(long, env = "CLOAKROOM_STORE_CA", value_name = "FILE", requires = "store")]
    pub store_ca: Option<PathBuf>,

    /// Speak to the endpoint without TLS if its address says so [default: off]
    #[arg(long, env = "CLOAKROOM_STORE_ALLOW_HTTP", value_parser = BoolishValueParser::new(), requires = "store")]
    pub store_allow_http: bool,

    /// Go back to a copy of the ledger that the bucket has, such as 12-345, once [default: none]
    #[arg(long, env = "CLOAKROOM_RESTORE_LEDGER", value_name = "COPY", requires = "store")]
    pub restore_ledger: Option<Position>,

    /// How long another server at the same place must have been silent before this one takes over
    #[arg(
        long,
        env = "CLOAKROOM_TAKEOVER_AFTER",
        value_name = "TIME",
        default_value = "15s",
        requires = "store"
    )]
    pub takeover_after: SparkDuration,

    /// Take over from another server at the same place at once, and without its stamp if that is lost; that one ends [default: off]
    #[arg(long, env = "CLOAKROOM_TAKE_OVER", value_parser = BoolishValueParser::new(), requires = "store")]
    pub take_over: bool,

    /// Memory for all transfers to and from the bucket together
    #[arg(long, env = "CLOAKROOM_STORE_MEMORY", value_name = "SIZE", default_value = "128MiB")]
    pub store_memory: ByteSize,
}

/// A text that no error of the command line shows, because it may have a key in it.
fn hidden() -> impl TypedValueParser<Value = SecretText> {
    StringValueParser::new().map(SecretText::new)
}
