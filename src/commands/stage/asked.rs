//! What the flags of `cloakroom stage --for` ask for, as settings by Spark's keys.

use anyhow::bail;

use crate::cli::{StageArgs, SubmitterChoice};

use cloakroom::resource::{Owner, OwnerKind, POD};
use cloakroom::spark::arguments::master;
use cloakroom::spark::{MainResource, Origin, SparkConf, keys};
use cloakroom::submit::plan::handover::HandoverRequest;

/// The Kubeflow Spark Operator's kind.
const SPARK_APPLICATION: &str = "SparkApplication.sparkoperator.k8s.io";

/// Checks what can be checked without a file, and gathers the rest.
pub fn request(args: &StageArgs, choice: SubmitterChoice) -> anyhow::Result<HandoverRequest> {
    let conf = conf(args)?;
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
    Ok(HandoverRequest { conf, owner: owner(args, choice)?, application, name })
}

fn conf(args: &StageArgs) -> anyhow::Result<SparkConf> {
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
        conf.set(keys::TLS_ENABLED, "true", Origin::Option("--ca-file"));
    }
    for (flag, key, value) in [
        ("--namespace", keys::NAMESPACE, Some(args.namespace.clone())),
        ("--jars", "spark.jars", handover.jars.clone()),
        ("--files", "spark.files", handover.files.clone()),
        ("--archives", "spark.archives", handover.archives.clone()),
        ("--py-files", "spark.submit.pyFiles", handover.py_files.clone()),
        ("--fetch-image", keys::INIT_CONTAINER_IMAGE, handover.fetch_image.clone()),
        ("--ca-file", keys::TLS_CLIENT_CERT_PEM, ca_file),
        ("--token-file", keys::CLOAKROOM_UPLOAD_TOKEN_FILE, token_file),
        ("--master", "spark.master", handover.master.clone()),
    ] {
        if let Some(value) = value {
            conf.set(key, value, Origin::Option(flag));
        }
    }
    conf.set_if_missing(keys::SERVER_URI, args.server.to_string(), Origin::Option("--server"));
    if conf.contains("spark.master") {
        master::normalise(&mut conf)?;
    }
    Ok(conf)
}

/// Whom the files live for: what the flags say, with the operator the `SparkApplication`, else the pod that the template
/// makes.
fn owner(args: &StageArgs, choice: SubmitterChoice) -> anyhow::Result<Option<Owner>> {
    let is_default = args.labels.is_empty() && args.kind.as_str() == POD;
    let kind = match (choice, &args.name) {
        (SubmitterChoice::SparkSubmit, None) if is_default => return Ok(None),
        (SubmitterChoice::SparkOperator, None) if is_default => bail!(
            "--for spark-operator needs --name, the name of the SparkApplication: what is staged lives as long as it does"
        ),
        (SubmitterChoice::SparkOperator, Some(_)) if is_default => OwnerKind::parse(SPARK_APPLICATION)?,
        _ => args.kind.clone(),
    };
    Ok(Some(Owner::new(kind, &args.namespace, args.labels.clone(), args.name.as_deref())?))
}

/// What the names of the objects begin with.
fn name(args: &StageArgs, application: Option<&MainResource>) -> String {
    let file = application.map(|resource| resource.uri().rsplit('/').next().unwrap_or_default());
    let stem = file.map(|file| file.rsplit_once('.').map_or(file, |(stem, _)| stem));
    args.name.as_deref().or(stem).unwrap_or("staged").to_owned()
}
