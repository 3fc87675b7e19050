//! Keys of the driver's ports and its service.

use super::keys;
use super::kind::{boolean, one_of, port, port_with_blanks, text, word};

keys! { "Ports and service":
    /// port of the driver
    DRIVER_PORT: u16 = port("spark.driver.port").or("7078");
    /// port of the driver's block manager
    DRIVER_BLOCK_MANAGER_PORT: u16 = port("spark.driver.blockManager.port").or("7079");
    /// port of block managers; acts on the pod, not on the service
    BLOCK_MANAGER_PORT: u16 = port("spark.blockManager.port").or("7079");
    /// port of Spark's web UI
    UI_PORT: u16 = port_with_blanks("spark.ui.port").or("4040").substituted();
    /// port of Spark Connect
    CONNECT_PORT: u16 = port("spark.connect.grpc.binding.port").or("15002").since("4.0");
    /// labels of the service
    SERVICE_LABELS: String = text("spark.kubernetes.driver.service.label.KEY");
    /// annotations of the service
    SERVICE_ANNOTATIONS: String = text("spark.kubernetes.driver.service.annotation.KEY");
    /// IP family policy of the service
    IP_FAMILY_POLICY: &'static str = word(
        "spark.kubernetes.driver.service.ipFamilyPolicy",
        "`SingleStack`, `PreferDualStack`, `RequireDualStack`",
        |text, _| one_of(text, &["SingleStack", "PreferDualStack", "RequireDualStack"]),
    ).or("SingleStack").substituted();
    /// IP families of the service
    IP_FAMILIES: &'static str = word(
        "spark.kubernetes.driver.service.ipFamilies",
        "`IPv4`, `IPv6`, `IPv4,IPv6`, `IPv6,IPv4`",
        |text, _| {
            let known = ["IPv4", "IPv6", "IPv4,IPv6", "IPv6,IPv4"].into_iter().find(|families| *families == text);
            known.ok_or_else(|| "it must be one of `IPv4`, `IPv6`, `IPv4,IPv6`, `IPv6,IPv4`".to_owned())
        },
    ).or("IPv4").substituted();
    /// whether DNS has the driver's address before the driver is ready
    PUBLISH_NOT_READY: bool =
        boolean("spark.kubernetes.driver.service.publishNotReadyAddresses").or("false").since("4.3").substituted();
    /// refused: the driver binds to the address of its pod
    BIND_ADDRESS: String = text("spark.driver.bindAddress");
}
