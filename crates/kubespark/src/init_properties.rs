//! Reads the init-container's properties file, which kubespark's submission client writes.

use std::path::PathBuf;
use std::time::Duration;

use super::reader::Reader;
use super::{PropertyError, java_store};
use cloakroom_core::time::TimeUnit;
use cloakroom_spark::uri::{DependencyUri, RemoteUri, split_list};
use cloakroom_spark::{Properties, keys};

#[cfg(test)]
mod tests;

/// The default folder for jars.
pub const DEFAULT_JARS_DIR: &str = "/var/spark-data/spark-jars";
/// The default folder for files.
pub const DEFAULT_FILES_DIR: &str = "/var/spark-data/spark-files";
/// The default time limit for all downloads.
const DEFAULT_MOUNT_TIMEOUT: Duration = Duration::from_mins(5);

/// The settings of `cloakroom fetch` in a properties file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitContainerProperties {
    /// The address of the staging server, `http` or `https`. Always set if there is a ticket.
    pub server_uri: Option<String>,
    pub jars: Option<TicketFile>,
    pub files: Option<TicketFile>,
    /// The jars to download. All are `http` or `https`, and each has a usable file name.
    pub remote_jars: Vec<RemoteUri>,
    /// The files to download. All are `http` or `https`, and each has a usable file name.
    pub remote_files: Vec<RemoteUri>,
    /// The target folder for jars.
    pub jars_dir: PathBuf,
    /// The target folder for files.
    pub files_dir: PathBuf,
    /// The time limit for all downloads together; never zero.
    pub mount_timeout: Duration,
    /// The PEM file of the trusted certificate; `None` without TLS.
    pub ca_cert_pem: Option<PathBuf>,
    /// One sentence for each key without effect, with its file and line, never with its value.
    pub warnings: Vec<String>,
}

/// A ticket, with its secret in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TicketFile {
    pub resource_id: String,
    pub secret_file: PathBuf,
}

impl InitContainerProperties {
    /// Reads and checks the init-container's keys.
    pub fn from(properties: &Properties) -> Result<Self, PropertyError> {
        let mut reader = Reader::new(properties);
        let server_uri = reader.http_url(&keys::SERVER_URI)?;
        let (jars, files) = tickets(&mut reader, server_uri.is_some())?;
        Ok(Self {
            server_uri,
            jars,
            files,
            remote_jars: remote(&mut reader, &keys::INIT_REMOTE_JARS)?,
            remote_files: remote(&mut reader, &keys::INIT_REMOTE_FILES)?,
            jars_dir: reader.path(&keys::JARS_DOWNLOAD_DIR)?.unwrap_or_else(|| DEFAULT_JARS_DIR.into()),
            files_dir: reader.path(&keys::FILES_DOWNLOAD_DIR)?.unwrap_or_else(|| DEFAULT_FILES_DIR.into()),
            mount_timeout: reader
                .duration(&keys::MOUNT_TIMEOUT, TimeUnit::Minutes)?
                .unwrap_or(DEFAULT_MOUNT_TIMEOUT),
            ca_cert_pem: ca_cert_pem(&mut reader)?,
            warnings: reader.finish("`cloakroom fetch`"),
        })
    }

    /// Whether there is something to fetch: a ticket, or a jar or file to download.
    pub fn names_a_source(&self) -> bool {
        self.jars.is_some()
            || self.files.is_some()
            || !self.remote_jars.is_empty()
            || !self.remote_files.is_empty()
    }
}

type Tickets = (Option<TicketFile>, Option<TicketFile>);

fn tickets(reader: &mut Reader<'_>, has_server: bool) -> Result<Tickets, PropertyError> {
    let jars = ticket(reader, &keys::INIT_JARS_RESOURCE_ID, &keys::INIT_JARS_SECRET_FILE)?;
    let files = ticket(reader, &keys::INIT_FILES_RESOURCE_ID, &keys::INIT_FILES_SECRET_FILE)?;
    let named = [
        (keys::INIT_JARS_RESOURCE_ID.name(), jars.is_some()),
        (keys::INIT_FILES_RESOURCE_ID.name(), files.is_some()),
    ];
    match named.into_iter().find(|(_, there)| *there && !has_server) {
        Some((key, _)) => {
            Err(PropertyError::Incomplete { position: reader.position(key), key, missing: &keys::SERVER_URI })
        }
        None => Ok((jars, files)),
    }
}

fn ticket(
    reader: &mut Reader<'_>,
    id_key: &'static str,
    secret_key: &'static str,
) -> Result<Option<TicketFile>, PropertyError> {
    let id = (id_key, reader.text(id_key));
    let secret = (secret_key, reader.path(secret_key)?);
    let both = reader.both_or_neither(id, secret)?;
    Ok(both.map(|(resource_id, secret_file)| TicketFile { resource_id: resource_id.to_owned(), secret_file }))
}

fn remote(reader: &mut Reader<'_>, key: &'static str) -> Result<Vec<RemoteUri>, PropertyError> {
    let Some(list) = reader.text(key) else {
        return Ok(Vec::new());
    };
    split_list(list).map(|entry| remote_entry(reader, key, entry)).collect()
}

fn remote_entry(reader: &Reader<'_>, key: &'static str, entry: &str) -> Result<RemoteUri, PropertyError> {
    let uri = DependencyUri::parse(entry).map_err(|error| reader.invalid(key, error.to_string()))?;
    let shown = uri.redacted();
    let reason = match uri {
        DependencyUri::Http(remote) => {
            return match remote.file_name() {
                Ok(_) => Ok(remote),
                Err(error) => Err(reader.invalid(key, error.to_string())),
            };
        }
        DependencyUri::Submitter(_) => format!(
            "`{shown}` is a path of the submitting machine, and the init-container fetches only http and https; \
             stage the file, or name it by an http or https URI"
        ),
        DependencyUri::Image(_) => format!(
            "`{shown}` is in the image already, and the init-container fetches only http and https; \
             remove it from the list, Spark finds it by its path"
        ),
        DependencyUri::OtherScheme(remote) => format!(
            "`{shown}` has the scheme `{}`, and the init-container fetches only http and https; leave the URI in \
             Spark's own list of jars or files, which Spark fetches itself, or put the file in the image",
            remote.scheme()
        ),
    };
    Err(reader.invalid(key, reason))
}

fn ca_cert_pem(reader: &mut Reader<'_>) -> Result<Option<PathBuf>, PropertyError> {
    let sources = [keys::TLS_CLIENT_CERT_PEM.name(), &keys::TLS_TRUST_STORE];
    if !reader.boolean(&keys::TLS_ENABLED, false)? {
        let why = format!("it has an effect only if `{}` is true", keys::TLS_ENABLED);
        for key in sources {
            reader.ignored(key, &why);
        }
        return Ok(None);
    }
    reader.exclusive(&keys::TLS_CLIENT_CERT_PEM, &keys::TLS_TRUST_STORE)?;
    if let Some(store) = reader.path(&keys::TLS_TRUST_STORE)? {
        return Err(PropertyError::JavaStore {
            position: reader.position(&keys::TLS_TRUST_STORE),
            key: &keys::TLS_TRUST_STORE,
            commands: java_store::trust_store_to_pem(&store, reader.text(&keys::TLS_TRUST_STORE_TYPE)),
            next: format!("set `{}` to the path of ca.pem", keys::TLS_CLIENT_CERT_PEM),
        });
    }
    reader.path(&keys::TLS_CLIENT_CERT_PEM)
}
