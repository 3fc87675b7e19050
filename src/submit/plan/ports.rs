//! The driver's ports.

use crate::spark::{SettingError, SparkConf};

pub(super) const DRIVER: (&str, &str) = ("driver-rpc-port", "spark.driver.port");
pub(super) const BLOCK_MANAGER: (&str, &str) = ("blockmanager", "spark.driver.blockManager.port");
const BLOCK_MANAGER_OF_ALL: &str = "spark.blockManager.port";
const UI: (&str, &str) = ("spark-ui", "spark.ui.port");
pub(super) const CONNECT: (&str, &str) = ("spark-connect", "spark.connect.grpc.binding.port");

/// The ports of the driver's pod, and of its service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DriverPorts {
    pub driver: u16,
    /// In the pod; the service does not know of `spark.blockManager.port`.
    pub block_manager_of_pod: u16,
    pub block_manager: u16,
    pub ui: u16,
    pub connect: u16,
}

impl DriverPorts {
    /// Reads them all.
    pub fn of(conf: &SparkConf) -> Result<Self, SettingError> {
        let of_all = port(conf, BLOCK_MANAGER_OF_ALL, 7079)?;
        let ports = Self {
            driver: port(conf, DRIVER.1, 7078)?,
            block_manager_of_pod: port(conf, BLOCK_MANAGER.1, of_all)?,
            block_manager: port(conf, BLOCK_MANAGER.1, 7079)?,
            ui: port(conf, UI.1, 4040)?,
            connect: port(conf, CONNECT.1, 15_002)?,
        };
        ports.check(conf)?;
        Ok(ports)
    }

    /// No API server takes a service that has a port twice, and it would only say so once the pod was made.
    fn check(&self, conf: &SparkConf) -> Result<(), SettingError> {
        let ports = [
            (DRIVER.1, self.driver),
            (BLOCK_MANAGER.1, self.block_manager),
            (UI.1, self.ui),
            (CONNECT.1, self.connect),
        ];
        for (at, (key, port)) in ports.iter().enumerate() {
            let other = ports[..at].iter().find(|(_, other)| other == port && *port != 0);
            if let Some((other, _)) = other {
                let (key, other) = if conf.contains(key) { (key, other) } else { (other, key) };
                let problem = format!("it must be another port than that of `{other}`, {port}");
                return Err(conf.refuse(key, problem));
            }
        }
        Ok(())
    }

    /// Name and number of each port of the pod.
    pub fn of_pod(&self, with_connect: bool) -> Vec<(&'static str, u16)> {
        self.named(self.block_manager_of_pod, with_connect)
    }

    /// Name and number of each port of the service.
    pub fn of_service(&self, with_connect: bool) -> Vec<(&'static str, u16)> {
        self.named(self.block_manager, with_connect)
    }

    fn named(&self, block_manager: u16, with_connect: bool) -> Vec<(&'static str, u16)> {
        let mut ports = vec![(DRIVER.0, self.driver), (BLOCK_MANAGER.0, block_manager), (UI.0, self.ui)];
        ports.extend(with_connect.then_some((CONNECT.0, self.connect)));
        ports
    }
}

fn port(conf: &SparkConf, key: &str, default: u16) -> Result<u16, SettingError> {
    const WHAT: &str = "a port, a whole number from 0 to 65535";
    let port = if key == UI.1 { conf.number(key, WHAT)? } else { conf.bare_number(key, WHAT)? };
    Ok(port.unwrap_or(default))
}
