//! What `--verbose` says on stderr: what was understood, in the words of spark-submit.

use cloakroom::spark::arguments::{CommandLine, OPTIONS, Purpose};
use cloakroom::spark::conf::shown_redacted;
use cloakroom::spark::{SparkConf, SubmitArguments};

/// The options as they were given, and the settings that they come to.
pub fn parsed(line: &CommandLine, conf: &SparkConf) -> String {
    let mut text = String::from("Parsed arguments:\n");
    for spec in OPTIONS.iter().filter(|spec| !matches!(spec.purpose, Purpose::Switch(_) | Purpose::Conf)) {
        let value = line.value(spec.purpose).unwrap_or("null");
        text.push_str(&format_line(spec.name.trim_start_matches('-'), value));
    }
    text.push_str(&format_line("primaryResource", line.resource().unwrap_or("null")));
    text.push_str(&format_line("childArgs", &format!("[{}]", line.arguments().join(" "))));
    text.push_str("\nSpark properties used, including those specified through\n");
    text.push_str(" --conf and those from the properties files:\n");
    for (key, value) in conf.iter() {
        text.push_str("  ");
        text.push_str(&shown_redacted(key, value));
        text.push('\n');
    }
    text
}

/// The application, and every setting that its driver gets.
pub fn application(arguments: &SubmitArguments) -> String {
    let settings: Vec<_> = arguments.conf.iter().map(|(key, value)| shown_redacted(key, value)).collect();
    format!(
        "Main class:\n{}\nArguments:\n{}\nSpark config:\n{}\n",
        arguments.main_class,
        arguments.arguments.join("\n"),
        settings.join("\n")
    )
}

fn format_line(name: &str, value: &str) -> String {
    format!("  {name:<23} {value}\n")
}
