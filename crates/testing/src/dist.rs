//! The files of a release, if `packaging/release` has made them: then tests use the files that users get.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{process, project};

/// The variable that names the folder of the files.
const DIST: &str = "CLOAKROOM_TEST_DIST";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The static binary for this machine. Without a release, the binary that cargo built for the tests.
pub fn binary() -> PathBuf {
    let name = format!("cloakroom-{VERSION}-linux-{}", std::env::consts::ARCH);
    of_the_release(&name).unwrap_or_else(process::binary)
}

/// The image as an archive. Without a release, the release's script packs it from that binary below `work`.
pub fn image(work: &Path) -> PathBuf {
    let name = format!("cloakroom-{VERSION}-oci.tar");
    of_the_release(&name).unwrap_or_else(|| {
        let root = work.join("cloakroom");
        lay_out(&root);
        let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
        let mut root_of = std::ffi::OsString::from(format!("{architecture}="));
        root_of.push(&root);
        run(Command::new(project().join("packaging/oci"))
            .arg(work)
            .args([VERSION, "unknown", "0"])
            .arg(root_of));
        work.join(name)
    })
}

/// A folder with manifests, chart and documentation: the release's archive, unpacked below `work`. Without a release,
/// the source.
pub fn tree(work: &Path) -> PathBuf {
    let name = format!("cloakroom-{VERSION}-linux-{}", std::env::consts::ARCH);
    let Some(archive) = of_the_release(&format!("{name}.tar.gz")) else { return project() };
    run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(work));
    work.join(name)
}

/// The root file system of the image.
pub fn lay_out(root: &Path) {
    run(Command::new(project().join("manifests/image/assemble-root")).arg(binary()).arg(root));
}

fn of_the_release(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(DIST)?).join(name);
    assert!(path.exists(), "{DIST} names a folder without {name}: packaging/release --quick makes it");
    Some(path)
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
