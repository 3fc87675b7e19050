//! Keys of the staging server, as submitters and pods reach it. They are kubespark's.

use super::keys;
use super::kind::{boolean, image, minutes, text};

keys! { TABLE = "Staging":
    /// address of the staging server for this machine, else the variable `CLOAKROOM_SERVER`; in an init-container's
    /// properties file, its address for the pod
    SERVER_URI: String = text("spark.kubernetes.resourceStagingServer.uri");
    /// address of the staging server for pods; required if that for this machine is localhost
    SERVER_INTERNAL_URI: String =
        text("spark.kubernetes.resourceStagingServer.internal.uri").or("the same as this machine");
    /// image of the init-container
    INIT_CONTAINER_IMAGE: String = image("spark.kubernetes.initContainer.image")
        .or("the image that the server names")
        .also(&["spark.kubernetes.initcontainer.docker.image"]);
    /// folder for jars in the pod
    JARS_DOWNLOAD_DIR: String =
        text("spark.kubernetes.mountdependencies.jarsDownloadDir").or("/var/spark-data/spark-jars");
    /// folder for files in the pod
    FILES_DOWNLOAD_DIR: String =
        text("spark.kubernetes.mountdependencies.filesDownloadDir").or("/var/spark-data/spark-files");
    /// how long the init-container may take
    MOUNT_TIMEOUT: std::time::Duration = minutes("spark.kubernetes.mountdependencies.mountTimeout").or("5m");
    /// whether the staging server speaks TLS
    TLS_ENABLED: bool = boolean("spark.ssl.kubernetes.resourceStagingServer.enabled").or("false");
    /// certificate to trust at the staging server (PEM)
    TLS_CLIENT_CERT_PEM: String = text("spark.ssl.kubernetes.resourceStagingServer.clientCertPem").file();
    /// refused, with the command that converts it
    TLS_TRUST_STORE: String = text("spark.ssl.kubernetes.resourceStagingServer.trustStore").file();
    /// type of the Java store: `JKS` or `PKCS12`
    TLS_TRUST_STORE_TYPE: String = text("spark.ssl.kubernetes.resourceStagingServer.trustStoreType");
    /// ignored, and kept out of the driver's properties
    TLS_TRUST_STORE_PASSWORD: String = text("spark.ssl.kubernetes.resourceStagingServer.trustStorePassword");
    /// whether the staging server speaks TLS to pods
    INTERNAL_TLS_ENABLED: bool =
        boolean("spark.ssl.kubernetes.resourceStagingServer.internal.enabled").or("the same as for this machine");
    /// certificate that pods trust (PEM); `local:///…` is a path in the image
    INTERNAL_TLS_CLIENT_CERT_PEM: String =
        text("spark.ssl.kubernetes.resourceStagingServer.internal.clientCertPem")
            .or("the same as for this machine").file();
    /// refused, with the command that converts it
    INTERNAL_TLS_TRUST_STORE: String =
        text("spark.ssl.kubernetes.resourceStagingServer.internal.trustStore").file();
    /// type of the Java store: `JKS` or `PKCS12`
    INTERNAL_TLS_TRUST_STORE_TYPE: String =
        text("spark.ssl.kubernetes.resourceStagingServer.internal.trustStoreType");
    /// ignored, and kept out of the driver's properties
    INTERNAL_TLS_TRUST_STORE_PASSWORD: String =
        text("spark.ssl.kubernetes.resourceStagingServer.internal.trustStorePassword");
}

/// Passwords of the submitter, which nothing reads. They are left out of the driver's properties.
pub const SUBMITTERS_PASSWORDS: [&str; 2] =
    [TLS_TRUST_STORE_PASSWORD.name(), INTERNAL_TLS_TRUST_STORE_PASSWORD.name()];
