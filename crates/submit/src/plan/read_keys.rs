//! How the plan reads what each key names that names a file.

use std::path::PathBuf;

use super::dependencies::small_files::MOST_BYTES;
use super::needs::{Needs, is_pattern};
use super::parts::hadoop::HadoopConf;
use super::parts::volcano;
use super::submitter::Submitter;
use super::{conf_folder, source};
use cloakroom_spark::{DependencyUri, MainResource, SparkConf, keys, split_list};

/// How the plan reads what a key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The content of a path of the submitting machine.
    Path,
    /// The same, or of a `file:` URI; what is in the image stays there.
    Uri,
    /// The content of a path, a URI or an `http(s)` address.
    Source,
    /// Entries of a list, patterns included: what stands there, and the content of small files without a server.
    List,
    /// The plan does not read it; this does.
    Elsewhere(&'static str),
}

const API_SERVER: How = How::Elsewhere("the client of the API server");
const ADVICE: How = How::Elsewhere("nothing: a Java store is only named in the advice to convert it");

/// Every key of the registry that names files of the submitting machine.
pub const READ_KEYS: [(&str, How); 23] = [
    (keys::JARS.name(), How::List),
    (keys::FILES.name(), How::List),
    (keys::ARCHIVES.name(), How::List),
    (keys::PY_FILES.name(), How::List),
    (keys::IVY_SETTINGS.name(), How::Uri),
    (keys::SUBMISSION_TOKEN_FILE.name(), API_SERVER),
    (keys::SUBMISSION_CA_CERT_FILE.name(), API_SERVER),
    (keys::SUBMISSION_CLIENT_KEY_FILE.name(), API_SERVER),
    (keys::SUBMISSION_CLIENT_CERT_FILE.name(), API_SERVER),
    (keys::DRIVER_CA_CERT_FILE.name(), How::Path),
    (keys::DRIVER_CLIENT_KEY_FILE.name(), How::Path),
    (keys::DRIVER_CLIENT_CERT_FILE.name(), How::Path),
    (keys::KRB5_FILE.name(), How::Path),
    (keys::KEYTAB.name(), How::Path),
    (keys::DRIVER_POD_TEMPLATE.name(), How::Source),
    (keys::EXECUTOR_POD_TEMPLATE.name(), How::Source),
    (keys::POD_GROUP_FILE.name(), How::Source),
    (keys::CLOAKROOM_UPLOAD_TOKEN_FILE.name(), How::Path),
    (keys::CLOAKROOM_SPARK_SUBMIT.name(), How::Elsewhere("the binary, which starts it")),
    (keys::TLS_CLIENT_CERT_PEM.name(), How::Uri),
    (keys::TLS_TRUST_STORE.name(), ADVICE),
    (keys::INTERNAL_TLS_CLIENT_CERT_PEM.name(), How::Uri),
    (keys::INTERNAL_TLS_TRUST_STORE.name(), ADVICE),
];

impl Needs {
    /// What an application needs that has these settings, as far as the keys are asked for.
    pub(super) fn of(
        conf: &SparkConf,
        is_asked_for: impl Fn(&str) -> bool,
        resource: &MainResource,
        submitter: &Submitter,
    ) -> Self {
        let is_in_secret = !conf.contains(&keys::SERVER_URI) && !conf.contains(&keys::UPLOAD_PATH);
        let mut needs = Self { small_bytes: is_in_secret.then_some(MOST_BYTES), ..Self::default() };
        for (key, how) in READ_KEYS.into_iter().filter(|(key, _)| is_asked_for(key)) {
            if let Some(value) = conf.get(key).filter(|value| is_read(conf, key, value)) {
                needs.add(how, value, submitter);
            }
        }
        needs.add_entry(resource.uri(), submitter);
        needs
    }

    /// And the folders of configuration that the environment names.
    pub(super) fn and_folders(mut self, conf: &SparkConf, submitter: &Submitter) -> Self {
        self.folders.extend(conf_folder::needs(conf, submitter));
        self.folders.extend(HadoopConf::needs(submitter));
        self
    }

    fn add(&mut self, how: How, value: &str, submitter: &Submitter) {
        match how {
            How::Path => {
                self.contents.insert(submitter.working_folder.join(value));
            }
            How::Uri => {
                if let Ok(DependencyUri::Submitter(file)) = DependencyUri::parse(value) {
                    self.contents.insert(submitter.working_folder.join(file.whole_path()));
                }
            }
            How::Source => source::needs(value, submitter, self),
            How::List => split_list(value).for_each(|entry| self.add_entry(entry, submitter)),
            How::Elsewhere(_) => {}
        }
    }

    /// The file, and those that were perhaps meant where there is none: a `#` ends the path of a URI.
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

/// Some keys are read only beside others, or not with every value.
fn is_read(conf: &SparkConf, key: &str, value: &str) -> bool {
    if key == keys::KEYTAB.name() {
        !value.starts_with("local:")
    } else if key == keys::POD_GROUP_FILE.name() {
        volcano::is_asked_for(conf)
    } else {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use cloakroom_spark::{Origin, RemoteUri};

    #[test]
    fn for_each_key_that_names_files_it_is_decided_how_they_are_read() {
        for entry in keys::entries().filter(|entry| entry.names_files) {
            let decided = READ_KEYS.iter().filter(|(key, _)| *key == entry.name).count();
            assert_eq!(decided, 1, "{}: add it to READ_KEYS, once", entry.name);
        }
        for (key, _) in READ_KEYS {
            assert!(keys::find(key).is_some_and(|entry| entry.names_files), "{key} names no files");
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
        let needs = Needs::of(&conf, |_| true, &resource, &submitter);
        let shown = |paths: &BTreeSet<PathBuf>| {
            paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(shown(&needs.contents), ["/here/krb5.conf"]);
        assert_eq!(shown(&needs.places), ["/here/a.txt", "/here/a.txt#b", "/here/x*.csv"]);
        assert_eq!(shown(&needs.patterns), ["/here/x*.csv"]);
        let web = needs.web.iter().map(RemoteUri::as_str).collect::<Vec<_>>();
        assert_eq!(web, ["https://u:hush@web.example/pod.yaml?sig=hush"]);
        let debug = format!("{needs:?}");
        assert!(debug.contains("https://web.example/pod.yaml"), "{debug}");
        assert!(!debug.contains("hush"), "{debug}");
        assert!(needs.folders.is_empty() && needs.manifests.is_empty());
    }
}
