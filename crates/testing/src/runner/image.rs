//! Images: a root file system, its user, and its entrypoint.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::jobs::SHORT_LIVED_JAVA;

/// An image that the runner knows by its name.
pub struct Image {
    pub name: String,
    /// The files that are copied by hard links for each container.
    pub root: PathBuf,
    /// Folders and files of this machine that the image shows, with their targets.
    pub shown: Vec<(PathBuf, String)>,
    pub environment: Vec<(String, String)>,
    pub user: u32,
    pub group: u32,
    pub folder: String,
    pub entrypoint: Entrypoint,
}

/// The program that an image starts with a container's arguments.
pub enum Entrypoint {
    /// A program that gets all arguments.
    Program(Vec<String>),
    /// The first argument decides, as in Spark's own image.
    Spark,
}

impl Image {
    /// An image with this machine's programs only: a user's files are visible only through a volume or
    /// [`Self::showing`].
    pub fn of_this_machine(name: &str, folder: &Path) -> Self {
        let root = folder.join(name.replace(['/', ':'], "_"));
        let mut shown = vec![(PathBuf::from("/usr"), "/usr".to_owned())];
        for top in ["bin", "lib", "lib32", "lib64", "libx32", "sbin"] {
            let path = Path::new("/").join(top);
            if let Ok(link) = std::fs::read_link(&path) {
                create(&root);
                std::os::unix::fs::symlink(link, root.join(top)).unwrap();
            } else if path.is_dir() {
                shown.push((path.clone(), format!("/{top}")));
            }
        }
        for kept in ["etc", "opt", "run", "var"] {
            create(&root.join(kept));
        }
        for open in ["tmp", "var/tmp"] {
            create(&root.join(open));
            set_mode(&root.join(open), 0o1777);
        }
        copy_settings(&root.join("etc"));
        let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        Self {
            name: name.to_owned(),
            root,
            shown,
            environment: vec![("PATH".to_owned(), path.to_owned())],
            user: 0,
            group: 0,
            folder: "/".to_owned(),
            entrypoint: Entrypoint::Program(Vec::new()),
        }
    }

    /// Spark's own image, of the distribution in `home`: user 185, `/opt/spark`, its working folder.
    pub fn spark(name: &str, home: &Path, folder: &Path) -> Self {
        let mut image = Self::of_this_machine(name, folder);
        for part in ["bin", "jars", "python"] {
            if home.join(part).exists() {
                image.shown.push((home.join(part), format!("/opt/spark/{part}")));
            }
        }
        let work = image.root.join("opt/spark/work-dir");
        create(&work);
        std::os::unix::fs::chown(&work, Some(SPARK_USER), Some(SPARK_USER)).unwrap();
        set_mode(&work, 0o775);
        append(&image.root.join("etc/passwd"), "spark:x:185:185::/opt/spark:/bin/sh\n");
        append(&image.root.join("etc/group"), "spark:x:185:\n");
        image.show_java();
        image.show_python();
        image.set("SPARK_HOME", "/opt/spark");
        image.set("HOME", "/opt/spark");
        image.set("JAVA_TOOL_OPTIONS", SHORT_LIVED_JAVA);
        (image.user, image.group) = (SPARK_USER, SPARK_USER);
        "/opt/spark/work-dir".clone_into(&mut image.folder);
        image.entrypoint = Entrypoint::Spark;
        image
    }

    /// This project's image, as its Dockerfile lays it out.
    pub fn cloakroom(name: &str, folder: &Path) -> Self {
        let root = folder.join("cloakroom");
        crate::dist::lay_out(&root);
        Self {
            name: name.to_owned(),
            root,
            shown: Vec::new(),
            environment: vec![("CLOAKROOM_DATA_DIR".to_owned(), "/var/lib/cloakroom".to_owned())],
            user: 65532,
            group: 65532,
            folder: "/var/lib/cloakroom".to_owned(),
            entrypoint: Entrypoint::Program(vec!["/usr/bin/cloakroom".to_owned()]),
        }
    }

    /// The same image with another file or folder of this machine in it.
    pub fn showing(mut self, source: &Path, target: &str) -> Self {
        self.shown.push((source.to_owned(), target.to_owned()));
        self
    }

    fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Shows Java at its own path if it is not below `/usr`.
    fn show_java(&mut self) {
        let program = which("java").canonicalize().unwrap();
        let home = program.ancestors().nth(2).unwrap().to_str().unwrap().to_owned();
        self.show_in_place(&home);
        self.set("JAVA_HOME", &home);
    }

    fn show_python(&mut self) {
        let question = "import sys; print(sys.base_prefix)";
        let output = Command::new("python3").args(["-c", question]).output().unwrap();
        let prefix = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        self.show_in_place(&prefix);
        let path = &mut self.environment.iter_mut().find(|(name, _)| name == "PATH").unwrap().1;
        *path = format!("{prefix}/bin:{path}");
    }

    fn show_in_place(&mut self, path: &str) {
        if path != "/usr" && !path.starts_with("/usr/") {
            self.shown.push((PathBuf::from(path), path.to_owned()));
        }
    }
}

/// The user of Spark's own images.
const SPARK_USER: u32 = 185;

/// Copies the settings that programs below `/usr` read: users, library paths, Java's settings, certificates.
fn copy_settings(etc: &Path) {
    std::fs::write(etc.join("passwd"), "root:x:0:0:root:/root:/bin/sh\n").unwrap();
    std::fs::write(etc.join("group"), "root:x:0:\n").unwrap();
    std::fs::write(etc.join("nsswitch.conf"), "hosts: files\n").unwrap();
    let entries = std::fs::read_dir("/etc").unwrap().map(|entry| entry.unwrap().path());
    let is_wanted = |name: &str| {
        name.starts_with("ld.so.") || name.starts_with("java") || ["alternatives", "ssl"].contains(&name)
    };
    let wanted: Vec<PathBuf> =
        entries.filter(|path| is_wanted(path.file_name().unwrap().to_str().unwrap())).collect();
    assert!(Command::new("cp").arg("-a").args(wanted).arg(etc).status().unwrap().success());
}

fn which(program: &str) -> PathBuf {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).map(|folder| folder.join(program)).find(|path| path.is_file()).unwrap()
}

fn create(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn append(path: &Path, line: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, text + line).unwrap();
}
