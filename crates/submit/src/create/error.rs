//! Why a submission was not created, and what is left of it.

use std::fmt;

use crate::calls::{PathError, said};
use cloakroom_cluster::ApiFailure;

/// A submission that was not created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}{undo}")]
pub struct CreateError {
    /// What went wrong.
    pub cause: Cause,
    /// What became of that which had been made before.
    pub undo: Undo,
}

impl CreateError {
    /// Whether it is so because somebody asked for it.
    pub fn is_stopped(&self) -> bool {
        self.cause == Cause::Stopped
    }

    /// Whether the pod is left, or may be.
    pub fn may_leave_pod(&self) -> bool {
        matches!(&self.undo, Undo::Left(left) if left.iter().any(|left| left.is_pod))
    }
}

/// What went wrong. `what` is the object, as `pod x in namespace n`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// Somebody asked for it.
    #[error("stopped before the application was submitted")]
    Stopped,
    /// `401`.
    #[error(
        "the API server at {address} does not accept the credentials (as {credentials}): 401 {message}: renew the token \
         or the certificate, or give others by spark.kubernetes.authenticate.submission.*"
    )]
    Unauthorized {
        /// Where it is.
        address: String,
        /// Where the credentials come from.
        credentials: String,
        /// Its words.
        message: String,
    },
    /// `403` for want of a right.
    #[error(
        "not allowed to {} {resource} in namespace {namespace}: 403 {message}: {} must say yes; give the user a Role with \
         what is missing",
        verbs.join(" and "),
        questions(verbs, resource, namespace)
    )]
    NotAllowed {
        /// What the call takes: `create`, and `patch` as well for a server-side apply.
        verbs: &'static [&'static str],
        /// `pods`, `networkpolicies.networking.k8s.io`…
        resource: String,
        /// Where.
        namespace: String,
        /// The API server's words; they name the user.
        message: String,
    },
    /// `403` for another reason: a quota, a pod security standard, an admission webhook.
    #[error("the cluster refuses {what}: 403 {message}: {}", after_refusal(message, namespace, *is_pod))]
    Refused {
        /// The object.
        what: String,
        /// Where.
        namespace: String,
        /// Whether it is the pod, which settings and a template change.
        is_pod: bool,
        /// The API server's words.
        message: String,
    },
    /// `404` of the namespace.
    #[error(
        "the namespace {namespace} does not exist at {address} (404 {message}): create it, or choose another one by \
         spark.kubernetes.namespace"
    )]
    NoNamespace {
        /// The namespace.
        namespace: String,
        /// Where the API server is.
        address: String,
        /// The API server's words.
        message: String,
    },
    /// `404` of the kind.
    #[error(
        "the cluster at {address} does not know {resource} (404 {message}): install what defines this kind"
    )]
    NoSuchKind {
        /// The kind, as kubectl calls it.
        resource: String,
        /// Where the API server is.
        address: String,
        /// The API server's words.
        message: String,
    },
    /// `404` of the pods of a namespace.
    #[error(
        "there are no pods at {address} (404 {message}): check --master, it does not lead to an API server"
    )]
    NotKubernetes {
        /// Where the API server should be.
        address: String,
        /// What was there.
        message: String,
    },
    /// `409` of the pod. The Spark Operator looks for `code=409` where it submits again what it has submitted already.
    #[error(
        "the pod {pod} exists already in namespace {namespace}, {whose} (code=409): delete it with “kubectl delete pod -n \
         {namespace} {pod}”, or choose another name by spark.kubernetes.driver.pod.name"
    )]
    Exists {
        /// Its name.
        pod: String,
        /// Where.
        namespace: String,
        /// Whose it is, by its label.
        whose: String,
    },
    /// `422`, and other answers that name what is wrong.
    #[error("the API server does not accept {what}: {code} {message}")]
    Invalid {
        /// The object.
        what: String,
        /// HTTP status.
        code: u16,
        /// The API server's words.
        message: String,
    },
    /// A redirect, which an API server never sends.
    #[error(
        "what answers at {address} is no API server ({code}, {message}): check --master; a proxy with a login page takes \
         no calls: name an address that leads past it"
    )]
    Redirected {
        /// Where the API server should be.
        address: String,
        /// HTTP status.
        code: u16,
        /// Where it redirects to.
        message: String,
    },
    /// A certificate that is not trusted, has run out, or is for another name.
    #[error(
        "the certificate of the API server at {address} is not accepted: {why}: name the CA that signed it by \
         spark.kubernetes.authenticate.submission.caCertFile, or by certificate-authority in the kubeconfig, and give \
         --master a host name that the certificate is for"
    )]
    Untrusted {
        /// Where the API server should be.
        address: String,
        /// What is wrong with the certificate.
        why: String,
    },
    /// No connection, no answer.
    #[error(
        "the API server at {address} cannot be reached: {why}: check --master, the network between here and there, and \
         whether it runs"
    )]
    Unreachable {
        /// Where it should be.
        address: String,
        /// What the network said.
        why: String,
    },
    /// An object that was only looked for.
    #[error("{what} could not be looked at: {}", said(failure))]
    NotSeen {
        /// The object.
        what: String,
        /// Why.
        failure: ApiFailure,
    },
    /// Anything else.
    #[error("{what} could not be created: {}", said(failure))]
    Failed {
        /// The object.
        what: String,
        /// Why.
        failure: ApiFailure,
    },
    /// An object that has no place in the API.
    #[error("the submission is not complete: {0}")]
    Incomplete(#[from] PathError),
}

/// What to do about a refusal, by the words of the admission plugins that come with Kubernetes.
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
        "the quota wants a number where there is none: give it by a setting or a pod template".to_owned()
    } else if is_pod {
        "change the pod by settings or a pod template as it says, or ask the cluster's admin".to_owned()
    } else {
        "ask the cluster's admin what has to change".to_owned()
    }
}

/// `“kubectl auth can-i create pods -n spark”`, for each of the verbs.
fn questions(verbs: &[&str], resource: &str, namespace: &str) -> String {
    let question = |verb: &&str| format!("“kubectl auth can-i {verb} {resource} -n {namespace}”");
    verbs.iter().map(question).collect::<Vec<_>>().join(" and ")
}

/// What became of that which had been made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undo {
    /// Nothing had been.
    Nothing,
    /// It was removed again, by these names.
    Removed(Vec<String>),
    /// Something is left, or may be.
    Left(Vec<Leftover>),
}

/// Something that is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// What it is, and why it is left.
    pub what: String,
    /// What removes it.
    pub command: String,
    /// Whether it is the pod, which may run.
    pub is_pod: bool,
}

/// What follows the cause in the line.
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
    fn each_refusal_says_what_to_do_about_it() {
        for (message, expected) in [
            ("exceeded quota: q, requested: requests.cpu=2, used: …", "ask for less (spark.driver.memory"),
            ("exceeded quota: q, requested: limits.memory=2Gi, used: …", "ask for less (spark.driver.memory"),
            ("exceeded quota: q, requested: pods=1, used: …", "wait until something else has ended"),
            ("failed quota: q: must specify limits.cpu", "the quota wants a number where there is none"),
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
