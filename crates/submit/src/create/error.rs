//! Why a submission was not created, and what became of the objects that were created before.

use std::fmt;

use cloakroom_cluster::ApiFailure;
use cloakroom_cluster::calls::{PathError, said, unreachable};
use cloakroom_spark::keys;

/// A submission that was not created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}{undo}")]
pub struct CreateError {
    pub cause: CreateCause,
    /// What became of the objects that were created before it.
    pub undo: Undo,
}

impl CreateError {
    /// Whether the user stopped the submission.
    pub fn is_stopped(&self) -> bool {
        self.cause == CreateCause::Stopped
    }

    /// Whether the pod is still there, or may be.
    pub fn may_leave_pod(&self) -> bool {
        matches!(&self.undo, Undo::Left(left) if left.iter().any(|left| left.is_pod))
    }
}

/// The failure. A field `what` is the object as messages name it: `pod x in namespace n`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CreateCause {
    /// The user stopped the submission.
    #[error("stopped before the application was submitted")]
    Stopped,
    /// `401`: the credentials are not accepted.
    #[error(
        "the API server at {address} does not accept the credentials (as {credentials}): 401 {message}: renew the token \
         or the certificate, or give others by spark.kubernetes.authenticate.submission.*"
    )]
    Unauthorized { address: String, credentials: String, message: String },
    /// `403` because a right is missing.
    #[error("not allowed to {act} in namespace {namespace} (as {credentials}): 403 {message}: {advice}")]
    NotAllowed { act: String, namespace: String, credentials: String, message: String, advice: Box<str> },
    /// `403` for another reason: a quota, a pod security standard, an admission webhook.
    #[error("the cluster refuses {what}: 403 {message}: {}", after_refusal(message, namespace, *is_pod))]
    Refused {
        what: String,
        namespace: String,
        /// Whether it is the pod, which settings and a template change.
        is_pod: bool,
        message: String,
    },
    /// `404`: the namespace does not exist.
    #[error(
        "the namespace {namespace} does not exist at {address} (404 {message}): create it, or choose another one by \
         spark.kubernetes.namespace"
    )]
    NoNamespace { namespace: String, address: String, message: String },
    /// `404`: the cluster does not know the kind, such as Volcano's `PodGroup`.
    #[error(
        "the cluster at {address} does not know {resource} (404 {message}): install the software that defines this kind"
    )]
    NoSuchKind { resource: String, address: String, message: String },
    /// `404` for pods: the address does not lead to an API server.
    #[error(
        "there are no pods at {address} (404 {message}): check --master, it does not lead to an API server"
    )]
    NotKubernetes { address: String, message: String },
    /// `409`: the pod exists already. The Spark Operator looks for `code=409` in the output, because it may submit an
    /// application a second time.
    #[error(
        "the pod {pod} exists already in namespace {namespace}, {whose} (code=409): delete it with “kubectl delete pod -n \
         {namespace} {pod}”, or choose another name by spark.kubernetes.driver.pod.name"
    )]
    Exists { pod: String, namespace: String, whose: String },
    /// `422`, and other answers of 4xx that say what is wrong.
    #[error("the API server does not accept {what}: {code} {message}")]
    Invalid { what: String, code: u16, message: String },
    /// A redirect, which an API server never sends.
    #[error(
        "what answers at {address} is no API server ({code}, {message}): check --master; a proxy with a login page takes \
         no calls: name an address that leads past it"
    )]
    Redirected { address: String, code: u16, message: String },
    /// A certificate that is not trusted, is expired, or is for another name.
    #[error(
        "the certificate of the API server at {address} is not accepted: {why}: name the CA that signed it by \
         spark.kubernetes.authenticate.submission.caCertFile, or by certificate-authority in the kubeconfig, and give \
         --master a host name that the certificate is for"
    )]
    Untrusted { address: String, why: String },
    /// No connection, or no answer.
    #[error("{}", unreachable(address, why))]
    Unreachable { address: String, why: String },
    /// An object of a chosen name was made by something else, or for something else.
    #[error("there is {what} already, {whose}: choose another name, or delete it")]
    Foreign { what: String, whose: String },
    /// An object could not be read.
    #[error("{what} could not be read: {}", said(failure))]
    NotSeen { what: String, failure: ApiFailure },
    /// Any other failure.
    #[error("{what} could not be created: {}", said(failure))]
    Failed { what: String, failure: ApiFailure },
    /// An object without a kind or a name, so that no path of the API leads to it.
    #[error("the submission is not complete: {0}")]
    Incomplete(#[from] PathError),
}

/// Advice about a refusal. It depends on the messages of the admission plugins that come with Kubernetes.
fn after_refusal(message: &str, namespace: &str, is_pod: bool) -> String {
    if message.contains("exceeded quota") {
        let is_about_size = ["cpu=", "memory="].iter().any(|resource| message.contains(resource));
        let less =
            if is_about_size { "ask for less (spark.driver.memory, spark.driver.cores), " } else { "" };
        format!(
            "{less}wait until something else has ended, or have the quota raised; “kubectl describe quota -n {namespace}” \
             shows it"
        )
    } else if message.contains("failed quota") {
        "the quota requires a number that the pod does not have: give it by a setting or a pod template"
            .to_owned()
    } else if let Some(account) = missing_account(message) {
        after_missing_account(account, namespace)
    } else if is_pod {
        "change the pod by settings or a pod template as the message says, or ask the cluster's admin"
            .to_owned()
    } else {
        "ask the cluster's admin what has to change".to_owned()
    }
}

/// The service account that Kubernetes' admission plugin `ServiceAccount` did not find for a pod.
fn missing_account(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("error looking up service account ")?;
    let (account, why) = rest.split_once(": ")?;
    let (_, name) = account.split_once('/')?;
    why.contains("not found").then_some(name)
}

fn after_missing_account(account: &str, namespace: &str) -> String {
    /// The account of pods that name none. Kubernetes makes one for each namespace.
    const DEFAULT: &str = "default";
    let key = keys::DRIVER_SERVICE_ACCOUNT.name();
    if account == DEFAULT {
        return format!(
            "{key} and the pod template name no other account, and Kubernetes makes this one soon after the namespace: \
             try again, or set {key} to an account that exists"
        );
    }
    format!(
        "{key} or the pod template names the account: create it with “kubectl create serviceaccount {account} -n \
         {namespace}” and give it the role spark-driver (kubectl apply -k manifests/submitter makes one, called spark), or \
         name another account; without a name it is {DEFAULT}"
    )
}

/// What became of the objects that were created before a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undo {
    /// No object had been created.
    Nothing,
    /// These objects were deleted again.
    Removed(Vec<String>),
    /// These objects are still there, or may be.
    Left(Vec<Leftover>),
}

/// An object that is still there, or may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The object, and why it was not deleted.
    pub what: String,
    pub command: String,
    /// Whether it is the driver's pod, which may run.
    pub is_pod: bool,
}

/// The end of the error's message, behind the cause.
impl fmt::Display for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str(" (nothing was created)"),
            Self::Removed(names) => write!(f, " (removed again: {})", names.join(", ")),
            Self::Left(leftovers) => {
                let each: Vec<String> = leftovers
                    .iter()
                    .map(|left| format!("{}: remove it with “{}”", left.what, left.command))
                    .collect();
                write!(f, " (still there: {})", each.join("; "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_service_account_is_told_with_its_setting_and_a_command() {
        const KEY: &str = "spark.kubernetes.authenticate.driver.serviceAccountName";
        let advice = |account: &str, why: &str| {
            let looked_up = format!("error looking up service account spark/{account}: {why}");
            after_refusal(&format!("pods \"x\" is forbidden: {looked_up}"), "spark", true)
        };
        let named = advice("runner", "serviceaccount \"runner\" not found");
        for part in [KEY, "“kubectl create serviceaccount runner -n spark”", "without a name it is default"]
        {
            assert!(named.contains(part), "no “{part}” in {named}");
        }
        let default = advice("default", "serviceaccount \"default\" not found");
        assert!(default.contains(KEY) && default.contains("try again"), "{default}");
        let later = advice("runner", "the server is busy");
        assert!(later.starts_with("change the pod by settings"), "{later}");
    }

    #[test]
    fn each_refusal_says_what_to_do_about_it() {
        for (message, expected) in [
            ("exceeded quota: q, requested: requests.cpu=2, used: …", "ask for less (spark.driver.memory"),
            ("exceeded quota: q, requested: limits.memory=2Gi, used: …", "ask for less (spark.driver.memory"),
            ("exceeded quota: q, requested: pods=1, used: …", "wait until something else has ended"),
            (
                "failed quota: q: must specify limits.cpu",
                "the quota requires a number that the pod does not have",
            ),
            ("violates PodSecurity \"restricted:latest\"", "change the pod by settings"),
        ] {
            let advice = after_refusal(message, "spark", true);
            assert!(advice.starts_with(expected), "{message}: {advice}");
            let names_namespace = advice.contains("“kubectl describe quota -n spark”");
            assert_eq!(names_namespace, message.starts_with("exceeded"), "{advice}");
        }
        for message in
            ["admission webhook \"x\" denied the request: no", "exceeded quota: q, requested: secrets=1"]
        {
            let advice = after_refusal(message, "spark", false);
            assert!(!advice.contains("pod"), "{advice}");
        }
    }
}
