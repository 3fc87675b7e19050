//! Keys of the volumes of driver and executors.

use super::kind::{bare_boolean, boolean, text};
use super::{Key, KeyTable};

/// The keys of one role's volumes.
#[derive(Debug)]
pub struct VolumeKeys {
    pub mount_path: Key<String>,
    /// Whether the mount is read-only.
    pub read_only: Key<bool>,
    pub sub_path: Key<String>,
    /// The mounted path in the volume, with variables.
    pub sub_path_expression: Key<String>,
    /// The path on the node or on the NFS server.
    pub path: Key<String>,
    /// The type of a `hostPath`.
    pub kind: Key<String>,
    /// The NFS server's host.
    pub server: Key<String>,
    /// The medium of an `emptyDir`.
    pub medium: Key<String>,
    /// The size of an `emptyDir` or a claim.
    pub size_limit: Key<String>,
    pub claim_name: Key<String>,
    pub storage_class: Key<String>,
    pub labels: Key<String>,
    pub annotations: Key<String>,
}

macro_rules! volume_keys {
    ($role:literal) => {
        VolumeKeys {
            mount_path: text(concat!("spark.kubernetes.", $role, ".volumes.TYPE.NAME.mount.path")).meaning(
                "mount path of a volume; TYPE is `hostPath`, `emptyDir`, `nfs` or `persistentVolumeClaim`",
            ),
            read_only: bare_boolean(concat!("spark.kubernetes.", $role, ".volumes.TYPE.NAME.mount.readOnly"))
                .or("false")
                .meaning("whether the mount is read-only"),
            sub_path: text(concat!("spark.kubernetes.", $role, ".volumes.TYPE.NAME.mount.subPath"))
                .meaning("mounted path in the volume"),
            sub_path_expression: text(concat!(
                "spark.kubernetes.",
                $role,
                ".volumes.TYPE.NAME.mount.subPathExpr"
            ))
            .since("4.0")
            .meaning("mounted path in the volume, with variables"),
            path: text(concat!("spark.kubernetes.", $role, ".volumes.TYPE.NAME.options.path"))
                .meaning("path on the node (`hostPath`) or on the server (`nfs`)"),
            kind: text(concat!("spark.kubernetes.", $role, ".volumes.TYPE.NAME.options.type"))
                .since("4.0")
                .meaning("type of a `hostPath`, such as `Directory`"),
            server: text(concat!("spark.kubernetes.", $role, ".volumes.TYPE.NAME.options.server"))
                .meaning("NFS server"),
            medium: text(concat!("spark.kubernetes.", $role, ".volumes.TYPE.NAME.options.medium"))
                .meaning("medium of an `emptyDir`: `Memory`"),
            size_limit: text(concat!("spark.kubernetes.", $role, ".volumes.TYPE.NAME.options.sizeLimit"))
                .meaning("size of an `emptyDir` or of a created claim"),
            claim_name: text(concat!("spark.kubernetes.", $role, ".volumes.TYPE.NAME.options.claimName"))
                .meaning("name of a claim; `OnDemand` is replaced by a generated name"),
            storage_class: text(concat!(
                "spark.kubernetes.",
                $role,
                ".volumes.TYPE.NAME.options.storageClass"
            ))
            .meaning("storage class of a claim; the claim is created if class and size are given"),
            labels: text(concat!("spark.kubernetes.", $role, ".volumes.TYPE.NAME.label.KEY"))
                .since("4.0")
                .meaning("labels of a claim"),
            annotations: text(concat!("spark.kubernetes.", $role, ".volumes.TYPE.NAME.annotation.KEY"))
                .since("4.0")
                .meaning("annotations of a claim"),
        }
    };
}

/// The keys of the driver's volumes.
pub static DRIVER_VOLUMES: VolumeKeys = volume_keys!("driver");
/// The keys of the executors' volumes, which the driver makes.
pub static EXECUTOR_VOLUMES: VolumeKeys = volume_keys!("executor");

/// Whether claims are `ReadWriteOnce`, so that several pods of one node can use them.
pub const SHARED_CLAIMS: Key<bool> = boolean("spark.kubernetes.legacy.useReadWriteOnceAccessMode")
    .or("false")
    .substituted()
    .meaning("whether claims are `ReadWriteOnce`, and not `ReadWriteOncePod`");
/// The folders for the driver's local data.
pub const LOCAL_DIRS: Key<String> = text("spark.local.dir").or("a folder below `/var/data`").meaning(
    "local folders; volumes whose names begin with `spark-local-dir-` win, then the variable `SPARK_LOCAL_DIRS`",
);
/// Whether the local folders are in memory.
pub const LOCAL_DIRS_IN_MEMORY: Key<bool> = boolean("spark.kubernetes.local.dirs.tmpfs")
    .or("false")
    .substituted()
    .meaning("whether local folders are in memory");

pub(super) static TABLE: KeyTable = KeyTable {
    title: "Volumes",
    entries: &[
        &DRIVER_VOLUMES.mount_path.entry,
        &DRIVER_VOLUMES.read_only.entry,
        &DRIVER_VOLUMES.sub_path.entry,
        &DRIVER_VOLUMES.sub_path_expression.entry,
        &DRIVER_VOLUMES.path.entry,
        &DRIVER_VOLUMES.kind.entry,
        &DRIVER_VOLUMES.server.entry,
        &DRIVER_VOLUMES.medium.entry,
        &DRIVER_VOLUMES.size_limit.entry,
        &DRIVER_VOLUMES.claim_name.entry,
        &DRIVER_VOLUMES.storage_class.entry,
        &DRIVER_VOLUMES.labels.entry,
        &DRIVER_VOLUMES.annotations.entry,
        &EXECUTOR_VOLUMES.mount_path.entry,
        &EXECUTOR_VOLUMES.read_only.entry,
        &EXECUTOR_VOLUMES.sub_path.entry,
        &EXECUTOR_VOLUMES.sub_path_expression.entry,
        &EXECUTOR_VOLUMES.path.entry,
        &EXECUTOR_VOLUMES.kind.entry,
        &EXECUTOR_VOLUMES.server.entry,
        &EXECUTOR_VOLUMES.medium.entry,
        &EXECUTOR_VOLUMES.size_limit.entry,
        &EXECUTOR_VOLUMES.claim_name.entry,
        &EXECUTOR_VOLUMES.storage_class.entry,
        &EXECUTOR_VOLUMES.labels.entry,
        &EXECUTOR_VOLUMES.annotations.entry,
        &SHARED_CLAIMS.entry,
        &LOCAL_DIRS.entry,
        &LOCAL_DIRS_IN_MEMORY.entry,
    ],
};
