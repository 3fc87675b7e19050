//! Who may upload, and who may administer.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use crate::cli::{AccessArgs, UploadAuthChoice};
use crate::commands::refuse;
use cloakroom_cluster::{AcceptedTokens, ApiServer, Reviews, SERVICE_ACCOUNT_FOLDER};
use cloakroom_core::clock::SystemClock;
use cloakroom_core::protocol::{USUAL_PLACE, upload_audience};
use cloakroom_server::http::{TokenFile, TokenUse, UploadAuth, WebHdfs};

/// Who may upload. A server that other machines reach must be told.
pub fn upload_auth(
    args: &AccessArgs,
    listen: SocketAddr,
    has_properties: bool,
    cluster: Option<&ApiServer>,
    warnings: &mut Vec<String>,
) -> anyhow::Result<UploadAuth> {
    if args.upload_auth != Some(UploadAuthChoice::Kubernetes) {
        only_with_kubernetes(args)?;
    }
    let choice = match (args.upload_auth, &args.upload_token_file) {
        (Some(UploadAuthChoice::None), Some(_)) => {
            refuse!("--upload-auth none and --upload-token-file contradict each other: leave one of them out")
        }
        (Some(UploadAuthChoice::Kubernetes), Some(_)) => refuse!(
            "--upload-auth kubernetes and --upload-token-file contradict each other: leave one of them out"
        ),
        (Some(UploadAuthChoice::Kubernetes), None) => return by_cluster(args, cluster, warnings),
        (Some(UploadAuthChoice::Token), None) => {
            refuse!("--upload-auth token needs the tokens: give their file with --upload-token-file")
        }
        (Some(UploadAuthChoice::Token) | None, Some(path)) => {
            return Ok(UploadAuth::Token(TokenFile::open(path, TokenUse::Upload)?));
        }
        (choice, None) => choice,
    };
    if choice.is_some() || listen.ip().is_loopback() {
        return Ok(UploadAuth::None);
    }
    if !has_properties {
        refuse!(
            "{listen} can be reached from other machines, so you must choose who may upload: --upload-auth token with \
             --upload-token-file FILE, or --upload-auth none for every client that reaches the port"
        );
    }
    warnings.push(format!(
        "every client that reaches {listen} may upload, as with kubespark: choose --upload-auth token to change that, \
         or --upload-auth none to confirm it"
    ));
    Ok(UploadAuth::None)
}

/// Refuses the flags that mean nothing without `--upload-auth kubernetes`.
fn only_with_kubernetes(args: &AccessArgs) -> anyhow::Result<()> {
    if args.upload_audience.is_some() {
        refuse!("--upload-audience is for --upload-auth kubernetes only: leave it out, or choose that")
    }
    if args.accept_cluster_tokens {
        refuse!("--accept-cluster-tokens is for --upload-auth kubernetes only: leave it out, or choose that")
    }
    Ok(())
}

fn by_cluster(
    args: &AccessArgs,
    cluster: Option<&ApiServer>,
    warnings: &mut Vec<String>,
) -> anyhow::Result<UploadAuth> {
    let Some(cluster) = cluster else {
        refuse!(
            "--upload-auth kubernetes needs a cluster to ask: run it in a pod with a service account, or give \
             --kubeconfig or a properties file that says where the API server is"
        )
    };
    if args.accept_cluster_tokens {
        warnings.push(
            "--accept-cluster-tokens: clients send tokens that are good for more than uploads; leave it out when all of \
             them have tokens for the audience of this server"
                .to_owned(),
        );
    }
    let accepted = AcceptedTokens {
        audience: args.upload_audience.clone().unwrap_or_else(audience_of_this_pod),
        cluster_tokens: args.accept_cluster_tokens,
    };
    let reviews = Reviews::new(cluster.clone(), accepted, Arc::new(SystemClock::new()));
    Ok(UploadAuth::Kubernetes(Box::new(reviews)))
}

/// The audience that clients request for the servers in the namespace of this pod, or outside of a cluster in the usual one.
fn audience_of_this_pod() -> String {
    let namespace = std::fs::read_to_string(Path::new(SERVICE_ACCOUNT_FOLDER).join("namespace"));
    let namespace = namespace.map(|text| text.trim().to_owned()).ok().filter(|name| !name.is_empty());
    upload_audience(namespace.as_deref().unwrap_or(USUAL_PLACE))
}

/// How WebHDFS is served.
pub fn webhdfs(args: &AccessArgs, upload_auth: &UploadAuth) -> anyhow::Result<Option<WebHdfs>> {
    let path = args.webhdfs_key_file.as_deref();
    if !args.webhdfs {
        if path.is_some() || args.webhdfs_plain_keys {
            refuse!(
                "--webhdfs-key-file and --webhdfs-plain-keys are for --webhdfs only: give that, or leave them out"
            )
        }
        return Ok(None);
    }
    if path.is_none() && !matches!(upload_auth, UploadAuth::None) {
        refuse!(
            "--webhdfs takes nothing without upload keys where uploads need a token: give their file with --webhdfs-key-file"
        )
    }
    let keys = path.map(|path| TokenFile::open(path, TokenUse::WebHdfs)).transpose()?;
    Ok(Some(WebHdfs { keys, takes_plain_keys: args.webhdfs_plain_keys, ..WebHdfs::default() }))
}

/// The tokens of `ls`, `show`, `rm` and `clean`.
pub fn admin_tokens(args: &AccessArgs) -> anyhow::Result<Option<TokenFile>> {
    let path = args.admin_token_file.as_deref();
    Ok(path.map(|path| TokenFile::open(path, TokenUse::Admin)).transpose()?)
}
