//! The memory of the driver's container: its heap, and the overhead beside it.

use cloakroom_spark::version::SparkVersion;
use cloakroom_spark::{MainResource, SettingError, SparkConf, keys};

/// Spark's default of `spark.driver.memory`.
const DEFAULT_MEMORY_MEBIBYTES: u64 = 1024;
/// Spark's default of `spark.driver.minMemoryOverhead`. Before 4.0 it was a constant.
const DEFAULT_MINIMUM_MEBIBYTES: u64 = 384;
/// Spark's default of `spark.kubernetes.memoryOverheadFactor` for JVM applications.
const JVM_FACTOR: f64 = 0.1;
/// Spark's default for Python and R: their processes run beside the JVM.
const OTHER_FACTOR: f64 = 0.4;

/// The driver's memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DriverMemory {
    /// Heap and overhead together.
    pub mebibytes: u64,
    /// The value of `spark.kubernetes.memoryOverheadFactor` in the properties. Spark always sets it, for the executors.
    pub common_factor: f64,
}

impl DriverMemory {
    /// Spark's formula (`BasicDriverFeatureStep`): the overhead is `spark.driver.memoryOverhead`, else a part of the
    /// heap and at least the minimum. Fractions of a MiB are cut off.
    pub fn compute(
        conf: &SparkConf,
        resource: &MainResource,
        version: SparkVersion,
    ) -> Result<Self, SettingError> {
        let heap = conf.read(&keys::DRIVER_MEMORY)?.unwrap_or(DEFAULT_MEMORY_MEBIBYTES);
        let default_factor = match resource {
            MainResource::Java(_) => JVM_FACTOR,
            MainResource::Python(_) | MainResource::R(_) => OTHER_FACTOR,
        };
        let common_factor = conf.read(&keys::MEMORY_OVERHEAD_FACTOR)?.unwrap_or(default_factor);
        // The driver's own factor wins for the driver, and does not change the executors'.
        let factor = conf.read(&keys::DRIVER_MEMORY_OVERHEAD_FACTOR)?.unwrap_or(common_factor);
        let minimum =
            if version.has_minimum_overhead() { conf.read(&keys::DRIVER_MIN_MEMORY_OVERHEAD)? } else { None };
        let overhead = match conf.read(&keys::DRIVER_MEMORY_OVERHEAD)? {
            Some(mebibytes) => mebibytes,
            None => share(heap, factor).max(minimum.unwrap_or(DEFAULT_MINIMUM_MEBIBYTES)),
        };
        Ok(Self { mebibytes: heap.saturating_add(overhead), common_factor })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "Spark computes with doubles and cuts off; sizes are below 2^43 MiB, and casts saturate"
)]
fn share(mebibytes: u64, factor: f64) -> u64 {
    (factor * mebibytes as f64) as u64
}

/// A number as Java's `Double.toString` writes it: with an exponent below 10⁻³ and from 10⁷ on.
pub(super) fn java_double(number: f64) -> String {
    let size = number.abs();
    if number == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{number:?}");
    }
    let text = format!("{number:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloakroom_spark::Origin;

    fn conf(settings: &[(&str, &str)]) -> SparkConf {
        let mut conf = SparkConf::default();
        for (key, value) in settings {
            conf.set(key, *value, Origin::Conf);
        }
        conf
    }

    fn memory(resource: &MainResource, settings: &[(&str, &str)]) -> Result<DriverMemory, SettingError> {
        let conf = conf(settings);
        DriverMemory::compute(&conf, resource, SparkVersion::read(&conf)?.0)
    }

    fn java() -> MainResource {
        MainResource::Java("local:///a.jar".to_owned())
    }

    fn python() -> MainResource {
        MainResource::Python("local:///a.py".to_owned())
    }

    #[test]
    fn the_memory_of_a_jvm_is_what_spark_was_seen_to_ask_for() {
        for (settings, expected) in [
            (&[][..], 1408),
            (&[(keys::DRIVER_MEMORY.name(), "1g")], 1408),
            (&[(keys::DRIVER_MEMORY.name(), "300m")], 684),
            (&[(keys::DRIVER_MEMORY.name(), "500b")], 384),
            (&[(keys::DRIVER_MEMORY.name(), "1500000k")], 1464 + 384),
            (
                &[(keys::DRIVER_MEMORY.name(), "10g"), (keys::DRIVER_MEMORY_OVERHEAD_FACTOR.name(), "0.2")],
                12_288,
            ),
            (
                &[
                    (keys::DRIVER_MEMORY.name(), "3333m"),
                    (keys::DRIVER_MEMORY_OVERHEAD_FACTOR.name(), "0.15"),
                ],
                3832,
            ),
            (
                &[(keys::DRIVER_MEMORY.name(), "1g"), (keys::DRIVER_MEMORY_OVERHEAD_FACTOR.name(), " 2d")],
                3072,
            ),
            (
                &[(keys::DRIVER_MEMORY.name(), "1g"), (keys::DRIVER_MEMORY_OVERHEAD_FACTOR.name(), ".5F")],
                1536,
            ),
            (&[(keys::DRIVER_MEMORY.name(), "2048m"), (keys::DRIVER_MEMORY_OVERHEAD.name(), "700")], 2748),
            (&[(keys::DRIVER_MIN_MEMORY_OVERHEAD.name(), "600m")], 1624),
            (
                &[
                    (keys::DRIVER_MIN_MEMORY_OVERHEAD.name(), "600m"),
                    (keys::CLOAKROOM_SPARK_VERSION.name(), "3.5.9"),
                ],
                1408,
            ),
            (&[("spark.yarn.driver.memoryOverhead", "1g")], 2048),
        ] {
            assert_eq!(memory(&java(), settings).unwrap().mebibytes, expected, "{settings:?}");
        }
    }

    #[test]
    fn python_needs_more_beside_the_heap_and_the_drivers_own_factor_wins() {
        for (settings, expected, common) in [
            (&[(keys::DRIVER_MEMORY.name(), "4g")][..], 5734, 0.4),
            (&[(keys::DRIVER_MEMORY.name(), "4g"), (keys::MEMORY_OVERHEAD_FACTOR.name(), "0.2")], 4915, 0.2),
            (
                &[(keys::DRIVER_MEMORY.name(), "4g"), (keys::DRIVER_MEMORY_OVERHEAD_FACTOR.name(), "0.2")],
                4915,
                0.4,
            ),
            (
                &[
                    (keys::DRIVER_MEMORY.name(), "4g"),
                    (keys::DRIVER_MEMORY_OVERHEAD_FACTOR.name(), "0.2"),
                    (keys::MEMORY_OVERHEAD_FACTOR.name(), "0.3"),
                ],
                4915,
                0.3,
            ),
            (&[(keys::DRIVER_MEMORY.name(), "4g"), (keys::DRIVER_MEMORY_OVERHEAD.name(), "100m")], 4196, 0.4),
        ] {
            let expected = DriverMemory { mebibytes: expected, common_factor: common };
            assert_eq!(memory(&python(), settings).unwrap(), expected, "{settings:?}");
        }
    }

    #[test]
    fn bad_sizes_and_factors_are_refused_with_their_key() {
        for (key, value) in [
            (keys::DRIVER_MEMORY.name(), "lots"),
            (keys::DRIVER_MEMORY.name(), "0"),
            (keys::DRIVER_MEMORY.name(), "2048"),
            (keys::DRIVER_MEMORY.name(), "1.5g"),
            (keys::DRIVER_MEMORY.name(), "-1g"),
            (keys::DRIVER_MEMORY_OVERHEAD.name(), "xx"),
            (keys::DRIVER_MEMORY_OVERHEAD_FACTOR.name(), "-1"),
            (keys::DRIVER_MEMORY_OVERHEAD_FACTOR.name(), "0"),
            (keys::DRIVER_MEMORY_OVERHEAD_FACTOR.name(), "NaN"),
            (keys::DRIVER_MEMORY_OVERHEAD_FACTOR.name(), "Infinity"),
            (keys::DRIVER_MEMORY_OVERHEAD_FACTOR.name(), "d"),
            (keys::MEMORY_OVERHEAD_FACTOR.name(), "-0.1"),
            (keys::MEMORY_OVERHEAD_FACTOR.name(), "a"),
        ] {
            let message = memory(&java(), &[(key, value)]).unwrap_err().to_string();
            assert!(message.starts_with(&format!("`{key}` is `{value}`: it must be ")), "{message}");
        }
    }

    #[test]
    fn factors_are_written_as_java_writes_them() {
        for (number, text) in [
            (0.1, "0.1"),
            (0.4, "0.4"),
            (1.0, "1.0"),
            (0.0, "0.0"),
            (0.001, "0.001"),
            (0.000_5, "5.0E-4"),
            (0.000_25, "2.5E-4"),
            (1e7, "1.0E7"),
            (12.5, "12.5"),
        ] {
            assert_eq!(java_double(number), text);
        }
    }
}
