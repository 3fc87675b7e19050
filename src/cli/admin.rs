//! The command lines of `cloakroom ls`, `show`, `rm` and `clean`.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, ValueEnum};

use super::giver;
use super::serve::DEFAULT_DATA_DIR;

use cloakroom_core::protocol::admin::DUE;
use cloakroom_core::resource::{Owner, OwnerError, OwnerKind, ResourceId};
use cloakroom_core::time::SparkDuration;
use cloakroom_server::cleaner::KeepReason;
use cloakroom_spark::Origin;
use cloakroom_transfer::client::{Selection, ServerAddress};

/// The flag that names a file with an admin token, for messages.
pub const TOKEN_FLAG: &str = "--admin-token-file";
const TOKEN_VARIABLE: &str = "CLOAKROOM_ADMIN_TOKEN_FILE";

/// The address of the server, and the token to show it.
#[derive(Debug, Clone, Args)]
pub struct AdminArgs {
    /// Address of the server's operational listener, its --ops-listen [default: the address in --data-dir, else port
    /// 10001 of this machine]
    #[arg(long, value_name = "URL", env = "CLOAKROOM_ADMIN_URL", value_parser = ServerAddress::parse)]
    pub admin_url: Option<ServerAddress>,

    /// File whose first line is an admin token. The token is sent over https or to this machine only [default: the one
    /// that a server on this machine wrote to --data-dir]
    #[arg(long, value_name = "FILE", env = TOKEN_VARIABLE)]
    pub admin_token_file: Option<PathBuf>,

    /// Data directory of a server on this machine
    #[arg(long, value_name = "DIR", env = "CLOAKROOM_DATA_DIR", default_value = DEFAULT_DATA_DIR)]
    pub data_dir: PathBuf,

    /// PEM file of a CA, or of the server's own certificate, to trust in addition to the system's; repeatable
    #[arg(long = "ca-file", value_name = "PEM", env = "CLOAKROOM_CA_FILE")]
    pub ca_files: Vec<PathBuf>,
}

/// The flag or variable that named the file of the admin token, for messages.
pub fn token_giver(path: &Path) -> Origin {
    giver(TOKEN_FLAG, TOKEN_VARIABLE, |value| value == path)
}

/// Filters that select resources.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Which resources")]
#[group(id = "which", multiple = true)]
pub struct SelectionArgs {
    /// Owners in this namespace
    #[arg(long, short, value_name = "NS", value_parser = Owner::parse_namespace)]
    pub namespace: Option<String>,

    /// Owners of this kind: Pod, Deployment, StatefulSet, Job, SparkApplication or KIND.GROUP
    #[arg(long, value_name = "KIND", value_parser = OwnerKind::named)]
    pub kind: Option<OwnerKind>,

    /// Owners with this label; if repeated, with all of them
    #[arg(long = "label", short = 'l', value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,

    /// The owner of this name
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Kept for this reason, as ls shows it, or `due` for resources that the next sweep deletes; if repeated, for any
    /// of them
    #[arg(long, value_name = "WHY", value_parser = PossibleValuesParser::new(reasons()))]
    pub why: Vec<String>,

    /// Never downloaded
    #[arg(long)]
    pub unused: bool,

    /// Staged at least this long ago, such as 2d
    #[arg(long, value_name = "TIME")]
    pub older_than: Option<SparkDuration>,
}

impl SelectionArgs {
    /// Whether any filter is set.
    pub fn is_filter(&self) -> bool {
        let Self { namespace, kind, labels, name, why, unused, older_than } = self;
        let by_owner = namespace.is_some() || kind.is_some() || name.is_some() || !labels.is_empty();
        by_owner || !why.is_empty() || *unused || older_than.is_some()
    }
}

impl From<SelectionArgs> for Selection {
    fn from(args: SelectionArgs) -> Self {
        let SelectionArgs { namespace, kind, labels, name, why, unused, older_than } = args;
        Self { namespace, kind, labels, name, why, unused, older_than, ..Self::default() }
    }
}

/// The values of `--why`: the server's keep reasons, and `due`.
fn reasons() -> Vec<&'static str> {
    KeepReason::ALL.iter().map(|why| why.as_str()).chain([DUE]).collect()
}

/// Formats of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

/// A resource as a user names it on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceArg {
    /// Its whole id.
    Whole(ResourceId),
    /// The beginning of its id, in lower case.
    Beginning(String),
}

impl ResourceArg {
    const SHORTEST: usize = 4;

    /// Accepts capital and small letters: users write hexadecimal digits in both.
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.to_ascii_lowercase();
        let is_part = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte) || byte == b'-';
        match ResourceId::parse(&text) {
            Ok(id) => Ok(Self::Whole(id)),
            Err(_) if (Self::SHORTEST..36).contains(&text.len()) && text.bytes().all(is_part) => {
                Ok(Self::Beginning(text))
            }
            Err(error) => Err(format!("{error}; {} characters of its beginning are enough", Self::SHORTEST)),
        }
    }
}

/// List staged resources, with owner, size, why the server keeps them, and when it deletes them
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  cloakroom ls
  cloakroom ls -n etl --why owner-gone
  cloakroom ls --by-namespace
  cloakroom ls --deleted -n etl
  kubectl exec -n cloakroom deploy/cloakroom -- cloakroom ls")]
pub struct LsArgs {
    #[command(flatten)]
    pub admin: AdminArgs,

    /// Format of the list
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    pub output: Output,

    /// Sums for each namespace, the one with most bytes first
    #[arg(long)]
    pub by_namespace: bool,

    #[command(flatten)]
    pub selection: SelectionArgs,

    /// Resources deleted in the last seven days, instead of staged ones
    #[arg(long, conflicts_with_all = ["labels", "name", "why", "by_namespace"], help_heading = "Which resources")]
    pub deleted: bool,
}

/// Show everything that the server knows of one resource
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("what").args(["id", "ticket"]).required(true))]
#[command(after_help = "Examples:
  cloakroom show 4c1a3c44
  cloakroom show --ticket ticket.json")]
pub struct ShowArgs {
    #[command(flatten)]
    pub admin: AdminArgs,

    /// Format of the output
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    pub output: Output,

    /// Id of the resource, or its beginning of 4 characters or more
    #[arg(value_name = "ID", value_parser = ResourceArg::parse)]
    pub id: Option<ResourceArg>,

    /// File with a ticket that has the id, as cloakroom stage or the server printed it; - is stdin. The rest of the
    /// ticket has no effect
    #[arg(long, value_name = "FILE")]
    pub ticket: Option<PathBuf>,
}

/// `rm` needs one of these, so that a command line without filters never removes everything.
const WHAT: [&str; 9] =
    ["ids", "ticket", "namespace", "kind", "labels", "name", "why", "unused", "older_than"];

/// Remove resources now, even if a pod still needs them
///
/// Name resources by their ids, or one by its ticket, or give filters to remove all that match. The exit code is 1 if
/// one of them could not be removed, or if you do not confirm.
#[derive(Debug, Clone, Args)]
#[command(
    override_usage = "cloakroom rm [OPTIONS] <ID>...\n       cloakroom rm [OPTIONS] --ticket <FILE>\n       cloakroom rm \
                      [OPTIONS] --namespace <NS> ..."
)]
#[command(group = ArgGroup::new("what").args(WHAT).multiple(true).required(true))]
#[command(after_help = "Examples:
  cloakroom rm 4c1a3c44
  cloakroom rm --ticket ticket.json
  cloakroom rm -n etl --unused --older-than 2d --yes")]
pub struct RmArgs {
    #[command(flatten)]
    pub admin: AdminArgs,

    /// Format of the output
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    pub output: Output,

    /// Do not ask for confirmation; needed if stdin is no terminal
    #[arg(long, short)]
    pub yes: bool,

    /// Ids of resources, or their beginnings of 4 characters or more
    #[arg(value_name = "ID", conflicts_with = "which", value_parser = ResourceArg::parse)]
    pub ids: Vec<ResourceArg>,

    /// File with a ticket that has the id, as cloakroom stage or the server printed it; - is stdin. The rest of the
    /// ticket has no effect, so an admin token is needed as well
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ids", "which"])]
    pub ticket: Option<PathBuf>,

    #[command(flatten)]
    pub selection: SelectionArgs,
}

/// Run a sweep now, and print how many resources it deleted and kept
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:
  cloakroom clean")]
pub struct CleanArgs {
    #[command(flatten)]
    pub admin: AdminArgs,

    /// First accept the cluster whose namespace kube-system has this uid as the one to ask about owners
    ///
    /// While another cluster answers than the one that owners were seen in, the server deletes nothing for lack of an
    /// owner. The word without-uid stands for a cluster whose uid cannot be read: from then on the server does not
    /// check which cluster answers.
    #[arg(long, value_name = "UID", value_parser = cluster_uid)]
    pub accept_cluster: Option<String>,

    /// Also remove the bundles without a resource that ls counts, before their --stray-age
    ///
    /// They may belong to a ledger that was lost: if you have a copy of it, put that back first.
    #[arg(long)]
    pub strays: bool,

    /// Delete what the guard against mass deletion holds back in this namespace, or in all
    ///
    /// Before each deletion the server asks the API server once more.
    #[arg(long, value_name = "NAMESPACE|all", value_parser = Owner::parse_namespace)]
    pub release_held: Option<String>,

    /// Format of the output
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    pub output: Output,
}

/// Let sweeps delete again, although the ledger is an earlier copy
///
/// After an earlier ledger was put back, sweeps delete nothing: bundles that were staged or used since that copy would go too
/// early. Put the newer ledger back if there is one. This lets the server go on with the earlier one.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:
  cloakroom resume-deletions")]
pub struct ResumeDeletionsArgs {
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Checks every character, because the uid becomes part of a URL path.
fn cluster_uid(text: &str) -> Result<String, String> {
    let is_one =
        !text.is_empty() && text.len() <= 63 && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if is_one {
        Ok(text.to_owned())
    } else {
        Err("not a uid: give the one that the log and cloakroom ls have".to_owned())
    }
}

fn label(text: &str) -> Result<(String, String), OwnerError> {
    Owner::split_label(text)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use clap::error::ErrorKind;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        rm: RmArgs,
    }

    const ID: &str = "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1";

    fn parse(flags: &[&str]) -> Result<RmArgs, ErrorKind> {
        Line::try_parse_from([&["rm"], flags].concat()).map(|line| line.rm).map_err(|error| error.kind())
    }

    #[test]
    fn rm_takes_ids_or_filters_and_refuses_a_line_without_either() {
        assert_eq!(parse(&[ID, ID]).unwrap().ids.len(), 2);
        let filtered = parse(&["--namespace", "demo", "--unused", "--older-than", "2d", "-y"]).unwrap();
        assert!(filtered.selection.unused && filtered.ids.is_empty() && filtered.yes);
        assert_eq!(parse(&[]).unwrap_err(), ErrorKind::MissingRequiredArgument);
        assert_eq!(parse(&["--yes"]).unwrap_err(), ErrorKind::MissingRequiredArgument);
        assert_eq!(parse(&[ID, "--unused"]).unwrap_err(), ErrorKind::ArgumentConflict);
        assert!(parse(&["--ticket", "t"]).unwrap().ids.is_empty());
        for other in [ID, "--unused"] {
            assert_eq!(parse(&["--ticket", "t", other]).unwrap_err(), ErrorKind::ArgumentConflict);
        }
        assert_eq!(parse(&["4c1"]).unwrap_err(), ErrorKind::ValueValidation);
        assert_eq!(parse(&["4c1a"]).unwrap().ids, [ResourceArg::Beginning("4c1a".to_owned())]);
        assert_eq!(parse(&["4C1A"]).unwrap().ids, [ResourceArg::Beginning("4c1a".to_owned())]);
        let whole = ResourceArg::Whole(ResourceId::parse(ID).unwrap());
        assert_eq!(parse(&[&ID.to_uppercase()]).unwrap().ids, [whole]);
    }
}
