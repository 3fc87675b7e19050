//! spark-submit's command line. The input has one argument per line, and after a NUL the file of defaults.
#![no_main]

use std::collections::BTreeMap;
use std::path::Path;

use cloakroom_fuzz::two;
use cloakroom_spark::arguments::{CommandLine, Defaults, Settings};
use cloakroom_spark::conf::Surroundings;
use cloakroom_spark::{Properties, SubmitArguments};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (line, defaults) = two(text);
    let arguments: Vec<String> = line.lines().map(str::to_owned).collect();
    let Ok(line) = CommandLine::parse(arguments.clone()) else { return };
    match line.resource() {
        Some(resource) => {
            let behind = arguments.len() - line.arguments().len();
            assert_eq!(line.arguments(), &arguments[behind..], "what follows the application is its own");
            assert_eq!(arguments[behind - 1], resource);
        }
        None => assert!(line.arguments().is_empty()),
    }
    let files = Properties::parse("spark-defaults.conf", defaults).ok().into_iter().collect();
    let (variables, system) = (BTreeMap::new(), BTreeMap::new());
    // Nothing exists in this folder, so that no file of this machine is read.
    let folder = Path::new("/no/such/folder");
    let surroundings = Surroundings { variables: &variables, system: &system, folder };
    let settings = Settings::resolve(&line, &Defaults { files, surroundings });
    assert!(settings.conf.iter().all(|(key, _)| key.starts_with("spark.")));
    if let Ok(submit) = SubmitArguments::new(&line, settings.conf, surroundings) {
        check(&submit, &line);
    }
});

fn check(submit: &SubmitArguments, line: &CommandLine) {
    assert_eq!(submit.arguments, line.arguments());
    let master = submit.conf.get("spark.master").unwrap_or_default().to_ascii_lowercase();
    assert!(master.starts_with("k8s://http"), "{master}");
    assert_eq!(submit.conf.get("spark.submit.deployMode"), Some("cluster"));
    assert!(submit.conf.contains("spark.app.name") && submit.conf.contains("spark.submit.pyFiles"));
    assert!(!submit.conf.contains("spark.driver.host"));
}
