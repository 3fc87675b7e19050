//! The connection of a submission to the API server: its address is the master, and settings or this machine have the
//! credentials.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::{sources, warn};
use crate::commands::credentials;

use cloakroom_cluster::{Access, ApiServer, Given, SERVICE_ACCOUNT_FOLDER, SubmissionAccess, Timeouts};
use cloakroom_spark::keys::{self, Key};
use cloakroom_spark::{SettingError, SparkConf, SubmissionCredentials};
use cloakroom_submit::plan::Submitter;

/// Spark's default of both timeouts.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for 0, which means “no bound” to Spark's client: longer than any user waits.
const NO_BOUND: Duration = Duration::from_hours(24);

/// Reads and checks everything that calls to the API server need. It sends nothing.
pub fn connect(conf: &SparkConf, submitter: &Submitter) -> anyhow::Result<ApiServer> {
    let Some(master) = conf.get(&keys::MASTER) else { return by_kubeconfig(conf, submitter) };
    let url = master.strip_prefix("k8s://").unwrap_or(master);
    if let Some(variable) = sources::proxy(submitter, url) {
        warn(&format!("{variable} is not used: the connection to the API server is always direct"));
    }
    let credentials = SubmissionCredentials::from(conf)?;
    let access = SubmissionAccess {
        url: Given::new(url.to_owned(), "--master (`spark.master`)"),
        credentials: credentials::of_submission(&credentials),
        credentials_setting: format!("{}*", keys::OF_SUBMISSION_CREDENTIALS),
        ca_setting: credentials::quoted(&keys::SUBMISSION_CA_CERT_FILE),
        trust_certificates: credentials
            .trust_certificates
            .then(|| credentials::quoted(&keys::TRUST_CERTIFICATES)),
        context: conf.get(&keys::CONTEXT).filter(|name| !name.is_empty()).map(str::to_owned),
        kubeconfig: sources::kubeconfig(submitter),
        folder: PathBuf::from(SERVICE_ACCOUNT_FOLDER),
    };
    connect_as(&Access::Submission(Box::new(access)), conf)
}

/// Connects as the kubeconfig says, for commands that need no master.
fn by_kubeconfig(conf: &SparkConf, submitter: &Submitter) -> anyhow::Result<ApiServer> {
    if SubmissionCredentials::from(conf)?.identify() {
        bail!(
            "no API server is named for the credentials of spark.kubernetes.authenticate.submission.*: give --master"
        );
    }
    let Some((paths, setting)) = sources::kubeconfig(submitter) else {
        bail!("no API server is known: give --master, or a kubeconfig (KUBECONFIG, ~/.kube/config)")
    };
    let context = conf.get(&keys::CONTEXT).filter(|name| !name.is_empty()).map(str::to_owned);
    connect_as(&Access::Kubeconfig { paths, context, setting }, conf)
}

fn connect_as(access: &Access, conf: &SparkConf) -> anyhow::Result<ApiServer> {
    let timeouts = Timeouts {
        connect: milliseconds(conf, &keys::CONNECTION_TIMEOUT)?,
        call: milliseconds(conf, &keys::REQUEST_TIMEOUT)?,
        ..Timeouts::default()
    };
    ApiServer::connect_with(access, timeouts).context("the API server cannot be asked")
}

/// A timeout of a key, in whole milliseconds as in Spark.
fn milliseconds(conf: &SparkConf, key: &Key<u32>) -> Result<Duration, SettingError> {
    match conf.read(key)? {
        Some(0) => Ok(NO_BOUND),
        Some(number) => Ok(Duration::from_millis(number.into())),
        None => Ok(TIMEOUT),
    }
}
