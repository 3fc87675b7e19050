//! The Spark applications of the tests: how they are built from their sources (tests/node/jobs), and what they must
//! print.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Options for a JVM that runs for seconds: for it, the optimising compiler costs more than it saves.
pub const SHORT_LIVED_JAVA: &str = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";

/// The content of `words.txt`.
const WORDS: &str = "words of a file";

/// The content of `page.txt` in `books.tar.gz`.
const PAGE: &str = "a page of a book";

/// A class in `greeting.jar` that executors can use as their serializer.
pub const SERIALIZER: &str = "cloakroom.jobs.Greeting$Serializer";

/// How many tasks each application has.
pub const TASKS: usize = 8;

/// The exit code that the applications end with. No other program uses it.
pub const EXIT_CODE: i32 = 3;

/// An application.
#[derive(Debug, Clone, Copy)]
pub enum Job {
    /// `Words.java`: its class is in one jar, a class that its tasks use in another; a file, and an archive.
    Java,
    /// `main.py`: its tasks import a module and a package in a zip; a file, and an archive.
    Python,
}

impl Job {
    pub fn name(self) -> &'static str {
        match self {
            Self::Java => "java",
            Self::Python => "python",
        }
    }

    /// The names of its files.
    pub fn files(self) -> Vec<&'static str> {
        match self {
            Self::Java => vec!["books.tar.gz", "greeting.jar", "words.jar", "words.txt"],
            Self::Python => vec!["books.tar.gz", "main.py", "one_module.py", "words.txt", "zipped.zip"],
        }
    }

    /// spark-submit's arguments; `place` returns where a file is.
    pub fn arguments(self, place: impl Fn(&str) -> String) -> Vec<String> {
        let arguments = match self {
            Self::Java => vec![
                "--class".to_owned(),
                "cloakroom.jobs.Words".to_owned(),
                "--jars".to_owned(),
                place("greeting.jar"),
                "--files".to_owned(),
                place("words.txt"),
                "--archives".to_owned(),
                format!("{}#books", place("books.tar.gz")),
                place("words.jar"),
            ],
            Self::Python => vec![
                "--py-files".to_owned(),
                format!("{},{}", place("one_module.py"), place("zipped.zip")),
                "--files".to_owned(),
                place("words.txt"),
                "--archives".to_owned(),
                format!("{}#books", place("books.tar.gz")),
                place("main.py"),
            ],
        };
        [arguments, vec![EXIT_CODE.to_string()]].concat()
    }

    /// What is wrong with a driver's log, if anything. The driver and all tasks, which run on executors, must have seen
    /// every file.
    pub fn complaint(log: &str) -> Option<String> {
        let lines: Vec<&str> = log.lines().filter(|line| line.starts_with("seen by ")).collect();
        let on_driver = format!("seen by driver: {}", seen(0));
        if !lines.contains(&&*on_driver) {
            return Some(format!("no “{on_driver}”"));
        }
        (1..=TASKS).map(seen).find_map(|seen| {
            let line = lines.iter().find(|line| line.ends_with(&format!(": {seen}")));
            let is_on_executor = line.is_some_and(|line| !line.starts_with("seen by driver:"));
            (!is_on_executor).then(|| format!("no executor says “{seen}”"))
        })
    }

    /// The same for a driver of [`Job::Java`] whose executors were told where to find the staged files.
    pub fn complaint_of_executors(log: &str) -> Option<String> {
        let opened = format!(": file {WORDS}, by {SERIALIZER}");
        let lines: Vec<&str> = log.lines().filter(|line| line.starts_with("opened by ")).collect();
        if lines.len() != TASKS {
            return Some(format!("{} of {TASKS} tasks opened it", lines.len()));
        }
        let is_wrong = |line: &&&str| line.starts_with("opened by driver") || !line.ends_with(&opened);
        lines.iter().find(is_wrong).map(|line| format!("not “{opened}” on an executor: {line}"))
    }
}

fn seen(task: usize) -> String {
    format!("hello task {task}, file {WORDS}, beside {WORDS}, archive {PAGE}")
}

/// Builds the files of all applications in a folder, for the Spark in `home`: `words.jar` and `greeting.jar`,
/// `main.py`, `one_module.py` and `zipped.zip`, `words.txt` and `books.tar.gz`.
pub fn prepare(home: &Path, folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let work = tempfile::tempdir().unwrap();
    for (class, jar) in [("Greeting", "greeting.jar"), ("Words", "words.jar")] {
        zip(&compile(home, class, work.path()), "cloakroom", &folder.join(jar));
    }
    zip(&sources(), "zipped", &folder.join("zipped.zip"));
    for file in ["main.py", "one_module.py"] {
        std::fs::copy(sources().join(file), folder.join(file)).unwrap();
    }
    std::fs::write(folder.join("words.txt"), format!("{WORDS}\n")).unwrap();
    std::fs::write(work.path().join("page.txt"), format!("{PAGE}\n")).unwrap();
    let archive = folder.join("books.tar.gz");
    run(Command::new("tar").arg("-czf").arg(archive).arg("-C").arg(work.path()).arg("page.txt"));
}

/// Compiles one Java class, without the classes that it uses, into a folder below `work`.
fn compile(home: &Path, class: &str, work: &Path) -> PathBuf {
    let target = work.join(class);
    let class_path = format!("{}/jars/*:{}", home.display(), work.join("Greeting").display());
    let source = sources().join(format!("{class}.java"));
    let mut javac = Command::new("javac");
    javac.env("JAVA_TOOL_OPTIONS", SHORT_LIVED_JAVA).args(["--release", "17", "-cp", &class_path]);
    run(javac.arg("-d").arg(&target).arg(source));
    target
}

/// Zips a folder, under its own name.
fn zip(parent: &Path, folder: &str, archive: &Path) {
    run(Command::new("python3").current_dir(parent).args(["-m", "zipfile", "-c"]).arg(archive).arg(folder));
}

fn sources() -> PathBuf {
    crate::project().join("tests/node/jobs")
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
