//! The request that the flags of `cloakroom stage --for` describe, as settings with Spark's keys.

use crate::cli::{SparkSubmitter, StageArgs, ca_giver, token_giver};
use crate::commands::{UsageError, refuse};

use cloakroom_core::resource::{Owner, OwnerKind, POD};
use cloakroom_reach::ServerChoice;
use cloakroom_spark::arguments::master;
use cloakroom_spark::{MainResource, Origin, Properties, SparkConf, keys, split_list};
use cloakroom_submit::plan::external_submitter::ExternalRequest;
use cloakroom_submit::plan::external_submitter::operator::{ApplicationFile, FileSetting};
use cloakroom_submit::plan::{Asking, Submitter};

/// The Kubeflow Spark Operator's kind.
const SPARK_APPLICATION: &str = "SparkApplication.sparkoperator.k8s.io";

/// Makes the request, and checks what can be checked without reading the staged files.
pub fn of_flags(
    args: &StageArgs,
    choice: SparkSubmitter,
    defaults: Option<&Properties>,
    file: Option<&ApplicationFile>,
    submitter: Submitter,
) -> anyhow::Result<ExternalRequest> {
    let given = args.namespace.as_deref();
    let namespace = match file {
        Some(file) => file.namespace(given)?,
        None => given.unwrap_or_default().to_owned(),
    };
    let conf = conf(args, &namespace, defaults, file)?;
    let application = match application(args, file)? {
        Some(path) => Some(MainResource::resolve(path, &conf)?),
        None => None,
    };
    let (owner, name) = match file {
        Some(file) => (Some(file.owner(&namespace)?), file.name().to_owned()),
        None => (owner(args, choice, &namespace)?, name(args, application.as_ref())),
    };
    let names_containers = choice == SparkSubmitter::SparkOperator;
    let asking = Asking::Allowed { attempts: args.attempts };
    Ok(ExternalRequest {
        conf,
        application,
        name,
        owner,
        file: file.cloned(),
        ttl: args.ttl,
        unused_timeout: args.unused_timeout,
        names_containers,
        submitter,
        asking,
    })
}

/// The application's own jar, Python or R file: an argument, or a field of the SparkApplication.
fn application<'a>(
    args: &'a StageArgs,
    file: Option<&'a ApplicationFile>,
) -> anyhow::Result<Option<&'a str>> {
    let [path] = args.files.as_slice() else {
        if args.files.is_empty() {
            return Ok(file.and_then(ApplicationFile::main_file));
        }
        refuse!(
            "--for takes one file, the application's own jar, Python or R file: name the others by --jars, --files, \
             --py-files and --archives, separated by commas"
        );
    };
    let Some(path) = path.to_str() else {
        refuse!(
            "the name of the application is not UTF-8, which Spark cannot take: rename {}",
            path.display()
        )
    };
    match file.and_then(|file| Some((file, file.main_file()?))) {
        Some((file, own)) if own != path => {
            let field = file.field("mainApplicationFile");
            refuse!("{field} is {own}, and {path} is given as well: leave one of them out")
        }
        _ => Ok(Some(path)),
    }
}

fn conf(
    args: &StageArgs,
    namespace: &str,
    defaults: Option<&Properties>,
    file: Option<&ApplicationFile>,
) -> anyhow::Result<SparkConf> {
    let mut conf = file.map(of_file).transpose()?.unwrap_or_default();
    for (key, value) in &args.external.settings {
        let is_of_file = matches!(conf.origin(key), Some(Origin::Field { .. }));
        if is_of_file && conf.get(key).is_some_and(|there| there != value) {
            return Err(conf.refuse(key, "--conf says something else: leave one of them out").into());
        }
        conf.set(key, value, Origin::Conf);
    }
    let external = &args.external;
    let (ca_file, token_file) = (args.ca_files.first(), args.token_file.as_ref());
    if args.ca_files.len() > 1 {
        refuse!(
            "--for takes one --ca-file, which travels to the pods: put the certificates into one PEM file"
        );
    }
    if let Some(path) = ca_file {
        conf.set(&keys::TLS_ENABLED, "true", ca_giver(path));
        conf.set(&keys::TLS_CLIENT_CERT_PEM, path.display().to_string(), ca_giver(path));
    }
    if let Some(account) = &args.service.upload_service_account {
        let origin = Origin::Option("--upload-service-account");
        conf.set(&keys::CLOAKROOM_UPLOAD_SERVICE_ACCOUNT, account, origin);
    }
    if args.no_reuse {
        conf.set(&keys::CLOAKROOM_NO_REUSE, "true", Origin::Option("--no-reuse"));
    }
    if let Some(path) = token_file {
        conf.set(&keys::CLOAKROOM_UPLOAD_TOKEN_FILE, path.display().to_string(), token_giver(path));
    }
    for (flag, key, value) in [
        ("--namespace", keys::NAMESPACE.name(), Some(namespace.to_owned())),
        ("--jars", keys::JARS.name(), list(&conf, &keys::JARS, external.jars.as_deref())),
        ("--files", keys::FILES.name(), list(&conf, &keys::FILES, external.files.as_deref())),
        ("--archives", keys::ARCHIVES.name(), list(&conf, &keys::ARCHIVES, external.archives.as_deref())),
        ("--py-files", keys::PY_FILES.name(), list(&conf, &keys::PY_FILES, external.py_files.as_deref())),
        ("--fetch-image", keys::INIT_CONTAINER_IMAGE.name(), external.fetch_image.clone()),
        ("--master", keys::MASTER.name(), args.service.master.clone()),
        ("--context", keys::CONTEXT.name(), args.service.context.clone()),
    ] {
        if let Some(value) = value {
            conf.set(key, value, Origin::Option(flag));
        }
    }
    // spark-submit reads the defaults too, but the printed arguments win over them.
    let counts = |key: &str, value: &str| {
        key.starts_with(keys::PREFIX) && (*key != *keys::MASTER || value.starts_with("k8s://"))
    };
    let all = defaults.into_iter().flat_map(Properties::iter);
    for property in all.filter(|property| counts(property.key, property.value)) {
        let file = defaults.map(|file| file.file().to_owned()).unwrap_or_default();
        conf.set_if_missing(property.key, property.value, Origin::File { file, line: property.line });
    }
    args.choice(ServerChoice::of_settings(&conf))?.set_in(&mut conf);
    if conf.contains(&keys::MASTER) {
        master::normalise(&mut conf)?;
    }
    Ok(conf)
}

/// The settings in the file of the SparkApplication.
fn of_file(file: &ApplicationFile) -> anyhow::Result<SparkConf> {
    let mut conf = SparkConf::default();
    for FileSetting { key, value, field } in file.settings()? {
        conf.set(&key, value, Origin::Field { file: file.file().to_owned(), field });
    }
    Ok(conf)
}

/// A list of the command line. It is appended to the list in the SparkApplication, and replaces any other setting, as
/// with spark-submit.
fn list(conf: &SparkConf, key: &str, given: Option<&str>) -> Option<String> {
    let given = given?;
    let is_of_file = matches!(conf.origin(key), Some(Origin::Field { .. }));
    let there = conf.get(key).filter(|_| is_of_file).unwrap_or_default();
    let mut entries: Vec<&str> = split_list(there).collect();
    let more: Vec<&str> = split_list(given).filter(|entry| !entries.contains(entry)).collect();
    entries.extend(more);
    Some(if is_of_file { entries.join(",") } else { given.to_owned() })
}

/// The owner of the files: the one that the flags name, by default of the kind that the submitter creates. `None`
/// without such flags: the owner is then the pod of the template.
fn owner(args: &StageArgs, choice: SparkSubmitter, namespace: &str) -> anyhow::Result<Option<Owner>> {
    let is_named = args.name.is_some() || !args.labels.is_empty();
    let own_kind = match choice {
        SparkSubmitter::SparkSubmit if !is_named && args.kind.is_none() => return Ok(None),
        SparkSubmitter::SparkOperator if !is_named => refuse!(
            "--for spark-operator needs -f with the file of the SparkApplication, or --name with its name, because the \
             staged files live as long as the application (or --label for several applications)"
        ),
        SparkSubmitter::SparkSubmit => POD,
        SparkSubmitter::SparkOperator => SPARK_APPLICATION,
    };
    let kind = args.kind.clone().map_or_else(|| OwnerKind::parse(own_kind), Ok)?;
    let owner = Owner::new(kind, namespace, args.labels.clone(), args.name.as_deref());
    Ok(Some(owner.map_err(|error| UsageError::from_error(&error))?))
}

/// The beginning of the objects' names.
fn name(args: &StageArgs, application: Option<&MainResource>) -> String {
    let file = application.map(|resource| resource.uri().rsplit('/').next().unwrap_or_default());
    let stem = file.map(|file| file.rsplit_once('.').map_or(file, |(stem, _)| stem));
    args.name.as_deref().or(stem).unwrap_or("staged").to_owned()
}
