//! Keys of kubespark's properties files: that of its staging server, and that which its submission client writes for an
//! init-container. The keys about staging are in another file.

use std::time::Duration;

use super::kind::{boolean, list, milliseconds, port_with_blanks, text};
use super::{
    SERVER_URI, TLS_CLIENT_CERT_PEM, TLS_TRUST_STORE, TLS_TRUST_STORE_PASSWORD, TLS_TRUST_STORE_TYPE, keys,
};

keys! { TABLE = "Of a staging server's properties file":
    /// port of the staging server
    SERVER_PORT: u16 = port_with_blanks("spark.kubernetes.resourceStagingServer.port").or("10000");
    /// how long a resource may stay unused
    SERVER_UNUSED_TIMEOUT: Duration =
        milliseconds("spark.kubernetes.resourceStagingServer.initialAccessExpirationTimeout").or("30m");
    /// API server to ask about owners
    API_SERVER_URL: String = text("spark.kubernetes.resourceStagingServer.apiServer.url");
    /// CA certificate of that API server; the one below `authenticate` wins
    API_SERVER_CA_CERT_FILE: String = text("spark.kubernetes.resourceStagingServer.apiServer.caCertFile");
    /// CA certificate of the API server
    AUTHENTICATE_CA_CERT_FILE: String = text("spark.kubernetes.authenticate.resourceStagingServer.caCertFile");
    /// key of the client certificate for the API server
    AUTHENTICATE_CLIENT_KEY_FILE: String =
        text("spark.kubernetes.authenticate.resourceStagingServer.clientKeyFile");
    /// client certificate for the API server
    AUTHENTICATE_CLIENT_CERT_FILE: String =
        text("spark.kubernetes.authenticate.resourceStagingServer.clientCertFile");
    /// bearer token for the API server, in clear
    AUTHENTICATE_OAUTH_TOKEN: String = text("spark.kubernetes.authenticate.resourceStagingServer.oauthToken");
    /// file with the bearer token for the API server
    AUTHENTICATE_OAUTH_TOKEN_FILE: String =
        text("spark.kubernetes.authenticate.resourceStagingServer.oauthTokenFile");
    /// whether the mounted service account's token and CA are used
    AUTHENTICATE_USE_SERVICE_ACCOUNT: bool =
        boolean("spark.kubernetes.authenticate.resourceStagingServer.useServiceAccountCredentials").or("true");
    /// private key (PEM)
    TLS_KEY_PEM: String = text("spark.ssl.kubernetes.resourceStagingServer.keyPem");
    /// certificate chain (PEM)
    TLS_SERVER_CERT_PEM: String = text("spark.ssl.kubernetes.resourceStagingServer.serverCertPem");
    /// refused, with the command that converts it
    TLS_KEY_STORE: String = text("spark.ssl.kubernetes.resourceStagingServer.keyStore");
    /// type of the Java store: `JKS` or `PKCS12`
    TLS_KEY_STORE_TYPE: String = text("spark.ssl.kubernetes.resourceStagingServer.keyStoreType");
    /// password of the Java store
    TLS_KEY_STORE_PASSWORD: String = text("spark.ssl.kubernetes.resourceStagingServer.keyStorePassword");
    /// password of the key in it
    TLS_KEY_PASSWORD: String = text("spark.ssl.kubernetes.resourceStagingServer.keyPassword");
    /// file with the password of the Java store
    TLS_KEY_STORE_PASSWORD_FILE: String =
        text("spark.ssl.kubernetes.resourceStagingServer.keyStorePasswordFile");
    /// file with the password of the key in it
    TLS_KEY_PASSWORD_FILE: String = text("spark.ssl.kubernetes.resourceStagingServer.keyPasswordFile");
}

/// The keys that only a staging server's properties file has. An entry with a dot at its end is a prefix.
pub const SERVER_ONLY: [&str; 12] = [
    SERVER_PORT.name(),
    SERVER_UNUSED_TIMEOUT.name(),
    "spark.kubernetes.resourceStagingServer.apiServer.",
    "spark.kubernetes.authenticate.resourceStagingServer.",
    TLS_KEY_PEM.name(),
    TLS_SERVER_CERT_PEM.name(),
    TLS_KEY_STORE.name(),
    TLS_KEY_STORE_TYPE.name(),
    TLS_KEY_STORE_PASSWORD.name(),
    TLS_KEY_STORE_PASSWORD_FILE.name(),
    TLS_KEY_PASSWORD.name(),
    TLS_KEY_PASSWORD_FILE.name(),
];

keys! { INIT_CONTAINER = "Of an init-container's properties file":
    /// id of the staged jars
    INIT_JARS_RESOURCE_ID: String = text("spark.kubernetes.initcontainer.downloadJarsResourceIdentifier");
    /// file that has the secret of the staged jars
    INIT_JARS_SECRET_FILE: String = text("spark.kubernetes.initcontainer.downloadJarsSecretLocation");
    /// id of the staged files
    INIT_FILES_RESOURCE_ID: String = text("spark.kubernetes.initcontainer.downloadFilesResourceIdentifier");
    /// file that has the secret of the staged files
    INIT_FILES_SECRET_FILE: String = text("spark.kubernetes.initcontainer.downloadFilesSecretLocation");
    /// URLs of jars to download
    INIT_REMOTE_JARS: String = list("spark.kubernetes.initcontainer.remoteJars");
    /// URLs of files to download
    INIT_REMOTE_FILES: String = list("spark.kubernetes.initcontainer.remoteFiles");
}

/// The keys that only an init-container's properties file has. An entry with a dot at its end is a prefix.
pub const INIT_CONTAINER_ONLY: [&str; 7] = [
    SERVER_URI.name(),
    "spark.kubernetes.initcontainer.",
    "spark.kubernetes.mountdependencies.",
    TLS_CLIENT_CERT_PEM.name(),
    TLS_TRUST_STORE.name(),
    TLS_TRUST_STORE_TYPE.name(),
    TLS_TRUST_STORE_PASSWORD.name(),
];
