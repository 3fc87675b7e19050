//! Keys of the submitter's and the driver's credentials, of Hadoop and of Kerberos.

use std::time::Duration;

use super::keys;
use super::kind::{bare_milliseconds, boolean, seconds, text};

/// The prefix of the submitter's credentials.
pub const OF_SUBMISSION_CREDENTIALS: &str = "spark.kubernetes.authenticate.submission.";
/// The prefix of the driver's credentials.
pub const OF_DRIVER_CREDENTIALS: &str = "spark.kubernetes.authenticate.driver.";

keys! { TABLE = "Credentials, Hadoop and Kerberos":
    /// bearer token of the submitter, in clear
    SUBMISSION_TOKEN: String = text("spark.kubernetes.authenticate.submission.oauthToken");
    /// file of the bearer token
    SUBMISSION_TOKEN_FILE: String = text("spark.kubernetes.authenticate.submission.oauthTokenFile").file();
    /// CA certificate to trust (PEM)
    SUBMISSION_CA_CERT_FILE: String = text("spark.kubernetes.authenticate.submission.caCertFile").file();
    /// key of the client certificate (PEM)
    SUBMISSION_CLIENT_KEY_FILE: String = text("spark.kubernetes.authenticate.submission.clientKeyFile").file();
    /// client certificate (PEM)
    SUBMISSION_CLIENT_CERT_FILE: String = text("spark.kubernetes.authenticate.submission.clientCertFile").file();
    /// whether to accept any certificate of the API server
    TRUST_CERTIFICATES: bool = boolean("spark.kubernetes.trust.certificates").or("false").substituted();
    /// context of the kubeconfig
    CONTEXT: String = text("spark.kubernetes.context").or("the current one").substituted();
    /// time limit for a connection to the API server
    CONNECTION_TIMEOUT: u32 =
        bare_milliseconds("spark.kubernetes.submission.connectionTimeout").or("10000").substituted();
    /// time limit for a request to the API server
    REQUEST_TIMEOUT: u32 = bare_milliseconds("spark.kubernetes.submission.requestTimeout").or("10000").substituted();
    /// grace period of `--kill`
    DELETION_GRACE_PERIOD: Duration = seconds("spark.kubernetes.appKillPodDeletionGracePeriod").substituted();
    /// service account of the driver's pod
    DRIVER_SERVICE_ACCOUNT: String = text("spark.kubernetes.authenticate.driver.serviceAccountName").substituted();
    /// service account of the executors' pods
    EXECUTOR_SERVICE_ACCOUNT: String =
        text("spark.kubernetes.authenticate.executor.serviceAccountName").substituted();
    /// bearer token of the driver, in clear; the driver gets a secret, and no service account
    DRIVER_TOKEN: String = text("spark.kubernetes.authenticate.driver.oauthToken");
    /// CA certificate for the driver, likewise
    DRIVER_CA_CERT_FILE: String = text("spark.kubernetes.authenticate.driver.caCertFile").file();
    /// key of the driver's client certificate, likewise
    DRIVER_CLIENT_KEY_FILE: String = text("spark.kubernetes.authenticate.driver.clientKeyFile").file();
    /// the driver's client certificate, likewise
    DRIVER_CLIENT_CERT_FILE: String = text("spark.kubernetes.authenticate.driver.clientCertFile").file();
    /// path in the driver of a credential that an image or a template provides; FILE is `oauthTokenFile`, `caCertFile`
    /// or another
    DRIVER_MOUNTED: String = text("spark.kubernetes.authenticate.driver.mounted.FILE");
    /// config map with Hadoop's configuration; else the folder of the variable `HADOOP_CONF_DIR`
    HADOOP_CONFIG_MAP: String = text("spark.kubernetes.hadoop.configMapName").substituted();
    /// properties of Hadoop
    HADOOP: String = text("spark.hadoop.PROPERTY");
    /// `krb5.conf`
    KRB5_FILE: String = text("spark.kubernetes.kerberos.krb5.path").substituted().file();
    /// config map with `krb5.conf`
    KRB5_CONFIG_MAP: String = text("spark.kubernetes.kerberos.krb5.configMapName").substituted();
    /// keytab; it travels in a secret, unless it is `local:`
    KEYTAB: String = text("spark.kerberos.keytab").also(&["spark.yarn.keytab"]).file();
    /// Kerberos principal of the keytab
    PRINCIPAL: String = text("spark.kerberos.principal").also(&["spark.yarn.principal"]);
    /// secret with delegation tokens
    TOKEN_SECRET: String = text("spark.kubernetes.kerberos.tokenSecret.name").substituted();
    /// key of the tokens in that secret
    TOKEN_SECRET_ITEM: String = text("spark.kubernetes.kerberos.tokenSecret.itemKey").substituted();
}
