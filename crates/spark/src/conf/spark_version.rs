//! Reads the version of Spark whose objects are made: `spark.kubernetes.cloakroom.sparkVersion`.

use super::{SettingError, SparkConf};
use crate::keys;
use crate::version::{NEWEST, OLDEST, SparkVersion};
use cloakroom_core::text::harmless;

impl SparkVersion {
    /// Reads the setting. The second value is a warning.
    pub fn read(conf: &SparkConf) -> Result<(Self, Option<String>), SettingError> {
        let key = &keys::CLOAKROOM_SPARK_VERSION;
        let Some(text) = conf.get(key) else { return Ok((NEWEST, warning_of_image(conf))) };
        let refuse = || {
            conf.refuse(
                key,
                format!("it must be a version of Spark from {OLDEST} on, such as 3.5.9 or {NEWEST}"),
            )
        };
        let version = Self::parse(text.trim()).filter(|version| *version >= OLDEST).ok_or_else(refuse)?;
        let is_unknown = (version.major, version.minor) > (NEWEST.major, NEWEST.minor);
        let warning = || {
            format!(
                "`{key}` is {version}: no Spark after {NEWEST} is known here, so the objects of {NEWEST} are made"
            )
        };
        Ok((version, is_unknown.then(warning)))
    }

    /// The version in the tag of an image of the Apache project, such as `apache/spark:3.5.1-java17`, on any registry.
    fn of_image(image: &str) -> Option<Self> {
        let (path, tag) = image.split('@').next()?.rsplit_once(':')?;
        let name = path.rsplit('/').next()?;
        let folder = path.strip_suffix(name)?.trim_end_matches('/').rsplit('/').next()?;
        let is_registry = folder.contains(['.', ':']) || folder == "localhost";
        let is_known = matches!(name, "spark" | "spark-py" | "spark-r")
            && (matches!(folder, "" | "apache" | "library") || is_registry);
        let number = tag.strip_prefix('v').unwrap_or(tag).split('-').next().filter(|_| is_known)?;
        Self::parse(number).or_else(|| Self::parse(&format!("{number}.0")))
    }
}

/// A warning if an image has an earlier Spark than the one whose objects are made, and no setting says which.
fn warning_of_image(conf: &SparkConf) -> Option<String> {
    let image = conf.get(&keys::DRIVER_CONTAINER_IMAGE).or(conf.get(&keys::CONTAINER_IMAGE))?.trim();
    let version = SparkVersion::of_image(image)?;
    if version.is_at_least(NEWEST.major, NEWEST.minor) {
        return None;
    }
    let (image, SparkVersion { major, minor, .. }) = (harmless(image), version);
    let advice = if version < OLDEST {
        format!("no Spark before {OLDEST} is known here, so the driver may fail")
    } else {
        format!("set `{}` to {version}", keys::CLOAKROOM_SPARK_VERSION)
    };
    Some(format!(
        "the image {image} has Spark {major}.{minor}, and the objects of Spark {NEWEST} are made for it: {advice}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;
    use crate::version::{NEWEST_SPARK, OLDEST_SPARK};

    fn of(text: &str) -> Result<(SparkVersion, Option<String>), SettingError> {
        let mut conf = SparkConf::default();
        conf.set(&keys::CLOAKROOM_SPARK_VERSION, text, Origin::Conf);
        SparkVersion::read(&conf)
    }

    #[test]
    fn the_newest_known_version_is_the_default() {
        assert_eq!(SparkVersion::read(&SparkConf::default()).unwrap(), (NEWEST, None));
        assert_eq!(
            (OLDEST.to_string(), NEWEST.to_string()),
            (OLDEST_SPARK.to_owned(), NEWEST_SPARK.to_owned())
        );
    }

    #[test]
    fn an_image_of_an_earlier_spark_is_warned_of_unless_a_setting_names_it() {
        for (image, wanted) in [
            ("apache/spark:3.5.1", Some("3.5.1")),
            ("spark:3.5.9-scala2.12-java17-ubuntu", Some("3.5.9")),
            ("docker.io/library/spark:4.0", Some("4.0.0")),
            ("mirror.example:5000/apache/spark-py:v3.5.1", Some("3.5.1")),
            ("mirror.example:5000/apache/spark-py:3.4.0", Some("fail")),
            ("registry.example/spark:3.5.3@sha256:0123", Some("3.5.3")),
            ("apache/spark:4.3.0", None),
            ("apache/spark:5.0.0", None),
            ("apache/spark:latest", None),
            ("apache/spark", None),
            ("team/spark:3.5.1", None),
            ("etl:3.5.1", None),
            ("localhost:5000/spark", None),
        ] {
            let mut conf = SparkConf::default();
            conf.set(&keys::CONTAINER_IMAGE, image, Origin::Conf);
            let warning = SparkVersion::read(&conf).unwrap().1;
            let version = warning.as_ref().and_then(|text| text.rsplit(' ').next());
            assert_eq!(version, wanted, "{image}");
            conf.set(&keys::CLOAKROOM_SPARK_VERSION, "4.3.0", Origin::Conf);
            assert_eq!(SparkVersion::read(&conf).unwrap().1, None);
        }
    }

    #[test]
    fn a_version_keeps_its_own_number_and_the_shape_of_its_line() {
        for (text, connect, policy) in
            [("3.5.9", false, false), ("4.0.1", true, false), ("4.2.0", true, false), ("4.3.1", true, true)]
        {
            let (version, warning) = of(text).unwrap();
            let shape = (version.has_connect_port(), version.has_network_policy());
            assert_eq!((version.to_string(), shape, warning), (text.to_owned(), (connect, policy), None));
        }
    }

    #[test]
    fn a_version_that_is_not_known_yet_is_warned_about() {
        let (version, warning) = of("4.10.0").unwrap();
        assert!(version.has_network_policy() && warning.unwrap().contains("4.10.0"));
    }

    #[test]
    fn an_invalid_or_too_old_version_is_refused() {
        for text in ["", "4", "4.3", "v4.3.0", "4.3.0-SNAPSHOT", "3.4.9", "2.2.0", "4.3.0.1", "+4.3.0"] {
            let message = of(text).unwrap_err().to_string();
            assert!(message.contains("must be a version of Spark from 3.5.0"), "{message}");
        }
    }
}
