//! A command line, and whether it is for this program, also where it cannot be read.

use std::ffi::OsString;

use anyhow::bail;

use cloakroom_spark::arguments::{CommandLine, CommandLineError, Purpose, Script, Switch, master};
use cloakroom_spark::{SparkConf, keys};

/// A command line.
pub struct SubmitRequest {
    /// As they were given: they may be no text.
    pub arguments: Vec<OsString>,
    script: Option<Script>,
    line: Result<CommandLine, CommandLineError>,
}

impl SubmitRequest {
    /// Splits the arguments behind `spark-submit`.
    pub fn read(arguments: Vec<OsString>) -> Self {
        let words: Vec<String> =
            arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
        let script = words.first().and_then(|first| Script::of(first));
        let line = CommandLine::parse(words.into_iter().skip(usize::from(script.is_some())));
        Self { arguments, script, line }
    }

    /// Whether it is `--help`, and not that of one of Spark's scripts.
    pub fn is_for_help(&self) -> bool {
        self.script.is_none() && self.line.as_ref().is_ok_and(|line| line.has(Switch::Help))
    }

    /// Whether it is about a driver that was submitted before.
    pub fn is_about_a_driver(&self) -> bool {
        let is_given = |line: &CommandLine, purpose| line.value(purpose).is_some();
        self.line.as_ref().is_ok_and(|line| is_given(line, Purpose::Kill) || is_given(line, Purpose::Status))
    }

    /// The line; an empty one where it cannot be read.
    pub fn known(&self) -> CommandLine {
        self.line.as_ref().cloned().unwrap_or_default()
    }

    /// Whether it is for this program with these settings: for Kubernetes in cluster mode, or perhaps so, where the line
    /// cannot be read.
    pub fn is_for_kubernetes(&self, conf: &SparkConf) -> bool {
        let is_kubernetes = conf.get(&keys::MASTER).is_some_and(|master| master.starts_with("k8s"));
        match &self.line {
            Ok(line) if line.has(Switch::Version) => false,
            Ok(_) => is_kubernetes && (self.is_about_a_driver() || is_cluster_mode(conf)),
            Err(_) => is_kubernetes || self.arguments.iter().any(names_kubernetes),
        }
    }

    /// The line, where it can be read as an application's or a driver's.
    pub fn line(&self) -> anyhow::Result<&CommandLine> {
        if let Some(script) = self.script {
            bail!("{script}; {}", master::HAND_OVER);
        }
        Ok(self.line.as_ref().map_err(Clone::clone)?)
    }

    /// Kubernetes' objects and Spark's properties have text only.
    pub fn check_text(&self) -> anyhow::Result<()> {
        match self.arguments.iter().position(|argument| argument.to_str().is_none()) {
            // It may be a secret.
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
        SubmitRequest::read(arguments.iter().map(OsString::from).collect()).is_for_kubernetes(&conf)
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
    fn a_line_that_cannot_be_read_is_for_this_program_where_kubernetes_is_in_it_or_in_the_settings() {
        assert!(is_ours(&["--bogus", "--master=k8s://h", "a.jar"], &[]));
        assert!(is_ours(&["--bogus", "a.jar"], &[("spark.master", "k8s://h")]));
        assert!(!is_ours(&["--bogus", "--master", "yarn", "a.jar"], &[]));
    }
}
