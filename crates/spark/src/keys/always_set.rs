//! Keys that are always set for the driver, in addition to the user's settings.

use super::keys;
use super::kind::{boolean, text};

keys! { "Always set for the driver":
    /// `spark-` and 32 hexadecimal digits
    APP_ID: String = text("spark.app.id");
    /// when the application was submitted, in milliseconds since 1970
    SUBMIT_TIME: String = text("spark.app.submitTime");
    /// name of the driver's service
    DRIVER_HOST: String = text("spark.driver.host");
    /// `true`
    SUBMIT_IN_DRIVER: bool = boolean("spark.kubernetes.submitInDriver");
    /// `java`, `python` or `r`
    RESOURCE_TYPE: String = text("spark.kubernetes.resource.type");
    /// config map with Hadoop's configuration, for the executors
    EXECUTOR_HADOOP_CONFIG_MAP: String = text("spark.kubernetes.executor.hadoopConfigMapName");
}
