//! The kinds of values, and how they are read.

use std::time::Duration;

use super::Key;
use crate::java_text::trim;
use crate::version::SparkVersion;
use cloakroom_core::image;
use cloakroom_core::resource::{is_dns_label, is_dns_subdomain, is_quantity};
use cloakroom_core::size::{SizeUnit, parse_size};
use cloakroom_core::time::{TimeUnit, parse_duration};

/// A kind of values, as a version of Spark reads them.
#[derive(Debug, Clone, Copy)]
pub struct Kind<T> {
    /// A short description for tables.
    pub value: &'static str,
    /// Reads a value. The error says what the value must be.
    pub read: fn(&str, SparkVersion) -> Result<T, String>,
}

impl<T> Kind<T> {
    const fn new(value: &'static str, read: fn(&str, SparkVersion) -> Result<T, String>) -> Self {
        Self { value, read }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])+ $function:ident: $type:ty = $value:literal, $read:expr;)+) => {
        $(
            $(#[$doc])+
            pub(super) const fn $function(name: &'static str) -> Key<$type> {
                Key::new(name, Kind::new($value, $read))
            }
        )+
    };
}

kinds! {
    /// Any text.
    text: String = "", |text, _| Ok(text.to_owned());
    /// Paths, URIs or names with commas between them.
    list: String = "list with commas", |text, _| Ok(text.to_owned());
    /// As Scala's `toBoolean` reads it, ignoring case.
    boolean: bool = "`true`, `false`", |text, _| boolean_of(trim(text));
    /// The same without trimming, as in `KubernetesVolumeUtils`.
    bare_boolean: bool = "`true`, `false`", |text, _| boolean_of(text);
    /// A size in whole MiB. The rest is cut off, as in Spark.
    mebibytes: u64 = "size; a bare number is MiB", mebibytes_of;
    /// The same, but not zero.
    memory: u64 = "size; a bare number is MiB", memory_of;
    /// The same with a unit.
    heap: u64 = "size with a unit", heap_of;
    /// A time; a bare number is milliseconds.
    milliseconds: Duration = "time; a bare number is ms", |text, _| time_of(text, TimeUnit::Milliseconds);
    /// A time above zero; a bare number is milliseconds.
    interval: Duration = "time; a bare number is ms", |text, _| interval_of(text);
    /// A time; a bare number is seconds.
    seconds: Duration = "time; a bare number is s", |text, _| time_of(text, TimeUnit::Seconds);
    /// A time above zero; a bare number is minutes.
    minutes: Duration = "time; a bare number is min", |text, _| match time_of(text, TimeUnit::Minutes)? {
        Duration::ZERO => Err("it must be longer than zero, such as 5m".to_owned()),
        time => Ok(time),
    };
    /// A number from 1 that Spark reads without trimming (`SparkConf.getInt`, `validateSubmitArguments`).
    count: i32 = "whole number from 1", |text, _| number_from(text, 1);
    /// The same, but from 0.
    count_or_none: i32 = "whole number from 0", |text, _| number_from(text, 0);
    /// A quantity of CPUs in Kubernetes' format.
    cpus: String = "CPUs as Kubernetes writes them", |text, _| cpus_of(text);
    /// A number of milliseconds, without a unit.
    bare_milliseconds: u32 = "whole number of ms", |text, _| bare_milliseconds_of(text);
    /// A number of bytes, without a unit. Spark accepts negative numbers.
    bytes: i64 = "whole number of bytes", |text, _| number_of(text, "a whole number of bytes, such as 1048576");
    /// A port that Spark reads without trimming.
    port: u16 = "port", |text, _| text.parse().map_err(|_| must_be(PORT));
    /// A port that Spark trims.
    port_with_blanks: u16 = "port", |text, _| number_of(text, PORT);
    /// A factor of the heap's size, above 0.
    factor: f64 = "number above 0", |text, _| factor_of(text, false);
    /// A factor of the heap's size, from 0 on.
    factor_or_none: f64 = "number from 0", |text, _| factor_of(text, true);
    /// The name of a namespace.
    namespace: String = "name", |text, _| namespace_of(text);
    /// The name of a pod.
    pod_name: String = "name", |text, _| pod_name_of(text);
    /// The name of an image. An empty one counts as none.
    image: String = "image", |text, _| image_of(text);
}

/// A key whose value is one of a few words.
pub(super) const fn word(
    name: &'static str,
    value: &'static str,
    read: fn(&str, SparkVersion) -> Result<&'static str, String>,
) -> Key<&'static str> {
    Key::new(name, Kind::new(value, read))
}

/// Returns the word that equals the text, or an error with all words.
pub(super) fn one_of(text: &str, words: &[&'static str]) -> Result<&'static str, String> {
    let found = words.iter().find(|word| **word == text).copied();
    found.ok_or_else(|| format!("it must be one of {}", words.join(", ")))
}

const PORT: &str = "a port, a whole number from 0 to 65535";

fn must_be(what: &str) -> String {
    format!("it must be {what}")
}

fn boolean_of(text: &str) -> Result<bool, String> {
    match text {
        text if text.eq_ignore_ascii_case("true") => Ok(true),
        text if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err("it must be true or false".to_owned()),
    }
}

fn mebibytes_of(text: &str, version: SparkVersion) -> Result<u64, String> {
    /// The sizes that `JavaUtils.byteStringAs` reads.
    const SIZES: &str = "it must be a whole number with a unit, such as 512m or 2g (units: b, k, m, g, t, p; from \
                         Spark 4.2 on Ki, Mi, Gi, Ti, Pi as well)";
    let size = parse_size(text, SizeUnit::Mebibytes)
        .ok()
        .filter(|_| version.has_binary_units() || !has_binary_unit(text));
    size.map(|size| size.bytes() >> 20).ok_or_else(|| SIZES.to_owned())
}

/// Whether a size has a unit such as `Gi` or `GiB`, which some versions of Spark do not know.
fn has_binary_unit(text: &str) -> bool {
    trim(text).to_ascii_lowercase().trim_end_matches('b').ends_with('i')
}

/// Refuses zero. A size below one MiB counts as zero, but is no error in Spark.
fn memory_of(text: &str, version: SparkVersion) -> Result<u64, String> {
    let size = mebibytes_of(text, version)?;
    if text.contains(|character| matches!(character, '1'..='9')) {
        Ok(size)
    } else {
        Err("it must be more than zero, such as 512m or 2g".to_owned())
    }
}

/// Refuses a bare number. Spark counts MiB for the pod, and passes the text on to the JVM, for which it is a number of bytes.
fn heap_of(text: &str, version: SparkVersion) -> Result<u64, String> {
    let size = memory_of(text, version)?;
    match trim(text) {
        number if number.ends_with(|last: char| last.is_ascii_digit()) => Err(format!(
            "it must be a size with a unit: write {number}m if MiB are meant; without a unit they are MiB for the pod, and \
             bytes for the JVM, which does not start then"
        )),
        _ => Ok(size),
    }
}

fn time_of(text: &str, bare: TimeUnit) -> Result<Duration, String> {
    parse_duration(text, bare).map_err(|error| error.to_string())
}

fn interval_of(text: &str) -> Result<Duration, String> {
    match time_of(text, TimeUnit::Milliseconds)? {
        Duration::ZERO => Err("it must be longer than zero, such as 1s or 500ms".to_owned()),
        time => Ok(time),
    }
}

fn number_of<N: std::str::FromStr>(text: &str, what: &str) -> Result<N, String> {
    trim(text).parse().map_err(|_| must_be(what))
}

fn number_from(text: &str, least: i32) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| format!("it must be a whole number from {least} to 2147483647"))
}

/// Spark's client reads the number as an `int`.
fn bare_milliseconds_of(text: &str) -> Result<u32, String> {
    let number = trim(text).parse().ok().and_then(|number: i32| u32::try_from(number).ok());
    number.ok_or_else(|| must_be("a whole number of milliseconds, 0 for no bound"))
}

fn cpus_of(text: &str) -> Result<String, String> {
    if is_quantity(text) && !text.starts_with('-') {
        Ok(text.to_owned())
    } else {
        Err(must_be("a quantity of CPUs as Kubernetes writes it, such as 2, 0.5 or 500m"))
    }
}

/// Reads a number as Java's `Double.parseDouble` does, which accepts `2d` and `1f`.
fn factor_of(text: &str, may_be_zero: bool) -> Result<f64, String> {
    let text = trim(text);
    let digits = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    // Rust also reads words: `inf`, `nan`.
    let is_number = digits.ends_with(|c: char| c.is_ascii_digit() || c == '.');
    let is_good = |factor: &f64| factor.is_finite() && (*factor > 0.0 || may_be_zero && *factor == 0.0);
    let factor = digits.parse().ok().filter(|_| is_number).filter(is_good);
    let least =
        if may_be_zero { "a number from zero on, such as 0.1" } else { "a number above zero, such as 0.1" };
    factor.ok_or_else(|| must_be(least))
}

fn namespace_of(text: &str) -> Result<String, String> {
    const WHAT: &str = "the name of a namespace: at most 63 characters of a-z, 0-9 and -, beginning and ending with a letter or digit";
    if is_dns_label(text) { Ok(text.to_owned()) } else { Err(must_be(WHAT)) }
}

fn pod_name_of(text: &str) -> Result<String, String> {
    const WHAT: &str = "the name of a pod: at most 253 characters of a-z, 0-9, - and ., beginning and ending with a letter or digit";
    if is_dns_subdomain(text) { Ok(text.to_owned()) } else { Err(must_be(WHAT)) }
}

fn image_of(text: &str) -> Result<String, String> {
    match image::fault(text.trim()) {
        Some(fault) if !text.trim().is_empty() => Err(format!(
            "no node can pull an image of this name, because {fault}: write it like registry.example/spark:4.3.0"
        )),
        _ => Ok(text.to_owned()),
    }
}
