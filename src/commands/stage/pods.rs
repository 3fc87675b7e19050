//! `cloakroom stage --for pods`: stages files and folders for a Pod or a Job, and prints it with the files in it. After a
//! failure nothing of this is left.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::upload::Upload;
use super::{Reached, messages, object_file, plan, reach, request, through_api_server};
use crate::cli::StageArgs;
use crate::commands::{refuse, stdout, tell};

use cloakroom_cluster::ApiServer;
use cloakroom_submit::create::{Companions, try_named};
use cloakroom_submit::pods::{FILES_OF, Fetching, FilesPlace, PodFile, secret};
use cloakroom_transfer::bundle::Disk;
use cloakroom_transfer::client::{RetryPolicy, ServerAddress, StageRequest, Staged, TrustedCertificates};

/// Where the files go by default.
const USUAL_FOLDER: &str = "/work";

/// How many digits of the digest of its contents name a bundle.
const ID_DIGITS: usize = 32;

/// A ticket's place in a Secret that is only tried.
const NO_TICKET: &str = "{}";

/// Stages, and prints.
pub async fn run(args: &StageArgs) -> anyhow::Result<ExitCode> {
    stdout::require()?;
    let mut output = Output::wanted(args)?;
    let namespace = output.fetching.namespace.clone();
    let (server, plan) = (args.place()?, plan(args)?);
    let measured = Arc::clone(&plan);
    let digest = spawn_blocking(move || measured.content_digest(&Disk)).await??;
    digest[..ID_DIGITS].clone_into(&mut output.fetching.id);
    let owner = output.file.owner(&namespace, &output.fetching.id)?;
    let request = request(args, owner, plan)?;
    let reached = reach(&server, args, &namespace).await?;
    let (image, url) = for_pods(&reached, args).await?;
    output.fetching.image = image;
    let Reached { http, address, tokens, .. } = reached;
    let upload = Upload::new(http, StageRequest { tokens, ..request(address) }, &server, args)?;
    let stop = &upload.signals.stop;
    if let Some(name) = &args.pods.secret {
        let tried = output.try_named(name, args, stop).await;
        if stop.is_cancelled() {
            tell("stopped; nothing was sent");
            return Ok(upload.exit_code());
        }
        tried?;
    }
    let earlier = if output.file.has_name() { upload.earlier().await } else { None };
    let staged = match earlier {
        Some(earlier) => earlier,
        None => match upload.run().await? {
            Some(staged) => staged,
            None => return Ok(upload.exit_code()),
        },
    };
    let printed = match &url {
        Some(url) => staged.clone().at(url),
        None => staged.clone(),
    };
    if let Err(NotGiven { error, is_used }) = output.give(&printed, stop).await {
        if is_used {
            return Err(error);
        }
        let left = upload.take_back(&staged).await;
        return Err(anyhow!("{error:#}; {left}"));
    }
    if output.file.has_name() {
        upload.request.keep_ticket(&staged);
    }
    upload.summarise(&staged);
    upload.warn_of_second(&staged);
    if !args.quiet {
        output.explain();
    }
    Ok(ExitCode::SUCCESS)
}

/// The Pod or Job, if the flags go together.
fn pod_file(args: &StageArgs) -> anyhow::Result<PodFile> {
    if let Some(flag) = args.external.first_of_spark() {
        refuse!("{flag} is for a Spark application: leave it out, and name the files and folders themselves");
    }
    let Some(path) = &args.external.filename else {
        refuse!("--for pods needs -f with the file of a Pod or a Job; - is stdin")
    };
    if args.files.is_empty() {
        refuse!("no files are named: name the files and folders for the pods, such as .");
    }
    let (called, text) = object_file::read(path)?;
    let file = PodFile::parse(&called, &text, args.name.as_deref())?;
    if args.pods.secret.is_some() && !file.has_name() {
        refuse!(
            "--secret is one name, and {called} has a generateName: give it a name, or leave --secret out"
        );
    }
    Ok(file)
}

fn files_place(args: &StageArgs) -> FilesPlace {
    FilesPlace {
        mount: args.pods.mount.clone().unwrap_or_else(|| USUAL_FOLDER.to_owned()),
        is_workdir: args.pods.workdir,
        containers: args.pods.containers.clone(),
    }
}

/// The image that fetches in the pods, and how URLs of the server begin there, if not as in its tickets. The server's word
/// about the image counts only where nobody else can have said it: the pods run it.
async fn for_pods(reached: &Reached, args: &StageArgs) -> anyhow::Result<(String, Option<String>)> {
    let (address, given) = (&reached.address, args.external.fetch_image.clone());
    let (image, url) = if let Some(url) = &reached.internal_url {
        (reached.fetch_image.clone(), Some(url.clone()))
    } else {
        let policy = RetryPolicy { attempts: args.attempts, ..RetryPolicy::default() };
        let told = |notice: &_| tell(&format!("{notice}"));
        let asked = reached.http.retried(address, policy, &told, || reached.http.server_info(address));
        let info = asked.await.with_context(|| format!("{address} cannot be asked"))?;
        if address.is_loopback() && info.internal_url.is_none() && info.public_url.is_none() {
            bail!(
                "no pod reaches {address}, which is this machine, and the server has no other address: it needs \
                 --internal-url or --public-url"
            );
        }
        (said_image(address, info.fetch_image, given.is_some())?, info.internal_url)
    };
    let Some(image) = given.or(image) else {
        bail!(
            "the server names no image for the init-container (--fetch-image of serve): name one by --fetch-image"
        )
    };
    Ok((image, url))
}

/// The image that the server names, if its word is needed and can be trusted.
fn said_image(
    address: &ServerAddress,
    said: Option<String>,
    is_given: bool,
) -> anyhow::Result<Option<String>> {
    if !is_given && said.is_some() && !address.is_confidential() {
        bail!(
            "the word of {address} about the image is not taken, because others can change it on the way: name the image by \
             --fetch-image, or use https"
        );
    }
    Ok(said)
}

/// What is printed.
struct Output {
    file: PodFile,
    place: FilesPlace,
    fetching: Fetching,
    certificate: Option<String>,
    /// The cluster that gets the Secret, if that is not printed, and whether a Secret of its name is there already.
    named: Option<(ApiServer, bool)>,
}

/// The user does not have what is printed.
struct NotGiven {
    error: anyhow::Error,
    /// Whether the ticket is in a Secret that pods may use.
    is_used: bool,
}

impl From<anyhow::Error> for NotGiven {
    fn from(error: anyhow::Error) -> Self {
        Self { error, is_used: false }
    }
}

impl Output {
    /// What the flags and the file say. The rest comes from the files and from the server.
    fn wanted(args: &StageArgs) -> anyhow::Result<Self> {
        let (file, place) = (pod_file(args)?, files_place(args));
        let certificate = match args.ca_files.as_slice() {
            [] => None,
            files => Some(TrustedCertificates::read(files)?.to_pem()),
        };
        let fetching = Fetching {
            namespace: file.namespace(args.namespace.as_deref())?,
            of: file.called(),
            id: String::new(),
            image: String::new(),
            secret: String::new(),
            has_certificate: certificate.is_some(),
        };
        file.with_files(&place, &fetching, None)?;
        Ok(Self { file, place, fetching, certificate, named: None })
    }

    /// Tries the Secret of a name that the user has chosen.
    async fn try_named(
        &mut self,
        name: &str,
        args: &StageArgs,
        stop: &CancellationToken,
    ) -> anyhow::Result<()> {
        name.clone_into(&mut self.fetching.secret);
        let api_server = through_api_server::connect(args).await?;
        let tried = secret(&self.fetching, NO_TICKET, None);
        let is_there = try_named(&api_server, &self.fetching.namespace, &tried, FILES_OF, stop).await?;
        self.named = Some((api_server, is_there));
        Ok(())
    }

    /// Prints the file with everything in it. A Secret with a name of the user's goes into the cluster before that, in place of
    /// an earlier one of the same object.
    async fn give(&mut self, staged: &Staged, stop: &CancellationToken) -> Result<(), NotGiven> {
        if self.named.is_none() {
            self.fetching.secret = self.file.secret_name(&self.fetching.id, &staged.ticket.resource_id);
        }
        let secret = secret(&self.fetching, &staged.json, self.certificate.as_deref());
        let Some((api_server, is_there)) = &self.named else { return Ok(self.show(Some(secret))?) };
        let (namespace, objects) = (&self.fetching.namespace, std::slice::from_ref(&secret));
        let made = Companions::make(api_server, namespace, objects, stop).await;
        let made = made.map_err(anyhow::Error::from)?;
        let Err(error) = self.show(None) else { return Ok(()) };
        let name = &self.fetching.secret;
        if *is_there {
            let error = anyhow!("{error:#}; the Secret {name} has the new ticket already");
            return Err(NotGiven { error, is_used: true });
        }
        let undone = made.undo().await;
        Err(anyhow!("{error:#}; the Secret {name} was made before that{undone}").into())
    }

    fn show(&self, secret: Option<Value>) -> anyhow::Result<()> {
        let objects = self.file.with_files(&self.place, &self.fetching, secret)?;
        messages::show(&messages::documents(&objects)?).context("the result cannot be printed on stdout")
    }

    fn explain(&self) {
        let Fetching { namespace, secret, of, .. } = &self.fetching;
        let (verb, objects) = match of.split_once(' ') {
            Some((kind, name)) if self.file.has_name() => {
                ("apply", format!("{}/{name} secret/{secret}", kind.to_lowercase()))
            }
            _ => ("create", format!("secret/{secret}")),
        };
        tell(&format!(
            "printed the {of} for “kubectl {verb} -f -” (namespace {namespace}). Nothing owns the Secret: later, remove it too, \
             with “kubectl delete -n {namespace} {objects}”"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_word_about_the_image_counts_where_none_can_change_it() {
        for (address, is_given, is_taken) in [
            ("https://staging.example", false, true),
            ("http://127.0.0.1:10000", false, true),
            ("http://staging.example", true, true),
            ("http://staging.example", false, false),
        ] {
            let address = ServerAddress::parse(address).unwrap();
            let said = said_image(&address, Some("cloakroom:1".to_owned()), is_given);
            assert_eq!(said.is_ok(), is_taken, "{address}");
        }
    }
}
