//! What is asked for: an application with a jar and a file of this machine.

use std::collections::BTreeMap;
use std::path::Path;

use cloakroom_spark::{MainResource, Origin, SparkConf, SubmitArguments};
use cloakroom_submit::Randomness;
use cloakroom_submit::plan::external_submitter::ExternalRequest;
use cloakroom_submit::plan::external_submitter::operator::ApplicationFile;
use cloakroom_submit::plan::{Asking, Request, Submitter};
use jiff::Timestamp;

const NAMESPACE: &str = "default";

pub fn randomness() -> Randomness {
    Randomness::new(Timestamp::now(), &mut rand::rng())
}

/// The application, which is not waited for. Its jar and its file are made in `folder`.
pub fn application(folder: &Path, server: &str) -> Request {
    let arguments = SubmitArguments {
        conf: conf(folder, server),
        resource: jar(),
        main_class: "org.example.App".to_owned(),
        arguments: Vec::new(),
        proxy_user: None,
    };
    Request { arguments, submitter: submitter(folder), asking: Asking::Allowed { attempts: None } }
}

/// The same application, where something else submits it: by its file, if there is one.
pub fn external(folder: &Path, server: &str, file: Option<ApplicationFile>) -> ExternalRequest {
    let mut conf = conf(folder, server);
    for key in ["spark.jars", "spark.app.name"] {
        conf.remove(key);
    }
    ExternalRequest {
        conf,
        application: Some(jar()),
        name: "app".to_owned(),
        owner: file.as_ref().map(|file| file.owner(NAMESPACE).unwrap()),
        names_containers: file.is_some(),
        file,
        ttl: None,
        unused_timeout: None,
        submitter: submitter(folder),
        asking: Asking::Allowed { attempts: None },
    }
}

fn jar() -> MainResource {
    MainResource::Java("app.jar".to_owned())
}

fn conf(folder: &Path, server: &str) -> SparkConf {
    for name in ["app.jar", "data.txt"] {
        std::fs::write(folder.join(name), name).unwrap();
    }
    let mut conf = SparkConf::default();
    for (key, value) in [
        ("spark.app.name", "app"),
        ("spark.jars", "app.jar"),
        ("spark.files", "data.txt"),
        ("spark.kubernetes.namespace", NAMESPACE),
        ("spark.kubernetes.container.image", "repo.example/spark:4"),
        ("spark.kubernetes.submission.waitAppCompletion", "false"),
        ("spark.kubernetes.cloakroom.retryTimeout", "0s"),
        ("spark.kubernetes.resourceStagingServer.uri", server),
        ("spark.kubernetes.resourceStagingServer.internal.uri", server),
    ] {
        conf.set(key, value, Origin::Conf);
    }
    conf
}

fn submitter(folder: &Path) -> Submitter {
    Submitter {
        system: BTreeMap::new(),
        variables: BTreeMap::new(),
        user: Ok("me".to_owned()),
        working_folder: folder.to_owned(),
    }
}
