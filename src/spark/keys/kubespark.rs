//! Every property key that concerns staging, in one place: today's names and the original's.

/// Port of the staging server; 10000 by default.
pub const SERVER_PORT: &str = "spark.kubernetes.resourceStagingServer.port";
/// How long a resource may stay unused; a Spark time string, a bare number is milliseconds; 30m by default.
pub const SERVER_UNUSED_TIMEOUT: &str =
    "spark.kubernetes.resourceStagingServer.initialAccessExpirationTimeout";
/// API server that the staging server asks about owners.
pub const API_SERVER_URL: &str = "spark.kubernetes.resourceStagingServer.apiServer.url";
/// CA certificate of that API server; [`AUTHENTICATE_CA_CERT_FILE`] wins.
pub const API_SERVER_CA_CERT_FILE: &str = "spark.kubernetes.resourceStagingServer.apiServer.caCertFile";

/// CA certificate of the API server.
pub const AUTHENTICATE_CA_CERT_FILE: &str = "spark.kubernetes.authenticate.resourceStagingServer.caCertFile";
/// Key of the staging server's client certificate for the API server.
pub const AUTHENTICATE_CLIENT_KEY_FILE: &str =
    "spark.kubernetes.authenticate.resourceStagingServer.clientKeyFile";
/// The staging server's client certificate for the API server.
pub const AUTHENTICATE_CLIENT_CERT_FILE: &str =
    "spark.kubernetes.authenticate.resourceStagingServer.clientCertFile";
/// Bearer token for the API server, in clear: a secret. Excludes [`AUTHENTICATE_OAUTH_TOKEN_FILE`].
pub const AUTHENTICATE_OAUTH_TOKEN: &str = "spark.kubernetes.authenticate.resourceStagingServer.oauthToken";
/// File that holds the bearer token for the API server.
pub const AUTHENTICATE_OAUTH_TOKEN_FILE: &str =
    "spark.kubernetes.authenticate.resourceStagingServer.oauthTokenFile";
/// Whether the mounted service account's token and CA are used; true by default.
pub const AUTHENTICATE_USE_SERVICE_ACCOUNT: &str =
    "spark.kubernetes.authenticate.resourceStagingServer.useServiceAccountCredentials";

/// Whether the staging server speaks TLS: read by the server, the submitter and the init-container.
pub const TLS_ENABLED: &str = "spark.ssl.kubernetes.resourceStagingServer.enabled";
/// PEM file of the server's private key.
pub const TLS_KEY_PEM: &str = "spark.ssl.kubernetes.resourceStagingServer.keyPem";
/// PEM file of the server's certificate chain.
pub const TLS_SERVER_CERT_PEM: &str = "spark.ssl.kubernetes.resourceStagingServer.serverCertPem";
/// Java key store of the server, in place of PEM files.
pub const TLS_KEY_STORE: &str = "spark.ssl.kubernetes.resourceStagingServer.keyStore";
/// Type of the key store: `JKS` or `PKCS12`.
pub const TLS_KEY_STORE_TYPE: &str = "spark.ssl.kubernetes.resourceStagingServer.keyStoreType";
/// Password of the key store: a secret.
pub const TLS_KEY_STORE_PASSWORD: &str = "spark.ssl.kubernetes.resourceStagingServer.keyStorePassword";
/// Password of the key in the key store: a secret.
pub const TLS_KEY_PASSWORD: &str = "spark.ssl.kubernetes.resourceStagingServer.keyPassword";
/// File that holds the password of the key store.
pub const TLS_KEY_STORE_PASSWORD_FILE: &str =
    "spark.ssl.kubernetes.resourceStagingServer.keyStorePasswordFile";
/// File that holds the password of the key in the key store.
pub const TLS_KEY_PASSWORD_FILE: &str = "spark.ssl.kubernetes.resourceStagingServer.keyPasswordFile";
/// PEM file of the certificate that clients of the server trust. Excludes [`TLS_TRUST_STORE`].
pub const TLS_CLIENT_CERT_PEM: &str = "spark.ssl.kubernetes.resourceStagingServer.clientCertPem";
/// Java trust store of the server's clients.
pub const TLS_TRUST_STORE: &str = "spark.ssl.kubernetes.resourceStagingServer.trustStore";
/// Type of the trust store: `JKS` or `PKCS12`.
pub const TLS_TRUST_STORE_TYPE: &str = "spark.ssl.kubernetes.resourceStagingServer.trustStoreType";
/// Password of the trust store: a secret.
pub const TLS_TRUST_STORE_PASSWORD: &str = "spark.ssl.kubernetes.resourceStagingServer.trustStorePassword";

/// [`TLS_ENABLED`] for pods, where it differs from the submitter's.
pub const INTERNAL_TLS_ENABLED: &str = "spark.ssl.kubernetes.resourceStagingServer.internal.enabled";
/// [`TLS_CLIENT_CERT_PEM`] for pods.
pub const INTERNAL_TLS_CLIENT_CERT_PEM: &str =
    "spark.ssl.kubernetes.resourceStagingServer.internal.clientCertPem";
/// [`TLS_TRUST_STORE`] for pods.
pub const INTERNAL_TLS_TRUST_STORE: &str = "spark.ssl.kubernetes.resourceStagingServer.internal.trustStore";
/// [`TLS_TRUST_STORE_TYPE`] for pods.
pub const INTERNAL_TLS_TRUST_STORE_TYPE: &str =
    "spark.ssl.kubernetes.resourceStagingServer.internal.trustStoreType";
/// [`TLS_TRUST_STORE_PASSWORD`] for pods: a secret.
pub const INTERNAL_TLS_TRUST_STORE_PASSWORD: &str =
    "spark.ssl.kubernetes.resourceStagingServer.internal.trustStorePassword";

/// Secrets of the submitter that nobody else has a use for; they go into no driver's properties.
pub const SUBMITTERS_PASSWORDS: [&str; 2] = [TLS_TRUST_STORE_PASSWORD, INTERNAL_TLS_TRUST_STORE_PASSWORD];

/// The service account of the driver's pod.
pub const DRIVER_SERVICE_ACCOUNT: &str = "spark.kubernetes.authenticate.driver.serviceAccountName";

/// What the executors' pods begin as.
pub const EXECUTOR_POD_TEMPLATE: &str = "spark.kubernetes.executor.podTemplateFile";

/// Where the submitter, and in its own properties file the init-container, reaches the server.
pub const SERVER_URI: &str = "spark.kubernetes.resourceStagingServer.uri";
/// Where pods reach the server; [`SERVER_URI`] by default.
pub const SERVER_INTERNAL_URI: &str = "spark.kubernetes.resourceStagingServer.internal.uri";

/// Id of the staged jars.
pub const INIT_JARS_RESOURCE_ID: &str = "spark.kubernetes.initcontainer.downloadJarsResourceIdentifier";
/// File that holds the secret of the staged jars.
pub const INIT_JARS_SECRET_FILE: &str = "spark.kubernetes.initcontainer.downloadJarsSecretLocation";
/// Id of the staged files.
pub const INIT_FILES_RESOURCE_ID: &str = "spark.kubernetes.initcontainer.downloadFilesResourceIdentifier";
/// File that holds the secret of the staged files.
pub const INIT_FILES_SECRET_FILE: &str = "spark.kubernetes.initcontainer.downloadFilesSecretLocation";
/// Comma-separated URIs of jars that the init-container downloads.
pub const INIT_REMOTE_JARS: &str = "spark.kubernetes.initcontainer.remoteJars";
/// Comma-separated URIs of files that the init-container downloads.
pub const INIT_REMOTE_FILES: &str = "spark.kubernetes.initcontainer.remoteFiles";
/// Image of the init-container.
pub const INIT_CONTAINER_IMAGE: &str = "spark.kubernetes.initContainer.image";
/// Older name of [`INIT_CONTAINER_IMAGE`]; `spark-init:<version>` in the original.
pub const INIT_IMAGE: &str = "spark.kubernetes.initcontainer.docker.image";

/// Where jars are put in driver and executors; `/var/spark-data/spark-jars` by default.
pub const JARS_DOWNLOAD_DIR: &str = "spark.kubernetes.mountdependencies.jarsDownloadDir";
/// Where files are put in driver and executors; `/var/spark-data/spark-files` by default.
pub const FILES_DOWNLOAD_DIR: &str = "spark.kubernetes.mountdependencies.filesDownloadDir";
/// Bound on the init-container's whole download; a bare number is minutes; 5 by default.
pub const MOUNT_TIMEOUT: &str = "spark.kubernetes.mountdependencies.mountTimeout";

/// Namespace of the application.
pub const NAMESPACE: &str = "spark.kubernetes.namespace";
/// Image of driver and executors.
pub const CONTAINER_IMAGE: &str = "spark.kubernetes.container.image";
/// Image of the driver.
pub const DRIVER_CONTAINER_IMAGE: &str = "spark.kubernetes.driver.container.image";
/// Image of the executors.
pub const EXECUTOR_CONTAINER_IMAGE: &str = "spark.kubernetes.executor.container.image";
/// Pull policy of the images.
pub const CONTAINER_IMAGE_PULL_POLICY: &str = "spark.kubernetes.container.image.pullPolicy";
/// Memory of the driver's container beside its heap; a bare number is MiB.
pub const DRIVER_MEMORY_OVERHEAD: &str = "spark.driver.memoryOverhead";
/// Memory of an executor's container beside its heap; a bare number is MiB.
pub const EXECUTOR_MEMORY_OVERHEAD: &str = "spark.executor.memoryOverhead";
/// Prefix of the node labels that pods are bound to: `spark.kubernetes.node.selector.KEY=VALUE`.
pub const NODE_SELECTOR_PREFIX: &str = "spark.kubernetes.node.selector.";
/// Prefix of the driver's environment variables.
pub const DRIVER_ENV_PREFIX: &str = "spark.kubernetes.driverEnv.";
/// Prefix of the executors' environment variables.
pub const EXECUTOR_ENV_PREFIX: &str = "spark.executorEnv.";

/// Older name of [`DRIVER_CONTAINER_IMAGE`].
pub const OLD_DRIVER_IMAGE: &str = "spark.kubernetes.driver.docker.image";
/// Older name of [`EXECUTOR_CONTAINER_IMAGE`].
pub const OLD_EXECUTOR_IMAGE: &str = "spark.kubernetes.executor.docker.image";
/// Older name of [`CONTAINER_IMAGE_PULL_POLICY`].
pub const OLD_IMAGE_PULL_POLICY: &str = "spark.kubernetes.docker.image.pullPolicy";
/// Older name of [`DRIVER_MEMORY_OVERHEAD`].
pub const OLD_DRIVER_MEMORY_OVERHEAD: &str = "spark.kubernetes.driver.memoryOverhead";
/// Older name of [`EXECUTOR_MEMORY_OVERHEAD`].
pub const OLD_EXECUTOR_MEMORY_OVERHEAD: &str = "spark.kubernetes.executor.memoryOverhead";

/// The original's keys that have another name today, each with it: `(older, today's)`.
pub const RENAMED: [(&str, &str); 5] = [
    (OLD_DRIVER_IMAGE, DRIVER_CONTAINER_IMAGE),
    (OLD_EXECUTOR_IMAGE, EXECUTOR_CONTAINER_IMAGE),
    (OLD_IMAGE_PULL_POLICY, CONTAINER_IMAGE_PULL_POLICY),
    (OLD_DRIVER_MEMORY_OVERHEAD, DRIVER_MEMORY_OVERHEAD),
    (OLD_EXECUTOR_MEMORY_OVERHEAD, EXECUTOR_MEMORY_OVERHEAD),
];

/// What makes a properties file the staging server's: keys, and prefixes of keys where there is a dot in the end.
pub const SERVER_ONLY: [&str; 12] = [
    SERVER_PORT,
    SERVER_UNUSED_TIMEOUT,
    "spark.kubernetes.resourceStagingServer.apiServer.",
    "spark.kubernetes.authenticate.resourceStagingServer.",
    TLS_KEY_PEM,
    TLS_SERVER_CERT_PEM,
    TLS_KEY_STORE,
    TLS_KEY_STORE_TYPE,
    TLS_KEY_STORE_PASSWORD,
    TLS_KEY_STORE_PASSWORD_FILE,
    TLS_KEY_PASSWORD,
    TLS_KEY_PASSWORD_FILE,
];

/// What makes a properties file the init-container's, in the same form.
pub const INIT_CONTAINER_ONLY: [&str; 7] = [
    SERVER_URI,
    "spark.kubernetes.initcontainer.",
    "spark.kubernetes.mountdependencies.",
    TLS_CLIENT_CERT_PEM,
    TLS_TRUST_STORE,
    TLS_TRUST_STORE_TYPE,
    TLS_TRUST_STORE_PASSWORD,
];

/// Prefix of the keys that only this program reads; they go into no driver's properties.
pub const CLOAKROOM_PREFIX: &str = "spark.kubernetes.cloakroom.";
/// The Spark whose objects are made, such as `3.5.9`; the newest known by default.
pub const CLOAKROOM_SPARK_VERSION: &str = "spark.kubernetes.cloakroom.sparkVersion";
/// `spark` for spark-submit's habit of ending with 0 whatever happened to the application.
pub const CLOAKROOM_EXIT_CODE: &str = "spark.kubernetes.cloakroom.exitCode";
/// `init`: executors get the init-container as well.
pub const CLOAKROOM_EXECUTOR_STAGING: &str = "spark.kubernetes.cloakroom.executorStaging";
/// Whether the init-container fetches what is named by http(s) URIs, instead of Spark.
pub const CLOAKROOM_FETCH_REMOTE: &str = "spark.kubernetes.cloakroom.fetchRemote";
/// File of the token that the staging server wants to see from whoever uploads.
pub const CLOAKROOM_UPLOAD_TOKEN_FILE: &str = "spark.kubernetes.cloakroom.uploadTokenFile";
/// A real spark-submit, which gets what is not for Kubernetes in cluster mode.
pub const CLOAKROOM_SPARK_SUBMIT: &str = "spark.kubernetes.cloakroom.sparkSubmit";
/// How long a staging server is waited for that does not answer, or not yet.
pub const CLOAKROOM_RETRY_TIMEOUT: &str = "spark.kubernetes.cloakroom.retryTimeout";
