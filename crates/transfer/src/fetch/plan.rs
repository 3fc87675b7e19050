//! The plan of a fetch: what is fetched and where it goes. Checks everything that needs no network.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::ticket::{Promise, ReadTicket};
use crate::bundle::RESERVED_PREFIX;
use crate::client::{AddressError, SecretFileError, ServerAddress, Url, read_secret, shown};
use cloakroom_core::protocol::digest;
use cloakroom_core::resource::{FileName, InvalidResourceId, ResourceId, ResourceSecret};
use cloakroom_kubespark::{InitContainerProperties, TicketFile};
use cloakroom_spark::{RemoteUri, keys};

/// The reason why a plan is not usable.
#[derive(Debug, thiserror::Error)]
pub enum FetchPlanError {
    /// The server's address is not usable.
    #[error("{setting} is not usable")]
    Server { setting: &'static str, source: AddressError },
    /// There is a ticket, but no server.
    #[error("{setting} is missing: it says where the staged files are")]
    NoServer { setting: &'static str },
    /// The ticket's id is not usable.
    #[error("{setting} is not usable")]
    Id { setting: &'static str, source: InvalidResourceId },
    /// The ticket is not usable. The message repeats nothing of it.
    #[error("the ticket in {file} is not usable: {why}")]
    Ticket { file: String, why: &'static str },
    /// The ticket's secret is not usable.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// The address of a file on the web is not usable.
    #[error("cannot fetch {uri}: {why}")]
    Remote {
        /// The address, without the parts that can be secret.
        uri: String,
        why: String,
    },
    /// The name of a file on the web is not usable.
    #[error("{0}")]
    RemoteName(String),
    /// Two files on the web have the same target path.
    #[error("{first} and {second} would both become {path}: rename one of them", path = .path.display())]
    SameName {
        /// The address of the first file, without the parts that can be secret.
        first: String,
        /// The address of the second file, without the parts that can be secret.
        second: String,
        path: PathBuf,
    },
}

/// The resource id in the server's ticket; `file` names the ticket in messages. The ticket's address is not checked.
pub fn resource_id_of_ticket(json: &str, file: &str) -> Result<ResourceId, FetchPlanError> {
    let read = ReadTicket::parse(json, true);
    read.map(|ticket| ticket.id).map_err(|why| FetchPlanError::Ticket { file: file.to_owned(), why })
}

/// The sources of a fetch, which succeed or fail together.
#[derive(Debug, Clone, Default)]
pub struct FetchPlan {
    pub(super) sources: Vec<Source>,
    /// Whether others may change what was put into place: the receipt of an earlier run is enough then.
    pub is_writable: bool,
}

/// One bundle or file to fetch, with its target folder.
#[derive(Clone)]
pub struct Source {
    /// The kind of source, in words for the user: `the staged jars`.
    role: &'static str,
    pub(super) origin: Origin,
    pub(super) target: PathBuf,
}

/// The address of a source, with what is needed to fetch it.
#[derive(Clone)]
pub(super) enum Origin {
    Staged { server: ServerAddress, id: ResourceId, secret: ResourceSecret, promise: Promise },
    Remote(RemoteFile),
}

impl FetchPlan {
    /// Makes the plan for one bundle from the values of flags.
    pub fn from_ticket(
        server: &str,
        id: &str,
        secret_file: &Path,
        to: &Path,
    ) -> Result<Self, FetchPlanError> {
        let names =
            TicketNames { role: "the bundle", server: "--server", id: "--id", secret: "--secret-file" };
        let ticket = TicketFile { resource_id: id.to_owned(), secret_file: secret_file.to_owned() };
        let mut plan = Self::default();
        plan.add_ticket(&names, Some(server), &ticket, to)?;
        Ok(plan)
    }

    /// Makes the plan for one bundle from the server's ticket; `file` names the ticket in messages. The address is that
    /// of `server` (the flag `--server`), else the ticket's, else `fallback`.
    pub fn from_ticket_json(
        json: &str,
        file: &str,
        server: Option<&str>,
        fallback: Option<&str>,
        to: &Path,
    ) -> Result<Self, FetchPlanError> {
        const FLAG: &str = "--server";
        let ReadTicket { id, secret, server: own, promise } = ReadTicket::parse(json, server.is_some())
            .map_err(|why| FetchPlanError::Ticket { file: file.to_owned(), why })?;
        let address = server.or(own.as_deref()).or(fallback);
        let address = address.ok_or(FetchPlanError::NoServer { setting: FLAG })?;
        let address = ServerAddress::parse(address).map_err(|source| FetchPlanError::Server {
            setting: if server.is_some() { FLAG } else { "the ticket's url" },
            source,
        })?;
        let mut plan = Self::default();
        plan.add("the bundle", Origin::Staged { server: address, id, secret, promise }, to);
        Ok(plan)
    }

    /// Makes the plan from the properties file of an init-container. It may be empty.
    pub fn from_properties(properties: &InitContainerProperties) -> Result<Self, FetchPlanError> {
        let (jars_dir, files_dir) = (properties.jars_dir.as_path(), properties.files_dir.as_path());
        let server = properties.server_uri.as_deref();
        let mut plan = Self::default();
        for (names, ticket, to) in
            [(&STAGED_JARS, &properties.jars, jars_dir), (&STAGED_FILES, &properties.files, files_dir)]
        {
            if let Some(ticket) = ticket {
                plan.add_ticket(names, server, ticket, to)?;
            }
        }
        plan.add_remote("the remote jar", &properties.remote_jars, jars_dir)?;
        plan.add_remote("the remote file", &properties.remote_files, files_dir)?;
        plan.check_names()?;
        Ok(plan)
    }

    /// Whether there is nothing to fetch.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    fn add_ticket(
        &mut self,
        names: &TicketNames,
        server: Option<&str>,
        ticket: &TicketFile,
        to: &Path,
    ) -> Result<(), FetchPlanError> {
        let server = server.ok_or(FetchPlanError::NoServer { setting: names.server })?;
        let server = ServerAddress::parse(server)
            .map_err(|source| FetchPlanError::Server { setting: names.server, source })?;
        let id = ResourceId::parse_any_case(&ticket.resource_id)
            .map_err(|source| FetchPlanError::Id { setting: names.id, source })?;
        let secret = ResourceSecret::from_text(read_secret(&ticket.secret_file, names.secret)?);
        let promise = Promise::default();
        self.add(names.role, Origin::Staged { server, id, secret, promise }, to);
        Ok(())
    }

    fn add_remote(
        &mut self,
        role: &'static str,
        uris: &[RemoteUri],
        to: &Path,
    ) -> Result<(), FetchPlanError> {
        for uri in uris {
            self.add(role, Origin::Remote(RemoteFile::new(uri)?), to);
        }
        Ok(())
    }

    /// Adds a source, unless the plan already has it for the same folder.
    fn add(&mut self, role: &'static str, origin: Origin, to: &Path) {
        let source = Source { role, origin, target: to.to_owned() };
        let key = source.key();
        if !self.sources.iter().any(|present| present.target == source.target && present.key() == key) {
            self.sources.push(source);
        }
    }

    fn check_names(&self) -> Result<(), FetchPlanError> {
        let mut seen = BTreeMap::new();
        for source in &self.sources {
            let Origin::Remote(file) = &source.origin else { continue };
            if let Some(first) = seen.insert((&source.target, &file.name), file.shown()) {
                let path = source.target.join(&file.name);
                return Err(FetchPlanError::SameName { first, second: file.shown(), path });
            }
        }
        Ok(())
    }
}

impl Source {
    /// The source, in words for the user: `the staged jars (resource 4c1a…)`.
    pub fn what(&self) -> String {
        match &self.origin {
            Origin::Staged { id, .. } => format!("{} (resource {id})", self.role),
            Origin::Remote(file) => format!("{} {}", self.role, file.name),
        }
    }

    /// The source's address for messages, without the parts that can be secret.
    pub fn address(&self) -> String {
        match &self.origin {
            Origin::Staged { server, .. } => server.to_string(),
            Origin::Remote(file) => file.shown(),
        }
    }

    /// The size and digest that the ticket promises.
    pub(super) fn promise(&self) -> Promise {
        match &self.origin {
            Origin::Staged { promise, .. } => *promise,
            Origin::Remote(_) => Promise::default(),
        }
    }

    /// The name of the folder that the source is extracted into before it is put into place.
    pub(super) fn hidden(&self) -> String {
        format!("{RESERVED_PREFIX}{key}", key = self.key())
    }

    /// The end of the names of the source's hidden folder and receipt: the resource's id, or a hash of the URL, because a URL may
    /// be secret.
    pub(super) fn key(&self) -> String {
        match &self.origin {
            Origin::Staged { id, .. } => id.to_string(),
            Origin::Remote(file) => {
                digest::to_hex(&Sha256::digest(file.url.as_str()).into())[..32].to_owned()
            }
        }
    }
}

/// Leaves out the secret.
impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} from {} to {}", self.what(), self.address(), self.target.display())
    }
}

/// A file on the web, and its name in the target folder.
#[derive(Clone)]
pub(super) struct RemoteFile {
    pub url: Url,
    pub name: String,
}

impl RemoteFile {
    /// Takes the last segment of the path as the name, percent-decoded. Refuses names that begin with the prefix of
    /// this room's own hidden files.
    pub(super) fn new(uri: &RemoteUri) -> Result<Self, FetchPlanError> {
        let unusable = |why: String| FetchPlanError::Remote { uri: uri.redacted(), why };
        let mut url = Url::parse(uri.as_str()).map_err(|error| unusable(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(unusable("its scheme is neither http nor https".to_owned()));
        }
        url.set_fragment(None);
        let name = uri.file_name().map_err(|error| FetchPlanError::RemoteName(error.to_string()))?;
        let is_hidden = name.starts_with(RESERVED_PREFIX);
        if is_hidden || FileName::parse(&name).is_err() {
            return Err(unusable("its last segment is not usable as a file name".to_owned()));
        }
        Ok(Self { url, name })
    }

    /// The address for messages, without the parts that can be secret.
    pub(super) fn shown(&self) -> String {
        shown(&self.url)
    }
}

/// The names of a ticket's parts in the place that they come from, for messages.
struct TicketNames {
    role: &'static str,
    server: &'static str,
    id: &'static str,
    secret: &'static str,
}

const STAGED_JARS: TicketNames = TicketNames {
    role: "the staged jars",
    server: keys::SERVER_URI.name(),
    id: keys::INIT_JARS_RESOURCE_ID.name(),
    secret: keys::INIT_JARS_SECRET_FILE.name(),
};

const STAGED_FILES: TicketNames = TicketNames {
    role: "the staged files",
    server: keys::SERVER_URI.name(),
    id: keys::INIT_FILES_RESOURCE_ID.name(),
    secret: keys::INIT_FILES_SECRET_FILE.name(),
};

#[cfg(test)]
mod tests {
    use super::*;
    use cloakroom_spark::{DependencyUri, Properties};

    fn plan(text: &str) -> Result<FetchPlan, FetchPlanError> {
        let properties = Properties::parse("spark-init.properties", text).unwrap();
        FetchPlan::from_properties(&InitContainerProperties::from(&properties).unwrap())
    }

    const ID: &str = "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1";

    fn of_ticket(json: &str, server: Option<&str>, fallback: Option<&str>) -> Result<String, String> {
        let plan = FetchPlan::from_ticket_json(json, "ticket.json", server, fallback, Path::new("/t"));
        plan.map(|plan| plan.sources[0].address()).map_err(|error| cloakroom_core::text::chain(&error))
    }

    #[test]
    fn a_ticket_names_its_server_and_a_flag_names_another_one() {
        let ticket =
            |url: &str| format!(r#"{{"resourceId":"{ID}","resourceSecret":"s3cret"{url},"sizeBytes":3}}"#);
        let whole = ticket(&format!(r#","url":"https://h/base/api/v1/resources/{ID}""#));
        assert_eq!(of_ticket(&whole, None, Some("http://environment")).unwrap(), "https://h/base");
        assert_eq!(of_ticket(&whole, Some("http://flag"), None).unwrap(), "http://flag");
        // kubespark's protocol has no address, and a server sends only a path if the request had no `Host`.
        for url in [String::new(), format!(r#","url":"/api/v1/resources/{ID}""#)] {
            assert_eq!(
                of_ticket(&ticket(&url), None, Some("http://environment")).unwrap(),
                "http://environment"
            );
            assert!(of_ticket(&ticket(&url), None, None).unwrap_err().starts_with("--server is missing"));
        }
        let foreign = ticket(&format!(r#","url":"ftp://h/api/v1/resources/{ID}""#));
        assert!(of_ticket(&foreign, None, None).unwrap_err().starts_with("the ticket's url is not usable"));
        let upper = whole.replace(&format!("\"{ID}\""), &format!("\"{}\"", ID.to_uppercase()));
        assert_eq!(of_ticket(&upper, None, None).unwrap(), "https://h/base");
    }

    #[test]
    fn a_url_that_is_not_of_a_bundle_is_refused_unless_a_flag_names_a_server() {
        for url in ["https://h/", "https://h/api/v1/resources/4c1a3c44", "h", ""] {
            let ticket = format!(r#"{{"resourceId":"{ID}","resourceSecret":"s3cret","url":"{url}"}}"#);
            for fallback in [None, Some("http://environment")] {
                let refusal = of_ticket(&ticket, None, fallback).unwrap_err();
                assert!(
                    refusal.contains("its url is not one of a bundle, because it does not end"),
                    "{refusal}"
                );
            }
            assert_eq!(of_ticket(&ticket, Some("http://flag"), None).unwrap(), "http://flag");
        }
    }

    #[test]
    fn an_invalid_ticket_is_refused_and_not_repeated() {
        for json in [
            "",
            "s3cret",
            r#"{"resourceSecret":"s3cret"}"#,
            r#"{"resourceId":"s3cret","resourceSecret":"x"}"#,
            &format!(r#"{{"resourceId":"{ID}","resourceSecret":"s3cret\n","sizeBytes":3}}"#),
            &format!(r#"{{"resourceId":"{ID}","resourceSecret":"s3cret\u00e9"}}"#),
            &format!(r#"{{"resourceId":"{ID}","resourceSecret":""}}"#),
            &format!(r#"{{"resourceId":"{ID}","resourceSecret":"s3cret","sha256":"s3cret"}}"#),
        ] {
            let refusal = of_ticket(json, Some("http://h"), None).unwrap_err();
            assert!(refusal.starts_with("the ticket in ticket.json is not usable"), "{refusal}");
            assert!(!refusal.contains("s3cret"), "{refusal}");
        }
    }

    #[test]
    fn without_any_key_there_is_nothing_to_fetch() {
        assert!(plan("").unwrap().is_empty());
    }

    #[test]
    fn one_name_from_two_addresses_is_refused_for_one_folder_only() {
        let same_folder =
            "spark.kubernetes.initcontainer.remoteJars=http://a/x.jar?sig=s3cret,http://b/y/x.jar\n";
        let refusal = plan(same_folder).unwrap_err().to_string();
        assert_eq!(
            refusal,
            "http://a/x.jar and http://b/y/x.jar would both become /var/spark-data/spark-jars/x.jar: rename one of them"
        );
        let two_keys = "spark.kubernetes.initcontainer.remoteJars=http://a/x.jar\n\
                        spark.kubernetes.initcontainer.remoteFiles=http://b/x.jar\n";
        assert_eq!(plan(two_keys).unwrap().sources.len(), 2);
        let one_folder = format!(
            "{two_keys}spark.kubernetes.mountdependencies.filesDownloadDir=/var/spark-data/spark-jars/\n"
        );
        plan(&one_folder).unwrap_err();
    }

    #[test]
    fn the_same_address_twice_is_fetched_once() {
        let twice = "spark.kubernetes.initcontainer.remoteJars=http://a/x.jar,http://a/x.jar\n";
        assert_eq!(plan(twice).unwrap().sources.len(), 1);
    }

    #[test]
    fn a_ticket_is_checked_before_anything_is_fetched() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        let id = "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1";
        let plan = |server: &str, id: &str| FetchPlan::from_ticket(server, id, &secret, Path::new("/t"));
        assert!(plan("http://h", id).unwrap_err().to_string().starts_with("--secret-file names /"));
        std::fs::write(&secret, "hunter2\n").unwrap();
        assert!(plan("h:10000", id).unwrap_err().to_string().starts_with("--server is"));
        assert!(plan("http://h", "../x").unwrap_err().to_string().starts_with("--id is"));
        let shown = format!("{:?}", plan("http://h:10000", id).unwrap());
        assert!(shown.contains(id) && !shown.contains("hunter2"), "{shown}");
    }

    fn remote(text: &str) -> Result<RemoteFile, FetchPlanError> {
        match DependencyUri::parse(text).unwrap() {
            DependencyUri::Http(uri) => RemoteFile::new(&uri),
            other => panic!("{other:?} is not remote"),
        }
    }

    #[test]
    fn the_name_is_the_last_segment_decoded_without_query() {
        for (text, expected) in [
            ("https://h/a/b.jar", "b.jar"),
            ("https://h/a/my%20lib%2B1.jar?sig=s3cret#x", "my lib+1.jar"),
            ("http://u:p@h:8080/b.jar", "b.jar"),
        ] {
            let file = remote(text).unwrap();
            assert_eq!(file.name, expected);
            assert!(!file.shown().contains("s3cret") && !file.shown().contains("u:p"), "{}", file.shown());
        }
    }

    #[test]
    fn hostile_names_are_refused_without_their_secrets() {
        for text in [
            "https://h/a/%2e%2e%2fpasswd?sig=s3cret",
            "https://h/a/..%2f?sig=s3cret",
            "https://h/a/%2e%2e?sig=s3cret",
            "https://h/?sig=s3cret",
            "https://h?sig=s3cret",
            "https://h/a%00b?sig=s3cret",
            "https://h/a%0ab?sig=s3cret",
            "https://h/%ff?sig=s3cret",
            "https://h/.cloakroom-x.json?sig=s3cret",
        ] {
            let refusal = remote(text).err().unwrap().to_string();
            assert!(!refusal.contains("s3cret") && refusal.contains('h'), "{refusal}");
        }
    }
}
