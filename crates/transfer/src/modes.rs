//! Modes of files and folders. They are set explicitly, because a strict umask would hide the files from the user of
//! another container.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;

/// Gives a file or folder this mode. On a volume that permits no chmod, such as SMB or FUSE, its mode counts if that has
/// every right of the wanted one.
pub(crate) fn set(file: &File, mode: u32) -> io::Result<()> {
    or_enough(mode, file.set_permissions(Permissions::from_mode(mode)), || file.metadata())
}

fn or_enough(
    wanted: u32,
    set: io::Result<()>,
    found: impl FnOnce() -> io::Result<Metadata>,
) -> io::Result<()> {
    let Err(refused) = set else { return Ok(()) };
    let Ok(found) = found().map(|metadata| metadata.permissions().mode() & 0o777) else {
        return Err(refused);
    };
    if found & wanted == wanted {
        return Ok(());
    }
    Err(io::Error::new(
        refused.kind(),
        format!(
            "{refused}; the volume gives the mode {found:o}, and every user of the pod needs {wanted:o}: mount it with such \
             modes (for SMB: file_mode=0755,dir_mode=0755), or take another volume"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn where_no_mode_can_be_set_that_of_the_volume_counts_or_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jar");
        let with = |mode: u32, wanted: u32| {
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let refused = Err(io::Error::from(io::ErrorKind::PermissionDenied));
            or_enough(wanted, refused, || fs::metadata(&path))
        };
        with(0o777, 0o755).unwrap();
        with(0o644, 0o644).unwrap();
        let said = with(0o700, 0o644).unwrap_err().to_string();
        assert!(said.contains("gives the mode 700, and every user of the pod needs 644: mount it"), "{said}");
        assert!(with(0o644, 0o755).is_err(), "a script has to be executable");
    }
}
