//! Splits a command line as `SparkSubmitOptionParser` does, before any default is known.

use cloakroom_core::suggestions::nearest;
use thiserror::Error;

use super::options::{self, Purpose, Spec, Switch};
use crate::{DependencyUri, Origin, keys};

/// The reason why a command line is refused, as spark-submit would also refuse it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommandLineError {
    /// There is no such option.
    #[error("unrecognized option `{option}`{}; see --help", hint(.nearest.as_deref()))]
    Unrecognized { option: String, nearest: Option<String> },
    /// The last option needs a value.
    #[error("missing argument for option `{option}`; see --help")]
    MissingArgument { option: String },
    /// The line has more than one of `--kill` and `--status`. Spark does one job for each call.
    #[error(
        "`{option}` is one job too many: give either --kill or --status, and only once; NS:PREFIX* names \
         several drivers"
    )]
    SecondJob { option: &'static str },
    /// A `--conf` has no `=`. The message shows the argument only if it looks like a key, because it may be a secret.
    #[error("invalid argument to --conf: {} has no `=`; write KEY=VALUE", shown_key(.argument))]
    NotASetting { argument: String },
    /// A switch that only cloakroom has is followed by `=` and a value. Spark's own switches ignore such a value.
    #[error("`{option}` takes no value: write it alone, or leave it out; see --help")]
    SwitchWithValue { option: &'static str },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// Returns the text for a message if it looks like a key, and not like a value.
fn shown_key(argument: &str) -> String {
    let is_key = argument.starts_with(keys::PREFIX) && !argument.contains(char::is_whitespace);
    if is_key { format!("`{argument}`") } else { "an argument that is not shown".to_owned() }
}

/// One `--conf`, split at the first `=` and not trimmed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Conf {
    pub key: String,
    pub value: String,
    pub origin: Origin,
}

/// The parts of a command line, each in the order in which it was written.
#[derive(Clone, Default)]
pub struct CommandLine {
    /// Options that set a key, a list of dependencies, or another single value.
    pub(super) options: Vec<(&'static Spec, String)>,
    /// Each `--conf`, and each option that is another form of it.
    pub(super) conf: Vec<Conf>,
    switches: Vec<Switch>,
    /// The primary resource: the first argument that is no option.
    pub(super) resource: Option<String>,
    /// The arguments after the primary resource, unchanged.
    pub(super) arguments: Vec<String>,
    /// The option before the primary resource, if its list ends with a comma.
    open_list: Option<&'static str>,
}

impl CommandLine {
    /// Splits the arguments after `spark-submit`.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, CommandLineError> {
        let mut line = Self::default();
        let mut arguments = arguments.into_iter();
        let mut open_list = None;
        while let Some(argument) = arguments.next() {
            let (name, inline) = split_inline(&argument);
            let Some(spec) = options::find(name) else {
                line.resource = Some(resource(argument)?);
                line.open_list = open_list;
                line.arguments = arguments.collect();
                break;
            };
            if let Purpose::Switch(switch) = spec.purpose {
                if inline.is_some() && options::OWN.contains(&spec.name) {
                    return Err(CommandLineError::SwitchWithValue { option: spec.name });
                }
                line.switches.push(switch);
                continue;
            }
            let missing = || CommandLineError::MissingArgument { option: name.to_owned() };
            let value = inline.map(str::to_owned).or_else(|| arguments.next()).ok_or_else(missing)?;
            let is_list = matches!(spec.purpose, Purpose::Dependencies(_));
            open_list = Some(spec.name).filter(|_| is_list && value.trim_end().ends_with(','));
            line.take(spec, value)?;
        }
        Ok(line)
    }

    /// Whether an argument is an option of spark-submit, other than options that every program has.
    pub fn is_option(argument: &str) -> bool {
        let (name, _) = split_inline(argument);
        options::find(name)
            .is_some_and(|spec| !matches!(spec.purpose, Purpose::Switch(Switch::Help | Switch::Version)))
    }

    /// Whether a switch was given.
    pub fn has(&self, switch: Switch) -> bool {
        self.switches.contains(&switch)
    }

    /// The primary resource, as it was written.
    pub fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }

    /// The application's arguments, as they were written.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// The last value of an option.
    pub fn value(&self, purpose: Purpose) -> Option<&str> {
        let values = self.options.iter().rev();
        values.into_iter().find(|(spec, _)| spec.purpose == purpose).map(|(_, value)| value.as_str())
    }

    /// One line for each option that was given and has no effect here.
    pub fn ignored(&self) -> Vec<String> {
        let elsewhere = self.options.iter().filter_map(|(spec, _)| match spec.purpose {
            Purpose::Elsewhere(manager) => Some((spec.name, manager)),
            _ => None,
        });
        let supervise = self.has(Switch::Supervise).then_some(("--supervise", options::STANDALONE));
        elsewhere
            .chain(supervise)
            .map(|(name, manager)| format!("{name} is for {manager} and does nothing on Kubernetes"))
            .chain(self.behind_the_application())
            .chain(self.broken_list())
            .collect()
    }

    /// `--jars a.jar, b.jar app.jar`: with the blank, `b.jar` is the application. A script that makes the list may have left
    /// the comma there, so it is no error.
    fn broken_list(&self) -> Option<String> {
        let (option, resource) = self.open_list.zip(self.resource.as_deref())?;
        let shown =
            DependencyUri::parse(resource).map_or_else(|_| "what follows".to_owned(), |uri| uri.redacted());
        Some(format!(
            "the list of {option} ends with a comma, and {shown} is taken as the application: write lists without blanks if \
             it belongs to the list"
        ))
    }

    fn has_job(&self) -> bool {
        self.options.iter().any(|(spec, _)| matches!(spec.purpose, Purpose::Kill | Purpose::Status))
    }

    /// Options of cloakroom after the application, which gets them as arguments. Options of spark-submit are left out,
    /// because they may be meant for the application.
    fn behind_the_application(&self) -> impl Iterator<Item = String> {
        let names = self.arguments.iter().map(|argument| split_inline(argument).0);
        names.filter(|name| options::OWN.contains(name)).map(|name| {
            format!(
                "{name} comes after the application, which gets it as an argument: write options before the \
                 application"
            )
        })
    }

    fn take(&mut self, spec: &'static Spec, value: String) -> Result<(), CommandLineError> {
        let conf = match spec.purpose {
            Purpose::Conf(key) => Conf { key: key.to_owned(), value, origin: Origin::Option(spec.name) },
            Purpose::AnyConf => match value.split_once('=') {
                Some((key, value)) => {
                    Conf { key: key.to_owned(), value: value.to_owned(), origin: Origin::Conf }
                }
                None => return Err(CommandLineError::NotASetting { argument: value }),
            },
            Purpose::Kill | Purpose::Status if self.has_job() => {
                return Err(CommandLineError::SecondJob { option: spec.name });
            }
            _ => {
                self.options.push((spec, value));
                return Ok(());
            }
        };
        self.conf.push(conf);
        Ok(())
    }
}

/// Splits `--name=value` as `(--[^=]+)=(.+)`; a text without a value stays whole.
fn split_inline(argument: &str) -> (&str, Option<&str>) {
    match argument.split_once('=') {
        Some((name, value)) if name.len() > 2 && name.starts_with("--") && !value.is_empty() => {
            (name, Some(value))
        }
        _ => (argument, None),
    }
}

fn resource(argument: String) -> Result<String, CommandLineError> {
    if !argument.starts_with('-') {
        return Ok(argument);
    }
    let (name, _) = split_inline(&argument);
    let nearest = nearest(name, options::OPTIONS.iter().map(|spec| spec.name)).map(str::to_owned);
    Err(CommandLineError::Unrecognized { option: name.to_owned(), nearest })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> Result<CommandLine, CommandLineError> {
        CommandLine::parse(line.iter().map(|&word| word.to_owned()))
    }

    #[test]
    fn arguments_after_the_application_are_its_own_whatever_they_look_like() {
        let line = parse(&["--name", "x", "local:///a.jar", "--name", "y", "--", "", "-h", "a=b"]).unwrap();
        assert_eq!(line.resource.as_deref(), Some("local:///a.jar"));
        assert_eq!(line.arguments, ["--name", "y", "--", "", "-h", "a=b"]);
        assert_eq!(line.value(Purpose::Setting("spark.app.name")), Some("x"));
        assert!(!line.has(Switch::Help));
    }

    #[test]
    fn a_list_with_a_blank_in_it_is_told_with_what_became_the_application() {
        let warned = |words: &[&str]| parse(words).unwrap().ignored();
        let broken = warned(&["--jars", "a.jar,", "https://u:hush@h/b.jar?sig=hush", "app.jar"]);
        assert_eq!(broken.len(), 1, "{broken:?}");
        assert!(
            broken[0].contains("--jars ends with a comma, and https://h/b.jar is taken as"),
            "{broken:?}"
        );
        for words in
            [&["--jars", "a.jar,b.jar", "app.jar"][..], &["--jars", "a.jar,", "--name", "x", "app.jar"]]
        {
            assert!(warned(words).is_empty(), "{words:?}");
        }
    }

    #[test]
    fn a_value_may_stand_behind_an_equals_sign_and_the_last_one_wins() {
        let line = parse(&["--name=a", "--name=b=c", "--conf=spark.x= y=z "]).unwrap();
        assert_eq!(line.value(Purpose::Setting("spark.app.name")), Some("b=c"));
        let conf: Vec<_> = line.conf.iter().map(|conf| (conf.key.as_str(), conf.value.as_str())).collect();
        assert_eq!(conf, [("spark.x", " y=z ")]);
    }

    #[test]
    fn a_value_may_look_like_an_option() {
        let line = parse(&["--driver-java-options", "--verbose", "-c", "spark.a=1"]).unwrap();
        assert_eq!(line.conf[0].value, "--verbose");
        assert!(!line.has(Switch::Verbose));
    }

    #[test]
    fn the_refusal_of_an_invalid_command_line_suggests_the_option_meant() {
        let text = |line: &[&str]| parse(line).err().map(|error| error.to_string());
        assert_eq!(
            text(&["--driver-memroy=2g", "x.jar"]).unwrap(),
            "unrecognized option `--driver-memroy`; did you mean `--driver-memory`?; see --help"
        );
        assert_eq!(text(&["--bogus"]).unwrap(), "unrecognized option `--bogus`; see --help");
        assert_eq!(text(&["--name"]).unwrap(), "missing argument for option `--name`; see --help");
        assert_eq!(
            text(&["--conf", "spark.foo"]).unwrap(),
            "invalid argument to --conf: `spark.foo` has no `=`; write KEY=VALUE"
        );
        let secret = text(&["--conf", "hunter2"]).unwrap();
        assert_eq!(
            secret,
            "invalid argument to --conf: an argument that is not shown has no `=`; write KEY=VALUE"
        );
        for second in ["--kill", "--status"] {
            let said = text(&["--kill", "a:b", second, "a:c"]).unwrap();
            assert!(said.starts_with(&format!("`{second}` is one job too many")), "{said}");
        }
    }

    #[test]
    fn a_switch_of_this_program_takes_no_value_and_those_of_spark_take_any() {
        for value in ["false", "maybe", "true"] {
            let said = parse(&[&format!("--dry-run={value}"), "x.jar"]).err().unwrap().to_string();
            assert_eq!(said, "`--dry-run` takes no value: write it alone, or leave it out; see --help");
        }
        assert!(parse(&["--verbose=false", "x.jar"]).unwrap().has(Switch::Verbose));
    }

    #[test]
    fn options_of_other_cluster_managers_are_taken_and_do_nothing() {
        let line = parse(&["--queue", "q", "--supervise", "x.jar"]).unwrap();
        assert_eq!(
            line.ignored(),
            [
                "--queue is for YARN and does nothing on Kubernetes",
                "--supervise is for Spark's standalone cluster and does nothing on Kubernetes",
            ]
        );
    }

    #[test]
    fn an_option_of_this_program_behind_the_application_is_told() {
        let line =
            parse(&["x.jar", "--verbose", "--dry-run", "--kubernetes-namespace=x", "--dry-runs"]).unwrap();
        let told = line.ignored();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("--dry-run comes after the application"), "{told:?}");
        assert!(told[1].starts_with("--kubernetes-namespace comes after"), "{told:?}");
        assert_eq!(line.arguments().len(), 4, "they are the application's all the same");
    }
}
