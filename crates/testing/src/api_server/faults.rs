//! What the API server is told to do wrong, and what it was asked.

use std::time::Duration;

use serde_json::Value;

use crate::cluster::Kind;

/// What a call is for.
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
    /// All of them; only in faults.
    Any,
}

/// What is done in place of a right answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An error with this HTTP status.
    Status(u16),
    /// 429, with `Retry-After`.
    TooManyRequests(Duration),
    /// No answer, ever.
    Hang,
    /// A list without items, at a version that is right; for lists.
    Empty,
    /// The version or the page that is asked for is too old: an ERROR event of a watch, a 410 of a list.
    Expired,
    /// The answer begins and the connection breaks in the middle of its first line.
    Cut,
    /// An admission webhook has side effects, which a dry run may not have.
    NoDryRun,
    /// The call does its work, and the connection breaks in the middle of its answer.
    LostAnswer,
    /// A watch that is opened, and says nothing, ever: neither events nor bookmarks, nor an end.
    Silent,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub verb: Verb,
    /// Empty for an account that is not known.
    pub user: String,
    pub path: String,
    /// As it stands in the URL, decoded.
    pub query: Vec<(String, String)>,
    pub content_type: String,
    /// Null for a call without one.
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

/// A fault, and which calls it is for.
#[derive(Debug)]
struct Plan {
    verb: Verb,
    kind: Option<Kind>,
    /// Only those that name this parameter.
    parameter: Option<&'static str>,
    /// So many of them are let through first.
    skip: usize,
    /// And so many fail then.
    times: usize,
    fault: Fault,
}

impl Faults {
    /// The latest comes first.
    pub fn add(&mut self, verb: Verb, kind: Option<Kind>, parameter: Option<&'static str>, fault: Fault) {
        self.0.insert(0, Plan { verb, kind, parameter, skip: 0, times: usize::MAX, fault });
    }

    /// For some calls only, counted from now.
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
