//! Turns a failed call into a cause that the user can act on.

use super::error::CreateCause;
use crate::submission::Submission;
use cloakroom_cluster::ApiFailure;
use cloakroom_cluster::calls::{Calls, ObjectPath};

/// The kind that settings and templates of a submission change.
const PODS: &str = "pods";
/// Where a submission goes that names no namespace.
const DEFAULT_NAMESPACE: &str = "default";

/// A call, with the words for a message about it.
struct Call<'a> {
    calls: &'a Calls,
    verbs: &'static [&'static str],
    resource: String,
    /// The object as messages name it: `pod x`.
    called: String,
}

/// The driver pod could not be created.
pub(super) fn pod(calls: &Calls, submission: &Submission, failure: ApiFailure) -> CreateCause {
    let called = format!("pod {}", submission.pod_name);
    Call { calls, verbs: &["create"], resource: PODS.to_owned(), called }.explain(failure)
}

/// An object could not be applied. For an object that does not exist yet, an apply needs the right to create it as
/// well.
pub(super) fn object(calls: &Calls, path: &ObjectPath, failure: ApiFailure) -> CreateCause {
    Call { calls, verbs: &["create", "patch"], resource: path.resource(), called: path.called() }
        .explain(failure)
}

/// An object could not be read.
pub(super) fn seen(calls: &Calls, path: &ObjectPath, failure: ApiFailure) -> CreateCause {
    let call = Call { calls, verbs: &["get"], resource: path.resource(), called: path.called() };
    let what = call.what();
    match call.explain(failure.clone()) {
        CreateCause::Failed { .. } | CreateCause::Invalid { .. } => CreateCause::NotSeen { what, failure },
        cause => cause,
    }
}

impl Call<'_> {
    fn explain(self, failure: ApiFailure) -> CreateCause {
        let address = self.calls.server().address().to_owned();
        match failure {
            ApiFailure::Unauthorized { message } => {
                let credentials = self.calls.server().credentials().to_owned();
                CreateCause::Unauthorized { address, credentials, message }
            }
            ApiFailure::Forbidden { message } => self.forbidden(message),
            ApiFailure::NotFound { message } if message.starts_with("namespaces ") => {
                CreateCause::NoNamespace { namespace: self.calls.namespace().to_owned(), address, message }
            }
            ApiFailure::NotFound { message } if self.resource != PODS => {
                CreateCause::NoSuchKind { resource: self.resource, address, message }
            }
            ApiFailure::NotFound { message } => CreateCause::NotKubernetes { address, message },
            ApiFailure::Refused { code: code @ 300..400, message } => {
                CreateCause::Redirected { address, code, message }
            }
            ApiFailure::Refused { code: code @ 400..500, message } => {
                CreateCause::Invalid { what: self.what(), code, message }
            }
            ApiFailure::Untrusted { why } => CreateCause::Untrusted { address, why },
            ApiFailure::Unreachable { why } => CreateCause::Unreachable { address, why },
            failure => CreateCause::Failed { what: self.what(), failure },
        }
    }

    /// Tells the two kinds of 403 apart: the user lacks a right, or admission refuses the object. No field of the
    /// answer says which. Only the message of an authorizer has `cannot` behind the quoted user.
    fn forbidden(self, message: String) -> CreateCause {
        let what = self.what();
        let namespace = self.calls.namespace().to_owned();
        if !message.contains("\" cannot ") {
            return CreateCause::Refused { what, namespace, is_pod: self.resource == PODS, message };
        }
        let credentials = self.calls.server().credentials().to_owned();
        let act = format!("{} {}", self.verbs.join(" and "), self.resource);
        let advice = self.advice_on_rights(&namespace).into_boxed_str();
        CreateCause::NotAllowed { act, namespace, credentials, message, advice }
    }

    fn advice_on_rights(&self, namespace: &str) -> String {
        let question = |verb: &&str| format!("“kubectl auth can-i {verb} {} -n {namespace}”", self.resource);
        let questions: Vec<_> = self.verbs.iter().map(question).collect();
        let of_context = self.calls.server().context_namespace();
        let meant = of_context.filter(|other| namespace == DEFAULT_NAMESPACE && *other != namespace);
        let meant = meant.map_or_else(String::new, |meant| {
            format!(
                "; the kubeconfig's context is for namespace {meant}, which counts only if no master is given: give \
                 --namespace {meant} if that one is meant"
            )
        });
        format!(
            "{} must say yes for this user; give the user a Role with what is missing{meant}",
            questions.join(" and ")
        )
    }

    fn what(&self) -> String {
        format!("{} in namespace {}", self.called, self.calls.namespace())
    }
}
