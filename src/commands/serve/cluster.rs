//! The cluster to ask about owners, if there is one, and the way to reach it. A kubeconfig is read only if a flag names
//! it.

use std::path::PathBuf;

use anyhow::Context as _;

use crate::cli::KubernetesArgs;
use crate::commands::{credentials, refuse};
use cloakroom_cluster::{Access, ApiServer, Given, PropertiesAccess, Proxies, SERVICE_ACCOUNT_FOLDER};
use cloakroom_kubespark::ApiServerProperties;
use cloakroom_spark::keys;

/// The flag, for messages.
const KUBECONFIG: &str = "--kubeconfig";
/// kubespark's default address of the API server.
const DEFAULT_URL: &str = "https://kubernetes.default.svc";

/// What a process in a pod knows of its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// The API server's address.
    url: String,
}

impl Pod {
    /// Whether this process is in a pod: Kubernetes tells every container where the API server is.
    pub fn from_environment() -> Option<Self> {
        Self::new(
            std::env::var("KUBERNETES_SERVICE_HOST").ok(),
            std::env::var("KUBERNETES_SERVICE_PORT").ok(),
        )
    }

    fn new(host: Option<String>, port: Option<String>) -> Option<Self> {
        let host = host.filter(|host| !host.is_empty())?;
        let port = port.filter(|port| !port.is_empty()).unwrap_or_else(|| "443".to_owned());
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        Some(Self { url: format!("https://{host}:{port}") })
    }
}

/// Reads and checks everything that calls to the API server need. It sends nothing, and asks no credential plugin.
pub fn connect(
    args: &KubernetesArgs,
    file: Option<&ApiServerProperties>,
    pod: Option<&Pod>,
) -> anyhow::Result<Option<ApiServer>> {
    let Some(access) = access(args, file, pod)? else { return Ok(None) };
    let server = ApiServer::connect(&access).context("the API server cannot be asked about owners")?;
    Ok(Some(server))
}

/// Flags win over the properties file, which wins over what a pod knows.
fn access(
    args: &KubernetesArgs,
    file: Option<&ApiServerProperties>,
    pod: Option<&Pod>,
) -> anyhow::Result<Option<Access>> {
    match &args.kubeconfig {
        Some(_) if args.no_kubernetes => {
            refuse!("--no-kubernetes and --kubeconfig contradict each other: leave one of them out")
        }
        None if args.no_kubernetes => return Ok(None),
        Some(path) => {
            return Ok(Some(Access::Kubeconfig {
                paths: vec![path.clone()],
                context: args.context.clone(),
                setting: KUBECONFIG.to_owned(),
                proxies: Proxies::from_environment(),
            }));
        }
        None => {}
    }
    let folder = PathBuf::from(SERVICE_ACCOUNT_FOLDER);
    let of_cluster = pod.map(|pod| pod.url.clone());
    if let Some(properties) = file.filter(|file| says_something(file)) {
        let url = properties.url.clone().or(of_cluster).unwrap_or_else(|| DEFAULT_URL.to_owned());
        return Ok(Some(by_properties(url, properties, folder)));
    }
    Ok(of_cluster.map(|url| Access::ServiceAccount { url, folder }))
}

/// The access that the properties file describes, with its keys for messages.
fn by_properties(url: String, properties: &ApiServerProperties, folder: PathBuf) -> Access {
    let uses_account = properties.use_service_account_credentials;
    let account_setting = credentials::quoted(&keys::AUTHENTICATE_USE_SERVICE_ACCOUNT);
    Access::Properties(Box::new(PropertiesAccess {
        url: Given::new(url, credentials::quoted(&keys::API_SERVER_URL)),
        credentials: credentials::of_server(properties),
        account: uses_account.then(|| Given::new(folder, account_setting)),
        token_file_setting: credentials::quoted(&keys::AUTHENTICATE_OAUTH_TOKEN_FILE),
    }))
}

/// Whether the file sets anything about the API server.
fn says_something(file: &ApiServerProperties) -> bool {
    let ApiServerProperties {
        url,
        ca_cert_file,
        client_key_file,
        client_cert_file,
        oauth_token,
        oauth_token_file,
        use_service_account_credentials,
    } = file;
    let files = [ca_cert_file, client_key_file, client_cert_file, oauth_token_file];
    url.is_some()
        || oauth_token.is_some()
        || files.iter().any(|file| file.is_some())
        || !use_service_account_credentials
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;
    use cloakroom_kubespark::StagingServerProperties;
    use cloakroom_spark::Properties;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        kubernetes: KubernetesArgs,
    }

    fn args(flags: &[&str]) -> KubernetesArgs {
        Line::try_parse_from([&["cloakroom"], flags].concat()).unwrap().kubernetes
    }

    fn file(lines: &str) -> ApiServerProperties {
        let properties = Properties::parse(Path::new("server.properties"), lines).unwrap();
        StagingServerProperties::from(&properties).unwrap().api_server
    }

    fn pod() -> Option<Pod> {
        Pod::new(Some("10.0.0.1".to_owned()), Some("6443".to_owned()))
    }

    const URL: &str = "spark.kubernetes.resourceStagingServer.apiServer.url=https://api.example\n";
    const CREDENTIALS: &str = "spark.kubernetes.authenticate.resourceStagingServer.";

    #[test]
    fn outside_a_pod_with_nothing_configured_there_is_no_cluster() {
        assert_eq!(access(&args(&[]), None, None).unwrap(), None);
        let unrelated = file("spark.kubernetes.resourceStagingServer.port=1\n");
        assert_eq!(access(&args(&[]), Some(&unrelated), None).unwrap(), None);
    }

    #[test]
    fn in_a_pod_the_service_account_asks_its_own_cluster() {
        let unrelated = file("spark.kubernetes.resourceStagingServer.port=1\n");
        for file in [None, Some(&unrelated)] {
            let Some(Access::ServiceAccount { url, folder }) =
                access(&args(&[]), file, pod().as_ref()).unwrap()
            else {
                panic!("another way");
            };
            assert_eq!((url.as_str(), folder), ("https://10.0.0.1:6443", SERVICE_ACCOUNT_FOLDER.into()));
        }
    }

    #[test]
    fn a_properties_file_wins_over_the_pods_access_and_has_a_default_address() {
        let url = |lines: &str, pod: Option<Pod>| match access(&args(&[]), Some(&file(lines)), pod.as_ref()) {
            Ok(Some(Access::Properties(access))) => access.url.value.trim_end_matches('/').to_owned(),
            _ => panic!("another way: {lines}"),
        };
        assert_eq!(url(URL, None), "https://api.example");
        assert_eq!(url(URL, pod()), "https://api.example");
        for line in
            ["oauthToken=abc", "oauthTokenFile=/t", "caCertFile=/c", "useServiceAccountCredentials=false"]
        {
            let lines = format!("{CREDENTIALS}{line}\n");
            assert_eq!(url(&lines, None), DEFAULT_URL, "{line}");
            assert_eq!(url(&lines, pod()), "https://10.0.0.1:6443", "{line}");
        }
    }

    #[test]
    fn a_kubeconfig_wins_over_everything_but_its_refusal() {
        let flags = args(&["--kubeconfig", "/k", "--context", "prod"]);
        let expected = Access::Kubeconfig {
            paths: vec!["/k".into()],
            context: Some("prod".to_owned()),
            setting: KUBECONFIG.to_owned(),
            proxies: Proxies::default(),
        };
        assert_eq!(access(&flags, Some(&file(URL)), pod().as_ref()).unwrap(), Some(expected));
        let refused = access(&args(&["--kubeconfig", "/k", "--no-kubernetes"]), None, None).unwrap_err();
        assert!(refused.to_string().contains("contradict"), "{refused}");
        assert_eq!(access(&args(&["--no-kubernetes"]), Some(&file(URL)), pod().as_ref()).unwrap(), None);
    }

    #[test]
    fn a_context_needs_its_kubeconfig() {
        assert!(Line::try_parse_from(["cloakroom", "--context", "prod"]).is_err());
    }

    #[test]
    fn the_address_in_a_pods_environment_may_be_of_either_kind() {
        let url = |host: &str, port: Option<&str>| {
            Pod::new(Some(host.to_owned()), port.map(str::to_owned)).map(|pod| pod.url)
        };
        assert_eq!(url("10.0.0.1", None).as_deref(), Some("https://10.0.0.1:443"));
        assert_eq!(url("fd00::1", Some("443")).as_deref(), Some("https://[fd00::1]:443"));
        assert_eq!(url("", Some("443")), None);
        assert_eq!(Pod::new(None, None), None);
    }
}
