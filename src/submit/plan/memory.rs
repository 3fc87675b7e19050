//! How much memory the driver's container gets: its heap, and what lies beside it.

use crate::spark::version::SparkVersion;
use crate::spark::{MainResource, SettingError, SizeUnit, SparkConf, keys, parse_size};

const MEMORY: &str = "spark.driver.memory";
const FACTOR: &str = "spark.driver.memoryOverheadFactor";
/// The factor that executors inherit as well.
pub(super) const COMMON_FACTOR: &str = "spark.kubernetes.memoryOverheadFactor";
const MINIMUM: &str = "spark.driver.minMemoryOverhead";

/// `spark.driver.memory` unless it is set.
const DEFAULT_MEMORY_MEBIBYTES: u64 = 1024;
/// The least that lies beside the heap, unless `spark.driver.minMemoryOverhead` says otherwise.
const DEFAULT_MINIMUM_MEBIBYTES: u64 = 384;
const JVM_FACTOR: f64 = 0.1;
/// Python and R run beside the JVM.
const OTHER_FACTOR: f64 = 0.4;

/// The driver's memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DriverMemory {
    /// Heap and overhead.
    pub mebibytes: u64,
    /// What `spark.kubernetes.memoryOverheadFactor` is for the executors.
    pub common_factor: f64,
}

impl DriverMemory {
    /// By Spark's formula, which cuts off fractions of a MiB.
    pub fn of(
        conf: &SparkConf,
        resource: &MainResource,
        version: SparkVersion,
    ) -> Result<Self, SettingError> {
        let heap = positive(conf, MEMORY)?.unwrap_or(DEFAULT_MEMORY_MEBIBYTES);
        let default_factor = match resource {
            MainResource::Java(_) => JVM_FACTOR,
            MainResource::Python(_) | MainResource::R(_) => OTHER_FACTOR,
        };
        let common_factor = factor(conf, COMMON_FACTOR, Zero::Allowed)?.unwrap_or(default_factor);
        let factor = factor(conf, FACTOR, Zero::Refused)?.unwrap_or(common_factor);
        let minimum = if version.has_minimum_overhead() { conf.mebibytes(MINIMUM)? } else { None };
        let overhead = match overhead(conf)? {
            Some(mebibytes) => mebibytes,
            None => share(heap, factor).max(minimum.unwrap_or(DEFAULT_MINIMUM_MEBIBYTES)),
        };
        Ok(Self { mebibytes: heap.saturating_add(overhead), common_factor })
    }
}

/// `spark.driver.memoryOverhead`, which has an older name in Spark itself.
fn overhead(conf: &SparkConf) -> Result<Option<u64>, SettingError> {
    match conf.mebibytes(keys::DRIVER_MEMORY_OVERHEAD)? {
        Some(mebibytes) => Ok(Some(mebibytes)),
        None => conf.mebibytes("spark.yarn.driver.memoryOverhead"),
    }
}

/// A size that is not zero; less than a MiB counts as nothing, and is no error for Spark.
pub(super) fn positive(conf: &SparkConf, key: &str) -> Result<Option<u64>, SettingError> {
    let size = conf.mebibytes(key)?;
    let is_nothing = |text: &str| parse_size(text, SizeUnit::Mebibytes).is_ok_and(|size| size.bytes() == 0);
    if conf.get(key).is_some_and(is_nothing) {
        return Err(conf.refuse(key, "it must be more than nothing, such as 512m or 2g"));
    }
    Ok(size)
}

#[derive(Clone, Copy, PartialEq)]
enum Zero {
    Allowed,
    Refused,
}

fn factor(conf: &SparkConf, key: &str, zero: Zero) -> Result<Option<f64>, SettingError> {
    const WHAT: &str = "a number above zero, such as 0.1";
    let factor = conf.fraction(key, WHAT)?;
    let is_good =
        |factor: &f64| factor.is_finite() && (*factor > 0.0 || zero == Zero::Allowed && *factor == 0.0);
    match factor {
        Some(factor) if !is_good(&factor) => Err(conf.refuse(key, format!("it must be {WHAT}"))),
        factor => Ok(factor),
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

/// A number as Java's `Double.toString` writes it.
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
    use crate::spark::Origin;

    fn conf(settings: &[(&str, &str)]) -> SparkConf {
        let mut conf = SparkConf::default();
        for (key, value) in settings {
            conf.set(*key, *value, Origin::Conf);
        }
        conf
    }

    fn memory(resource: &MainResource, settings: &[(&str, &str)]) -> Result<DriverMemory, SettingError> {
        let conf = conf(settings);
        DriverMemory::of(&conf, resource, SparkVersion::of(&conf)?.0)
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
            (&[(MEMORY, "1g")], 1408),
            (&[(MEMORY, "300m")], 684),
            (&[(MEMORY, "500b")], 384),
            (&[(MEMORY, "1500000k")], 1464 + 384),
            (&[(MEMORY, "10g"), (FACTOR, "0.2")], 12_288),
            (&[(MEMORY, "3333m"), (FACTOR, "0.15")], 3832),
            (&[(MEMORY, "1g"), (FACTOR, " 2d")], 3072),
            (&[(MEMORY, "1g"), (FACTOR, ".5F")], 1536),
            (&[(MEMORY, "2048"), (keys::DRIVER_MEMORY_OVERHEAD, "700")], 2748),
            (&[(MINIMUM, "600m")], 1624),
            (&[(MINIMUM, "600m"), (keys::CLOAKROOM_SPARK_VERSION, "3.5.9")], 1408),
            (&[("spark.yarn.driver.memoryOverhead", "1g")], 2048),
        ] {
            assert_eq!(memory(&java(), settings).unwrap().mebibytes, expected, "{settings:?}");
        }
    }

    #[test]
    fn python_needs_more_beside_the_heap_and_the_drivers_own_factor_wins() {
        for (settings, expected, common) in [
            (&[(MEMORY, "4g")][..], 5734, 0.4),
            (&[(MEMORY, "4g"), (COMMON_FACTOR, "0.2")], 4915, 0.2),
            (&[(MEMORY, "4g"), (FACTOR, "0.2")], 4915, 0.4),
            (&[(MEMORY, "4g"), (FACTOR, "0.2"), (COMMON_FACTOR, "0.3")], 4915, 0.3),
            (&[(MEMORY, "4g"), (keys::DRIVER_MEMORY_OVERHEAD, "100m")], 4196, 0.4),
        ] {
            let expected = DriverMemory { mebibytes: expected, common_factor: common };
            assert_eq!(memory(&python(), settings).unwrap(), expected, "{settings:?}");
        }
    }

    #[test]
    fn bad_sizes_and_factors_are_refused_with_their_key() {
        for (key, value) in [
            (MEMORY, "lots"),
            (MEMORY, "0"),
            (MEMORY, "1.5g"),
            (MEMORY, "-1g"),
            (keys::DRIVER_MEMORY_OVERHEAD, "xx"),
            (FACTOR, "-1"),
            (FACTOR, "0"),
            (FACTOR, "NaN"),
            (FACTOR, "Infinity"),
            (FACTOR, "d"),
            (COMMON_FACTOR, "-0.1"),
            (COMMON_FACTOR, "a"),
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
