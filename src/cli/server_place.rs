//! Where the staging server is, as flags and variables of `cloakroom stage` say it.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args};

use super::stage::{StageArgs, token_giver};
use crate::commands::{UsageError, refuse};

use cloakroom_core::resource::is_dns_subdomain;
use cloakroom_core::text::excerpt;
use cloakroom_reach::{BadChoice, Said, ServerChoice, ServerPlace};
use cloakroom_spark::Origin;
use cloakroom_transfer::client::ServerAddress;

/// How many characters of a bad name are shown.
const LONGEST_SHOWN: usize = 100;

/// The address of a server on this machine, which needs no setting.
const USUAL_SERVER: &str = "http://127.0.0.1:10000";

pub const SERVER_VARIABLE: &str = "CLOAKROOM_SERVER";
const SERVER: (&str, &str) = ("--server", SERVER_VARIABLE);
const NAMESPACE: (&str, &str) = ("--server-namespace", "CLOAKROOM_SERVER_NAMESPACE");
const SERVICE: (&str, &str) = ("--server-service", "CLOAKROOM_SERVER_SERVICE");

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
    /// Where the server is, for `stage` without `--for`. By default it is on this machine.
    pub fn place(&self) -> anyhow::Result<ServerPlace> {
        let choice = self.choice(ServerChoice::default())?;
        if choice.address.is_some() || !choice.is_named() && !self.names_cluster() {
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
        let is_by_cluster = self.external.submitter.is_none() && self.names_cluster();
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
