//! The versions of Spark, and how their spark-submits differ.

use std::fmt;

/// The newest known Spark version, which is the default.
pub const NEWEST_SPARK: &str = "4.3.0";
/// [`NEWEST_SPARK`] in numbers.
pub(super) const NEWEST: SparkVersion = SparkVersion { major: 4, minor: 3, patch: 0 };
/// The oldest supported Spark version. The objects of earlier versions had other shapes, which were never compared.
pub const OLDEST_SPARK: &str = "3.5.0";
/// [`OLDEST_SPARK`] in numbers.
pub(super) const OLDEST: SparkVersion = SparkVersion { major: 3, minor: 5, patch: 0 };

/// A version of Spark. Its methods say how its spark-submit differs from that of other versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SparkVersion {
    pub(super) major: u32,
    pub(super) minor: u32,
    patch: u32,
}

impl SparkVersion {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(|part| {
            let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse().ok().filter(|_| is_number)
        });
        let version = Self { major: parts.next()??, minor: parts.next()??, patch: parts.next()?? };
        parts.next().is_none().then_some(version)
    }

    pub(super) fn is_at_least(self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }

    /// Whether pod and service have a port for Spark Connect.
    pub fn has_connect_port(self) -> bool {
        self.is_at_least(4, 0)
    }

    /// Whether that port of the service has `appProtocol: grpc`, and the service has `publishNotReadyAddresses`.
    pub fn has_service_details(self) -> bool {
        self.is_at_least(4, 3)
    }

    /// Whether there is a network policy for the executors.
    pub fn has_network_policy(self) -> bool {
        self.is_at_least(4, 3)
    }

    /// Whether the container's security context has `allowPrivilegeEscalation`.
    pub fn has_security_context(self) -> bool {
        self.is_at_least(4, 3)
    }

    /// Whether `spark.kubernetes.driver.pod.excludedFeatureSteps` exists.
    pub fn can_exclude_steps(self) -> bool {
        self.is_at_least(4, 1)
    }

    /// Whether there are labels and annotations of claims, `subPathExpr`, the type of a `hostPath`, and the check of
    /// sizes without a unit.
    pub fn has_volume_details(self) -> bool {
        self.is_at_least(4, 0)
    }

    /// Whether claims can be for one pod only, `ReadWriteOncePod`.
    pub fn has_claims_of_one_pod(self) -> bool {
        self.is_at_least(4, 0)
    }

    /// Whether `{{APP_ID}}` is replaced in labels. In annotations every version replaces it.
    pub fn substitutes_in_labels(self) -> bool {
        self.is_at_least(4, 0)
    }

    /// Whether options of the JVM are split into words to find `-Xmx`. Earlier versions search the whole text.
    pub fn looks_for_words(self) -> bool {
        self.is_at_least(4, 0)
    }

    /// Whether files of Hadoop's configuration, `krb5.conf` and executor templates must be UTF-8 (`Files.readString`).
    /// Earlier versions put replacement characters into them.
    pub fn refuses_what_is_no_text(self) -> bool {
        self.is_at_least(4, 1)
    }

    /// Whether `spark.kubernetes.pyspark.pythonVersion` exists, whose only value is 3.
    pub fn has_python_version(self) -> bool {
        !self.is_at_least(4, 1)
    }

    /// Whether sizes can have the units `Ki`, `KiB`, `Mi` and so on (`JavaUtils.byteStringAs`).
    pub fn has_binary_units(self) -> bool {
        self.is_at_least(4, 2)
    }

    /// Whether modes of files in pod templates may be octal.
    pub fn has_octal_modes(self) -> bool {
        self.is_at_least(4, 0)
    }

    /// Whether `SPARK_USER` is the whole name of `--proxy-user`, whatever it is on the submitting machine. In earlier
    /// versions it is only the part before host and realm, and only if the machine has no `SPARK_USER`.
    pub fn has_whole_proxy_user(self) -> bool {
        self.is_at_least(4, 3)
    }

    /// Whether `spark.driver.minMemoryOverhead` exists.
    pub fn has_minimum_overhead(self) -> bool {
        self.is_at_least(4, 0)
    }
}

impl fmt::Display for SparkVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}
