//! A call: its method, path and query, parsed as the API server does it.

use axum::http::request::Parts;
use axum::http::{Method, header};

use super::TOKEN;
use super::access::Attributes;
use super::answers::Form;
use super::faults::Verb;
use crate::cluster::Kind;

/// Where a path leads.
#[derive(Debug, Clone)]
pub enum Route {
    Discovery,
    TokenReview,
    /// The caller's own name.
    SelfReview,
    AccessReview,
    /// A token of a service account.
    TokenRequest(ServiceAccount),
    Objects(Target),
    /// Objects of an unknown kind. A caller without the right to them gets a 403 before the 404.
    Unknown(Attributes),
    Nothing,
}

/// A service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceAccount {
    pub namespace: String,
    pub name: String,
}

/// All objects of a kind, one object, or a subresource.
#[derive(Debug, Clone)]
pub struct Target {
    pub kind: Kind,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: Option<String>,
}

/// A call.
#[derive(Debug, Clone)]
pub struct Request {
    pub verb: Verb,
    pub route: Route,
    pub path: String,
    pub query: Vec<(String, String)>,
    pub form: Form,
    /// The bearer token; empty if there is none.
    pub token: String,
    /// The media type, without parameters such as a character set.
    pub content_type: String,
}

impl Request {
    pub fn read(kinds: &[Kind], parts: &Parts) -> Self {
        let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let path = parts.uri.path().to_owned();
        let query = axum::extract::Query::try_from_uri(&parts.uri).map(|query| query.0).unwrap_or_default();
        let mut request = Self {
            verb: Verb::Discovery,
            route: route(kinds, &path),
            path,
            query,
            form: Form::of(text(header::ACCEPT)),
            token: text(header::AUTHORIZATION).strip_prefix("Bearer ").unwrap_or_default().to_owned(),
            content_type: text(header::CONTENT_TYPE).split(';').next().unwrap_or_default().to_owned(),
        };
        request.verb = request.find_verb(&parts.method);
        request
    }

    fn find_verb(&self, method: &Method) -> Verb {
        match (&self.route, method) {
            (Route::Discovery | Route::Nothing, _) => Verb::Discovery,
            (Route::TokenReview | Route::SelfReview | Route::AccessReview, _) => Verb::Review,
            (_, &Method::POST) => Verb::Create,
            (_, &Method::DELETE) => Verb::Delete,
            (_, &Method::PATCH) => Verb::Patch,
            (_, _) if self.is_true("watch") => Verb::Watch,
            (Route::Objects(Target { name: None, .. }) | Route::Unknown(_), _) => Verb::List,
            (Route::Objects(_) | Route::TokenRequest(_), _) => Verb::Get,
        }
    }

    /// A parameter of the query; empty if it is absent.
    pub fn parameter(&self, name: &str) -> &str {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    pub fn is_true(&self, name: &str) -> bool {
        ["1", "true"].contains(&self.parameter(name))
    }

    pub fn kind(&self) -> Option<&Kind> {
        match &self.route {
            Route::Objects(target) => Some(&target.kind),
            Route::TokenRequest(_) => Some(&TOKEN),
            _ => None,
        }
    }

    /// What the caller must be allowed to do; `None` for discovery, which is open to every known user.
    pub fn attributes(&self) -> Option<Attributes> {
        let verb = match self.verb {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create | Verb::Review => "create",
            Verb::Delete => "delete",
            Verb::Patch => "patch",
            Verb::Discovery | Verb::Any => return None,
        };
        let mut attributes = Attributes { verb: verb.to_owned(), ..Attributes::default() };
        match &self.route {
            Route::Objects(target) => target.describe(&mut attributes),
            Route::TokenRequest(ServiceAccount { namespace, name }) => {
                attributes.resource = "serviceaccounts/token".to_owned();
                (attributes.namespace, attributes.name) = (namespace.clone(), name.clone());
            }
            Route::Unknown(wanted) => attributes = Attributes { verb: attributes.verb, ..wanted.clone() },
            _ => {
                let mut segments = self.path.split('/').skip(2);
                attributes.group = segments.next().unwrap_or_default().to_owned();
                attributes.resource = segments.nth(1).unwrap_or_default().to_owned();
                if attributes.resource == "namespaces" {
                    attributes.namespace = segments.next().unwrap_or_default().to_owned();
                    attributes.resource = segments.next().unwrap_or_default().to_owned();
                }
            }
        }
        // Every known user may ask about their own rights.
        let is_about_self =
            ["selfsubjectaccessreviews", "selfsubjectreviews"].contains(&attributes.resource.as_str());
        (!is_about_self).then_some(attributes)
    }
}

impl Target {
    fn describe(&self, attributes: &mut Attributes) {
        attributes.group = self.kind.group.to_owned();
        attributes.resource = match &self.subresource {
            Some(subresource) => format!("{}/{subresource}", self.kind.plural),
            None => self.kind.plural.to_owned(),
        };
        attributes.name = self.name.clone().unwrap_or_default();
        attributes.namespace = match &self.namespace {
            Some(namespace) => namespace.clone(),
            // For RBAC, a namespace is in itself.
            None if self.kind.plural == "namespaces" => attributes.name.clone(),
            None => String::new(),
        };
    }
}

fn route(kinds: &[Kind], path: &str) -> Route {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (group, version, rest) = match segments.as_slice() {
        ["apis", "authentication.k8s.io", "v1", "tokenreviews"] => return Route::TokenReview,
        ["apis", "authentication.k8s.io", "v1", "selfsubjectreviews"] => return Route::SelfReview,
        ["api", "v1", "namespaces", namespace, "serviceaccounts", name, "token"] => {
            let (namespace, name) = ((*namespace).to_owned(), (*name).to_owned());
            return Route::TokenRequest(ServiceAccount { namespace, name });
        }
        ["apis", "authorization.k8s.io", "v1", "subjectaccessreviews" | "selfsubjectaccessreviews"] => {
            return Route::AccessReview;
        }
        ["apis", "authorization.k8s.io", "v1", "namespaces", _, "localsubjectaccessreviews"] => {
            return Route::AccessReview;
        }
        ["version"] | ["api" | "apis", ..] if segments.len() < 3 => return Route::Discovery,
        ["apis", _, _] => return Route::Discovery,
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return Route::Nothing,
    };
    let (namespace, rest) = match rest {
        ["namespaces", namespace, plural, rest @ ..] if !["status", "finalize"].contains(plural) => {
            (Some((*namespace).to_owned()), [&[*plural], rest].concat())
        }
        _ => (None, rest.to_vec()),
    };
    let is_wanted =
        |kind: &&Kind| kind.group == group && kind.version == version && rest.first() == Some(&kind.plural);
    match kinds.iter().find(is_wanted) {
        Some(kind) if rest.len() <= 3 && (kind.is_namespaced || namespace.is_none()) => {
            let part = |at: usize| rest.get(at).map(|part| (*part).to_owned());
            Route::Objects(Target { kind: *kind, namespace, name: part(1), subresource: part(2) })
        }
        _ => {
            let resource = rest.first().copied().unwrap_or_default();
            Route::Unknown(Attributes {
                group: group.to_owned(),
                resource: resource.to_owned(),
                namespace: namespace.unwrap_or_default(),
                ..Attributes::default()
            })
        }
    }
}
