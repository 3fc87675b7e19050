//! The output of `--verbose` on stderr: the parsed arguments and settings, in spark-submit's words and order.

use std::cmp::Reverse;

use cloakroom_spark::arguments::{CommandLine, Purpose, Switch};
use cloakroom_spark::conf::shown_redacted;
use cloakroom_spark::{DependencyUri, MainResource, RemoteUri, SparkConf, SubmitArguments, keys, split_list};

/// Spark's names for settings, with their keys, in Spark's order.
const SETTINGS: [(&str, &str); 6] = [
    ("master", keys::MASTER.name()),
    ("remote", keys::REMOTE.name()),
    ("deployMode", keys::DEPLOY_MODE.name()),
    ("executorMemory", keys::EXECUTOR_MEMORY.name()),
    ("executorCores", keys::EXECUTOR_CORES.name()),
    ("totalExecutorCores", keys::MOST_CORES.name()),
];
const SETTINGS_OF_THE_DRIVER: [(&str, &str); 5] = [
    ("driverMemory", keys::DRIVER_MEMORY.name()),
    ("driverCores", keys::DRIVER_CORES.name()),
    ("driverExtraClassPath", keys::DRIVER_CLASS_PATH.name()),
    ("driverExtraLibraryPath", keys::DRIVER_LIBRARY_PATH.name()),
    ("driverExtraJavaOptions", keys::DRIVER_JAVA_OPTIONS.name()),
];
const SETTINGS_OF_DEPENDENCIES: [(&str, &str); 4] = [
    ("numExecutors", keys::EXECUTOR_INSTANCES.name()),
    ("files", keys::FILES.name()),
    ("pyFiles", keys::PY_FILES.name()),
    ("archives", keys::ARCHIVES.name()),
];
const SETTINGS_OF_JARS: [(&str, &str); 4] = [
    ("jars", keys::JARS.name()),
    ("packages", keys::PACKAGES.name()),
    ("packagesExclusions", keys::EXCLUDED_PACKAGES.name()),
    ("repositories", keys::REPOSITORIES.name()),
];

/// The options as given, and the resulting settings.
pub fn parsed(line: &CommandLine, conf: &SparkConf) -> String {
    let all = arguments(line, conf).into_iter().map(|(name, value)| {
        let value = redacted(name, value.as_deref().unwrap_or("null"));
        format!("  {name:<23} {value}")
    });
    let settings = conf.iter().map(|(key, value)| format!("  {}", shown_redacted(key, value)));
    let between = [
        String::new(),
        "Spark properties used, including those specified through".to_owned(),
        " --conf and those from the properties files:".to_owned(),
    ];
    let lines = ["Parsed arguments:".to_owned()].into_iter().chain(all).chain(between).chain(settings);
    unsigned(lines.collect::<Vec<_>>().join("\n") + "\n", conf, line.resource())
}

/// Name and value of each argument.
fn arguments(line: &CommandLine, conf: &SparkConf) -> Vec<(&'static str, Option<String>)> {
    let of = |settings: &[(&'static str, &str)]| -> Vec<_> {
        settings.iter().map(|(name, key)| (*name, conf.get(key).map(str::to_owned))).collect()
    };
    let given = |purpose| line.value(purpose).map(str::to_owned);
    let resource = line.resource().map(str::to_owned);
    let name = conf.get(&keys::APP_NAME).map(str::to_owned).or_else(|| given(Purpose::Class));
    let mut all = of(&SETTINGS);
    all.push(("propertiesFile", given(Purpose::PropertiesFile)));
    all.extend(of(&SETTINGS_OF_THE_DRIVER));
    all.push(("supervise", Some(line.has(Switch::Supervise).to_string())));
    all.push(("queue", given(Purpose::Elsewhere("YARN"))));
    all.extend(of(&SETTINGS_OF_DEPENDENCIES));
    all.push(("mainClass", given(Purpose::Class)));
    all.push(("primaryResource", resource.clone()));
    all.push(("name", name.or(resource)));
    all.push(("childArgs", Some(format!("[{}]", line.arguments().join(" ")))));
    all.extend(of(&SETTINGS_OF_JARS));
    all.push(("verbose", Some(true.to_string())));
    all
}

/// The application, and every setting that its driver gets.
pub fn application(arguments: &SubmitArguments) -> String {
    let resource = match &arguments.resource {
        MainResource::Java(uri) => ["--primary-java-resource", uri],
        MainResource::Python(uri) => ["--primary-py-file", uri],
        MainResource::R(uri) => ["--primary-r-file", uri],
    };
    let own = arguments.arguments.iter().flat_map(|argument| ["--arg", argument]);
    let all = resource.into_iter().chain(["--main-class", &arguments.main_class]).chain(own);
    let settings: Vec<_> = arguments.conf.iter().map(|(key, value)| shown_redacted(key, value)).collect();
    let text = format!(
        "Main class:\norg.apache.spark.deploy.k8s.submit.KubernetesClientApplication\nArguments:\n{}\nSpark \
         config:\n{}\n",
        all.collect::<Vec<_>>().join("\n"),
        settings.join("\n")
    );
    unsigned(text, &arguments.conf, Some(arguments.resource.uri()))
}

/// Removes possible secrets from addresses that the init-container fetches. Spark has no such feature, and shows
/// addresses as they are.
fn unsigned(text: String, conf: &SparkConf, resource: Option<&str>) -> String {
    // A value that is no boolean is refused later, so nothing is fetched.
    if !matches!(conf.read(&keys::CLOAKROOM_FETCH_REMOTE), Ok(Some(true))) {
        return text;
    }
    let texts = keys::DEPENDENCY_LISTS.into_iter().filter_map(|key| conf.get(key)).chain(resource);
    let mut addresses: Vec<RemoteUri> = texts.flat_map(split_list).filter_map(remote).collect();
    // Longer ones first, because one may be the beginning of another.
    addresses.sort_by_key(|address| Reverse(address.as_str().len()));
    addresses.iter().fold(text, |text, address| text.replace(address.as_str(), &address.redacted()))
}

fn remote(text: &str) -> Option<RemoteUri> {
    match DependencyUri::parse(text) {
        Ok(DependencyUri::Http(address)) => Some(address),
        _ => None,
    }
}

/// Java options can have a password in them.
fn redacted(name: &str, value: &str) -> String {
    let shown = shown_redacted(name, value);
    let inside = shown.strip_prefix(&format!("({name},")).and_then(|rest| rest.strip_suffix(')'));
    // Spark shows the application's own arguments, so they are shown here too.
    if name == "childArgs" { value.to_owned() } else { inside.unwrap_or(value).to_owned() }
}
