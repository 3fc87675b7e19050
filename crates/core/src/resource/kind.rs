//! The kinds of objects that can own a resource.

use std::fmt;

use super::owner_error::{OwnerError, shown};
use super::syntax::is_dns_subdomain;
use crate::suggestions::nearest;

/// The kind of an owner that names none, and the only kind that kubespark knew.
pub const POD: &str = "Pod";

/// The name of the kind that stands for no objects.
const NONE: &str = "none";

/// The Spark operator's kinds, which people name without their group.
const WITH_GROUPS: [(&str, &str); 2] = [
    ("SparkApplication", "SparkApplication.sparkoperator.k8s.io"),
    ("ScheduledSparkApplication", "ScheduledSparkApplication.sparkoperator.k8s.io"),
];

/// Kinds to suggest when a kind is mistyped.
const WELL_KNOWN: [&str; 9] = [
    POD,
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "Job",
    "CronJob",
    WITH_GROUPS[0].1,
    WITH_GROUPS[1].1,
];

/// An owner kind: `Kind` if it is built in, `Kind.group` for all others.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerKind(String);

impl OwnerKind {
    /// Reads `Pod`, `SparkApplication.sparkoperator.k8s.io` and the like: a kind in upper camel case, and perhaps a
    /// group, which is a DNS subdomain (RFC 1123).
    pub fn parse(text: &str) -> Result<Self, OwnerError> {
        let (kind, group) = text.split_once('.').map_or((text, None), |(kind, group)| (kind, Some(group)));
        let kind_is_good = kind.len() <= 63
            && kind.starts_with(|c: char| c.is_ascii_uppercase())
            && kind.chars().all(|c| c.is_ascii_alphanumeric());
        if kind_is_good && group.is_none_or(is_dns_subdomain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(OwnerError::Kind { kind: shown(text), meant: meant(text) })
        }
    }

    /// The kind of an owner without objects. No client can name it, and no object has it.
    pub fn none() -> Self {
        Self(NONE.to_owned())
    }

    /// Whether it is that of an owner without objects.
    pub fn is_none(&self) -> bool {
        self.0 == NONE
    }

    /// Reads the text of a kind that was accepted before.
    pub fn read_back(text: &str) -> Result<Self, OwnerError> {
        if text == NONE { Ok(Self::none()) } else { Self::parse(text) }
    }

    /// The same for what people write: the Spark operator's kinds need no group.
    pub fn named(text: &str) -> Result<Self, OwnerError> {
        let whole = WITH_GROUPS.iter().find(|(short, _)| *short == text).map(|(_, whole)| *whole);
        Self::parse(whole.unwrap_or(text))
    }

    /// The usual kinds of owners, in the form that [`named`](Self::named) reads.
    pub fn well_known() -> impl Iterator<Item = &'static str> {
        WELL_KNOWN.into_iter().map(|kind| kind.split('.').next().unwrap_or(kind))
    }

    /// The text it was read from.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The kind that was probably meant, with its group.
fn meant(text: &str) -> Option<&'static str> {
    // A longer text is no kind, and comparing it would take long.
    const LONGEST: usize = 80;
    let bare = text.split('.').next().filter(|bare| bare.len() <= LONGEST)?;
    let near = nearest(bare, OwnerKind::well_known())?;
    WELL_KNOWN.into_iter().find(|kind| kind.split('.').next() == Some(near) && *kind != text)
}

impl Default for OwnerKind {
    fn default() -> Self {
        Self(POD.to_owned())
    }
}

impl fmt::Display for OwnerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The owner kinds that this server accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerKinds(Vec<OwnerKind>);

impl OwnerKinds {
    /// The default of `--owner-kinds`.
    pub const DEFAULT: &str = "Pod,Deployment,StatefulSet,Job,SparkApplication.sparkoperator.k8s.io";

    /// How many they are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Reads a comma-separated list of kinds; at least one.
    pub fn parse(text: &str) -> Result<Self, OwnerError> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let kinds = names.map(OwnerKind::named).collect::<Result<Vec<_>, _>>()?;
        if kinds.is_empty() {
            Err(OwnerError::Kind { kind: String::new(), meant: None })
        } else {
            Ok(Self(kinds))
        }
    }

    /// Accepts `kind`, or returns an error that lists the accepted kinds.
    pub fn check(&self, kind: &OwnerKind) -> Result<(), OwnerError> {
        if self.0.contains(kind) {
            return Ok(());
        }
        let meant = meant(kind.as_str()).filter(|meant| self.0.iter().any(|known| known.as_str() == *meant));
        Err(OwnerError::UnknownKind { kind: kind.to_string(), meant, known: self.to_string() })
    }
}

impl fmt::Display for OwnerKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(OwnerKind::as_str).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_kinds_are_accepted() {
        let kinds = OwnerKinds::parse(OwnerKinds::DEFAULT).unwrap();
        kinds.check(&OwnerKind::parse("SparkApplication.sparkoperator.k8s.io").unwrap()).unwrap();
        let refused = kinds.check(&OwnerKind::parse("Banana").unwrap()).unwrap_err().to_string();
        assert!(refused.contains("Banana") && refused.contains("StatefulSet"), "{refused}");
        for text in ["pod", "", "Pod.", "Pod/x", "Pöd", "P\0"] {
            assert!(OwnerKind::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_spark_operators_kinds_need_no_group() {
        let spark = OwnerKind::named("SparkApplication").unwrap();
        assert_eq!(spark.as_str(), "SparkApplication.sparkoperator.k8s.io");
        assert_eq!(OwnerKind::named("Pod").unwrap(), OwnerKind::default());
        let kinds = OwnerKinds::parse("Pod, ScheduledSparkApplication").unwrap();
        assert_eq!(kinds.to_string(), "Pod,ScheduledSparkApplication.sparkoperator.k8s.io");
    }

    #[test]
    fn the_error_for_a_mistyped_kind_suggests_the_right_one() {
        for (typed, meant) in [
            ("pod", "Pod"),
            ("pods", "Pod"),
            ("deployments", "Deployment"),
            ("sparkapplication", "SparkApplication.sparkoperator.k8s.io"),
        ] {
            let refused = OwnerKind::named(typed).unwrap_err().to_string();
            assert!(refused.ends_with(&format!("; did you mean {meant}?")), "{refused}");
        }
        let kinds = OwnerKinds::parse(OwnerKinds::DEFAULT).unwrap();
        for (typed, meant) in [("Pods", Some("Pod")), ("Statefulset", Some("StatefulSet")), ("Banana", None)]
        {
            let refused = kinds.check(&OwnerKind::parse(typed).unwrap()).unwrap_err().to_string();
            let told = refused.split_once("; did you mean ").map(|(_, meant)| meant.trim_end_matches('?'));
            assert_eq!(told, meant, "{refused}");
        }
        // A kind that this server would refuse as well is not suggested.
        let refused = kinds.check(&OwnerKind::parse("Cronjob").unwrap()).unwrap_err().to_string();
        assert!(!refused.contains("did you mean"), "{refused}");
    }
}
