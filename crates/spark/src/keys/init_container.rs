//! Keys of the properties file that kubespark's submission client writes for an init-container. The keys about staging
//! are in another file.

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
