//! Keys that only cloakroom reads. They are left out of the driver's properties.

use std::time::Duration;

use super::keys;
use super::kind::{boolean, one_of, seconds, text, word};

/// The prefix of these keys.
pub const CLOAKROOM_PREFIX: &str = "spark.kubernetes.cloakroom.";

keys! { TABLE = "Keys of cloakroom":
    /// the Spark version whose objects are created, from 3.5.0 on
    CLOAKROOM_SPARK_VERSION: String = text("spark.kubernetes.cloakroom.sparkVersion").or("the newest known");
    /// `application`: the exit code is the application's; `spark`: it is 0 however the application ends
    CLOAKROOM_EXIT_CODE: &'static str =
        word("spark.kubernetes.cloakroom.exitCode", "`application`, `spark`", |text, _| one_of(text, &["application", "spark"]))
            .or("application");
    /// `init` adds the init-container to executors
    CLOAKROOM_EXECUTOR_STAGING: &'static str =
        word("spark.kubernetes.cloakroom.executorStaging", "`driver`, `init`", |text, _| one_of(text, &["driver", "init"]))
            .or("driver");
    /// whether the init-container fetches `http(s)` URLs, instead of Spark
    CLOAKROOM_FETCH_REMOTE: bool = boolean("spark.kubernetes.cloakroom.fetchRemote").or("false");
    /// namespace of the staging server's Service, which is
    /// [reached through the API server](../clients.md#with-a-kubeconfig-and-nothing-else) if no address is set; else the
    /// variable `CLOAKROOM_SERVER_NAMESPACE`. Tokens are requested for it, also beside an address
    CLOAKROOM_SERVER_NAMESPACE: String = text("spark.kubernetes.cloakroom.namespace").or("cloakroom");
    /// name of that Service; else the variable `CLOAKROOM_SERVER_SERVICE`
    CLOAKROOM_SERVER_SERVICE: String = text("spark.kubernetes.cloakroom.service").or("cloakroom");
    /// file with the upload token of the staging server
    CLOAKROOM_UPLOAD_TOKEN_FILE: String = text("spark.kubernetes.cloakroom.uploadTokenFile").file();
    /// service account in the application's namespace whose tokens are
    /// [requested for a server that asks the cluster](../security.md#cluster-tokens-for-clients), if there is no upload token
    CLOAKROOM_UPLOAD_SERVICE_ACCOUNT: String =
        text("spark.kubernetes.cloakroom.uploadServiceAccount").or("cloakroom-uploader");
    /// `true`: all of each bundle is sent, also what [the server has](../clients.md#only-what-changed) of an earlier one; else the
    /// variable `CLOAKROOM_NO_REUSE`
    CLOAKROOM_NO_REUSE: bool = boolean("spark.kubernetes.cloakroom.noReuse").or("false");
    /// a real spark-submit, which
    /// [runs everything except Kubernetes in cluster mode](../submit.md#in-front-of-a-real-spark-submit);
    /// the variable `CLOAKROOM_SPARK_SUBMIT` wins over it
    CLOAKROOM_SPARK_SUBMIT: String = text("spark.kubernetes.cloakroom.sparkSubmit").file();
    /// how long to wait for a staging server that does not answer or is not ready
    CLOAKROOM_RETRY_TIMEOUT: Duration =
        seconds("spark.kubernetes.cloakroom.retryTimeout").or("2m if it has answered before or its Service is there, else 30s, or 10s if the API server does not answer");
}
