//! What a refused call means to somebody who wants to submit an application.

use super::error::Cause;
use crate::kubernetes::ApiFailure;
use crate::submit::calls::{Calls, ObjectPath};
use crate::submit::submission::Submission;

/// A call, in the words of its refusal.
struct Call<'a> {
    calls: &'a Calls,
    verb: &'static str,
    resource: String,
    name: &'a str,
}

/// The driver pod could not be created.
pub(super) fn pod(calls: &Calls, submission: &Submission, failure: ApiFailure) -> Cause {
    let (verb, resource, name) = ("create", "pods".to_owned(), submission.pod_name.as_str());
    Call { calls, verb, resource, name }.explain(failure)
}

/// An object could not be applied.
pub(super) fn object(calls: &Calls, path: &ObjectPath, failure: ApiFailure) -> Cause {
    Call { calls, verb: "patch", resource: path.resource(), name: path.name() }.explain(failure)
}

impl Call<'_> {
    fn explain(self, failure: ApiFailure) -> Cause {
        let address = self.calls.server().address().to_owned();
        match failure {
            ApiFailure::Unauthorized { message } => {
                let credentials = self.calls.server().credentials().to_owned();
                Cause::Unauthorized { address, credentials, message }
            }
            ApiFailure::Forbidden { message } => self.forbidden(message),
            ApiFailure::NotFound { message } if message.starts_with("namespaces ") => {
                Cause::NoNamespace { namespace: self.calls.namespace().to_owned(), address, message }
            }
            ApiFailure::NotFound { message } if self.resource != "pods" => {
                Cause::NoSuchKind { resource: self.resource, address, message }
            }
            ApiFailure::NotFound { message } => Cause::NotKubernetes { address, message },
            ApiFailure::Refused { code: code @ 400..500, message } => {
                Cause::Invalid { what: self.what(), code, message }
            }
            ApiFailure::Unreachable { why } => Cause::Unreachable { address, why },
            failure => Cause::Failed { what: self.what(), failure },
        }
    }

    /// Authorizers say what the user cannot do, and admission says what is wrong with the object; both are a 403 without a
    /// field that tells them apart.
    fn forbidden(self, message: String) -> Cause {
        let what = self.what();
        let Some((_, rest)) = message.split_once("\" cannot ") else {
            return Cause::Refused { what, message };
        };
        // An apply of what is not there yet takes `create` as well as `patch`.
        let verb = if rest.starts_with("create ") { "create" } else { self.verb };
        let namespace = self.calls.namespace().to_owned();
        Cause::NotAllowed { verb, resource: self.resource, namespace, message }
    }

    fn what(&self) -> String {
        format!("{} {} in namespace {}", self.resource, self.name, self.calls.namespace())
    }
}
