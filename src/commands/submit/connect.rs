//! The connection of a submission to the API server. Its address is the master, or that of the kubeconfig's context.
//! Settings or this machine have the credentials.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::fabric8::Fabric8;
use super::sources;
use crate::commands::credentials;

use cloakroom_cluster::{
    Access, ApiServer, Given, KubeconfigContext, Proxies, SERVICE_ACCOUNT_FOLDER, SubmissionAccess, Timeouts,
};
use cloakroom_spark::keys::{self, Key};
use cloakroom_spark::{Origin, SettingError, SparkConf, SubmissionCredentials};
use cloakroom_submit::plan::Submitter;

/// Spark's default of both timeouts.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for 0, which means “no bound” to Spark's client: longer than any user waits.
const NO_BOUND: Duration = Duration::from_hours(24);

/// The origin of a master that [`choose_master`] has set.
const CHOSEN: Origin = Origin::Derived;

/// The API server that a command asks for, and how.
#[derive(Default)]
pub struct WantedApiServer {
    /// With `k8s://`; `None` leaves it to the kubeconfig.
    pub master: Option<String>,
    /// A context of the kubeconfig; `None` is the current one.
    pub context: Option<String>,
    pub credentials: SubmissionCredentials,
    /// How long to wait for a connection and for an answer; `None` is Spark's default.
    pub timeouts: [Option<Duration>; 2],
}

impl WantedApiServer {
    /// What the settings of a submission say.
    pub fn read(conf: &SparkConf) -> anyhow::Result<Self> {
        let given = conf.get(&keys::MASTER).filter(|_| conf.origin(&keys::MASTER) != Some(&CHOSEN));
        Ok(Self {
            master: given.map(str::to_owned),
            context: conf.get(&keys::CONTEXT).filter(|name| !name.is_empty()).map(str::to_owned),
            credentials: SubmissionCredentials::from(conf)?,
            timeouts: [
                milliseconds(conf, &keys::CONNECTION_TIMEOUT)?,
                milliseconds(conf, &keys::REQUEST_TIMEOUT)?,
            ],
        })
    }
}

/// Reads and checks everything that calls to the API server need, and waits for a credential plugin. It sends nothing.
pub async fn connect(wanted: WantedApiServer, submitter: &Submitter) -> anyhow::Result<ApiServer> {
    let fabric8 = Fabric8::read(submitter)?;
    fabric8.warning.iter().for_each(|warning| super::warn(warning));
    let Some(master) = &wanted.master else { return by_kubeconfig(wanted, submitter).await };
    let url = master.strip_prefix("k8s://").unwrap_or(master);
    let settings = &wanted.credentials;
    let of_spark = settings.trust_certificates.then(|| credentials::quoted(&keys::TRUST_CERTIFICATES));
    let access = SubmissionAccess {
        url: Given::new(url.to_owned(), "--master (`spark.master`)"),
        credentials: fabric8.overridden(credentials::of_submission(settings))?,
        credentials_setting: match fabric8.identity_setting() {
            Some(setting) if !settings.identify() => setting.to_owned(),
            _ => format!("{}*", keys::OF_SUBMISSION_CREDENTIALS),
        },
        ca_setting: credentials::quoted(&keys::SUBMISSION_CA_CERT_FILE),
        trust_certificates: of_spark.or(fabric8.trust_certificates),
        context: wanted.context,
        kubeconfig: sources::kubeconfig(submitter).filter(|_| !fabric8.skips_kubeconfig),
        folder: (!fabric8.skips_service_account).then(|| PathBuf::from(SERVICE_ACCOUNT_FOLDER)),
        account_token: fabric8.account_token,
        proxies: proxies(submitter),
    };
    connect_as(&Access::Submission(Box::new(access)), wanted.timeouts).await
}

/// The kubeconfig's context that a command without a master goes by.
struct WantedContext {
    paths: Vec<PathBuf>,
    /// `None` is the current context.
    name: Option<String>,
    /// The variable or place that names the files, for messages.
    setting: String,
}

impl WantedContext {
    /// `None` if there is no kubeconfig. Refuses settings that say who asks, because they name no API server.
    fn read(wanted: &WantedApiServer, submitter: &Submitter) -> anyhow::Result<Option<Self>> {
        let fabric8 = Fabric8::read(submitter)?;
        let of_spark = wanted.credentials.identify();
        let of_spark = of_spark.then(|| format!("{}*", keys::OF_SUBMISSION_CREDENTIALS));
        if let Some(setting) = of_spark.as_deref().or(fabric8.identity_setting()) {
            bail!("no API server is named for the credentials of {setting}: give --master");
        }
        if fabric8.skips_kubeconfig {
            bail!(
                "no API server is known: give --master, because KUBERNETES_AUTH_TRYKUBECONFIG leaves out the kubeconfig"
            );
        }
        let name = wanted.context.clone();
        Ok(sources::kubeconfig(submitter).map(|(paths, setting)| Self { paths, name, setting }))
    }
}

/// Connects as the kubeconfig says, for commands without a master.
async fn by_kubeconfig(wanted: WantedApiServer, submitter: &Submitter) -> anyhow::Result<ApiServer> {
    let Some(WantedContext { paths, name, setting }) = WantedContext::read(&wanted, submitter)? else {
        bail!("no API server is known: give --master, or a kubeconfig (KUBECONFIG, ~/.kube/config)")
    };
    let proxies = proxies(submitter);
    connect_as(&Access::Kubeconfig { paths, context: name, setting, proxies }, wanted.timeouts).await
}

/// The API server that was chosen in place of a master, and the namespace if it was chosen too, for people.
pub struct ChosenApiServer(KubeconfigContext);

impl fmt::Display for ChosenApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KubeconfigContext { name, address, namespace } = &self.0;
        write!(f, "{address} of the context “{name}”")?;
        namespace.iter().try_for_each(|namespace| write!(f, ", in its namespace {namespace}"))
    }
}

/// Makes the API server of the kubeconfig's context the master if none is given, and its namespace that of the application
/// if none is given either. It changes nothing without a kubeconfig or without a current context: then the missing master is
/// refused.
pub fn choose_master(conf: &mut SparkConf, submitter: &Submitter) -> anyhow::Result<Option<ChosenApiServer>> {
    if conf.contains(&keys::MASTER) || conf.contains(&keys::REMOTE) {
        return Ok(None);
    }
    let mut filled_in = conf.clone();
    filled_in.fill_in(submitter.surroundings())?;
    let Some(WantedContext { paths, name, setting }) =
        WantedContext::read(&WantedApiServer::read(&filled_in)?, submitter)?
    else {
        return Ok(None);
    };
    let context = KubeconfigContext::read(&paths, name.as_deref(), &setting)
        .context("--master is not given, and the kubeconfig names no API server in its place")?;
    Ok(context.map(|mut context| {
        conf.set(&keys::MASTER, format!("k8s://{}", context.address), CHOSEN);
        context.namespace = context.namespace.filter(|_| !conf.contains(&keys::NAMESPACE));
        if let Some(namespace) = &context.namespace {
            conf.set(&keys::NAMESPACE, namespace.clone(), CHOSEN);
        }
        ChosenApiServer(context)
    }))
}

/// The proxies of the environment. Of `https.proxy` and `HTTPS_PROXY` the JVM's property wins, as in Spark's client
/// library.
fn proxies(submitter: &Submitter) -> Proxies {
    Proxies::from_variables(|name| {
        let property = submitter.system.get(&name.to_ascii_lowercase().replace('_', "."));
        property.or_else(|| submitter.variables.get(name)).cloned()
    })
}

async fn connect_as(access: &Access, timeouts: [Option<Duration>; 2]) -> anyhow::Result<ApiServer> {
    const WHAT: &str = "the API server cannot be asked";
    let [connect, call] = timeouts.map(|timeout| timeout.unwrap_or(TIMEOUT));
    let server =
        ApiServer::connect_with(access, Timeouts { connect, call, ..Timeouts::default() }).context(WHAT)?;
    server.credential().await.context(WHAT)?;
    Ok(server)
}

/// A timeout of a key, in whole milliseconds as in Spark.
fn milliseconds(conf: &SparkConf, key: &Key<u32>) -> Result<Option<Duration>, SettingError> {
    Ok(conf.read(key)?.map(|number| match number {
        0 => NO_BOUND,
        number => Duration::from_millis(number.into()),
    }))
}
