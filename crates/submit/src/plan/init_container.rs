//! The init-container that fetches staged files for the driver, by kubespark's contract between pod and init-container.

mod executors;
pub(super) mod merging;
mod objects;
mod pod;
mod server;

use std::collections::BTreeMap;

use super::dependencies::Dependencies;
use super::download_folders::folders;
use super::error::PlanError;
use super::names::{APP_ID_LABEL, Names};
use super::request::{Answer, Asking, Question};
use super::submitter::Machine;
use cloakroom_spark::{SettingError, SparkConf, keys};

pub(super) use executors::{TEMPLATE as EXECUTOR_TEMPLATE, template as executor_template};
pub use objects::InitObjects;
pub(crate) use objects::{Tickets, tickets_of};
pub(super) use server::StagingServer;

/// The text of a dry run in place of the image that only the server knows.
const ADVERTISED: &str = "(what the staging server advertises)";

/// The parts of the init-container.
pub(super) struct InitContainer {
    /// `None` until the server has answered, if no setting names the image.
    image: Option<String>,
    /// The folder for jars in the pod.
    pub jars: String,
    /// The folder for all other files in the pod.
    pub files: String,
    pub objects: InitObjects,
    /// The server for local files. If it is `None`, the init-container fetches only from the web.
    pub server: Option<StagingServer>,
    /// Whether executors get the init-container too (`executorStaging=init`).
    pub for_executors: bool,
    may_ask: bool,
}

impl InitContainer {
    /// Reads and checks all of its settings. It is `None` if there is nothing to fetch. The objects have the label
    /// `spark-app-selector`; `plan::external_submitter` replaces it.
    pub fn read(
        asking: Asking,
        conf: &SparkConf,
        machine: Machine,
        dependencies: &Dependencies,
        names: &Names,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Self>, PlanError> {
        let for_executors = conf.read(&keys::CLOAKROOM_EXECUTOR_STAGING)? == Some("init");
        if !dependencies.need_init_container() {
            return Ok(None);
        }
        let server = server(asking, conf, machine, dependencies, warnings)?;
        let image = image(conf, server.as_ref(), asking, warnings)?;
        let (jars, files) = folders(conf)?;
        let objects = InitObjects {
            config_map: names.of("init-config"),
            secret: names.of("init-secret"),
            labels: [(APP_ID_LABEL, names.app_id.clone())].into(),
            properties: properties(conf, dependencies, server.as_ref(), (&jars, &files))?,
            certificate: server.as_ref().and_then(StagingServer::shipped_certificate),
            has_jars: dependencies.jars.is_some(),
            has_files: dependencies.files.is_some(),
            is_secret: !(dependencies.remote_jars.is_empty() && dependencies.remote_files.is_empty()),
        };
        let may_ask = asking != Asking::Preview;
        Ok(Some(Self { image, jars, files, objects, server, for_executors, may_ask }))
    }

    /// The question to the server, if something is known by the server alone: the image, or its address for pods.
    pub fn question(&self) -> Option<Question> {
        let server = self.server.as_ref().filter(|server| self.image.is_none() || server.is_behind_service());
        server.filter(|_| self.may_ask).map(StagingServer::question)
    }

    /// Takes the server's answer, and may return a warning. A setting that names the image wins over the answer.
    pub fn answered(&mut self, answer: Answer) -> Result<Option<String>, PlanError> {
        let Some(server) = &mut self.server else { return Ok(None) };
        let said = answer.image.clone();
        let warning = server.answered(answer);
        let properties = server.properties().into_iter().map(|(key, value)| (key.to_owned(), value));
        self.objects.properties.extend(properties);
        if self.image.is_none() {
            self.image = Some(server.image(said)?);
        }
        Ok(warning)
    }
}

/// The staging server, if files are staged.
fn server(
    asking: Asking,
    conf: &SparkConf,
    machine: Machine,
    dependencies: &Dependencies,
    warnings: &mut Vec<String>,
) -> Result<Option<StagingServer>, PlanError> {
    if !dependencies.are_staged() {
        return Ok(None);
    }
    let mut server = StagingServer::read(conf, machine, dependencies.no_way.clone(), warnings)?;
    match asking {
        Asking::Allowed { attempts } => server.policy.attempts = attempts,
        Asking::Preview => warnings.extend(server.unasked_address()),
    }
    Ok(Some(server))
}

/// The image of the setting. It is `None` if the server has to be asked.
fn image(
    conf: &SparkConf,
    server: Option<&StagingServer>,
    asking: Asking,
    warnings: &mut Vec<String>,
) -> Result<Option<String>, PlanError> {
    let key = &keys::INIT_CONTAINER_IMAGE;
    match conf.read(key)?.as_deref().map(str::trim) {
        Some("") => return Err(conf.refuse(key, "it must be the image of this program").into()),
        Some(image) => return Ok(Some(image.to_owned())),
        None => {}
    }
    let Some(server) = server else {
        return Err(PlanError::NoInitImage { named: server::named(conf), why: String::new() });
    };
    match asking {
        Asking::Allowed { .. } => Ok(None),
        Asking::Preview => {
            warnings.push(format!(
                "the init-container's image is what {} says, which a dry run does not ask: set `{}` to see it",
                server.place,
                keys::INIT_CONTAINER_IMAGE
            ));
            Ok(Some(ADVERTISED.to_owned()))
        }
    }
}

/// The init-container's properties, without the ids of the tickets.
fn properties(
    conf: &SparkConf,
    dependencies: &Dependencies,
    server: Option<&StagingServer>,
    (jars, files): (&str, &str),
) -> Result<BTreeMap<String, String>, SettingError> {
    let mut properties = BTreeMap::from([
        (keys::JARS_DOWNLOAD_DIR.name(), jars.to_owned()),
        (keys::FILES_DOWNLOAD_DIR.name(), files.to_owned()),
    ]);
    // Only the check is needed: the init-container reads the text itself.
    conf.read(&keys::MOUNT_TIMEOUT)?;
    let timeout = conf.get(&keys::MOUNT_TIMEOUT);
    properties.extend(timeout.map(|timeout| (keys::MOUNT_TIMEOUT.name(), timeout.to_owned())));
    if let Some(server) = server {
        properties.extend(server.properties());
    }
    for (key, addresses) in [
        (keys::INIT_REMOTE_JARS, &dependencies.remote_jars),
        (keys::INIT_REMOTE_FILES, &dependencies.remote_files),
    ] {
        if !addresses.is_empty() {
            properties.insert(key.name(), addresses.join(","));
        }
    }
    Ok(properties.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}
