//! Reads the settings of volumes, `spark.kubernetes.ROLE.volumes.TYPE.NAME.…` (`KubernetesVolumeUtils`). The driver
//! adds the executors' volumes. Spark reads them during the submission too, so that a mistake is found before anything
//! is created.

use std::collections::{BTreeMap, BTreeSet};

use super::metadata::{checked_annotations, checked_labels};
use cloakroom_core::resource::is_quantity;
use cloakroom_spark::keys::{Key, VolumeKeys};
use cloakroom_spark::version::SparkVersion;
use cloakroom_spark::{SettingError, SparkConf};

/// One volume and its mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Volume {
    pub name: String,
    pub path: String,
    pub read_only: bool,
    pub sub_path: String,
    pub sub_path_expression: String,
    pub source: VolumeSource,
}

/// The types of volumes that Spark supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VolumeSource {
    HostPath { path: String, kind: String },
    EmptyDir { medium: String, size_limit: Option<String> },
    Nfs { server: String, path: String },
    Claim(Claim),
}

/// A claim of persistent storage. It is created if class and size are set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub name: String,
    pub storage_class: Option<String>,
    pub size: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

/// All volumes, sorted by type and name. Spark's order is that of a hash table. Like Spark, this refuses two volumes
/// with one mount path.
pub(super) fn volumes(
    conf: &SparkConf,
    keys: &VolumeKeys,
    version: SparkVersion,
) -> Result<Vec<Volume>, SettingError> {
    let names: BTreeSet<(&str, &str)> = conf
        .prefixed(keys.mount_path.prefix())
        .filter_map(|(rest, _)| {
            let mut parts = rest.split('.');
            Some((parts.next()?, parts.next()?))
        })
        .collect();
    let volumes = names.into_iter().map(|(kind, name)| Reader { conf, keys, version, kind, name }.volume());
    let volumes = volumes.collect::<Result<Vec<_>, _>>()?;
    let mut paths = BTreeMap::new();
    for (kind, volume) in volumes.iter().map(|volume| (volume.source.kind(), volume)) {
        let key = keys.mount_path.of(&[kind, &volume.name]);
        if let Some(other) = paths.insert(&volume.path, key.clone()) {
            return Err(conf.refuse(&key, format!("`{other}` is the same; each volume needs its own")));
        }
    }
    Ok(volumes)
}

impl VolumeSource {
    fn kind(&self) -> &'static str {
        match self {
            Self::HostPath { .. } => "hostPath",
            Self::EmptyDir { .. } => "emptyDir",
            Self::Nfs { .. } => "nfs",
            Self::Claim(_) => "persistentVolumeClaim",
        }
    }
}

/// Reads the settings of one volume.
struct Reader<'a> {
    conf: &'a SparkConf,
    keys: &'a VolumeKeys,
    version: SparkVersion,
    kind: &'a str,
    name: &'a str,
}

impl Reader<'_> {
    fn volume(&self) -> Result<Volume, SettingError> {
        let (path, expression) = (&self.keys.sub_path, &self.keys.sub_path_expression);
        let has_details = self.version.has_volume_details();
        if has_details && self.get(path).is_some() && self.get(expression).is_some() {
            let problem = format!("`{}` is set as well; only one of them may be", self.key(path));
            return Err(self.conf.refuse(&self.key(expression), problem));
        }
        let read_only = &self.keys.read_only;
        Ok(Volume {
            source: self.source()?,
            name: self.name.to_owned(),
            path: self
                .required(&self.keys.mount_path, "the path in the container where the volume is mounted")?,
            read_only: self.conf.read_as(&self.key(read_only), read_only)?.unwrap_or_default(),
            sub_path: self.or_empty(path),
            sub_path_expression: self.or_empty(expression),
        })
    }

    fn source(&self) -> Result<VolumeSource, SettingError> {
        let keys = self.keys;
        match self.kind {
            "hostPath" => Ok(VolumeSource::HostPath {
                path: self.required(&keys.path, "the path on the node")?,
                // Spark 3.5 ignores the setting and sends an empty type.
                kind: if self.version.has_volume_details() {
                    self.or_empty(&keys.kind)
                } else {
                    String::new()
                },
            }),
            "emptyDir" => {
                Ok(VolumeSource::EmptyDir { medium: self.or_empty(&keys.medium), size_limit: self.size()? })
            }
            "nfs" => Ok(VolumeSource::Nfs {
                server: self.required(&keys.server, "the NFS server")?,
                path: self.required(&keys.path, "the path on the NFS server")?,
            }),
            "persistentVolumeClaim" => self.claim().map(VolumeSource::Claim),
            kind => {
                let problem = format!(
                    "volumes of the type {kind} are not supported: it must be hostPath, emptyDir, nfs or \
                     persistentVolumeClaim; anything else goes into the pod template"
                );
                Err(self.conf.refuse(&self.any_key(), problem))
            }
        }
    }

    fn claim(&self) -> Result<Claim, SettingError> {
        let mut claim = Claim {
            name: self.required(&self.keys.claim_name, "the name of a claim, or OnDemand")?,
            storage_class: self.get(&self.keys.storage_class).map(str::to_owned),
            size: self.size()?,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
        };
        if self.version.has_volume_details() {
            claim.labels = checked_labels(self.conf, &self.prefix(&self.keys.labels))?;
            claim.annotations = checked_annotations(self.conf, &self.prefix(&self.keys.annotations))?;
        }
        Ok(claim)
    }

    /// The size limit. Spark 3.5 sends any text. Spark 4 refuses a number without a unit that is too small, because a
    /// unit was probably forgotten. Other texts that are no quantity would fail at the API server.
    fn size(&self) -> Result<Option<String>, SettingError> {
        let key = self.key(&self.keys.size_limit);
        let Some(size) = self.conf.get(&key) else { return Ok(None) };
        let is_bare = size.bytes().all(|byte| byte.is_ascii_digit());
        let is_tiny = is_bare && size.parse::<i64>().map_or(true, |bytes| bytes < 1024);
        if !is_quantity(size) {
            return Err(self
                .conf
                .refuse(&key, "it must be a size as Kubernetes writes it, such as 10Gi or 500Mi"));
        }
        if is_tiny && self.version.has_volume_details() {
            return Err(self.conf.refuse(&key, "it must be from 1Ki to 8Ei: without a unit these are bytes"));
        }
        Ok(Some(size.to_owned()))
    }

    fn key<T>(&self, key: &Key<T>) -> String {
        key.of(&[self.kind, self.name])
    }

    /// The beginning of the keys of a family, such as this volume's labels.
    fn prefix(&self, family: &Key<String>) -> String {
        family.of(&[self.kind, self.name, ""])
    }

    /// Some key of this volume that is set, for a message about the volume as a whole.
    fn any_key(&self) -> String {
        let prefix = format!("{}{}.{}.", self.keys.mount_path.prefix(), self.kind, self.name);
        let rest = self.conf.prefixed(&prefix).next().map(|(rest, _)| rest.to_owned());
        rest.map_or_else(|| prefix.trim_end_matches('.').to_owned(), |rest| format!("{prefix}{rest}"))
    }

    fn get(&self, key: &Key<String>) -> Option<&str> {
        self.conf.get(&self.key(key))
    }

    fn or_empty(&self, key: &Key<String>) -> String {
        self.get(key).unwrap_or_default().to_owned()
    }

    fn required(&self, key: &Key<String>, what: &str) -> Result<String, SettingError> {
        let refuse = || self.conf.refuse(&self.key(key), format!("it must be {what}"));
        self.get(key).map(str::to_owned).ok_or_else(refuse)
    }
}
