//! The flags of `cloakroom serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};

use super::store::StoreArgs;
use crate::telemetry::LogFormat;
use cloakroom_core::resource::{Namespaces, OwnerKinds};
use cloakroom_core::size::ByteSize;
use cloakroom_core::time::{SparkDuration, TimeError};
use cloakroom_server::http::{PublicUrl, TrustedProxies};
use cloakroom_storage::Share;
use cloakroom_storage::stamp::Installation;

/// The default of `--data-dir`.
pub const DEFAULT_DATA_DIR: &str = "./cloakroom-data";

/// Who may upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UploadAuthChoice {
    /// Every client that reaches the port.
    None,
    /// Every client with a token of --upload-token-file.
    Token,
    /// Every user who may create bundles.cloakroom.dev in the owner's namespace. The API server checks the client's token.
    Kubernetes,
}

/// Run the staging server
///
/// Precedence: flags, then environment, then the properties file, then defaults. Sizes are binary (8GiB), times have a
/// unit (30m, 500ms).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cloakroom serve
  cloakroom serve --listen 0.0.0.0:10000 --upload-token-file upload-token \\
      --tls-cert tls.crt --tls-key tls.key
  cloakroom serve --check --kubeconfig ~/.kube/config")]
pub struct ServeArgs {
    /// A Java properties file of kubespark's resource staging server
    #[arg(env = "CLOAKROOM_PROPERTIES_FILE")]
    pub properties_file: Option<PathBuf>,

    /// Validate the configuration, check that addresses and data directory are free, print the settings, and exit
    #[arg(long)]
    pub check: bool,

    #[command(flatten)]
    pub network: NetworkArgs,

    #[command(flatten)]
    pub access: AccessArgs,

    #[command(flatten)]
    pub kubernetes: KubernetesArgs,

    #[command(flatten)]
    pub storage: StorageArgs,

    #[command(flatten)]
    pub store: StoreArgs,

    #[command(flatten)]
    pub lifecycle: LifecycleArgs,

    #[command(flatten)]
    pub log: LogArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Network")]
pub struct NetworkArgs {
    /// Address and port; port 0 lets the system choose [default: 127.0.0.1:10000, or 0.0.0.0:10000 in a pod or with a
    /// properties file]
    #[arg(long, env = "CLOAKROOM_LISTEN", value_name = "ADDRESS:PORT", value_parser = socket_address)]
    pub listen: Option<SocketAddr>,

    /// Serve probes, /metrics and /admin here, and not on --listen [default: on --listen]
    #[arg(long, env = "CLOAKROOM_OPS_LISTEN", value_name = "ADDRESS:PORT", value_parser = socket_address)]
    pub ops_listen: Option<SocketAddr>,

    /// Beginning of the URLs in tickets [default: what the request was sent to]
    #[arg(long, env = "CLOAKROOM_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<PublicUrl>,

    /// Address by which pods reach this server, for clients that come another way [default: none; clients take that of the Service]
    #[arg(long, env = "CLOAKROOM_INTERNAL_URL", value_name = "URL")]
    pub internal_url: Option<PublicUrl>,

    /// Image of this program, for the init-containers that cloakroom submit makes if no setting names one [default:
    /// none]
    #[arg(long, env = "CLOAKROOM_FETCH_IMAGE", value_name = "IMAGE", value_parser = image)]
    pub fetch_image: Option<String>,

    /// Addresses and networks of proxies, separated by commas. The server believes their X-Forwarded-For, Forwarded and
    /// X-Forwarded-Proto [default: none]
    #[arg(long, env = "CLOAKROOM_TRUSTED_PROXIES", value_name = "NETWORKS")]
    pub trusted_proxies: Option<TrustedProxies>,

    /// Certificate chain in PEM; with --tls-key, the server speaks https. It reads a changed file again [default: none,
    /// plain http]
    #[arg(long, env = "CLOAKROOM_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of --tls-cert in PEM [default: none]
    #[arg(long, env = "CLOAKROOM_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Connections at once, on each listener
    #[arg(long, env = "CLOAKROOM_MAX_CONNECTIONS", value_name = "N", default_value_t = 2048,
          value_parser = at_least_one)]
    pub max_connections: usize,

    /// Time for a TLS handshake, and for the head of a request
    #[arg(long, env = "CLOAKROOM_HEADER_TIMEOUT", value_name = "TIME", default_value = "10s")]
    pub header_timeout: SparkDuration,

    /// Longest wait for a single byte of a transfer
    #[arg(long, env = "CLOAKROOM_IDLE_TIMEOUT", value_name = "TIME", default_value = "60s")]
    pub idle_timeout: SparkDuration,

    /// Least average speed of a transfer in bytes a second, over 60 s of waiting for the client; 0b is none
    #[arg(long, env = "CLOAKROOM_MIN_RATE", value_name = "SIZE", default_value = "16KiB")]
    pub min_rate: ByteSize,

    /// How long transfers in flight may go on after SIGTERM or SIGINT
    #[arg(long, env = "CLOAKROOM_SHUTDOWN_DEADLINE", value_name = "TIME", default_value = "25s")]
    pub shutdown_deadline: SparkDuration,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Access")]
pub struct AccessArgs {
    /// Who may upload; you must choose if the server listens on any address but loopback [default: none on loopback]
    #[arg(long, env = "CLOAKROOM_UPLOAD_AUTH", value_name = "HOW")]
    pub upload_auth: Option<UploadAuthChoice>,

    /// With --upload-auth kubernetes: the audience that tokens must have [default: cloakroom.NAMESPACE with the namespace of
    /// this pod, or cloakroom.cloakroom]
    #[arg(long, env = "CLOAKROOM_UPLOAD_AUDIENCE", value_name = "NAME", value_parser = audience)]
    pub upload_audience: Option<String>,

    /// With --upload-auth kubernetes: also take tokens for the API server itself, from users who may create pods in the owner's
    /// namespace. Such tokens are good for more than uploads [default: off]
    #[arg(long, env = "CLOAKROOM_ACCEPT_CLUSTER_TOKENS", value_parser = BoolishValueParser::new())]
    pub accept_cluster_tokens: bool,

    /// File of upload tokens of 16 characters or more, one per line, as TOKEN or name=NAME TOKEN; the server reads a
    /// changed file again [default: none]
    #[arg(long, env = "CLOAKROOM_UPLOAD_TOKEN_FILE", value_name = "FILE")]
    pub upload_token_file: Option<PathBuf>,

    /// Take what stock Spark uploads to spark.kubernetes.file.upload.path=webhdfs://HOST:PORT/NAMESPACE [default: off]
    #[arg(long, env = "CLOAKROOM_WEBHDFS", value_parser = BoolishValueParser::new())]
    pub webhdfs: bool,

    /// With --webhdfs: file of upload keys, one per line, as NAMESPACE token-KEY or NAMESPACE sha256:HEX; the key stands behind
    /// the namespace. The server reads a changed file again [default: none; uploads then need --upload-auth none]
    #[arg(long, env = "CLOAKROOM_WEBHDFS_KEY_FILE", value_name = "FILE")]
    pub webhdfs_key_file: Option<PathBuf>,

    /// With --webhdfs: upload keys count, too, if they come unencrypted from other machines [default: off]
    #[arg(long, env = "CLOAKROOM_WEBHDFS_PLAIN_KEYS", value_parser = BoolishValueParser::new())]
    pub webhdfs_plain_keys: bool,

    /// File of tokens for cloakroom ls, show, rm and clean, in the same format; the server reads a changed file again
    /// [default: one made at the start, for commands on this machine]
    #[arg(long, env = "CLOAKROOM_ADMIN_TOKEN_FILE", value_name = "FILE")]
    pub admin_token_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Kubernetes")]
pub struct KubernetesArgs {
    /// Kubeconfig of the API server that knows the owners [default: the properties file's, or in a pod its cluster's]
    #[arg(long, env = "CLOAKROOM_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of --kubeconfig [default: its current one]
    #[arg(long, env = "CLOAKROOM_CONTEXT", value_name = "NAME", requires = "kubeconfig")]
    pub context: Option<String>,

    /// Use no API server: resources end only by time or by DELETE [default: off]
    #[arg(long, env = "CLOAKROOM_NO_KUBERNETES", value_parser = BoolishValueParser::new())]
    pub no_kubernetes: bool,

    /// Namespaces that owners may be in, separated by commas [default: all]
    #[arg(long, env = "CLOAKROOM_NAMESPACES", value_name = "NAMESPACES", value_parser = Namespaces::parse)]
    pub namespaces: Option<Namespaces>,

    /// Kinds that an upload may name as its owner's kind, as Kind or Kind.group, separated by commas
    #[arg(long, env = "CLOAKROOM_OWNER_KINDS", value_name = "KINDS", default_value = OwnerKinds::DEFAULT,
          value_parser = OwnerKinds::parse)]
    pub owner_kinds: OwnerKinds,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Storage")]
pub struct StorageArgs {
    /// Folder of the ledger, and of the bundles without --store, on a local or block volume, for this process alone
    #[arg(long, env = "CLOAKROOM_DATA_DIR", value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    pub data_dir: PathBuf,

    /// Use ledger and bundles together although they do not belong together: the id that the error of a start has named. Needed
    /// for one start [default: none]
    #[arg(long, env = "CLOAKROOM_ADOPT_STORE", value_name = "ID", value_parser = store_id)]
    pub adopt_store: Option<Installation>,

    /// Largest bundle
    #[arg(long, env = "CLOAKROOM_MAX_RESOURCE_SIZE", value_name = "SIZE", default_value = "8GiB")]
    pub max_resource_size: ByteSize,

    /// Largest bundle that comes through the API server of Kubernetes
    #[arg(long, env = "CLOAKROOM_MAX_PROXIED_SIZE", value_name = "SIZE", default_value = "512MiB")]
    pub max_proxied_size: ByteSize,

    /// Size of all bundles together, each counted as 4 KiB or more, uploads in flight included [default: off]
    #[arg(long, env = "CLOAKROOM_MAX_TOTAL_SIZE", value_name = "SIZE")]
    pub max_total_size: Option<ByteSize>,

    /// Disk space to leave free
    #[arg(long, env = "CLOAKROOM_MIN_FREE_SPACE", value_name = "SIZE", default_value = "512MiB")]
    pub min_free_space: ByteSize,

    /// Resources at once, uploads in flight included
    #[arg(long, env = "CLOAKROOM_MAX_RESOURCES", value_name = "N", default_value_t = 100_000,
          value_parser = at_least_one)]
    pub max_resources: usize,

    /// With --upload-auth kubernetes: share of resources, room, memory for owners, uploads and downloads that one
    /// namespace may have [default: 25%]
    #[arg(long, env = "CLOAKROOM_SHARE", value_name = "PERCENT")]
    pub share: Option<Share>,

    /// Uploads at once
    #[arg(long, env = "CLOAKROOM_MAX_CONCURRENT_UPLOADS", value_name = "N", default_value_t = 64,
          value_parser = at_least_one)]
    pub max_concurrent_uploads: usize,

    /// Downloads at once
    #[arg(long, env = "CLOAKROOM_MAX_CONCURRENT_DOWNLOADS", value_name = "N", default_value_t = 512,
          value_parser = at_least_one)]
    pub max_concurrent_downloads: usize,
}

fn store_id(text: &str) -> Result<Installation, &'static str> {
    text.parse().map_err(|_| "an id has 16 hexadecimal digits, as the error of the start names it")
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Lifecycle")]
pub struct LifecycleArgs {
    /// Time after which the server deletes a resource that was never downloaded [default: 30m]
    #[arg(long, env = "CLOAKROOM_UNUSED_TIMEOUT", value_name = "TIME")]
    pub unused_timeout: Option<SparkDuration>,

    /// How long the owners of a used resource must be absent before the server deletes the resource
    #[arg(long, env = "CLOAKROOM_ORPHAN_GRACE", value_name = "TIME", default_value = "60s")]
    pub orphan_grace: SparkDuration,

    /// How long a pod that succeeded or failed still counts as an owner: a time, or forever
    #[arg(long, env = "CLOAKROOM_FINISHED_OWNER_RETENTION", value_name = "TIME", default_value = "24h")]
    pub finished_owner_retention: Retention,

    /// Time after which the server deletes a resource that was never downloaded, even if it does not know whether the
    /// owner exists. It is also the largest unusedTimeout that an upload may ask for
    #[arg(long, env = "CLOAKROOM_MAX_UNUSED", value_name = "TIME", default_value = "7d")]
    pub max_unused: SparkDuration,

    /// The longest time that a read key (a URL that downloads without a ticket) may be good for; 0s turns all keys off
    #[arg(long, env = "CLOAKROOM_MAX_KEY_TTL", value_name = "TIME", default_value = "7d")]
    pub max_key_ttl: SparkDuration,

    /// Age at which the server deletes every resource, used or not [default: off]
    #[arg(long, env = "CLOAKROOM_MAX_AGE", value_name = "TIME")]
    pub max_age: Option<SparkDuration>,

    /// How long downloads may go on after their resource was deleted; its room is free after that
    #[arg(long, env = "CLOAKROOM_DELETION_WAIT", value_name = "TIME", default_value = "10m")]
    pub deletion_wait: SparkDuration,

    /// How long the server keeps bundles that belong to no resource, because the ledger was lost or replaced
    #[arg(long, env = "CLOAKROOM_STRAY_AGE", value_name = "TIME", default_value = "7d")]
    pub stray_age: SparkDuration,

    /// Time between two sweeps
    #[arg(long, env = "CLOAKROOM_CLEANUP_INTERVAL", value_name = "TIME", default_value = "30s")]
    pub cleanup_interval: SparkDuration,

    /// The most deletions in one sweep of what the guard against mass deletion has held back for an hour
    #[arg(long, env = "CLOAKROOM_MAX_DELETIONS_PER_SWEEP", value_name = "N", default_value_t = 100,
          value_parser = at_least_one)]
    pub max_deletions_per_sweep: usize,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Logs")]
pub struct LogArgs {
    /// Format of log lines on stderr
    #[arg(long, env = "CLOAKROOM_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,

    /// Lines to log: a level, or directives as in RUST_LOG
    #[arg(long, env = "CLOAKROOM_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,
}

/// An image that a node can pull.
fn image(text: &str) -> Result<String, String> {
    let fault = cloakroom_core::image::fault(text);
    fault.map_or_else(|| Ok(text.to_owned()), |fault| Err(format!("no node can pull it, because {fault}")))
}

/// Parses an address to listen on. Users often write a port or a host name alone, so the error shows the form.
fn socket_address(text: &str) -> Result<SocketAddr, String> {
    let malformed = || {
        let port = text.rsplit(':').next().and_then(|port| port.parse::<u16>().ok()).unwrap_or(10_000);
        format!(
            "write ADDRESS:PORT, with an IP address: 127.0.0.1:{port} for this machine alone, 0.0.0.0:{port} for all of its \
             addresses"
        )
    };
    text.parse().map_err(|_| malformed())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("0 would let nothing through: it must be 1 or more".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("not a whole number".to_owned()),
    }
}

/// An audience is compared with what the API server says, so nothing but printable characters helps.
fn audience(text: &str) -> Result<String, &'static str> {
    let is_good = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_good { Ok(text.to_owned()) } else { Err("it must be printable ASCII without blanks") }
}

/// How long a finished pod still counts as an owner: a time, or for ever, as in kubespark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention(Option<SparkDuration>);

/// The word for no end.
const FOREVER: &str = "forever";

impl Retention {
    /// The time; `None` means for ever.
    pub fn get(self) -> Option<Duration> {
        self.0.map(SparkDuration::get)
    }
}

impl FromStr for Retention {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        if text == FOREVER { Ok(Self(None)) } else { text.parse().map(|time| Self(Some(time))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retention_is_a_time_or_for_ever() {
        assert_eq!("24h".parse::<Retention>().unwrap().get(), Some(Duration::from_hours(24)));
        assert_eq!("forever".parse::<Retention>().unwrap().get(), None);
        for text in ["", "24", "always", "-1h"] {
            assert!(text.parse::<Retention>().is_err(), "{text}");
        }
    }
}
