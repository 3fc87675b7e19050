//! The faults that a test plans for the API server, and the calls that it got.

use std::time::Duration;

use serde_json::Value;

use crate::cluster::Kind;

/// The purpose of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Delete,
    Patch,
    /// `/version`, `/api`, `/apis` and below, without objects.
    Discovery,
    /// Reviews of tokens and of access.
    Review,
    /// All verbs; only for faults.
    Any,
}

/// A wrong behaviour in place of the right answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An error with this HTTP status.
    Status(u16),
    /// 403, as for a caller without the right to the call.
    Forbidden,
    /// 429, with `Retry-After`.
    TooManyRequests(Duration),
    /// No answer, ever.
    Hang,
    /// For lists: no items, at the right version.
    Empty,
    /// The requested version or page is too old: a watch gets an ERROR event, a list gets a 410.
    Expired,
    /// The answer begins and the connection breaks in the middle of its first line.
    Cut,
    /// An admission webhook has side effects, which a dry run may not have.
    NoDryRun,
    /// The call does its work, and the connection breaks in the middle of its answer.
    LostAnswer,
    /// A watch opens and then stays silent: no events, no bookmarks, no end.
    Silent,
}

/// A call that the API server got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub verb: Verb,
    /// Empty for an unknown account.
    pub user: String,
    pub path: String,
    /// The query of the URL, decoded.
    pub query: Vec<(String, String)>,
    pub content_type: String,
    /// Null for a call without a body.
    pub body: Value,
}

impl Call {
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// As rights: `group/resource verb`. Server-side apply may have to create as well.
    pub fn rights(&self) -> Vec<String> {
        let parts: Vec<&str> = self.path.split('/').collect();
        let (group, at) = if parts[1] == "api" { ("", 5) } else { (parts[2], 6) };
        let resource = [Some(&parts[at]), parts.get(at + 2)]
            .into_iter()
            .flatten()
            .copied()
            .collect::<Vec<_>>()
            .join("/");
        let verbs = match self.verb {
            Verb::Create | Verb::Review => &["create"][..],
            Verb::Patch => &["create", "patch"],
            Verb::Delete => &["delete"],
            Verb::List => &["list"],
            Verb::Watch => &["watch"],
            _ => &["get"],
        };
        verbs.iter().map(|verb| format!("{group}/{resource} {verb}")).collect()
    }
}

/// The faults that are in force.
#[derive(Debug, Default)]
pub struct Faults(Vec<Plan>);

/// A fault, and the calls that it affects.
#[derive(Debug)]
struct Plan {
    verb: Verb,
    kind: Option<Kind>,
    /// Only calls with this parameter in their query.
    parameter: Option<&'static str>,
    /// How many of these calls pass first.
    skip: usize,
    /// How many of them fail after that.
    times: usize,
    fault: Fault,
}

impl Faults {
    /// Adds a fault. The latest one wins.
    pub fn add(&mut self, verb: Verb, kind: Option<Kind>, parameter: Option<&'static str>, fault: Fault) {
        self.0.insert(0, Plan { verb, kind, parameter, skip: 0, times: usize::MAX, fault });
    }

    /// Adds a fault for some calls only, counted from now.
    pub fn add_some(&mut self, verb: Verb, kind: Kind, skip: usize, times: usize, fault: Fault) {
        self.0.insert(0, Plan { verb, kind: Some(kind), parameter: None, skip, times, fault });
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn of(&mut self, verb: Verb, kind: Option<&Kind>, query: &[(String, String)]) -> Option<Fault> {
        let applies = |plan: &&mut Plan| {
            [verb, Verb::Any].contains(&plan.verb)
                && plan.times > 0
                && plan.kind.as_ref().is_none_or(|only| Some(only) == kind)
                && plan.parameter.is_none_or(|named| query.iter().any(|(name, _)| name == named))
        };
        let plan = self.0.iter_mut().find(applies)?;
        if plan.skip > 0 {
            plan.skip -= 1;
            return None;
        }
        if plan.times != usize::MAX {
            plan.times -= 1;
        }
        Some(plan.fault)
    }
}
