//! The config map and the secret that tell the init-container what to fetch.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::ResourceId;
use cloakroom_spark::{Properties, keys, properties_text};

/// Where the secret is mounted.
pub(super) const SECRET_FOLDER: &str = "/mnt/secrets/spark-init";
/// Key of the certificate in the secret.
pub(super) const CERTIFICATE: &str = "ssl-certificate";
/// Key of the properties.
pub(super) const PROPERTIES: &str = "download-submitted-files";
const JARS_SECRET: &str = "downloadSubmittedJarsSecret";
const FILES_SECRET: &str = "downloadSubmittedFilesSecret";
/// What is said for the id of what is not staged yet.
const NOT_YET: &str = "(given when it is staged)";

/// What both objects are made of once the tickets are known.
#[derive(Clone, PartialEq, Eq)]
pub struct InitObjects {
    pub(super) config_map: String,
    pub(super) secret: String,
    /// By which both are found beside the application.
    pub(in crate::plan) labels: BTreeMap<&'static str, String>,
    /// All but the ids. Addresses among them may be secrets.
    pub(super) properties: BTreeMap<String, String>,
    pub(super) certificate: Option<Vec<u8>>,
    pub(super) has_jars: bool,
    pub(super) has_files: bool,
    /// Whether the properties are a secret, because addresses are.
    pub(super) is_secret: bool,
}

impl InitObjects {
    /// The objects before anything was staged, or where nothing is.
    #[must_use]
    pub(crate) fn unticketed(&self) -> Vec<Value> {
        self.make(None, None)
    }

    /// How the objects are called: `the secret x`.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let map = (!self.is_secret).then(|| format!("the config map {}", self.config_map));
        map.into_iter().chain([format!("the secret {}", self.secret)]).collect()
    }

    /// The staging server, as the init-container is told of it.
    pub(crate) fn server(&self) -> Option<&str> {
        self.properties.get(&*keys::SERVER_URI).map(String::as_str)
    }

    /// The objects, with the tickets as far as they are known.
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

    /// The volume of the properties, without its name.
    pub(super) fn properties_source(&self, path: &str) -> (&'static str, Value) {
        let items = json!([{"key": PROPERTIES, "path": path}]);
        if self.is_secret {
            ("secret", json!({"secretName": self.secret, "items": items}))
        } else {
            ("configMap", json!({"name": self.config_map, "items": items}))
        }
    }

    /// The secret's name.
    pub(super) fn secret_name(&self) -> &str {
        &self.secret
    }
}

/// What the objects of one run say.
pub(crate) struct Tickets {
    /// As the init-container is told of it.
    pub(crate) server: String,
    /// Ids with their secrets; at least one.
    pub(crate) tickets: Vec<(ResourceId, String)>,
}

/// Reads objects as [`InitObjects::make`] makes them; nothing where they are of another form.
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
