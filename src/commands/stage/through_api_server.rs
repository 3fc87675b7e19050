//! The way through the API server, for `cloakroom stage`.

use std::sync::Arc;

use anyhow::{Context as _, bail};

use cloakroom_cluster::ApiServer;
use cloakroom_reach::{RequestedTokens, ServerService, UploadAccount};
use cloakroom_spark::arguments::master::normal_form;
use cloakroom_transfer::client::{HttpClient, RetryNotice, RetryPolicy};

use super::Reached;
use crate::cli::StageArgs;
use crate::commands::submit::connect::{self, WantedApiServer};
use crate::commands::submit::sources;
use crate::commands::{UsageError, tell};

/// Finds the server through the API server of the kubeconfig.
pub(super) async fn reach(
    service: &ServerService,
    args: &StageArgs,
    namespace: &str,
    http: &HttpClient,
) -> anyhow::Result<Reached> {
    let api_server = connect(args).await?;
    let told = |notice: &RetryNotice| tell(&notice.to_string());
    let policy = RetryPolicy { attempts: args.attempts, ..ServerService::policy() };
    let reached = service.reach(&api_server, http, policy, &told).await;
    let reached = reached.with_context(|| format!("{service} cannot be reached"))?;
    let for_pods = &reached.internal_url;
    if for_pods.is_loopback() {
        tell(&format!(
            "warning: the address for pods that {service} has (--internal-url) is {for_pods}, which a pod takes for itself"
        ));
    }
    if !args.quiet {
        tell(&format!("staging by {}, {}", reached.service, reached.way(&api_server)));
    }
    if let Some(warning) = &reached.warning {
        tell(&format!("warning: {warning}"));
    }
    let uploader = UploadAccount::to_server_in(
        &reached.service.namespace,
        args.service.upload_service_account.as_deref(),
    );
    let (internal_url, fetch_image) = (Some(for_pods.to_string()), reached.fetch_image);
    let (http, address) = (reached.http, reached.address);
    let uploader = uploader.answered(reached.upload_auth.as_ref()).filter(|_| args.token_file.is_none());
    let tokens = uploader.map(|uploader| {
        let (http, address) = (http.clone(), address.clone());
        Arc::new(RequestedTokens::new(&api_server, namespace, uploader, http, address)) as _
    });
    Ok(Reached { http, address, internal_url, fetch_image, tokens })
}

/// The API server of the kubeconfig, or that of `--context` or `--master`.
pub(super) async fn connect(args: &StageArgs) -> anyhow::Result<ApiServer> {
    let context = args.service.context.clone().filter(|name| !name.is_empty());
    let mut wanted = WantedApiServer { context, ..WantedApiServer::default() };
    if let Some(given) = &args.service.master {
        let master = normal_form(given)
            .map_err(|problem| UsageError::new(format!("--master is “{given}”: {problem}")))?;
        wanted.master = Some(master);
    }
    let submitter = sources::submitter()?;
    if wanted.master.is_none() && sources::kubeconfig(&submitter).is_none() {
        bail!(
            "there is no kubeconfig, which the way through the API server needs: write ~/.kube/config, or set KUBECONFIG; if you \
             know the server's address, give --server"
        );
    }
    connect::connect(wanted, &submitter).await
}
