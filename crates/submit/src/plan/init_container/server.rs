//! The staging server: its address, TLS and token for this machine, and its address and TLS for pods.

use std::path::{Path, PathBuf};

use super::objects;
use crate::plan::error::PlanError;
use crate::plan::folder;
use crate::plan::request::{Answer, Question};
use crate::plan::submitter::Machine;
use cloakroom_core::resource::is_dns_subdomain;
use cloakroom_core::text::chain;
use cloakroom_kubespark::trust_store_to_pem;
use cloakroom_reach::{NamedBy, ServerChoice, ServerPlace, ServerService, UploadAccount};
use cloakroom_spark::keys::Key;
use cloakroom_spark::{DependencyUri, SettingError, SparkConf, keys};
use cloakroom_transfer::client::{
    RetryPolicy, SecretFileError, ServerAddress, TrustedCertificates, UploadToken,
};

/// The TLS settings of one side, this machine or pods.
struct TrustKeys {
    enabled: Key<bool>,
    certificate: Key<String>,
    store: Key<String>,
    store_type: Key<String>,
}

const OUTER: TrustKeys = TrustKeys {
    enabled: keys::TLS_ENABLED,
    certificate: keys::TLS_CLIENT_CERT_PEM,
    store: keys::TLS_TRUST_STORE,
    store_type: keys::TLS_TRUST_STORE_TYPE,
};
const INTERNAL: TrustKeys = TrustKeys {
    enabled: keys::INTERNAL_TLS_ENABLED,
    certificate: keys::INTERNAL_TLS_CLIENT_CERT_PEM,
    store: keys::INTERNAL_TLS_TRUST_STORE,
    store_type: keys::INTERNAL_TLS_TRUST_STORE_TYPE,
};

/// The staging server that files go to.
pub(in crate::plan) struct StagingServer {
    pub place: ServerPlace,
    pub token: Option<UploadToken>,
    /// The account whose tokens the server may want, if no token is given.
    pub uploader: Option<UploadAccount>,
    /// How long to wait for a server that does not answer.
    pub policy: RetryPolicy,
    /// Whether a bundle may have parts of an earlier one.
    pub may_reuse: bool,
    /// Where the user has named the server, for advice in messages.
    pub named: NamedBy,
    /// Certificates that this machine trusts in addition to the system's.
    pub trusted: TrustedCertificates,
    /// Its address for pods.
    internal: String,
    /// Whether that address is computed, and the server may correct it.
    is_computed: bool,
    trust_of_pods: Trust,
    no_way: Option<Box<PlanError>>,
}

/// The certificates that pods trust in addition to their image's.
enum Trust {
    /// None.
    Default,
    /// Those at a path in the init-container's image.
    InImage(String),
    /// Those of a local file, as PEM.
    Shipped(Vec<u8>),
}

impl StagingServer {
    /// Whether the file of `key` is read. A certificate is read only if TLS is on.
    pub fn reads(conf: &SparkConf, key: &str) -> bool {
        let is_on = |keys: &TrustKeys| conf.read(&keys.enabled).ok().flatten();
        let outer = is_on(&OUTER);
        let of_pods = is_on(&INTERNAL).or(outer).unwrap_or_default().then(|| keys_of_pods(conf).certificate);
        let own = outer.unwrap_or_default().then_some(OUTER.certificate);
        [Some(keys::CLOAKROOM_UPLOAD_TOKEN_FILE), own, of_pods]
            .into_iter()
            .flatten()
            .any(|read| *read == *key)
    }

    /// `no_way` is the refusal of a file that needs this server, if it is the default one.
    pub fn read(
        conf: &SparkConf,
        machine: Machine,
        no_way: Option<Box<PlanError>>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, PlanError> {
        let choice = ServerChoice::of_settings(conf);
        let place = choice.place().map_err(|bad| bad.in_settings(conf))?;
        let named = named(conf);
        warnings.extend(unused_service(&choice, named));
        let given = internal(conf, warnings)?;
        let is_computed = given.is_none() && matches!(place, ServerPlace::Service(_));
        let internal = match (given, &place) {
            (Some(internal), _) => internal,
            (None, ServerPlace::Address(outer)) if outer.is_loopback() => {
                return Err(conf.refuse(&keys::SERVER_URI, unreachable_for_pods(outer)).into());
            }
            (None, ServerPlace::Address(outer)) => outer.to_string(),
            (None, ServerPlace::Service(service)) => service.url_of_pods(),
        };
        let token = token(conf, &choice, machine)?;
        let uploader = if token.is_none() { uploader(conf, &choice)? } else { None };
        Ok(Self {
            token,
            uploader,
            policy: policy(conf, &place)?,
            may_reuse: !conf.read(&keys::CLOAKROOM_NO_REUSE)?.unwrap_or_default(),
            named,
            trusted: trust_of_this_machine(conf, &place, machine, warnings)?,
            trust_of_pods: trust_of_pods(conf, machine)?,
            place,
            internal,
            is_computed,
            no_way,
        })
    }

    /// Whether the way to the server is not known yet.
    pub fn is_behind_service(&self) -> bool {
        matches!(self.place, ServerPlace::Service(_))
    }

    /// A warning for a dry run, which shows an address that the server may correct.
    pub fn unasked_address(&self) -> Option<String> {
        self.is_computed.then(|| {
            format!(
                "pods would fetch from {}, unless {} has TLS or names another address, which a dry run does not ask",
                self.internal, self.place
            )
        })
    }

    /// The question to the server.
    pub fn question(&self) -> Question {
        Question {
            server: self.place.clone(),
            policy: self.policy,
            named: self.named,
            trusted: self.trusted.clone(),
            no_way: self.no_way.clone(),
        }
    }

    /// Takes the server's answer, and may return a warning. A server that has answered once is waited for longer from then
    /// on.
    pub fn answered(&mut self, answer: Answer) -> Option<String> {
        self.policy = self.policy.answered();
        self.uploader = self.uploader.take().and_then(|it| it.answered(answer.upload_auth.as_ref()));
        let (service, for_pods) = answer.found?;
        let warning = if !self.is_computed {
            None
        } else if for_pods.is_loopback() {
            Some(of_loopback(&format!("the address for pods that {service} has (--internal-url)"), &for_pods))
        } else if for_pods.scheme() == "https" && matches!(self.trust_of_pods, Trust::Default) {
            Some(of_unknown_issuer(&service, &for_pods))
        } else {
            None
        };
        if self.is_computed {
            self.internal = for_pods.to_string();
        }
        self.place = ServerPlace::Service(service);
        warning
    }

    /// The image in the server's answer.
    pub fn image(&self, said: Option<String>) -> Result<String, PlanError> {
        said.ok_or_else(|| {
            let server = match &self.place {
                ServerPlace::Address(_) => format!("the server of {}", self.named.address()),
                ServerPlace::Service(_) => "the server".to_owned(),
            };
            let why = format!(", or start {server} with --fetch-image (at {} it has none)", self.place);
            PlanError::NoInitImage { named: self.named, why }
        })
    }

    /// The init-container's properties about this server.
    pub fn properties(&self) -> Vec<(&'static str, String)> {
        let mut properties = vec![(keys::SERVER_URI.name(), self.internal.clone())];
        let certificate = match &self.trust_of_pods {
            Trust::Default => return properties,
            Trust::InImage(path) => path.clone(),
            Trust::Shipped(_) => format!("{}/{}", objects::SECRET_FOLDER, objects::CERTIFICATE),
        };
        properties.push((keys::TLS_ENABLED.name(), "true".to_owned()));
        properties.push((keys::TLS_CLIENT_CERT_PEM.name(), certificate));
        properties
    }

    /// The certificate that goes into the secret for pods.
    pub fn shipped_certificate(&self) -> Option<Vec<u8>> {
        match &self.trust_of_pods {
            Trust::Shipped(certificate) => Some(certificate.clone()),
            _ => None,
        }
    }
}

/// The server's address for pods, if a setting has it.
fn internal(conf: &SparkConf, warnings: &mut Vec<String>) -> Result<Option<String>, SettingError> {
    let key = &keys::SERVER_INTERNAL_URI;
    let Some(text) = conf.get(key) else { return Ok(None) };
    let internal = ServerAddress::parse(text).map_err(|error| conf.refuse(key, error.to_string()))?;
    warnings.extend(internal.is_loopback().then(|| of_loopback(&format!("`{key}`"), &internal)));
    Ok(Some(internal.to_string()))
}

/// A warning, and no refusal: such an address is right for a pod with `hostNetwork` on the server's own node.
fn of_loopback(named: &str, internal: &ServerAddress) -> String {
    format!(
        "{named} is {internal}, which a pod takes for itself: set it to an address of the server that pods reach"
    )
}

/// A warning, and no refusal: the image may have the CA.
fn of_unknown_issuer(service: &ServerService, internal: &ServerAddress) -> String {
    format!(
        "pods fetch from {internal}, and trust only the CAs of the init-container's image: if none of them has signed the \
         certificate of {service}, set `{}=true` and `{}=FILE`, or CLOAKROOM_CA_FILE",
        keys::INTERNAL_TLS_ENABLED,
        keys::INTERNAL_TLS_CLIENT_CERT_PEM
    )
}

/// With such an address, each pod would look for the server in itself until its timeout.
fn unreachable_for_pods(outer: &ServerAddress) -> String {
    format!(
        "pods, which fetch from the server too, take it for themselves: set `{}` to the address that they reach it at, such \
         as {}://SERVICE.NAMESPACE:10000",
        keys::SERVER_INTERNAL_URI,
        outer.scheme()
    )
}

impl TrustKeys {
    /// The certificate's setting. A Java store is refused, with the command that converts it.
    fn certificate<'a>(&self, conf: &'a SparkConf) -> Result<Option<&'a str>, SettingError> {
        if let Some(store) = conf.get(&self.store) {
            let path = PathBuf::from(store.strip_prefix("file://").unwrap_or(store));
            let command = trust_store_to_pem(&path, conf.get(&self.store_type));
            let problem = format!(
                "Java's stores are not read here: write it as PEM with “{}” and set `{}` to ca.pem instead",
                command.trim(),
                self.certificate
            );
            return Err(conf.refuse(&self.store, problem));
        }
        Ok(conf.get(&self.certificate))
    }

    fn is_given(&self, conf: &SparkConf) -> bool {
        conf.contains(&self.certificate) || conf.contains(&self.store)
    }
}

/// How the user has named the server and its certificate.
pub(in crate::plan) fn named(conf: &SparkConf) -> NamedBy {
    NamedBy::new(&ServerChoice::of_settings(conf), conf.origin(&keys::TLS_CLIENT_CERT_PEM))
}

/// A warning if a Service is named beside an address.
fn unused_service(choice: &ServerChoice, named: NamedBy) -> Option<String> {
    let unused = keys::CLOAKROOM_SERVER_SERVICE;
    let is_unused = choice.address.is_some() && choice.service.is_some();
    let named = named.address();
    is_unused.then(|| format!("`{unused}` is not used, because {named} names the server's address"))
}

/// The setting's limit, which counts whether or not the server has answered before, else the default.
fn policy(conf: &SparkConf, place: &ServerPlace) -> Result<RetryPolicy, SettingError> {
    let limit = conf.read(&keys::CLOAKROOM_RETRY_TIMEOUT)?;
    Ok(match (limit, place) {
        (Some(limit), _) => RetryPolicy::within(limit),
        (None, ServerPlace::Address(_)) => RetryPolicy::default(),
        (None, ServerPlace::Service(_)) => ServerService::policy(),
    })
}

/// The account whose tokens are requested, if the server's namespace is known.
fn uploader(conf: &SparkConf, choice: &ServerChoice) -> Result<Option<UploadAccount>, SettingError> {
    let key = &keys::CLOAKROOM_UPLOAD_SERVICE_ACCOUNT;
    let account = conf.get(key);
    if account.is_some_and(|account| !is_dns_subdomain(account)) {
        let problem = "it must be the name of a service account: at most 253 characters of a-z, 0-9, - and .";
        return Err(conf.refuse(key, problem));
    }
    let namespace = choice.namespace_for_tokens().map_err(|bad| bad.in_settings(conf))?;
    Ok(namespace.map(|namespace| UploadAccount::to_server_in(&namespace, account)))
}

/// The upload token of the file that the setting names.
fn token(
    conf: &SparkConf,
    choice: &ServerChoice,
    machine: Machine,
) -> Result<Option<UploadToken>, SettingError> {
    let key: &str = &keys::CLOAKROOM_UPLOAD_TOKEN_FILE;
    let Some(path) = conf.get(key) else { return Ok(None) };
    if path.trim().is_empty() {
        return Err(conf.refuse(key, "name the file that the token is in, or leave it out"));
    }
    if !choice.may_have_token() {
        let problem = format!(
            "the token goes only to a server that is named: set `{}` (or CLOAKROOM_SERVER_NAMESPACE) to its namespace, or \
             leave this out",
            keys::CLOAKROOM_SERVER_NAMESPACE
        );
        return Err(conf.refuse(key, problem));
    }
    let path = machine.path(path);
    let bytes = machine.read(&path).map_err(|error| conf.refuse(key, folder::unreadable(&error)))?;
    let read = UploadToken::of_file(bytes, &path, key);
    read.map(Some).map_err(|error| {
        let problem = match error {
            SecretFileError::Empty { .. } => "this file is empty: it must hold the token".to_owned(),
            SecretFileError::Line { line, source, .. } => {
                format!("line {line} of this file cannot be understood: {source}")
            }
            // `Unreadable` cannot happen: the bytes were read before.
            SecretFileError::NotText { .. } | SecretFileError::Unreadable { .. } => {
                "this file holds no token: it must be one line of printable ASCII".to_owned()
            }
        };
        conf.refuse(key, problem)
    })
}

/// The certificates of a local file, and nothing else of it. They go to the cluster, where a private key in the same
/// file could be read.
fn certificates(
    conf: &SparkConf,
    key: &str,
    path: &Path,
    machine: Machine,
) -> Result<TrustedCertificates, SettingError> {
    let bytes = machine.read(path).map_err(|error| conf.refuse(key, folder::unreadable(&error)))?;
    TrustedCertificates::of_file(bytes, path).map_err(|error| conf.refuse(key, chain(&error)))
}

/// Certificates that this machine trusts. Without `enabled`, a certificate has no effect, as for the init-container.
fn trust_of_this_machine(
    conf: &SparkConf,
    place: &ServerPlace,
    machine: Machine,
    warnings: &mut Vec<String>,
) -> Result<TrustedCertificates, SettingError> {
    if !conf.read(&OUTER.enabled)?.unwrap_or_default() {
        if OUTER.is_given(conf) {
            let (key, enabled) = (OUTER.certificate, OUTER.enabled);
            warnings.push(format!("`{key}` has an effect only if `{enabled}` is true"));
        }
        return Ok(TrustedCertificates::default());
    }
    let Some(text) = OUTER.certificate(conf)? else { return Ok(TrustedCertificates::default()) };
    let refuse = |problem: String| conf.refuse(&OUTER.certificate, problem);
    if let DependencyUri::Submitter(file) =
        DependencyUri::parse(text).map_err(|error| refuse(error.to_string()))?
    {
        return certificates(conf, &OUTER.certificate, &machine.path(file.whole_path()), machine);
    }
    // Such a server may need none: then the setting is for pods.
    if matches!(place, ServerPlace::Service(_)) {
        return Ok(TrustedCertificates::default());
    }
    Err(refuse(format!(
        "it must be a file of this machine, which stages the files; what pods trust is `{}`",
        INTERNAL.certificate
    )))
}

/// The keys of the certificate that pods trust: the internal ones if one of them is set, else this machine's.
fn keys_of_pods(conf: &SparkConf) -> TrustKeys {
    if INTERNAL.is_given(conf) { INTERNAL } else { OUTER }
}

/// The certificates that pods trust. Each setting for pods, if it is not set, is the same as for this machine.
fn trust_of_pods(conf: &SparkConf, machine: Machine) -> Result<Trust, SettingError> {
    let outer = conf.read(&OUTER.enabled)?;
    if !conf.read(&INTERNAL.enabled)?.or(outer).unwrap_or_default() {
        return Ok(Trust::Default);
    }
    let keys = keys_of_pods(conf);
    let Some(text) = keys.certificate(conf)? else { return Ok(Trust::Default) };
    let refuse = |problem: String| conf.refuse(&keys.certificate, problem);
    match DependencyUri::parse(text).map_err(|error| refuse(error.to_string()))? {
        DependencyUri::Image(file) => Ok(Trust::InImage(file.whole_path().display().to_string())),
        DependencyUri::Submitter(file) => {
            let path = machine.path(file.whole_path());
            let shipped = certificates(conf, &keys.certificate, &path, machine)?;
            Ok(Trust::Shipped(shipped.to_pem().into_bytes()))
        }
        _ => Err(refuse("it must be a file of this machine, or local:///… for one in the image".to_owned())),
    }
}
