//! The driver's ports, with Spark's defaults.

use cloakroom_spark::keys::{self, Key};
use cloakroom_spark::{SettingError, SparkConf};

pub(super) const CONNECT: &str = "spark-connect";

/// The ports of the driver's pod, and of its service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DriverPorts {
    pub driver: u16,
    /// Only in the pod: Spark reads `spark.blockManager.port` for the pod, and not for the service.
    pub block_manager_of_pod: u16,
    pub block_manager: u16,
    pub ui: u16,
    pub connect: u16,
}

impl DriverPorts {
    /// Reads all ports. Two equal ones are refused.
    pub fn read(conf: &SparkConf) -> Result<Self, SettingError> {
        let of_all = port(conf, &keys::BLOCK_MANAGER_PORT, 7079)?;
        let ports = Self {
            driver: port(conf, &keys::DRIVER_PORT, 7078)?,
            block_manager_of_pod: port(conf, &keys::DRIVER_BLOCK_MANAGER_PORT, of_all)?,
            block_manager: port(conf, &keys::DRIVER_BLOCK_MANAGER_PORT, 7079)?,
            ui: port(conf, &keys::UI_PORT, 4040)?,
            connect: port(conf, &keys::CONNECT_PORT, 15_002)?,
        };
        ports.check(conf)?;
        Ok(ports)
    }

    /// No API server accepts a service with the same port twice. Spark would learn that after it has created the pod.
    /// Port 0 may stand twice: Spark sends it as it is.
    fn check(&self, conf: &SparkConf) -> Result<(), SettingError> {
        let ports: [(&str, u16); 4] = [
            (&keys::DRIVER_PORT, self.driver),
            (&keys::DRIVER_BLOCK_MANAGER_PORT, self.block_manager),
            (&keys::UI_PORT, self.ui),
            (&keys::CONNECT_PORT, self.connect),
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

    /// The pod's ports by name, in Spark's order.
    pub fn of_pod(&self, with_connect: bool) -> Vec<(&'static str, u16)> {
        self.named(self.block_manager_of_pod, with_connect)
    }

    /// The service's ports by name, in Spark's order.
    pub fn of_service(&self, with_connect: bool) -> Vec<(&'static str, u16)> {
        self.named(self.block_manager, with_connect)
    }

    fn named(&self, block_manager: u16, with_connect: bool) -> Vec<(&'static str, u16)> {
        let mut ports =
            vec![("driver-rpc-port", self.driver), ("blockmanager", block_manager), ("spark-ui", self.ui)];
        ports.extend(with_connect.then_some((CONNECT, self.connect)));
        ports
    }
}

fn port(conf: &SparkConf, key: &Key<u16>, default: u16) -> Result<u16, SettingError> {
    Ok(conf.read(key)?.unwrap_or(default))
}
