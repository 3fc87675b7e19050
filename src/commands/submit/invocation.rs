//! A command line, and whether it is for this program. Lines that cannot be parsed are decided too.

use std::ffi::OsString;

use anyhow::bail;

use cloakroom_spark::arguments::{CommandLine, CommandLineError, Purpose, Script, Switch, master};
use cloakroom_spark::{SparkConf, keys};

/// A command line.
pub struct Invocation {
    /// The arguments as given; they may not be UTF-8.
    pub arguments: Vec<OsString>,
    script: Option<Script>,
    line: Result<CommandLine, CommandLineError>,
    /// The numbers of the arguments that have carriage returns, from 1 on.
    with_returns: Vec<usize>,
}

impl Invocation {
    /// Parses the arguments after `spark-submit`. Carriage returns are removed first, as Spark's `bin/spark-class` does.
    pub fn read(arguments: Vec<OsString>) -> Self {
        let words = arguments.iter().map(|argument| argument.to_string_lossy());
        let with_returns =
            words.clone().zip(1..).filter(|(word, _)| word.contains('\r')).map(|(_, at)| at).collect();
        let words: Vec<String> = words.map(|word| word.replace('\r', "")).collect();
        let script = words.first().and_then(|first| Script::named(first));
        let line = CommandLine::parse(words.into_iter().skip(usize::from(script.is_some())));
        Self { arguments, script, line, with_returns }
    }

    /// Whether it asks for help, and not for the help of one of Spark's scripts.
    pub fn is_for_help(&self) -> bool {
        self.script.is_none() && self.line.as_ref().is_ok_and(|line| line.has(Switch::Help))
    }

    /// Whether it is about a driver that was submitted before.
    pub fn is_about_a_driver(&self) -> bool {
        let is_given = |line: &CommandLine, purpose| line.value(purpose).is_some();
        self.line.as_ref().is_ok_and(|line| is_given(line, Purpose::Kill) || is_given(line, Purpose::Status))
    }

    /// The parsed line; an empty one if it cannot be parsed.
    pub fn known(&self) -> CommandLine {
        self.line.as_ref().cloned().unwrap_or_default()
    }

    /// Whether it is for this program with these settings: for Kubernetes in cluster mode. A line that cannot be parsed
    /// is, if the line or the settings name Kubernetes.
    pub fn is_for_kubernetes(&self, conf: &SparkConf) -> bool {
        let is_kubernetes = conf.get(&keys::MASTER).is_some_and(|master| master.starts_with("k8s"));
        match &self.line {
            Ok(line) if line.has(Switch::Version) => false,
            Ok(_) => is_kubernetes && (self.is_about_a_driver() || is_cluster_mode(conf)),
            Err(_) => is_kubernetes || self.arguments.iter().any(names_kubernetes),
        }
    }

    /// The parsed line, or the reason why it is no submission and no request about a driver.
    pub fn line(&self) -> anyhow::Result<&CommandLine> {
        if let Some(script) = self.script {
            bail!("{script}; {}", master::EXTERNAL_SUBMITTER_ADVICE);
        }
        Ok(self.line.as_ref().map_err(Clone::clone)?)
    }

    /// A warning about carriage returns in the arguments, if there are any. It shows no argument, which may be a secret.
    pub fn warning(&self) -> Option<String> {
        let first = self.with_returns.first()?;
        let rest = match self.with_returns.len() - 1 {
            0 => String::new(),
            others => format!(" (and {others} more)"),
        };
        Some(format!(
            "argument {first}{rest} has a carriage return (\\r), which is left out: the script that starts this has the line \
             ends of Windows"
        ))
    }

    /// Refuses arguments that are not UTF-8: Kubernetes objects and Spark properties hold only text.
    pub fn check_text(&self) -> anyhow::Result<()> {
        match self.arguments.iter().position(|argument| argument.to_str().is_none()) {
            // The message does not show the argument: it may be a secret.
            Some(at) => bail!("argument {} is not UTF-8: write it in UTF-8", at + 1),
            None => Ok(()),
        }
    }
}

fn is_cluster_mode(conf: &SparkConf) -> bool {
    conf.get(&keys::DEPLOY_MODE) == Some("cluster")
}

fn names_kubernetes(argument: &OsString) -> bool {
    argument.to_string_lossy().contains("k8s://")
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloakroom_spark::Origin;

    fn is_ours(arguments: &[&str], settings: &[(&str, &str)]) -> bool {
        let mut conf = SparkConf::default();
        for (key, value) in settings {
            conf.set(key, *value, Origin::Conf);
        }
        Invocation::read(arguments.iter().map(OsString::from).collect()).is_for_kubernetes(&conf)
    }

    #[test]
    fn only_kubernetes_in_cluster_mode_and_its_drivers_are_for_this_program() {
        let kubernetes = ("spark.master", "k8s://h");
        let cluster = [kubernetes, ("spark.submit.deployMode", "cluster")];
        assert!(is_ours(&["a.jar"], &cluster) && is_ours(&["run-example", "SparkPi"], &cluster));
        assert!(is_ours(&["--kill", "n:p"], &[kubernetes]) && is_ours(&["--status", "n:p"], &[kubernetes]));
        assert!(!is_ours(&["a.jar"], &[kubernetes]));
        assert!(!is_ours(&["a.jar"], &[kubernetes, ("spark.submit.deployMode", "client")]));
        let standalone = [("spark.master", "spark://h"), ("spark.submit.deployMode", "cluster")];
        for arguments in [&["a.jar"][..], &["--kill", "driver-1"], &["--status", "driver-1"]] {
            assert!(!is_ours(arguments, &standalone) && !is_ours(arguments, &[]), "{arguments:?}");
        }
        assert!(!is_ours(&["--version"], &cluster));
    }

    #[test]
    fn carriage_returns_are_removed_and_told_of_once() {
        let read = |arguments: &[&str]| Invocation::read(arguments.iter().map(OsString::from).collect());
        let line = read(&["--name\r", "a", "app.jar\r", "10\r00\r"]);
        assert_eq!(line.known().resource(), Some("app.jar"));
        assert!(line.warning().unwrap().starts_with("argument 1 (and 2 more) has a carriage return (\\r)"));
        assert_eq!(line.arguments[3], "10\r00\r", "a real spark-submit removes them itself");
        assert_eq!(read(&["app.jar"]).warning(), None);
    }

    #[test]
    fn an_unreadable_line_is_ours_if_kubernetes_is_in_it_or_in_the_settings() {
        assert!(is_ours(&["--bogus", "--master=k8s://h", "a.jar"], &[]));
        assert!(is_ours(&["--bogus", "a.jar"], &[("spark.master", "k8s://h")]));
        assert!(!is_ours(&["--bogus", "--master", "yarn", "a.jar"], &[]));
    }
}
