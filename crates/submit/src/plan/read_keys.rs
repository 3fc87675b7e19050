//! For each key that names a file: how the plan reads that file.

use std::path::PathBuf;

use super::dependencies::{Dependencies, FOUND_IN_JARS};
use super::features::{credentials, executor_template, kerberos, volcano};
use super::init_container::StagingServer;
use super::needs::{FileKey, How, Needs, is_pattern};
use super::source;
use super::submitter::{Machine, Submitter};
use cloakroom_spark::{DependencyUri, MainResource, SparkConf, keys, split_list};

const API_SERVER: How = How::Elsewhere("the client of the API server");
const ADVICE: How = How::Elsewhere("nothing: a Java store is only named in the advice to convert it");

/// The keys of no feature.
const OTHERS: [FileKey; 16] = [
    FileKey::new(keys::JARS.name(), How::List),
    FileKey::new(keys::FILES.name(), How::List),
    FileKey::new(keys::ARCHIVES.name(), How::List),
    FileKey::new(keys::PY_FILES.name(), How::List),
    FileKey::new(keys::IVY_SETTINGS.name(), How::Uri),
    FileKey::new(keys::SUBMISSION_TOKEN_FILE.name(), API_SERVER),
    FileKey::new(keys::SUBMISSION_CA_CERT_FILE.name(), API_SERVER),
    FileKey::new(keys::SUBMISSION_CLIENT_KEY_FILE.name(), API_SERVER),
    FileKey::new(keys::SUBMISSION_CLIENT_CERT_FILE.name(), API_SERVER),
    FileKey::new(keys::DRIVER_POD_TEMPLATE.name(), How::Source),
    FileKey::new(keys::CLOAKROOM_UPLOAD_TOKEN_FILE.name(), How::Path),
    FileKey::new(keys::CLOAKROOM_SPARK_SUBMIT.name(), How::Elsewhere("the binary, which starts it")),
    FileKey::new(keys::TLS_CLIENT_CERT_PEM.name(), How::Uri),
    FileKey::new(keys::TLS_TRUST_STORE.name(), ADVICE),
    FileKey::new(keys::INTERNAL_TLS_CLIENT_CERT_PEM.name(), How::Uri),
    FileKey::new(keys::INTERNAL_TLS_TRUST_STORE.name(), ADVICE),
];

/// All keys of the registry that name files of the submitting machine. A test fails if one is missing.
pub fn file_keys() -> impl Iterator<Item = FileKey> {
    let of_features: [&[FileKey]; 4] =
        [&credentials::KEYS, &kerberos::KEYS, &executor_template::KEYS, &volcano::KEYS];
    of_features.into_iter().flatten().copied().chain(OTHERS)
}

/// The keys whose files are read only if something is staged. The certificates are read only if TLS is on.
const STAGING_KEYS: [&str; 3] = [
    keys::CLOAKROOM_UPLOAD_TOKEN_FILE.name(),
    keys::TLS_CLIENT_CERT_PEM.name(),
    keys::INTERNAL_TLS_CLIENT_CERT_PEM.name(),
];

impl Needs {
    /// The first round: the places that the settings and the application name. They are enough to decide which files
    /// travel, and how.
    pub(super) fn places(
        conf: &SparkConf,
        is_asked_for: impl Fn(&str) -> bool,
        resource: &MainResource,
        submitter: &Submitter,
    ) -> Self {
        let mut needs = Self::default();
        for (_, how, value) in read_keys(conf, is_asked_for) {
            match how {
                How::List => split_list(value).for_each(|entry| needs.add_entry(entry, submitter)),
                How::Source => needs.places.extend(source::place(value, submitter)),
                How::Path | How::Uri | How::Elsewhere(_) => {}
            }
        }
        if resource.uri() != FOUND_IN_JARS {
            needs.add_entry(resource.uri(), submitter);
        }
        needs
    }

    /// The second round: the contents that go into the application's objects.
    pub(super) fn contents(
        conf: &SparkConf,
        is_asked_for: impl Fn(&str) -> bool,
        dependencies: &Dependencies,
        machine: Machine,
    ) -> Self {
        let small = dependencies.small_files.iter().map(|(path, _)| path.clone());
        let mut needs = Self { contents: small.collect(), ..Self::default() };
        for (key, how, value) in read_keys(conf, is_asked_for) {
            let is_of_staging = STAGING_KEYS.contains(&key);
            if is_of_staging && !(dependencies.are_staged() && StagingServer::reads(conf, key)) {
                continue;
            }
            match how {
                How::Path => needs.contents.extend([machine.path(value)]),
                How::Uri => {
                    if let Ok(DependencyUri::Submitter(file)) = DependencyUri::parse(value) {
                        needs.contents.insert(machine.path(file.whole_path()));
                    }
                }
                How::Source => source::needs(conf, key, machine, &mut needs),
                How::List | How::Elsewhere(_) => {}
            }
        }
        needs
    }

    /// The file, and files that the user may have meant. A `#` ends the path of a URI, so a name with `#` in it may be
    /// meant. The refusal of a missing file then gives a hint.
    fn add_entry(&mut self, entry: &str, submitter: &Submitter) {
        let Ok(DependencyUri::Submitter(uri)) = DependencyUri::parse(entry) else { return };
        let path = submitter.working_folder.join(uri.path());
        let text = path.to_string_lossy();
        if let Some(name) = uri.fragment() {
            self.places.insert(PathBuf::from(format!("{text}#{name}")));
        } else if let Some((before, _)) = text.rsplit_once('#') {
            self.places.insert(PathBuf::from(before));
        }
        if is_pattern(&text) {
            self.patterns.insert(path.clone());
        }
        self.places.insert(path);
    }
}

/// The keys that are set and whose files are read, each with how and its value.
fn read_keys(
    conf: &SparkConf,
    is_asked_for: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&'static str, How, &str)> {
    file_keys().filter(move |key| is_asked_for(key.name)).filter_map(move |key| {
        let value = conf.get(key.name).filter(|value| !value.is_empty() && (key.is_read)(conf, value))?;
        Some((key.name, key.how, value))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::plan::Facts;
    use cloakroom_spark::arguments::{OPTIONS, Purpose};
    use cloakroom_spark::{Origin, RemoteUri};

    // Invariant: the code decides for each key that names a file how the file is read.
    #[test]
    fn for_each_key_that_names_files_it_is_decided_how_they_are_read() {
        for entry in keys::entries().filter(|entry| entry.names_files) {
            let decided = file_keys().filter(|key| key.name == entry.name).count();
            assert_eq!(decided, 1, "{}: add it to the keys of its feature, once", entry.name);
        }
        for FileKey { name: key, .. } in file_keys() {
            assert!(keys::find(key).is_some_and(|entry| entry.names_files), "{key} names no files");
        }
    }

    #[test]
    fn every_option_for_files_but_properties_file_sets_a_decided_key() {
        for spec in &OPTIONS {
            let key = match spec.purpose {
                Purpose::Setting(key) | Purpose::Conf(key) | Purpose::Dependencies(key) => key,
                // The binary reads a properties file, before there is a request; the others name no files.
                Purpose::PropertiesFile
                | Purpose::Class
                | Purpose::AnyConf
                | Purpose::ProxyUser
                | Purpose::Kill
                | Purpose::Status
                | Purpose::Elsewhere(_)
                | Purpose::Switch(_) => continue,
            };
            let is_decided = file_keys().any(|known| known.name == key);
            let names_files = keys::find(key).is_some_and(|entry| entry.names_files)
                || matches!(spec.purpose, Purpose::Dependencies(_));
            assert_eq!(is_decided, names_files, "{}", spec.name);
        }
    }

    #[test]
    fn what_is_needed_is_what_the_settings_name_and_nothing_else() {
        let mut conf = SparkConf::default();
        for (key, value) in [
            ("spark.files", "a.txt#b,x*.csv,https://web.example/c"),
            ("spark.kubernetes.driver.podTemplateFile", "https://u:hush@web.example/pod.yaml?sig=hush"),
            ("spark.kubernetes.kerberos.krb5.path", "krb5.conf"),
            ("spark.kerberos.keytab", "local:///in/the/image"),
            ("spark.kubernetes.authenticate.submission.caCertFile", "ca.pem"),
            ("spark.kubernetes.scheduler.volcano.podGroupTemplateFile", "group.yaml"),
        ] {
            conf.set(key, value, Origin::Conf);
        }
        let submitter = Submitter {
            variables: BTreeMap::new(),
            user: Ok(String::new()),
            system: BTreeMap::new(),
            working_folder: PathBuf::from("/here"),
        };
        let resource = MainResource::Java("local:///app.jar".to_owned());
        let shown = |paths: &BTreeSet<PathBuf>| {
            paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        let first = Needs::places(&conf, |_| true, &resource, &submitter);
        assert_eq!(shown(&first.places), ["/here/a.txt", "/here/a.txt#b", "/here/x*.csv"]);
        assert_eq!(shown(&first.patterns), ["/here/x*.csv"]);
        assert!(first.web.is_empty() && first.contents.is_empty() && first.folders.is_empty());
        let machine = Machine { submitter: &submitter, facts: &Facts::default() };
        let needs = Needs::contents(&conf, |_| true, &Dependencies::default(), machine);
        assert_eq!(shown(&needs.contents), ["/here/krb5.conf"]);
        assert!(needs.places.is_empty() && needs.patterns.is_empty() && needs.manifests.is_empty());
        let web = needs.web.iter().map(RemoteUri::as_str).collect::<Vec<_>>();
        assert_eq!(web, ["https://u:hush@web.example/pod.yaml?sig=hush"]);
        let debug = format!("{needs:?}");
        assert!(debug.contains("https://web.example/pod.yaml"), "{debug}");
        assert!(!debug.contains("hush"), "{debug}");
    }
}
