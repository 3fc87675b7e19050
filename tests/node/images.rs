//! Images made from folders, without a registry and without a container engine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cloakroom_testing::jobs::SHORT_LIVED_JAVA;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The versions of Spark that do the jobs.
pub const VERSIONS: [&str; 2] = ["4.3.0", "3.5.9"];

/// Names the folder that `tests/node/make-spark-root` made.
pub const SPARK_ROOT: &str = "CLOAKROOM_TEST_SPARK_ROOT";

/// Names the folder that has `spark-VERSION` for each of [`VERSIONS`].
pub const SPARK_HOMES: &str = "CLOAKROOM_TEST_SPARK_HOMES";

/// The image of a version of Spark, as people name it.
pub fn spark(version: &str) -> String {
    format!("apache/spark:{version}")
}

/// This project's image, as the manifests name it; its archive names it so itself ([`cloakroom_testing::dist::image`]).
pub const CLOAKROOM: &str = concat!("cloakroom:", env!("CARGO_PKG_VERSION"));

/// What the documentation's examples run beside it.
pub const BUSYBOX: &str = "busybox:1.36";

const EMPTY_ZIP: &[u8] = b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// The process that holds a pod's namespaces.
pub const PAUSE: &str = "pause:1";

/// A file system and what is started in it.
pub struct Image {
    name: String,
    layers: Vec<Layer>,
    config: Value,
}

/// A tar file, and the digest that an image names it by.
#[derive(Clone)]
struct Layer {
    file: PathBuf,
    digest: String,
}

impl Layer {
    /// All of a folder, at a path of the image.
    fn of(folder: &Path, at: &str, file: PathBuf) -> Self {
        let mut tar = Command::new("tar");
        tar.arg("-cf").arg(&file).args(["--numeric-owner", &format!("--transform=flags=r;s,^\\.,.{at},")]);
        run(tar.arg("-C").arg(folder).arg("."));
        let mut hash = Sha256::new();
        std::io::copy(&mut std::fs::File::open(&file).unwrap(), &mut Hasher(&mut hash)).unwrap();
        let digest = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { file, digest }
    }
}

struct Hasher<'a>(&'a mut Sha256);

impl std::io::Write for Hasher<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Image {
    /// Hands the image to containerd, under the name that the kubelet gives it.
    pub fn import(&self, work: &Path, ctr: impl Fn() -> Command) {
        let folder = work.join(self.name.replace(['/', ':'], "_"));
        std::fs::create_dir(&folder).unwrap();
        let rootfs: Vec<String> =
            self.layers.iter().map(|layer| format!("sha256:{}", layer.digest)).collect();
        let config = json!({
            "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }, "os": "linux",
            "config": self.config, "rootfs": {"type": "layers", "diff_ids": rootfs},
        });
        std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
        let layers: Vec<String> = self.layers.iter().map(|layer| format!("{}.tar", layer.digest)).collect();
        for (layer, name) in self.layers.iter().zip(&layers) {
            std::fs::hard_link(&layer.file, folder.join(name)).unwrap();
        }
        let full = if self.name.contains('/') { self.name.clone() } else { format!("library/{}", self.name) };
        let manifest =
            json!([{"Config": "config.json", "RepoTags": [format!("docker.io/{full}")], "Layers": layers}]);
        std::fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
        let mut tar = Command::new("tar");
        tar.arg("-C").arg(&folder).args(["-cf", "-", "manifest.json", "config.json"]).args(&layers);
        let mut tar = tar.stdout(Stdio::piped()).spawn().unwrap();
        let archive = tar.stdout.take().unwrap();
        run(ctr().args(["images", "import", "-"]).stdin(archive));
        assert!(tar.wait().unwrap().success());
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// All images of the tests but this project's; their layers are written to `work`.
pub fn all(work: &Path) -> Vec<Image> {
    let busybox = busybox(work);
    let asleep = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait; done";
    let mut images = vec![
        Image {
            name: PAUSE.to_owned(),
            layers: vec![busybox.clone()],
            config: json!({"Entrypoint": ["/bin/sh", "-c", asleep]}),
        },
        Image {
            name: BUSYBOX.to_owned(),
            layers: vec![busybox],
            config: json!({"Env": ["PATH=/bin"], "Cmd": ["sh"]}),
        },
    ];
    let root = Layer::of(&cloakroom_testing::needs::path(SPARK_ROOT), "", work.join("spark-root.tar"));
    images.extend(VERSIONS.map(|version| with_spark(version, &root, work)));
    images
}

/// Hands an archive to containerd, under the names that it brings.
pub fn import_archive(archive: &Path, ctr: impl Fn() -> Command) {
    run(ctr().args(["images", "import"]).arg(archive));
}

fn busybox(work: &Path) -> Layer {
    let root = work.join("busybox");
    std::fs::create_dir_all(root.join("bin")).unwrap();
    std::fs::copy("/bin/busybox", root.join("bin/busybox")).unwrap();
    for (folder, mode) in [("tmp", 0o1777), ("etc", 0o755)] {
        std::fs::create_dir(root.join(folder)).unwrap();
        set_mode(&root.join(folder), mode);
    }
    run(Command::new("/bin/busybox").arg("--install").arg("-s").arg(root.join("bin")).env("PATH", ""));
    for entry in std::fs::read_dir(root.join("bin")).unwrap() {
        let link = entry.unwrap().path();
        if link.is_symlink() {
            std::fs::remove_file(&link).unwrap();
            std::os::unix::fs::symlink("/bin/busybox", link).unwrap();
        }
    }
    Layer::of(&root, "", work.join("busybox.tar"))
}

/// As Spark's own image: /opt/spark, user 185, an entrypoint that knows `driver` and `executor`. The examples are in no package: a
/// jar of that name, without a class.
fn with_spark(version: &str, root: &Layer, work: &Path) -> Image {
    let home = cloakroom_testing::needs::path(SPARK_HOMES).join(format!("spark-{version}"));
    let spark = Layer::of(&home, "/opt/spark", work.join(format!("spark-{version}.tar")));
    let folder = work.join(format!("entrypoint-{version}"));
    std::fs::create_dir(&folder).unwrap();
    let entrypoint = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node/spark-entrypoint");
    std::fs::copy(entrypoint, folder.join("entrypoint.sh")).unwrap();
    std::fs::create_dir_all(folder.join("spark/examples/jars")).unwrap();
    std::fs::write(folder.join("spark/examples/jars/spark-examples.jar"), EMPTY_ZIP).unwrap();
    set_mode(&folder, 0o755);
    let entrypoint = Layer::of(&folder, "/opt", work.join(format!("entrypoint-{version}.tar")));
    let java = format!(
        "/usr/lib/jvm/java-17-openjdk-{}",
        if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
    );
    Image {
        name: self::spark(version),
        layers: vec![root.clone(), spark, entrypoint],
        config: json!({
            "User": "185", "WorkingDir": "/opt/spark/work-dir", "Entrypoint": ["/opt/entrypoint.sh"],
            "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "SPARK_HOME=/opt/spark", format!("JAVA_HOME={java}"),
                    format!("JAVA_TOOL_OPTIONS={SHORT_LIVED_JAVA}")],
        }),
    }
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
