//! Authentication and authorization: bearer tokens, and RBAC rules that are bound to users.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::request::ServiceAccount;
use crate::cluster::{CLOAKROOM_USER, NOBODY_USER, rights};

/// The audience of tokens for the API server.
const API_SERVER: &str = "https://kubernetes.default.svc";

/// A known token, and what it is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    text: String,
    user: User,
    audiences: Vec<String>,
}

/// A user with a known token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub groups: Vec<String>,
}

/// The verb and the object of a call, as RBAC sees them.
#[derive(Debug, Clone, Default)]
pub struct Attributes {
    pub verb: String,
    pub group: String,
    /// May include a subresource: `pods/status`.
    pub resource: String,
    /// Empty for all namespaces, and for objects without a namespace.
    pub namespace: String,
    pub name: String,
}

/// The rules that a user has, in all namespaces or in one.
#[derive(Debug, Clone)]
struct Binding {
    user: String,
    namespace: Option<String>,
    rules: Value,
}

#[derive(Debug)]
pub struct Access {
    tokens: Vec<Token>,
    accounts: Vec<ServiceAccount>,
    /// The longest life of tokens that are requested.
    pub token_seconds: Option<u64>,
    bindings: Vec<Binding>,
}

impl Default for Access {
    fn default() -> Self {
        let mut access =
            Self { tokens: Vec::new(), accounts: Vec::new(), token_seconds: None, bindings: Vec::new() };
        access.know("admin-token", "admin", &["system:masters"]);
        access.know("cloakroom-token", CLOAKROOM_USER, &[]);
        access.know("nobody-token", NOBODY_USER, &[]);
        access.grant(CLOAKROOM_USER, None, rights());
        access
    }
}

impl Access {
    pub fn know(&mut self, token: &str, user: &str, groups: &[&str]) {
        let mut groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        groups.push("system:authenticated".to_owned());
        self.tokens.push(Token {
            text: token.to_owned(),
            user: User { name: user.to_owned(), groups },
            audiences: vec![API_SERVER.to_owned()],
        });
    }

    pub fn forget(&mut self, token: &str) {
        self.tokens.retain(|known| known.text != token);
    }

    pub fn add_account(&mut self, account: ServiceAccount) {
        self.accounts.push(account);
    }

    /// The text of the last token of an account.
    pub fn last_token_of(&self, account: &ServiceAccount) -> Option<String> {
        let name = account.user();
        self.tokens.iter().rfind(|token| token.user.name == name).map(|token| token.text.clone())
    }

    /// A TokenRequest with its status; `None` if the account does not exist.
    pub fn request_token(&mut self, account: &ServiceAccount, request: &Value) -> Option<Value> {
        self.accounts.contains(account).then_some(())?;
        let audiences = match &request["spec"]["audiences"] {
            Value::Array(audiences) if !audiences.is_empty() => audiences.clone(),
            _ => vec![API_SERVER.into()],
        };
        let claims = json!({"aud": audiences, "sub": account.user(), "jti": self.tokens.len()}).to_string();
        let text = format!("e30.{}.c2lnbmF0dXJl", BASE64_URL_SAFE_NO_PAD.encode(claims));
        self.tokens.push(Token {
            text: text.clone(),
            user: User { name: account.user(), groups: Vec::new() },
            audiences: audiences.iter().filter_map(|audience| audience.as_str().map(str::to_owned)).collect(),
        });
        let mut answer = with_status(request, &json!({"token": text}));
        if let Some(seconds) = self.token_seconds {
            answer["spec"]["expirationSeconds"] = seconds.into();
        }
        Some(answer)
    }

    /// `rules` are those of a Role: a list of `apiGroups`, `resources`, `verbs`.
    pub fn grant(&mut self, user: &str, namespace: Option<&str>, rules: Value) {
        let namespace = namespace.map(str::to_owned);
        self.bindings.push(Binding { user: user.to_owned(), namespace, rules });
    }

    pub fn revoke(&mut self, user: &str) {
        self.bindings.retain(|binding| binding.user != user);
    }

    pub fn user(&self, token: &str) -> Option<&User> {
        self.known(token, API_SERVER).map(|token| &token.user)
    }

    fn known(&self, token: &str, audience: &str) -> Option<&Token> {
        let is_it = |known: &&Token| known.text == token && known.audiences.iter().any(|of| of == audience);
        self.tokens.iter().find(is_it)
    }

    pub fn allows(&self, user: &str, groups: &[String], wanted: &Attributes) -> bool {
        let is_master = groups.iter().any(|group| group == "system:masters");
        is_master || self.bindings.iter().any(|binding| binding.user == user && binding.allows(wanted))
    }

    /// A TokenReview with its status.
    pub fn review_token(&self, review: &Value) -> Value {
        let token = review["spec"]["token"].as_str().unwrap_or_default();
        let audience = review["spec"]["audiences"][0].as_str().unwrap_or(API_SERVER);
        let status = match self.known(token, audience) {
            Some(Token { user, .. }) => json!({
                "authenticated": true,
                "user": {"username": user.name, "groups": user.groups},
                "audiences": [audience],
            }),
            None => json!({"user": {}, "error": "invalid bearer token"}),
        };
        with_status(review, &status)
    }

    /// A SubjectAccessReview, or a SelfSubjectAccessReview of `caller`, with its status.
    pub fn review_access(&self, review: &Value, caller: &User) -> Value {
        let spec = &review["spec"];
        let wanted = Attributes::of_review(&spec["resourceAttributes"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let is_allowed = if review["kind"] == "SelfSubjectAccessReview" {
            self.allows(&caller.name, &caller.groups, &wanted)
        } else {
            let groups: Vec<String> = spec["groups"].as_array().into_iter().flatten().map(text).collect();
            self.allows(&text(&spec["user"]), &groups, &wanted)
        };
        with_status(review, &json!({"allowed": is_allowed}))
    }
}

impl ServiceAccount {
    /// The name of its user.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

impl Attributes {
    fn of_review(attributes: &Value) -> Self {
        let text = |field: &str| attributes[field].as_str().unwrap_or_default().to_owned();
        let resource = match text("subresource") {
            none if none.is_empty() => text("resource"),
            subresource => format!("{}/{subresource}", text("resource")),
        };
        Self {
            verb: text("verb"),
            group: text("group"),
            resource,
            namespace: text("namespace"),
            name: text("name"),
        }
    }

    /// The message of the API server's 403.
    pub fn refusal(&self, user: &str) -> String {
        let kind = if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        };
        let name = if self.name.is_empty() { String::new() } else { format!(" \"{}\"", self.name) };
        let place = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace \"{}\"", self.namespace)
        };
        format!(
            "{kind}{name} is forbidden: User \"{user}\" cannot {} resource \"{}\" in API group \"{}\" {place}",
            self.verb, self.resource, self.group
        )
    }
}

impl Binding {
    fn allows(&self, wanted: &Attributes) -> bool {
        let has = |list: &Value, item: &str| {
            list.as_array().into_iter().flatten().any(|one| one == item || one == "*")
        };
        let is_here = self.namespace.as_ref().is_none_or(|namespace| *namespace == wanted.namespace);
        is_here
            && self.rules.as_array().into_iter().flatten().any(|rule| {
                has(&rule["apiGroups"], &wanted.group)
                    && has(&rule["resources"], &wanted.resource)
                    && has(&rule["verbs"], &wanted.verb)
                    && (rule["resourceNames"].is_null() || has(&rule["resourceNames"], &wanted.name))
            })
    }
}

fn with_status(review: &Value, status: &Value) -> Value {
    let mut answer = review.clone();
    answer["status"] = status.clone();
    answer
}
