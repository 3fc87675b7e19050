//! The server's configuration, from flags, environment and properties file.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::access::{admin_tokens, upload_auth, webhdfs};
use super::cluster::{self, Pod};
use super::in_bucket::Succession;
use super::limits;
use super::store::{self, ConfiguredBucket};
use crate::cli::ServeArgs;
use crate::commands::old_entrypoint::read;
use crate::commands::{local, refuse};
use crate::telemetry::LogFormat;
use cloakroom_cluster::ApiServer;
use cloakroom_core::clock::Clock;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::time::format_duration;
use cloakroom_kubespark::StagingServerProperties;
use cloakroom_server::cleaner::Policy;
use cloakroom_server::descriptors::Allotment;
use cloakroom_server::http::{
    Connections, KEEP_ALIVE, LINGER, Lifetimes, PaceLimits, ServerTls, Settings, TokenFile,
};
use cloakroom_server::owners::{ClusterOwners, ClusterSettings, NoCluster, Owners};
use cloakroom_spark::{Properties, keys};
use cloakroom_storage::Limits;
use cloakroom_storage::stamp::Installation;

/// kubespark's port.
const DEFAULT_PORT: u16 = 10_000;

/// kubespark's `initialAccessExpirationTimeout`.
const DEFAULT_UNUSED_TIMEOUT: Duration = Duration::from_mins(30);

/// The time over which `--min-rate` is an average.
const RATE_WINDOW: Duration = Duration::from_mins(1);

/// A whole configuration: everything in it was read and checked. Nothing looks at the flags after it.
pub struct ServeSettings {
    pub listen: SocketAddr,
    pub ops_listen: Option<SocketAddr>,
    pub http: Settings,
    /// As many connections as the flags ask for.
    pub connections: Connections,
    /// The tokens of admins; `None` without `--admin-token-file`.
    pub admin_tokens: Option<TokenFile>,
    pub data_dir: PathBuf,
    /// Where the bundles are; `None` for the data directory.
    pub bucket: Option<ConfiguredBucket>,
    pub adopt_store: Option<Installation>,
    /// How it takes over from another server at the same bucket.
    pub succession: Succession,
    pub limits: Limits,
    pub policy: Policy,
    pub cleanup_interval: Duration,
    /// The API server to ask about owners.
    pub cluster: Option<ApiServer>,
    /// Whether a person may be trying the server at a terminal. A server with a properties file replaces kubespark's,
    /// and one that logs JSON is watched by programs.
    pub may_be_tried: bool,
    pub warnings: Vec<String>,
}

impl ServeSettings {
    /// Flags and environment win over the properties file, which wins over defaults. Calls to the API server are counted
    /// in `metrics`.
    pub fn resolve(args: &ServeArgs, metrics: &Metrics) -> anyhow::Result<Self> {
        let file = args.properties_file.as_deref().map(properties).transpose()?;
        let mut warnings = file.as_ref().map(|file| file.warnings.clone()).unwrap_or_default();
        let pod = Pod::from_environment();
        let listen = listen(args, file.as_ref(), pod.is_some());
        let admin_tokens = admin_tokens(&args.access)?;
        let lifetimes = lifetimes(args, file.as_ref())?;
        let cluster =
            cluster::connect(&args.kubernetes, file.as_ref().map(|file| &file.api_server), pod.as_ref())?;
        let cluster = cluster.map(|cluster| cluster.counted(metrics.clone()));
        let upload_auth = upload_auth(&args.access, listen, file.is_some(), cluster.as_ref(), &mut warnings)?;
        check_data_dir(&args.storage.data_dir)?;
        check_admin_token_file(args)?;
        check_times(args)?;
        let limits = limits::resolve(args, &upload_auth, &mut warnings)?;
        let bucket = store::resolve(&args.store, limits.capacity.max_resource_size, &mut warnings, metrics)?;
        let webhdfs = webhdfs(&args.access, &upload_auth)?.map(Arc::new);
        let http = Settings {
            upload_auth,
            token_hint: format!(
                "cloakroom stage: --token-file; cloakroom submit: {}",
                keys::CLOAKROOM_UPLOAD_TOKEN_FILE
            ),
            owner_kinds: args.kubernetes.owner_kinds.clone(),
            namespaces: args.kubernetes.namespaces.clone(),
            lifetimes,
            public_url: args.network.public_url.clone(),
            internal_url: args.network.internal_url.clone(),
            max_proxied_size: args.storage.max_proxied_size.bytes(),
            fetch_image: args.network.fetch_image.clone(),
            trusted_proxies: args.network.trusted_proxies.clone().unwrap_or_default(),
            tls: tls(args, file.as_ref())?,
            webhdfs,
        };
        Ok(Self {
            listen,
            ops_listen: args.network.ops_listen,
            http,
            connections: connections(args),
            admin_tokens,
            data_dir: args.storage.data_dir.clone(),
            bucket,
            adopt_store: args.storage.adopt_store,
            succession: Succession::new(
                args.store.takeover_after.get(),
                args.store.take_over,
                args.store.restore_ledger,
            ),
            limits,
            policy: policy(args),
            cleanup_interval: args.lifecycle.cleanup_interval.get(),
            cluster,
            may_be_tried: file.is_none() && args.log.log_format == LogFormat::Text,
            warnings,
        })
    }

    /// The source of knowledge about owners; without a cluster it knows nothing.
    pub fn owners(&self, metrics: &Metrics, clock: Arc<dyn Clock>) -> Arc<dyn Owners> {
        let Some(cluster) = &self.cluster else { return Arc::new(NoCluster) };
        let settings = ClusterSettings {
            namespaces: self.http.namespaces.clone(),
            call_timeout: cluster.call_timeout(),
            ..ClusterSettings::default()
        };
        Arc::new(ClusterOwners::new(cluster.client(), settings, metrics.clone(), clock))
    }

    /// The limits for connections, within the limit of open files.
    pub fn connections_within(&self, allotment: &Allotment) -> Connections {
        let Allotment { connections: max, operations: max_operations, waiting: max_waiting, .. } = *allotment;
        Connections { max, max_operations, max_waiting, ..self.connections }
    }
}

fn connections(args: &ServeArgs) -> Connections {
    let network = &args.network;
    Connections {
        max: network.max_connections,
        max_operations: network.max_connections,
        // What the limit of open files allows is filled in later.
        max_waiting: 0,
        header_timeout: network.header_timeout.get(),
        keep_alive: KEEP_ALIVE,
        linger: LINGER,
        pace: PaceLimits {
            idle_timeout: network.idle_timeout.get(),
            min_rate: network.min_rate.bytes(),
            rate_window: RATE_WINDOW,
        },
        shutdown_deadline: network.shutdown_deadline.get(),
    }
}

fn policy(args: &ServeArgs) -> Policy {
    Policy {
        max_age: args.lifecycle.max_age.map(Duration::from),
        max_unused: args.lifecycle.max_unused.get(),
        orphan_grace: args.lifecycle.orphan_grace.get(),
        finished_owner_retention: args.lifecycle.finished_owner_retention.get(),
        stray_age: args.lifecycle.stray_age.get(),
        max_deletions_per_sweep: args.lifecycle.max_deletions_per_sweep,
    }
}

fn properties(path: &Path) -> anyhow::Result<StagingServerProperties> {
    let properties = Properties::parse(path, &read(path)?)?;
    Ok(StagingServerProperties::from(&properties)?)
}

fn listen(args: &ServeArgs, file: Option<&StagingServerProperties>, in_a_pod: bool) -> SocketAddr {
    let everywhere = in_a_pod || file.is_some();
    let address = if everywhere { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
    let port = file.and_then(|file| file.port).unwrap_or(DEFAULT_PORT);
    args.network.listen.unwrap_or_else(|| SocketAddr::new(IpAddr::V4(address), port))
}

fn tls(args: &ServeArgs, file: Option<&StagingServerProperties>) -> anyhow::Result<Option<ServerTls>> {
    let from_flags = args.network.tls_cert.as_deref().zip(args.network.tls_key.as_deref());
    let from_file =
        file.and_then(|file| file.tls.as_ref()).map(|tls| (tls.cert_pem.as_path(), tls.key_pem.as_path()));
    let files = from_flags.or(from_file);
    Ok(files.map(|(cert, key)| ServerTls::open(cert, key)).transpose()?)
}

fn lifetimes(args: &ServeArgs, file: Option<&StagingServerProperties>) -> anyhow::Result<Lifetimes> {
    let from_flag = args.lifecycle.unused_timeout.map(Duration::from);
    let from_file = file.and_then(|file| file.unused_timeout);
    let unused_timeout = from_flag.or(from_file).unwrap_or(DEFAULT_UNUSED_TIMEOUT);
    let max_unused = args.lifecycle.max_unused.get();
    if unused_timeout > max_unused {
        refuse!(
            "the unused timeout of {} is longer than --max-unused, {}: raise the one or lower the other",
            format_duration(unused_timeout),
            args.lifecycle.max_unused
        );
    }
    if unused_timeout.is_zero() {
        refuse!(
            "the unused timeout is zero: nothing could ever be downloaded; leave --unused-timeout out or make it longer"
        );
    }
    Ok(Lifetimes { unused_timeout, max_unused, max_key_ttl: args.lifecycle.max_key_ttl.get() })
}

/// Refuses an address, which would become the name of a folder.
fn check_data_dir(path: &Path) -> anyhow::Result<()> {
    let Some((scheme, rest)) = path.to_str().and_then(|path| path.split_once("://")) else { return Ok(()) };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    if is_scheme {
        refuse!(
            "--data-dir names an address ({scheme}://…), and it is a folder on a local or block volume: {}",
            match scheme {
                "file" if rest.starts_with('/') => "give its path alone, without file://",
                "s3" | "az" | "gs" => "for bundles in a bucket give that address with --store",
                _ => "give its path, such as /var/lib/cloakroom",
            }
        );
    }
    Ok(())
}

/// The server removes a file of this name, because it would be the token of an earlier run.
fn check_admin_token_file(args: &ServeArgs) -> anyhow::Result<()> {
    let made = args.storage.data_dir.join(local::FILE);
    match &args.access.admin_token_file {
        Some(path) if std::path::absolute(path)? == std::path::absolute(&made)? => refuse!(
            "--admin-token-file is {}, which is the server's own file for a token of each run: move your tokens to another \
             place",
            path.display()
        ),
        _ => Ok(()),
    }
}

/// Refuses zero for times that must not be zero.
fn check_times(args: &ServeArgs) -> anyhow::Result<()> {
    let times = [
        ("--header-timeout", Some(args.network.header_timeout)),
        ("--idle-timeout", Some(args.network.idle_timeout)),
        ("--cleanup-interval", Some(args.lifecycle.cleanup_interval)),
        ("--max-unused", Some(args.lifecycle.max_unused)),
        ("--max-age", args.lifecycle.max_age),
        ("--stray-age", Some(args.lifecycle.stray_age)),
        ("--takeover-after", Some(args.store.takeover_after)),
    ];
    match times.iter().find(|(_, time)| time.is_some_and(|time| time.get().is_zero())) {
        Some((flag, _)) => refuse!("{flag} is zero: give a time, such as 30s"),
        None => Ok(()),
    }
}
