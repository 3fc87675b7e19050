//! The command line of `cloakroom stage`, and where the staging server is according to its flags and variables.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueEnum};

use super::external_submitter::{ExternalSubmitterArgs, SubmitterChoice};
use super::giver;
use super::pods::PodsArgs;
use crate::commands::{UsageError, refuse};

use cloakroom_core::resource::{Owner, OwnerError, OwnerKind, is_dns_subdomain};
use cloakroom_core::text::excerpt;
use cloakroom_core::time::{SparkDuration, TimeError};
use cloakroom_reach::{BadChoice, Said, ServerChoice, ServerPlace};
use cloakroom_spark::Origin;
use cloakroom_transfer::bundle::{PackRules, check_exclude, check_file_name};
use cloakroom_transfer::client::ServerAddress;

// As an attribute, because a URL in a doc comment would have to be a link.
const SERVER_HELP: &str = "Address of the staging server [default: http://127.0.0.1:10000; with --for the Service of --server-namespace]";
const CA_VARIABLE: &str = "CLOAKROOM_CA_FILE";
const TOKEN_VARIABLE: &str = "CLOAKROOM_UPLOAD_TOKEN_FILE";

/// How many characters of a bad name are shown.
const LONGEST_SHOWN: usize = 100;

/// The address of a server on this machine, which needs no setting.
const USUAL_SERVER: &str = "http://127.0.0.1:10000";

const SERVER_VARIABLE: &str = "CLOAKROOM_SERVER";
const SERVER: (&str, &str) = ("--server", SERVER_VARIABLE);
const NAMESPACE: (&str, &str) = ("--server-namespace", "CLOAKROOM_SERVER_NAMESPACE");
const SERVICE: (&str, &str) = ("--server-service", "CLOAKROOM_SERVER_SERVICE");

/// Pack files and folders into one bundle, upload it while packing, and print its ticket as JSON
///
/// With --for, stage the files of a Spark application that spark-submit or the Spark operator will submit, or of a Pod or
/// a Job, and print what to pass on to the submitter.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  cloakroom stage -n demo -l app=demo --ticket-to ticket.json lib/*.jar
  cloakroom stage -n demo -l app=demo --ticket-to ticket.json project
  cloakroom stage --server https://HOST:31000 --ca-file tls.crt \\
      --token-file upload-token -n spark -l spark-app-selector=my-job \\
      --ttl 12h --ticket-to ticket.json app.jar
  cloakroom stage --for spark-operator -f app.yaml | kubectl apply -f -
  cloakroom stage --for pods -f job.yaml . | kubectl apply -f -")]
pub struct StageArgs {
    #[arg(long, value_name = "URI", env = SERVER_VARIABLE, value_parser = ServerAddress::parse, help = SERVER_HELP)]
    pub server: Option<ServerAddress>,

    /// Namespace of the owner, which is the Kubernetes objects that the bundle lives for. With -f the file may give it
    #[arg(long, short, value_name = "NS", required_unless_present = "filename")]
    pub namespace: Option<String>,

    /// Label that all owning objects carry; repeatable. A label or a name is required
    #[arg(long = "label", short = 'l', value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,

    /// Name of the one owning object; with -f, which object of the file to take [default: all objects with the labels]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Kind of the owning objects: Pod, Deployment, StatefulSet, Job, SparkApplication or KIND.GROUP [default: Pod]
    #[arg(long, value_name = "KIND", value_parser = OwnerKind::named)]
    pub kind: Option<OwnerKind>,

    /// Upper bound on the bundle's life, such as 2h [default: none]
    #[arg(long, value_name = "DURATION")]
    pub ttl: Option<SparkDuration>,

    /// How long the bundle may stay without being downloaded, such as 6h [default: the server's]
    #[arg(long, value_name = "DURATION")]
    pub unused_timeout: Option<SparkDuration>,

    /// PEM file of a CA, or of the server's own certificate, to trust in addition to the system's; repeatable
    #[arg(long = "ca-file", value_name = "PEM", env = CA_VARIABLE)]
    pub ca_files: Vec<PathBuf>,

    /// File that holds the upload token. It is sent over https or to this machine only [default: no token]
    #[arg(long, value_name = "FILE", env = TOKEN_VARIABLE)]
    pub token_file: Option<PathBuf>,

    /// How many attempts to make, however long they take [default: for 2 minutes, or 30 s if the server has never answered]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub attempts: Option<u32>,

    /// Send all of the bundle, also what the server has of an earlier one, and remember nothing of it
    #[arg(long, env = "CLOAKROOM_NO_REUSE", value_parser = BoolishValueParser::new())]
    pub no_reuse: bool,

    /// File to write the ticket to, which only you may read [default: stdout]
    #[arg(long, value_name = "FILE", conflicts_with = "submitter")]
    pub ticket_to: Option<PathBuf>,

    /// What to print on stdout. A URL with a key downloads the bundle without a ticket, for programs that send no header, such
    /// as Ray; the ticket is then only in the file of --ticket-to
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Printed::Ticket, conflicts_with = "submitter")]
    pub print: Printed,

    /// How long that key is good for, such as 12h [default: 24h, or the server's limit]
    #[arg(long, value_name = "DURATION", value_parser = key_ttl, conflicts_with = "submitter")]
    pub key_ttl: Option<SparkDuration>,

    /// Show no progress and no summary; warnings and errors only
    #[arg(long, short)]
    pub quiet: bool,

    /// Say more, such as why all of a bundle is sent
    #[arg(long, short, conflicts_with = "quiet")]
    pub verbose: bool,

    #[command(flatten)]
    pub folders: FolderArgs,

    /// Files and folders to stage. What is in a folder keeps its path below it. Named files go beside that: a second one of
    /// the same name becomes NAME-1.EXT. With --for spark-…: the application's own jar, Python or R file, unless it is in the
    /// image
    #[arg(required_unless_present = "submitter", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    #[command(flatten)]
    pub service: ServiceArgs,

    #[arg(skip)]
    pub by_flag: ByFlag,

    #[command(flatten)]
    pub external: ExternalSubmitterArgs,

    #[command(flatten)]
    pub pods: PodsArgs,
}

/// What `stage` prints on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Printed {
    /// The ticket, as JSON
    Ticket,
    /// A URL that ends with .tar.gz and a key
    UrlWithKey,
}

/// What of folders is sent.
#[derive(Debug, Clone, Args)]
pub struct FolderArgs {
    /// Glob, as in .gitignore, for what in the folders is not sent; repeatable
    #[arg(long, value_name = "GLOB", value_parser = exclude)]
    pub exclude: Vec<String>,

    /// Send also what .gitignore and .cloakroomignore in the folders leave out
    #[arg(long)]
    pub no_ignore: bool,

    /// Send private keys and credentials too, such as .env, .netrc and what is in .ssh
    #[arg(long)]
    pub include_secrets: bool,

    /// Folder of the bundle that gets everything [default: none]
    #[arg(long, value_name = "NAME", value_parser = top)]
    pub top: Option<String>,
}

impl FolderArgs {
    /// The first of these flags that is given.
    pub fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("--exclude", !self.exclude.is_empty()),
            ("--no-ignore", self.no_ignore),
            ("--include-secrets", self.include_secrets),
            ("--top", self.top.is_some()),
        ];
        given.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }

    pub fn rules(&self) -> PackRules {
        let Self { exclude, no_ignore, include_secrets, top } = self.clone();
        PackRules { exclude, no_ignore, include_secrets, top }
    }
}

/// The flag or variable that named the file of the CA, for messages.
pub fn ca_giver(path: &Path) -> Origin {
    giver("--ca-file", CA_VARIABLE, |value| value == path)
}

/// The flag or variable that named the file of the upload token, for messages.
pub fn token_giver(path: &Path) -> Origin {
    giver("--token-file", TOKEN_VARIABLE, |value| value == path)
}

fn exclude(glob: &str) -> Result<String, &'static str> {
    check_exclude(glob).map(|()| glob.to_owned())
}

fn key_ttl(text: &str) -> Result<SparkDuration, String> {
    let ttl: SparkDuration = text.parse().map_err(|error: TimeError| error.to_string())?;
    if ttl.get() < Duration::from_secs(1) {
        return Err("a key is good for a second at least".to_owned());
    }
    Ok(ttl)
}

fn top(name: &str) -> Result<String, String> {
    if name.contains('/') {
        return Err("it is the name of one folder, without a slash".to_owned());
    }
    check_file_name(name).map(|()| name.to_owned()).map_err(|fault| fault.to_string())
}

fn label(text: &str) -> Result<(String, String), OwnerError> {
    Owner::split_label(text)
}

/// A server that is reached through the API server.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "For a server in the cluster, which is reached through its API server")]
pub struct ServiceArgs {
    /// Namespace of the server's Service; the request goes through the API server of the kubeconfig [default: cloakroom]
    #[arg(long, value_name = "NS", env = NAMESPACE.1)]
    server_namespace: Option<String>,

    /// Name of that Service [default: cloakroom]
    #[arg(long, value_name = "NAME", env = SERVICE.1)]
    server_service: Option<String>,

    /// Service account in the owner's namespace whose tokens are requested, if the server asks the cluster and there is no upload
    /// token [default: cloakroom-uploader]
    #[arg(long, value_name = "NAME", value_parser = service_account)]
    pub upload_service_account: Option<String>,

    /// Context of the kubeconfig; without --for it asks for this way [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// API server, such as `k8s://https://HOST:6443`; without --for it asks for this way [default: that of the
    /// kubeconfig's context]
    #[arg(long, value_name = "URL")]
    pub master: Option<String>,
}

fn service_account(text: &str) -> Result<String, &'static str> {
    if is_dns_subdomain(text) { Ok(text.to_owned()) } else { Err("it is no name of a service account") }
}

/// Which of the values come from the command line. The others come from variables.
#[derive(Debug, Clone, Copy, Default)]
pub struct ByFlag {
    server: bool,
    namespace: bool,
    service: bool,
}

impl ByFlag {
    pub fn read(matches: &ArgMatches) -> Self {
        let is_flag = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
        Self {
            server: is_flag("server"),
            namespace: is_flag("server_namespace"),
            service: is_flag("server_service"),
        }
    }
}

impl StageArgs {
    /// Where the server is. By default it is on this machine, or with `--for` a Service.
    pub fn place(&self) -> anyhow::Result<ServerPlace> {
        let choice = self.choice(ServerChoice::default())?;
        let is_near = self.external.submitter.is_none() && !choice.is_named() && !self.names_cluster();
        if choice.address.is_some() || is_near {
            let address = choice.address.map_or_else(|| USUAL_SERVER.to_owned(), |said| said.value);
            let address = ServerAddress::parse(&address).map_err(|error| UsageError::from_error(&error))?;
            if self.service.upload_service_account.is_some() {
                refuse!(
                    "--upload-service-account names whose tokens are requested from an API server: give --server-namespace, \
                     --context or --master as well, and no --server"
                );
            }
            return Ok(ServerPlace::Address(address));
        }
        if let Some(path) = self.token_file.as_ref().filter(|_| !choice.may_have_token()) {
            refuse!(
                "{} names an upload token, which goes only to a server whose namespace is named: give {}, or no token",
                token_giver(path),
                NAMESPACE.0
            );
        }
        choice.place().map_err(|BadChoice { said: Said { value, origin }, problem, .. }| {
            UsageError::new(format!("{origin} is “{}”: {problem}", excerpt(&value, LONGEST_SHOWN))).into()
        })
    }

    /// What flags, settings and variables say of its place.
    pub fn choice(&self, settings: ServerChoice) -> anyhow::Result<ServerChoice> {
        let (flags, mut variables) = (self.said(true), self.said(false));
        let may_be_by_cluster = match self.external.submitter {
            None => true,
            Some(SubmitterChoice::Pods) => self.pods.secret.is_none(),
            Some(_) => false,
        };
        let is_by_cluster = may_be_by_cluster && self.names_cluster();
        if flags.address.is_some() && (flags.names_service() || is_by_cluster) {
            refuse!(
                "--server names an address, and --server-namespace, --server-service, --context and --master a way through an \
                 API server: leave one out"
            );
        }
        if is_by_cluster {
            variables.address = None;
        }
        Ok(ServerChoice::settle(flags, settings, variables))
    }

    /// The place according to the command line, or else according to variables.
    fn said(&self, by_flags: bool) -> ServerChoice {
        let ServiceArgs { server_namespace, server_service, .. } = &self.service;
        let by_flag = &self.by_flag;
        let of = |value: Option<String>, is_flag: bool, (flag, variable): (&'static str, &'static str)| {
            let origin = if is_flag { Origin::Option(flag) } else { Origin::Variable(variable) };
            value.filter(|_| is_flag == by_flags).map(|value| Said { value, origin })
        };
        ServerChoice {
            address: of(self.server.as_ref().map(ToString::to_string), by_flag.server, SERVER),
            namespace: of(server_namespace.clone(), by_flag.namespace, NAMESPACE),
            service: of(server_service.clone(), by_flag.service, SERVICE),
        }
    }

    fn names_cluster(&self) -> bool {
        self.service.context.is_some() || self.service.master.is_some()
    }
}
