//! Access with a kubeconfig. kube's own loader is not used, because its messages can show a part of the file.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use kube::config::{AuthInfo, AuthProviderConfig, Cluster, Kubeconfig, KubeconfigError};

use super::Reading;
use crate::address::Address;
use crate::connect_error::ConnectError;
use crate::files::{self, Content, Files};
use crate::identity::{self, ClientCertificate, ClientIdentity};
use crate::plugin::Plugin;
use cloakroom_core::text::repeated_key;
use cloakroom_outbound::proxies::{Proxies, Proxy};

pub(super) fn read(
    paths: &[PathBuf],
    context: Option<&str>,
    setting: &str,
    proxies: &Proxies,
) -> Result<Reading, ConnectError> {
    let file = File { paths, setting };
    let mut files = Files::default();
    file.note(&mut files)?;
    let Chosen { cluster, user, namespace, .. } = file.chosen(context)?.ok_or_else(|| {
        file.refuse(
            "it has no current context: choose one with “kubectl config use-context”, or name one here",
        )
    })?;
    let address = cluster.address()?;
    let roots = cluster.roots(&mut files)?;
    let identity = user.identity(&cluster.of, &mut files)?;
    let proxy = match cluster.proxy()? {
        Some(proxy) => Some(proxy),
        None => address.proxy(proxies)?,
    };
    let mut reading = Reading::new(&address, roots, identity, proxy, files)?;
    reading.context_namespace = namespace;
    reading.config.tls_server_name = given(cluster.of.tls_server_name.as_ref()).cloned();
    Ok(reading)
}

/// The context that a kubeconfig chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeconfigContext {
    pub name: String,
    /// The address of its API server, `https://HOST:PORT`.
    pub address: String,
    pub namespace: Option<String>,
}

impl KubeconfigContext {
    /// Reads the context that is wanted, or else the current one; `None` if none is wanted and none is current. No
    /// credentials are read. `setting` names the files in messages.
    pub fn read(
        paths: &[PathBuf],
        wanted: Option<&str>,
        setting: &str,
    ) -> Result<Option<Self>, ConnectError> {
        let file = File { paths, setting };
        file.note(&mut Files::default())?;
        let Some(Chosen { context, cluster, namespace, .. }) = file.chosen(wanted)? else { return Ok(None) };
        Ok(Some(Self { name: context, address: cluster.address()?.to_string(), namespace }))
    }
}

/// What a kubeconfig provides if the address of the API server comes from elsewhere.
#[derive(Default)]
pub(super) struct Surroundings {
    pub(super) identity: ClientIdentity,
    pub(super) roots: Option<Vec<Vec<u8>>>,
    pub(super) proxy: Option<Proxy>,
    pub(super) namespace: Option<String>,
    /// The kubeconfig's `insecure-skip-tls-verify`, if it is true. The setting is not followed.
    pub(super) trusts_anybody: Option<String>,
}

/// Reads the user and the CA of a context; `None` if no context is wanted and none is current. `setting` names the
/// files in messages. If there are several files, an earlier file wins over a later one, as in kubectl.
pub(super) fn surroundings(
    paths: &[PathBuf],
    context: Option<&str>,
    setting: &str,
    files: &mut Files,
) -> Result<Option<Surroundings>, ConnectError> {
    let file = File { paths, setting };
    file.note(files)?;
    let Some(Chosen { cluster, user, namespace, .. }) = file.chosen(context)? else { return Ok(None) };
    let roots = cluster.roots(files)?;
    let identity = user.identity(&cluster.of, files)?;
    let proxy = cluster.proxy()?;
    let trusts_anybody = cluster.of.insecure_skip_tls_verify == Some(true);
    let trusts_anybody = trusts_anybody.then(|| cluster.setting("insecure-skip-tls-verify"));
    Ok(Some(Surroundings { identity, roots, proxy, namespace, trusts_anybody }))
}

struct File<'a> {
    paths: &'a [PathBuf],
    setting: &'a str,
}

/// What one context names.
struct Chosen<'a> {
    context: String,
    cluster: Part<'a, Cluster>,
    user: Part<'a, AuthInfo>,
    namespace: Option<String>,
}

/// A cluster or a user, with its name for messages.
struct Part<'a, T> {
    file: &'a File<'a>,
    name: String,
    of: T,
}

impl File<'_> {
    fn refuse(&self, problem: impl Into<String>) -> ConnectError {
        ConnectError::Kubeconfig { path: self.path(), problem: problem.into() }
    }

    /// All paths in one text, in the form of the variable `KUBECONFIG`.
    fn path(&self) -> PathBuf {
        std::env::join_paths(self.paths).map_or_else(|_| self.paths.iter().collect(), PathBuf::from)
    }

    /// Reads each file once, for its stamp and for a message that names the file if it cannot be read.
    fn note(&self, files: &mut Files) -> Result<(), ConnectError> {
        self.paths.iter().try_for_each(|path| files.read(path, self.setting).map(drop))
    }

    /// The cluster and the user of a context; `None` if no context is wanted and none is current.
    fn chosen(&self, wanted: Option<&str>) -> Result<Option<Chosen<'_>>, ConnectError> {
        let Kubeconfig { current_context, contexts, clusters, auth_infos, .. } = self.parse()?;
        let wanted = wanted.map(str::to_owned).or(current_context).filter(|name| !name.is_empty());
        let Some(wanted) = wanted else { return Ok(None) };
        let contexts = contexts.into_iter().map(|named| (named.name, named.context));
        let context = self.find("context", &wanted, contexts)?.of;
        let clusters = clusters.into_iter().map(|named| (named.name, named.cluster));
        let cluster = self.find("cluster", &context.cluster, clusters)?;
        let users = auth_infos.into_iter().map(|named| (named.name, named.auth_info));
        let user = match context.user.filter(|name| !name.is_empty()) {
            Some(name) => self.find("user", &name, users)?,
            None => self.part("user", "", AuthInfo::default()),
        };
        let namespace = context.namespace.filter(|name| !name.is_empty());
        Ok(Some(Chosen { context: wanted, cluster, user, namespace }))
    }

    fn find<T>(
        &self,
        what: &str,
        name: &str,
        all: impl Iterator<Item = (String, Option<T>)>,
    ) -> Result<Part<'_, T>, ConnectError> {
        let mut others = Vec::new();
        for (other, value) in all {
            match value {
                Some(value) if other == name => return Ok(self.part(what, name, value)),
                _ => others.push(format!("“{other}”")),
            }
        }
        let known = if others.is_empty() { "none at all".to_owned() } else { others.join(", ") };
        Err(self.refuse(format!("it has no {what} “{name}”; it has {known}")))
    }

    fn part<T>(&self, what: &str, name: &str, of: T) -> Part<'_, T> {
        Part { file: self, name: format!("of the {what} “{name}” in {}", self.path().display()), of }
    }

    fn parse(&self) -> Result<Kubeconfig, ConnectError> {
        self.paths.iter().try_fold(Kubeconfig::default(), |merged, path| {
            let read = Kubeconfig::read_from(path).and_then(|next| merged.merge(next));
            read.map_err(|error| self.unusable(path, error))
        })
    }

    /// The error about one of the files. Its own text is not shown: it can quote a line with a token in it.
    fn unusable(&self, path: &Path, error: KubeconfigError) -> ConnectError {
        let refuse = |problem| ConnectError::Kubeconfig { path: path.to_owned(), problem };
        match error {
            KubeconfigError::Parse(error) => refuse(unreadable(&error)),
            KubeconfigError::ReadConfig(source, path) => {
                ConnectError::Unreadable { path, setting: self.setting.to_owned(), source }
            }
            _ => refuse("it contradicts itself, or the files before it".to_owned()),
        }
    }
}

impl<T> Part<'_, T> {
    fn setting(&self, field: &str) -> String {
        format!("{field} {}", self.name)
    }

    /// The content that a pair of fields gives: base64 in the data field, or else the file in the path field.
    fn content(
        &self,
        (field, data, path): (&str, Option<&str>, Option<&str>),
        files: &mut Files,
    ) -> Result<Option<Content>, ConnectError> {
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            let place = self.setting(&format!("{field}-data"));
            // It may be in lines.
            let data: String = data.split_ascii_whitespace().collect();
            let bytes = STANDARD.decode(data);
            let bytes = bytes.map_err(|_| ConnectError::Content {
                place: place.clone(),
                problem: "is not base64".to_owned(),
            })?;
            return Ok(Some(Content { place, bytes }));
        }
        path.and_then(given_path).map(|path| files.read(path, &self.setting(field))).transpose()
    }
}

impl Part<'_, Cluster> {
    fn address(&self) -> Result<Address, ConnectError> {
        if self.of.insecure_skip_tls_verify == Some(true) {
            return Err(self.file.refuse(format!(
                "{} is not supported: a credential could go to another server; give certificate-authority",
                self.setting("insecure-skip-tls-verify")
            )));
        }
        let setting = self.setting("server");
        Address::parse(self.of.server.as_deref().unwrap_or_default(), &setting)
    }

    fn proxy(&self) -> Result<Option<Proxy>, ConnectError> {
        let url = given(self.of.proxy_url.as_ref());
        Ok(url.map(|url| Proxy::parse(url, &self.setting("proxy-url"))).transpose()?)
    }

    fn roots(&self, files: &mut Files) -> Result<Option<Vec<Vec<u8>>>, ConnectError> {
        let data = self.of.certificate_authority_data.as_deref();
        let path = self.of.certificate_authority.as_deref();
        let content = self.content(("certificate-authority", data, path), files)?;
        content.map(|content| identity::roots(&content)).transpose()
    }
}

impl Part<'_, AuthInfo> {
    /// Reads all credentials. Of several, the same counts as for kubectl.
    fn identity(&self, cluster: &Cluster, files: &mut Files) -> Result<ClientIdentity, ConnectError> {
        let auth = AuthInfo {
            impersonate: given(self.of.impersonate.as_ref()).cloned(),
            impersonate_uid: given(self.of.impersonate_uid.as_ref()).cloned(),
            impersonate_groups: self.of.impersonate_groups.clone(),
            impersonate_user_extra: self.of.impersonate_user_extra.clone(),
            ..AuthInfo::default()
        };
        let certificate = self.certificate(files)?;
        let mut identity = ClientIdentity { auth, certificate, ..ClientIdentity::default() };
        let token = self.token(files)?;
        if let Some(user) = given(self.of.username.as_ref()) {
            if let Some((_, token)) = token {
                return Err(self.file.refuse(format!(
                    "it has both the {token} and a username, and only one of them can be sent: remove one"
                )));
            }
            identity.auth.username = Some(user.clone());
            identity.auth.password = Some(exposed(&self.of, "password").unwrap_or_default().into());
            identity.secret = Some(self.setting("password"));
            return Ok(identity);
        }
        let token = match token {
            Some(token) => Some(token),
            None => self.of.auth_provider.as_ref().map(|provider| self.id_token(provider)).transpose()?,
        };
        if let Some((token, setting)) = token {
            identity.auth.token = Some(token.into());
            identity.secret = Some(setting);
            return Ok(identity);
        }
        identity.plugin = self.plugin(cluster)?;
        identity.secret = identity.plugin.as_ref().map(|_| self.setting("what exec gives"));
        Ok(identity)
    }

    /// The token that kubectl's provider `oidc` has written into the kubeconfig, with the field that has it. It is not
    /// renewed here.
    fn id_token(&self, provider: &AuthProviderConfig) -> Result<(String, String), ConnectError> {
        const OIDC: &str = "oidc";
        const FIELD: &str = "id-token";
        let place = self.setting("auth-provider");
        if provider.name != OIDC {
            return Err(self.file.refuse(format!(
                "{place} is not supported ({}): kubectl has dropped it as well, in favour of exec",
                provider.name
            )));
        }
        let token = given(provider.config.get(FIELD)).ok_or_else(|| {
            self.file.refuse(format!("{place} ({OIDC}) has no {FIELD}: run kubectl once, which gets one"))
        })?;
        if let Some(expired_at) = expiry(token).filter(|end| *end <= Timestamp::now()) {
            return Err(self.file.refuse(format!(
                "the {FIELD} in {place} ({OIDC}) has expired at {expired_at}, and is not renewed here: run kubectl once, \
                 which renews it"
            )));
        }
        let content = Content { place: format!("{FIELD} in {place}"), bytes: token.clone().into_bytes() };
        Ok((files::token(&content)?, content.place))
    }

    fn certificate(&self, files: &mut Files) -> Result<Option<ClientCertificate>, ConnectError> {
        let (data, path) =
            (self.of.client_certificate_data.as_deref(), self.of.client_certificate.as_deref());
        let certificate = self.content(("client-certificate", data, path), files)?;
        let data = exposed(&self.of, "client-key-data");
        let key = self.content(("client-key", data.as_deref(), self.of.client_key.as_deref()), files)?;
        match (certificate, key) {
            (Some(certificate), Some(key)) => ClientCertificate::read(&certificate, &key).map(Some),
            (None, None) => Ok(None),
            (Some(certificate), None) => Err(certificate.refuse("has no client-key beside it")),
            (None, Some(key)) => Err(key.refuse("has no client-certificate beside it")),
        }
    }

    /// The token in the file, or else the token itself, with the setting that gives it.
    fn token(&self, files: &mut Files) -> Result<Option<(String, String)>, ConnectError> {
        let itself = exposed(&self.of, "token").filter(|token| !token.is_empty());
        if let Some(path) = self.of.token_file.as_deref().and_then(given_path) {
            let setting = self.setting("tokenFile");
            match files.token(path, &setting) {
                // kubectl goes on with the token until the file can be read.
                Err(_) if itself.is_some() => {}
                read => return Ok(Some((read?, setting))),
            }
        }
        let Some(token) = itself else { return Ok(None) };
        let content = Content { place: self.setting("token"), bytes: token.into_bytes() };
        Ok(Some((files::token(&content)?, content.place)))
    }

    fn plugin(&self, cluster: &Cluster) -> Result<Option<Plugin>, ConnectError> {
        let Some(exec) = &self.of.exec else { return Ok(None) };
        Plugin::new(exec, cluster, &self.name).map(Some)
    }
}

/// Why a kubeconfig cannot be read as YAML. Of its text it shows at most the name of a field.
fn unreadable(error: &serde_saphyr::Error) -> String {
    if let serde_saphyr::Error::DuplicateMappingKey { key, location } = error.without_snippet() {
        let is_field = |key: &&str| key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        return repeated_key(key.as_deref().filter(is_field), location.line());
    }
    let line = error.location().map(|location| format!(", line {}", location.line()));
    format!("it cannot be read as YAML of a kubeconfig{}", line.unwrap_or_default())
}

/// A text that is there. An empty one counts as absent, as for kubectl.
fn given(text: Option<&String>) -> Option<&String> {
    text.filter(|text| !text.is_empty())
}

/// The same for the path of a file. kube has put the kubeconfig's folder before an empty one.
fn given_path(path: &str) -> Option<&Path> {
    (!path.is_empty() && !path.ends_with('/')).then(|| Path::new(path))
}

/// When a JSON Web Token expires (RFC 7519, section 4.1.4); `None` if it does not say so.
fn expiry(token: &str) -> Option<Timestamp> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?.trim_end_matches('=')).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
    Timestamp::from_second(claims.get("exp")?.as_i64()?).ok()
}

/// Reads a secret field as text. It goes through serde, because kube's type for secrets shows its content nowhere else.
fn exposed(user: &AuthInfo, field: &str) -> Option<String> {
    let fields = serde_json::to_value(user).ok()?;
    fields.get(field)?.as_str().map(str::to_owned)
}
