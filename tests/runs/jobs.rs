//! The applications that Spark runs here, made from their sources (tests/runs/jobs).

use std::path::{Path, PathBuf};
use std::process::Command;

/// What `words.txt` says.
pub const WORDS: &str = "words of a file";

/// What `page.txt` in `books.tar.gz` says.
pub const PAGE: &str = "a page of a book";

/// Puts into a folder, for the Spark in `home`: `words.jar` and `greeting.jar`, `main.py`, `one_module.py` and `zipped.zip`,
/// `words.txt` and `books.tar.gz`.
pub fn prepare(home: &Path, folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let classes = tempfile::tempdir().unwrap();
    let spark = format!("{}/jars/*", home.display());
    let greeting = classes.path().join("greeting");
    for (jar, class_path) in
        [("greeting", spark.clone()), ("words", format!("{spark}:{}", greeting.display()))]
    {
        let source = sources().join("java").join(jar);
        let target = classes.path().join(jar);
        let files = java_files(&source);
        let javac = ["-nowarn", "--release", "17", "-cp", &class_path, "-d"];
        run(Command::new("javac").args(javac).arg(&target).args(files));
        run(Command::new("jar")
            .arg("cf")
            .arg(folder.join(format!("{jar}.jar")))
            .arg("-C")
            .arg(&target)
            .arg("."));
    }
    let python = sources().join("python");
    for file in ["main.py", "one_module.py"] {
        std::fs::copy(python.join(file), folder.join(file)).unwrap();
    }
    let zip = ["-m", "zipfile", "-c"];
    run(Command::new("python3").current_dir(&python).args(zip).arg(folder.join("zipped.zip")).arg("zipped"));
    std::fs::write(folder.join("words.txt"), format!("{WORDS}\n")).unwrap();
    std::fs::write(classes.path().join("page.txt"), format!("{PAGE}\n")).unwrap();
    let archive = folder.join("books.tar.gz");
    run(Command::new("tar").arg("-czf").arg(archive).arg("-C").arg(classes.path()).arg("page.txt"));
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs/jobs")
}

fn java_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(java_files(&entry));
        } else {
            found.push(entry);
        }
    }
    found
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
