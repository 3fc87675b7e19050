//! The application of the documentation's examples: `app.jar`, `lib/dep.jar` and the files beside them.

use std::path::Path;
use std::process::Command;

use cloakroom_testing::jobs::SHORT_LIVED_JAVA;
use cloakroom_testing::needs::path;

use crate::images::{SPARK_HOMES, VERSIONS};

/// What its driver prints when all jars are there.
pub const COUNTED: &str = "counted 9900";

/// Puts all files into a folder, under the names that the documentation gives them.
pub fn prepare(folder: &Path) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node/example");
    let jars = path(SPARK_HOMES).join(format!("spark-{}/jars/*", VERSIONS[1]));
    let work = tempfile::tempdir_in(folder).unwrap();
    let mut class_path = jars.display().to_string();
    for (class, jar) in [("Dep", "lib/dep.jar"), ("App", "target/app.jar")] {
        let classes = work.path().join(class);
        let mut javac = Command::new("javac");
        javac.env("JAVA_TOOL_OPTIONS", SHORT_LIVED_JAVA).args(["--release", "17", "-cp", &class_path, "-d"]);
        run(javac.arg(&classes).arg(sources.join(format!("{class}.java"))));
        class_path = format!("{class_path}:{}", classes.display());
        let jar = folder.join(jar);
        std::fs::create_dir_all(jar.parent().unwrap()).unwrap();
        run(Command::new("python3").current_dir(&classes).args(["-m", "zipfile", "-c"]).arg(&jar).arg("org"));
    }
    std::fs::copy(folder.join("target/app.jar"), folder.join("app.jar")).unwrap();
    std::fs::copy(folder.join("lib/dep.jar"), folder.join("dep.jar")).unwrap();
    for (file, text) in [("data.txt", "some data\n"), ("prod.conf", "a setting\n"), ("page.txt", "a page\n")]
    {
        std::fs::write(folder.join(file), text).unwrap();
    }
    run(Command::new("tar").current_dir(folder).args(["-czf", "env.tar.gz", "page.txt"]));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
