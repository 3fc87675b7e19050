//! The command line of `cloakroom fetch`.

use std::path::PathBuf;

use clap::Args;

use cloakroom_core::size::ByteSize;
use cloakroom_core::time::SparkDuration;
use cloakroom_spark::Origin;
use cloakroom_transfer::fetch::TERMINATION_LOG;

use super::giver;

/// The variable that names the server if no flag does.
const SERVER_VARIABLE: &str = "CLOAKROOM_SERVER";

/// Download staged bundles and remote files into folders, as an init-container does
///
/// Give the init-container's properties file, or name one bundle: by --ticket and --to, or by --server, --id,
/// --secret-file and --to.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  cloakroom fetch --ticket ticket.json --to jars
  cloakroom fetch /etc/spark-init/spark-init.properties")]
pub struct FetchArgs {
    /// The init-container's properties file, such as /etc/spark-init/spark-init.properties
    #[arg(value_name = "PROPERTIES_FILE")]
    pub properties_file: Option<PathBuf>,

    /// Address of the staging server [default: the ticket's]
    #[arg(long, value_name = "URI", env = SERVER_VARIABLE)]
    pub server: Option<String>,

    /// File with the ticket, as cloakroom stage or the server printed it; - is stdin. The ticket names the server
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "secret_file"])]
    pub ticket: Option<PathBuf>,

    /// The bundle's resource id
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,

    /// File that holds the bundle's resource secret
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,

    /// Folder for the files; it is created if missing
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,

    /// The driver's properties as a stock spark-submit wrote them; see --spark-properties-to
    #[arg(long, value_name = "FILE", requires_all = ["properties_file", "spark_properties_to"])]
    pub spark_properties: Option<PathBuf>,

    /// File for the changed --spark-properties: local: URIs of fetched files become file: ones, which Spark's driver
    /// serves to its executors
    #[arg(long, value_name = "FILE", requires = "spark_properties")]
    pub spark_properties_to: Option<PathBuf>,

    /// Bound on everything together, retries included [default: mountTimeout of the properties file, else 5m]
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<SparkDuration>,

    /// PEM file of a CA, or of the server's own certificate, to trust in addition to the system's; repeatable
    #[arg(long = "ca-file", value_name = "PEM", env = "CLOAKROOM_CA_FILE")]
    pub ca_files: Vec<PathBuf>,

    /// The files may be changed afterwards: a second run leaves what the first one has put into place as it is
    #[arg(long)]
    pub writable: bool,

    /// Most entries of one bundle, implied folders included
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    pub max_entries: u64,

    /// Most bytes of one bundle once it is unpacked, or of one remote file
    #[arg(long, value_name = "SIZE", default_value_t = ByteSize::new(64 << 30))]
    pub max_unpacked: ByteSize,

    /// File for the reason of a failure, if it exists
    #[arg(long, value_name = "PATH", env = "CLOAKROOM_TERMINATION_LOG", default_value = TERMINATION_LOG)]
    pub termination_log: PathBuf,
}

impl FetchArgs {
    /// Whether a flag named the server, and not only the environment.
    pub fn has_server_flag(&self) -> bool {
        let flag = "--server";
        self.server.as_ref().is_some_and(|server| {
            giver(flag, SERVER_VARIABLE, |value| value == &**server) == Origin::Option(flag)
        })
    }
}
