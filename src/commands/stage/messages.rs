//! The output of `cloakroom stage --for`: what to pass on to the submitter on stdout, the files of the pod templates, and
//! explanations on stderr.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cli::SparkSubmitter;
use crate::commands::tell;

use cloakroom_core::text::{harmless_json, shell_word};
use cloakroom_spark::keys;
use cloakroom_submit::plan::external_submitter::operator::{self, ApplicationFile};
use cloakroom_submit::plan::external_submitter::{ExternalSubmission, FOUND_IN_JARS, LABEL};
use cloakroom_submit::run::HandedOver;

/// What to pass on to the submitter.
pub fn given(
    choice: SparkSubmitter,
    external: &ExternalSubmission,
    templates: Option<&Templates>,
) -> anyhow::Result<String> {
    match choice {
        SparkSubmitter::SparkSubmit => Ok(arguments(external, templates)),
        SparkSubmitter::SparkOperator => fields(external),
    }
}

/// A stream of YAML documents.
pub fn documents(documents: &[Value]) -> anyhow::Result<String> {
    documents.iter().map(|document| Ok(format!("---\n{}", document_for_kubectl(document)?))).collect()
}

/// A document as YAML, or as JSON, which is YAML too, if kubectl would read the YAML otherwise.
fn document_for_kubectl(document: &Value) -> anyhow::Result<String> {
    if is_read_otherwise(document) {
        return Ok(harmless_json(&format!("{document:#}\n")));
    }
    yaml(document)
}

/// Whether a key is a boolean in YAML 1.1, which kubectl reads and the YAML writer does not quote, or whether a text has what
/// kubectl takes only with an escape: a tab where its lines begin, or a control character.
fn is_read_otherwise(value: &Value) -> bool {
    const WORDS: [&str; 6] = ["y", "n", "yes", "no", "on", "off"];
    let is_odd = |text: &str| {
        text.contains(|c: char| {
            c != '\n' && c != '\t' && (c.is_control() || "\u{2028}\u{2029}\u{feff}".contains(c))
        }) || text.contains('\n') && text.trim_start_matches('\n').starts_with('\t')
    };
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| {
            is_odd(key) || WORDS.iter().any(|word| key.eq_ignore_ascii_case(word)) || is_read_otherwise(value)
        }),
        Value::Array(list) => list.iter().any(is_read_otherwise),
        Value::String(text) => is_odd(text),
        _ => false,
    }
}

/// Writes to stdout. A closed stdout is a failure, because the user needs this output.
pub fn show(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
}

/// A document of YAML.
pub fn yaml(value: &Value) -> anyhow::Result<String> {
    let mut text = serde_saphyr::to_string(value).context("cannot write YAML")?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Arguments of spark-submit, with the application after all options. A shell reads the lines as one command.
fn arguments(external: &ExternalSubmission, templates: Option<&Templates>) -> String {
    let file = |path: &Path| path.display().to_string();
    let mut settings = vec![(keys::NAMESPACE.name(), external.namespace.clone())];
    settings.extend(external.pod_name.iter().map(|name| (keys::DRIVER_POD_NAME.name(), name.clone())));
    if let Some(templates) = templates {
        settings.push((keys::DRIVER_POD_TEMPLATE.name(), file(&templates.driver)));
        if let Some(executor) = &templates.executor {
            settings.push((keys::EXECUTOR_POD_TEMPLATE.name(), file(executor)));
        }
    }
    settings.extend(external.containers.iter().cloned());
    settings.extend(external.lists.iter().cloned());
    let options = settings.iter().map(|(key, value)| format!("--conf {key}={}", shell_word(value)));
    let application = external.application.iter().map(|application| shell_word(application));
    options.chain(application).collect::<Vec<_>>().join(" \\\n") + "\n"
}

/// The same as fields of a `SparkApplication`.
fn fields(external: &ExternalSubmission) -> anyhow::Result<String> {
    let spec = operator::fields(external).context("the fields cannot be written")?;
    yaml(&json!({"spec": spec}))
}

/// Explains what was created, and what the user has to do next.
pub fn explain(
    external: &ExternalSubmission,
    choice: SparkSubmitter,
    are_made: bool,
    expires_at: Option<Timestamp>,
) {
    let names = external.objects.names().join(" and ");
    let namespace = &external.namespace;
    let made = if are_made { "made" } else { "not made yet:" };
    tell(&format!(
        "{made} {names} in namespace {namespace}; nothing owns them: once the application has ended, remove them with {}",
        removal(external)
    ));
    let next = match choice {
        SparkSubmitter::SparkSubmit => "submit the application",
        SparkSubmitter::SparkOperator => "apply the SparkApplication",
    };
    expires(next, expires_at);
    if external.application.as_deref() == Some(FOUND_IN_JARS) {
        let hint = match (choice, &external.main_class) {
            (SparkSubmitter::SparkSubmit, Some(class)) => format!("give --class {class} as well"),
            (SparkSubmitter::SparkSubmit, None) => "give --class as well".to_owned(),
            (SparkSubmitter::SparkOperator, None) => "give mainClass as well".to_owned(),
            (SparkSubmitter::SparkOperator, Some(_)) => return,
        };
        tell(&format!("{hint}: spark-submit cannot look into the jar"));
    }
}

/// The same for a SparkApplication that was printed with everything it needs.
pub fn explain_merged(external: &ExternalSubmission, file: &ApplicationFile, handed_over: &HandedOver) {
    let (kind, name) = (file.kind(), file.name());
    let (names, namespace) = (external.objects.names().join(" and "), &external.namespace);
    let owned = if handed_over.is_owned {
        format!(
            "they belong to the {kind} that exists already, and are deleted with it: do not delete it before you apply \
             this"
        )
    } else {
        format!("nothing owns them: once the {kind} is gone, remove them with {}", removal(external))
    };
    tell(&format!(
        "printed the {kind} {name} with {names} for “kubectl apply -f -” (namespace {namespace}); {owned}"
    ));
    expires("apply it", handed_over.expires_at);
}

fn removal(external: &ExternalSubmission) -> String {
    format!("“kubectl delete secret,configmap -n {} -l {LABEL}={}”", external.namespace, external.id)
}

fn expires(next: &str, expires_at: Option<Timestamp>) {
    if let Some(expires_at) = expires_at {
        tell(&format!("{next} before {expires_at}: then the server deletes what was not downloaded"));
    }
}

/// The first line of each template, for a reader who finds it later.
const TEMPLATE_HEAD: &str =
    "# Made by cloakroom stage for one application. It names a Secret, but holds nothing secret.\n";

/// The files of the pod templates for spark-submit. Their names are as unique as those of the objects, so that two runs in one folder do not collide.
pub struct Templates {
    pub driver: PathBuf,
    /// The executors', if they have one.
    pub executor: Option<PathBuf>,
    contents: Vec<(PathBuf, String)>,
}

impl Templates {
    /// Renders the templates for `folder`. It writes none of them yet, but it tries whether the folder can be written to,
    /// because a failure after the uploads would come too late.
    pub fn new(folder: &Path, external: &ExternalSubmission) -> anyhow::Result<Self> {
        let refused = || format!("cannot write pod templates to {} (--templates-to)", folder.display());
        let folder = folder.canonicalize().with_context(refused)?;
        let path = |whose: &str| folder.join(format!("{}-{whose}-pod-template.yaml", external.prefix));
        let driver = path("driver");
        File::create_new(&driver).and_then(|_| fs::remove_file(&driver)).with_context(refused)?;
        let mut contents = vec![(driver.clone(), template(&Value::Object(external.driver.clone()))?)];
        let mut executor = None;
        if let Some(text) = &external.executor {
            let path = path("executor");
            contents.push((path.clone(), template(&serde_json::from_str(text)?)?));
            executor = Some(path);
        }
        Ok(Self { driver, executor, contents })
    }

    /// Writes all of them, or none.
    pub fn write(&self) -> anyhow::Result<()> {
        for (path, text) in &self.contents {
            let written = File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
            if let Err(error) = written {
                self.take_back();
                return Err(error)
                    .with_context(|| format!("cannot write {} (--templates-to)", path.display()));
            }
        }
        Ok(())
    }

    /// Removes the files that were written.
    pub fn take_back(&self) {
        for (path, _) in &self.contents {
            // A file that was not written need not be removed.
            let _ = fs::remove_file(path);
        }
    }
}

fn template(pod: &Value) -> anyhow::Result<String> {
    Ok(format!("{TEMPLATE_HEAD}{}", yaml(pod)?))
}
