//! Spark's own scripts, which start spark-submit with a special word before its options.

use std::fmt;

/// A word that is special only as the first argument (`SparkSubmitCommandBuilder`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// `pyspark-shell-main`, of `bin/pyspark`.
    PythonShell,
    /// `sparkr-shell-main`, of `bin/sparkR`.
    RShell,
    /// `run-example`, of `bin/run-example`.
    Example,
}

impl Script {
    /// The script that starts spark-submit with this word; `None` if there is none.
    pub fn named(first: &str) -> Option<Self> {
        [Self::PythonShell, Self::RShell, Self::Example].into_iter().find(|script| script.word() == first)
    }

    fn word(self) -> &'static str {
        match self {
            Self::PythonShell => "pyspark-shell-main",
            Self::RShell => "sparkr-shell-main",
            Self::Example => "run-example",
        }
    }
}

/// A description of the word, for refusals.
impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::PythonShell => {
                "the word by which bin/pyspark starts a Python shell, with its driver on this machine"
            }
            Self::RShell => "the word by which bin/sparkR starts an R shell, with its driver on this machine",
            Self::Example => {
                "the word by which bin/run-example starts an example of the Spark that is installed here: submit \
                 --class org.apache.spark.examples.NAME local:///opt/spark/examples/jars/spark-examples.jar, which \
                 Spark's image has"
            }
        };
        write!(f, "`{}` is {what}", self.word())
    }
}
