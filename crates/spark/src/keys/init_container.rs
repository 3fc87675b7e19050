//! What kubespark's submission client tells an init-container in its properties file, beside the keys about staging.

use super::kind::{list, text};
use super::{
    SERVER_URI, TLS_CLIENT_CERT_PEM, TLS_TRUST_STORE, TLS_TRUST_STORE_PASSWORD, TLS_TRUST_STORE_TYPE, keys,
};

keys! { "Of an init-container's properties file":
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

/// What makes a properties file the init-container's: keys, and prefixes of keys where there is a dot in the end.
pub const INIT_CONTAINER_ONLY: [&str; 7] = [
    SERVER_URI.name(),
    "spark.kubernetes.initcontainer.",
    "spark.kubernetes.mountdependencies.",
    TLS_CLIENT_CERT_PEM.name(),
    TLS_TRUST_STORE.name(),
    TLS_TRUST_STORE_TYPE.name(),
    TLS_TRUST_STORE_PASSWORD.name(),
];
