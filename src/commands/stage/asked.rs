//! What the flags of `cloakroom stage --for` ask for, as settings by Spark's keys.

use anyhow::bail;

use crate::cli::{StageArgs, SubmitterChoice};

use cloakroom::resource::{Owner, OwnerKind, POD};
use cloakroom::spark::arguments::master;
use cloakroom::spark::{MainResource, Origin, Properties, SparkConf, keys};
use cloakroom::submit::plan::handover::HandoverRequest;

/// The Kubeflow Spark Operator's kind.
const SPARK_APPLICATION: &str = "SparkApplication.sparkoperator.k8s.io";

/// Checks what can be checked without a file, and gathers the rest.
pub fn request(
    args: &StageArgs,
    choice: SubmitterChoice,
    defaults: Option<&Properties>,
) -> anyhow::Result<HandoverRequest> {
    let conf = conf(args, defaults)?;
    let application = match args.files.as_slice() {
        [] => None,
        [file] => match file.to_str() {
            Some(text) => Some(MainResource::of(text, &conf)?),
            None => bail!(
                "the name of the application is not UTF-8, which Spark cannot take: rename {}",
                file.display()
            ),
        },
        _ => bail!(
            "--for takes one file, the application's own jar, Python or R file: name the others by --jars, --files, \
             --py-files and --archives, separated by commas"
        ),
    };
    let name = name(args, application.as_ref());
    let names_containers = choice == SubmitterChoice::SparkOperator;
    Ok(HandoverRequest { conf, owner: owner(args, choice)?, application, name, names_containers })
}

fn conf(args: &StageArgs, defaults: Option<&Properties>) -> anyhow::Result<SparkConf> {
    let mut conf = SparkConf::default();
    for (key, value) in &args.handover.settings {
        conf.set(key, value, Origin::Conf);
    }
    let handover = &args.handover;
    let [ca_file, token_file] = [args.ca_files.first(), args.token_file.as_ref()]
        .map(|path| path.map(|path| path.display().to_string()));
    if args.ca_files.len() > 1 {
        bail!("--for takes one --ca-file, which travels to the pods: put the certificates into one PEM file");
    }
    if ca_file.is_some() {
        conf.set(&keys::TLS_ENABLED, "true", Origin::Option("--ca-file"));
    }
    for (flag, key, value) in [
        ("--namespace", keys::NAMESPACE.name(), Some(args.namespace.clone())),
        ("--jars", keys::JARS.name(), handover.jars.clone()),
        ("--files", keys::FILES.name(), handover.files.clone()),
        ("--archives", keys::ARCHIVES.name(), handover.archives.clone()),
        ("--py-files", keys::PY_FILES.name(), handover.py_files.clone()),
        ("--fetch-image", keys::INIT_CONTAINER_IMAGE.name(), handover.fetch_image.clone()),
        ("--ca-file", keys::TLS_CLIENT_CERT_PEM.name(), ca_file),
        ("--token-file", keys::CLOAKROOM_UPLOAD_TOKEN_FILE.name(), token_file),
        ("--master", keys::MASTER.name(), handover.master.clone()),
    ] {
        if let Some(value) = value {
            conf.set(key, value, Origin::Option(flag));
        }
    }
    // spark-submit reads them too, and what is printed wins over them.
    let counts = |key: &str, value: &str| {
        key.starts_with(keys::PREFIX) && (*key != *keys::MASTER || value.starts_with("k8s://"))
    };
    let all = defaults.into_iter().flat_map(Properties::iter);
    for property in all.filter(|property| counts(property.key, property.value)) {
        let file = defaults.map(|file| file.file().to_owned()).unwrap_or_default();
        conf.set_if_missing(property.key, property.value, Origin::File { file, line: property.line });
    }
    conf.set_if_missing(&keys::SERVER_URI, args.server.to_string(), Origin::Option("--server"));
    if conf.contains(&keys::MASTER) {
        master::normalise(&mut conf)?;
    }
    Ok(conf)
}

/// Whom the files live for: what the flags say, of the kind that the submitter makes; without them the pod that the template
/// makes.
fn owner(args: &StageArgs, choice: SubmitterChoice) -> anyhow::Result<Option<Owner>> {
    let is_named = args.name.is_some() || !args.labels.is_empty();
    let own_kind = match choice {
        SubmitterChoice::SparkSubmit if !is_named && args.kind.is_none() => return Ok(None),
        SubmitterChoice::SparkOperator if !is_named => bail!(
            "--for spark-operator needs --name, the name of the SparkApplication: what is staged lives as long as it does \
             (or --label, if several have it)"
        ),
        SubmitterChoice::SparkSubmit => POD,
        SubmitterChoice::SparkOperator => SPARK_APPLICATION,
    };
    let kind = args.kind.clone().map_or_else(|| OwnerKind::parse(own_kind), Ok)?;
    Ok(Some(Owner::new(kind, &args.namespace, args.labels.clone(), args.name.as_deref())?))
}

/// What the names of the objects begin with.
fn name(args: &StageArgs, application: Option<&MainResource>) -> String {
    let file = application.map(|resource| resource.uri().rsplit('/').next().unwrap_or_default());
    let stem = file.map(|file| file.rsplit_once('.').map_or(file, |(stem, _)| stem));
    args.name.as_deref().or(stem).unwrap_or("staged").to_owned()
}
