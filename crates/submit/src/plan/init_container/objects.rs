//! The config map and the secret that tell the init-container what to fetch.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::ResourceId;
use cloakroom_spark::{Properties, keys, properties_text};

/// The mount path of the secret in the init-container.
pub(super) const SECRET_FOLDER: &str = "/mnt/secrets/spark-init";
/// The secret's key of the certificate.
pub(super) const CERTIFICATE: &str = "ssl-certificate";
/// The key of the properties, in the config map or in the secret.
pub(super) const PROPERTIES: &str = "download-submitted-files";
const JARS_SECRET: &str = "downloadSubmittedJarsSecret";
const FILES_SECRET: &str = "downloadSubmittedFilesSecret";
/// The text of a dry run in place of a resource id.
const NOT_YET: &str = "(given when it is staged)";

/// The content of both objects, without the tickets.
#[derive(Clone, PartialEq, Eq)]
pub struct InitObjects {
    pub(super) config_map: String,
    pub(super) secret: String,
    /// The labels of both objects.
    pub(in crate::plan) labels: BTreeMap<&'static str, String>,
    /// The init-container's properties, without the ids of tickets. Addresses in them may be secrets.
    pub(super) properties: BTreeMap<String, String>,
    pub(super) certificate: Option<Vec<u8>>,
    pub(super) has_jars: bool,
    pub(super) has_files: bool,
    /// Whether the properties go into the secret. They do if they have addresses, which may be signed.
    pub(super) is_secret: bool,
}

impl InitObjects {
    /// The objects without tickets: before staging, or if nothing is staged.
    pub(crate) fn unticketed(&self) -> Vec<Value> {
        self.make(None, None)
    }

    /// The objects as messages name them: `the secret x`.
    pub fn names(&self) -> Vec<String> {
        let map = (!self.is_secret).then(|| format!("the config map {}", self.config_map));
        map.into_iter().chain([format!("the secret {}", self.secret)]).collect()
    }

    /// The staging server's address for pods.
    pub(crate) fn server(&self) -> Option<&str> {
        self.properties.get(&*keys::SERVER_URI).map(String::as_str)
    }

    /// The objects with these tickets. A missing ticket gets a placeholder, so that the API server can try the objects.
    pub(crate) fn make(&self, jars: Option<&Ticket>, files: Option<&Ticket>) -> Vec<Value> {
        let mut properties = self.properties.clone();
        let mut secrets = Map::new();
        let tickets = [
            (self.has_jars, jars, keys::INIT_JARS_RESOURCE_ID, keys::INIT_JARS_SECRET_FILE, JARS_SECRET),
            (self.has_files, files, keys::INIT_FILES_RESOURCE_ID, keys::INIT_FILES_SECRET_FILE, FILES_SECRET),
        ];
        for (_, ticket, id_key, file_key, secret) in tickets.into_iter().filter(|(is_there, ..)| *is_there) {
            let id = ticket.map_or(NOT_YET, |ticket| &ticket.resource_id);
            properties.insert(id_key.to_owned(), id.to_owned());
            properties.insert(file_key.to_owned(), format!("{SECRET_FOLDER}/{secret}"));
            let text = ticket.map_or("", |ticket| &ticket.resource_secret);
            secrets.insert(secret.to_owned(), json!(STANDARD.encode(text)));
        }
        if let Some(certificate) = &self.certificate {
            secrets.insert(CERTIFICATE.to_owned(), json!(STANDARD.encode(certificate)));
        }
        let text = properties_text(&properties);
        let mut objects = Vec::new();
        if self.is_secret {
            secrets.insert(PROPERTIES.to_owned(), json!(STANDARD.encode(text)));
        } else {
            objects.push(json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": self.config_map, "labels": self.labels},
                "data": {PROPERTIES: text},
                "immutable": true,
            }));
        }
        objects.push(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self.secret, "labels": self.labels},
            "data": secrets,
            "immutable": true,
        }));
        objects
    }

    /// The kind and the source of the properties' volume. The properties are one file in it, at `path`.
    pub(super) fn properties_source(&self, path: &str) -> (&'static str, Value) {
        let items = json!([{"key": PROPERTIES, "path": path}]);
        if self.is_secret {
            ("secret", json!({"secretName": self.secret, "items": items}))
        } else {
            ("configMap", json!({"name": self.config_map, "items": items}))
        }
    }

    /// The name of the secret that has the tickets.
    pub(super) fn secret_name(&self) -> &str {
        &self.secret
    }
}

/// The tickets in the objects of an earlier run.
pub(crate) struct Tickets {
    /// The staging server's address for pods.
    pub(crate) server: String,
    /// Resource ids with their secrets; at least one.
    pub(crate) tickets: Vec<(ResourceId, String)>,
}

/// Reads objects that [`InitObjects::make`] made. It is `None` if they have another form.
pub(crate) fn tickets_of(config_map: Option<&Value>, secret: &Value) -> Option<Tickets> {
    let of_secret = |key: &str| {
        let bytes = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    };
    let text = match config_map {
        Some(map) => map["data"][PROPERTIES].as_str()?.to_owned(),
        None => of_secret(PROPERTIES)?,
    };
    let properties = Properties::parse(PROPERTIES, &text).ok()?;
    let mut tickets = Vec::new();
    for (id, secret) in
        [(keys::INIT_JARS_RESOURCE_ID, JARS_SECRET), (keys::INIT_FILES_RESOURCE_ID, FILES_SECRET)]
    {
        if let Some(id) = properties.get(&id) {
            tickets.push((ResourceId::parse(id).ok()?, of_secret(secret)?));
        }
    }
    let server = properties.get(&keys::SERVER_URI)?.to_owned();
    (!tickets.is_empty()).then_some(Tickets { server, tickets })
}
