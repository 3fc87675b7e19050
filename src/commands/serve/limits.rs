//! The limits, and warnings about effects that an admin may not expect.

use std::path::Path;
use std::time::Duration;

use crate::cli::ServeArgs;
use crate::commands::refuse;
use cloakroom_core::size::{ByteSize, format_size};
use cloakroom_server::http::UploadAuth;
use cloakroom_storage::{
    CapacityLimits, LEAST_CHARGE, Limits, Share, TOMBSTONES_FOR_EACH, owner_memory_bytes,
};

/// Memory of one resource without its owner's labels. tests/real/limits.rs measures it, and docs/deploy.md quotes
/// it.
const RESOURCE_MEMORY_BYTES: u64 = 1 << 10;

/// Memory for all resources and their owners, out of the 512 MiB of the shipped manifests.
const MEMORY_FOR_RESOURCES: u64 = 320 << 20;

/// The limits that the flags set. Namespaces have shares only if the API server confirms the namespace of an upload.
pub fn resolve(
    args: &ServeArgs,
    upload_auth: &UploadAuth,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Limits> {
    check_sizes(args)?;
    let storage = &args.storage;
    let knows_namespaces = matches!(upload_auth, UploadAuth::Kubernetes(_));
    let limits = Limits {
        capacity: CapacityLimits {
            max_resource_size: storage.max_resource_size.bytes(),
            max_total_size: storage.max_total_size.map(ByteSize::bytes),
            min_free_space: storage.min_free_space.bytes(),
            least_charge: LEAST_CHARGE,
        },
        max_resources: storage.max_resources,
        owner_memory_bytes: owner_memory_bytes(storage.max_resources),
        max_concurrent_uploads: storage.max_concurrent_uploads,
        max_concurrent_downloads: storage.max_concurrent_downloads,
        share: knows_namespaces.then(|| storage.share.unwrap_or(Share::DEFAULT)),
        deletion_wait: args.lifecycle.deletion_wait.get(),
        max_age: args.lifecycle.max_age.map(Duration::from),
    };
    let without_effect = storage.share.filter(|_| !knows_namespaces).map(|share| {
        format!(
            "--share {share} has no effect: without --upload-auth kubernetes an uploader may name any namespace, so \
             there are no shares"
        )
    });
    warnings.extend(without_effect);
    // The room of a bucket is not known.
    let disk = args.store.store.is_none().then(|| Disk::find(&storage.data_dir)).flatten();
    warnings.extend(limits.share.and_then(|share| of_share(share, &limits, disk.as_ref())));
    warnings.extend(of_resources(limits.max_resources));
    let of_disk =
        disk.and_then(|disk| of_free_space(limits.capacity.min_free_space, &disk, &storage.data_dir));
    warnings.extend(of_disk);
    Ok(limits)
}

/// Refuses sizes that would refuse every bundle.
fn check_sizes(args: &ServeArgs) -> anyhow::Result<()> {
    let sizes = [
        ("--max-resource-size", Some(args.storage.max_resource_size)),
        ("--max-total-size", args.storage.max_total_size),
    ];
    match sizes.iter().find(|(_, size)| size.is_some_and(|size| size.bytes() == 0)) {
        Some((flag, _)) => refuse!("{flag} is zero: it would refuse every bundle; give a size, such as 8GiB"),
        None => Ok(()),
    }
}

/// A warning if one bundle may be larger than a share, because a share is never smaller than one bundle.
fn of_share(share: Share, limits: &Limits, disk: Option<&Disk>) -> Option<String> {
    let CapacityLimits { max_resource_size: largest, max_total_size, min_free_space, .. } = limits.capacity;
    let on_disk = disk.map(|disk| (disk.size.saturating_sub(min_free_space), "the disk's size"));
    let total = max_total_size.map(|bytes| (bytes, "--max-total-size"));
    let (room, of) = [total, on_disk].into_iter().flatten().min()?;
    if largest >= room {
        return Some(format!(
            "one bundle of --max-resource-size ({}) takes all the room ({} by {of}), and a share is never below one \
             bundle: one namespace can take the room of all others; lower --max-resource-size",
            format_size(largest),
            format_size(room)
        ));
    }
    (largest > share.of(room)).then(|| {
        let percent = (u128::from(largest) * 100).div_ceil(u128::from(room));
        format!(
            "one bundle of --max-resource-size ({}) is {percent}% of the room ({} by {of}), and a share is never below \
             one bundle: one namespace may have that much in place of --share {share}; lower --max-resource-size, or \
             raise --share",
            format_size(largest),
            format_size(room)
        )
    })
}

/// A warning if so many resources need more memory than the shipped manifests give.
fn of_resources(most: usize) -> Option<String> {
    let owners = owner_memory_bytes(most);
    let most = most as u64;
    let memory = most.saturating_mul(RESOURCE_MEMORY_BYTES).saturating_add(owners);
    (memory > MEMORY_FOR_RESOURCES).then(|| {
        format!(
            "--max-resources {most} may take {} of memory, {} for each and {} for their owners, and the shipped manifests give 512 MiB for \
             everything; the ledger may also have {} tombstones: give the server more memory and disk, or lower \
             --max-resources",
            format_size(memory),
            format_size(RESOURCE_MEMORY_BYTES),
            format_size(owners),
            most.saturating_mul(TOMBSTONES_FOR_EACH as u64)
        )
    })
}

/// A warning if the disk has less room than has to stay free, so that there is room for no bundle.
fn of_free_space(least: u64, disk: &Disk, data_dir: &Path) -> Option<String> {
    let free = disk.free;
    (free <= least).then(|| {
        format!(
            "every upload will be refused: {} has {} free, and --min-free-space keeps {}; make room there, or lower \
             --min-free-space",
            data_dir.display(),
            format_size(free),
            format_size(least)
        )
    })
}

/// The disk that a folder is on, or will be on, in bytes.
struct Disk {
    size: u64,
    /// What users other than root may still write.
    free: u64,
}

impl Disk {
    fn find(data_dir: &Path) -> Option<Self> {
        // `Path::ancestors` ends with an empty path if the path is relative.
        let here = Path::new(".");
        let present = data_dir
            .ancestors()
            .filter(|path| !path.as_os_str().is_empty())
            .chain([here])
            .find(|path| path.exists())?;
        let space = rustix::fs::statvfs(present).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
        Some(Self { size: bytes(space.f_blocks), free: bytes(space.f_bavail) })
    }
}
