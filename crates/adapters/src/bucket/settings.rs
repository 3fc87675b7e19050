//! The settings of a bucket: flags, variables of the environment, and the errors in them.

use cloakroom_core::metrics::Metrics;
use cloakroom_outbound::certificates::{TrustError, TrustedCertificates};
use object_store::{ClientOptions, RetryConfig};
use reqwest::Url;

use super::connector::Connector;
use super::location::{Kind, Location};
use super::refusal::Codes;

/// How a bucket is named in addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    /// `https://BUCKET.HOST/KEY`
    Virtual,
    /// `https://HOST/BUCKET/KEY`
    Path,
}

/// The flags for a bucket.
#[derive(Debug, Clone, Default)]
pub struct BucketOptions {
    /// The address of a store that is not the usual one of its kind.
    pub endpoint: Option<String>,
    /// The region of the bucket; of S3 only.
    pub region: Option<String>,
    /// The storage account; of Azure only.
    pub account: Option<String>,
    /// The user whose files they are; of HDFS only.
    pub user: Option<String>,
    /// How the bucket is named in addresses; `None` for what is usual at the endpoint. Of S3 only.
    pub addressing: Option<Addressing>,
    /// Whether the store may be spoken to without TLS.
    pub allows_http: bool,
    /// Certificates to trust beside the system's.
    pub trusted: TrustedCertificates,
}

/// Gives the value of a variable of the environment.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Why there is no store with these settings.
#[derive(Debug, thiserror::Error)]
pub enum BucketSettingError {
    /// No setting names the region.
    #[error("the region of the bucket is not known: give --store-region, or set AWS_REGION")]
    NoRegion,
    /// The region is not a name.
    #[error("{setting} is not the name of a region, such as eu-central-1")]
    Region { setting: &'static str },
    /// No setting names the account.
    #[error(
        "the storage account of the container is not known: give --store-account, or set AZURE_STORAGE_ACCOUNT"
    )]
    NoAccount,
    /// The account is not a name.
    #[error("{setting} is not the name of a storage account: 3 to 24 lower-case letters and digits")]
    Account { setting: &'static str },
    /// No setting names the user.
    #[error("the user of HDFS is not known: give --store-user, or set HADOOP_USER_NAME")]
    NoUser,
    /// The user is not a name.
    #[error("{setting} is not the name of a user: letters, digits and any of - _ .")]
    User { setting: &'static str },
    /// HDFS is spoken to without TLS.
    #[error(
        "webhdfs:// is without TLS, so that all on the way can read the bundles: give swebhdfs://, or --store-allow-http"
    )]
    HdfsInClear,
    /// A flag is for another kind of buckets.
    #[error("{flag} is for {of} only")]
    OfAnother { flag: &'static str, of: &'static str },
    /// The endpoint is not the address of a server.
    #[error("{setting} is not an address like https://HOST or https://HOST:PORT")]
    Endpoint { setting: &'static str },
    /// A variable has a text that cannot be sent.
    #[error("{variable} has characters that cannot be in it")]
    Text { variable: &'static str },
    /// The endpoint is one without TLS.
    #[error(
        "{setting} is an address without TLS, so that all on the way can read the bundles, and use the requests again for \
         minutes: give an https address, or --store-allow-http"
    )]
    InClear { setting: &'static str },
    /// A variable is there and another one is not that it needs.
    #[error("{there} is set and {missing} is not: it needs both")]
    Half { there: &'static str, missing: &'static str },
    /// The credentials are where they are not looked for.
    #[error("{place} is not read: give the credentials in {instead}, or by the service account of the pod")]
    Elsewhere { place: String, instead: &'static str },
    /// A file with a credential cannot be read.
    #[error("cannot read {}the file of {variable}", shown(path))]
    CredentialFile { variable: &'static str, path: String, source: std::io::Error },
    /// A file has no credential that can be used.
    #[error("{}the file of {variable} has no credential that can be used: it needs {needs}", shown(path))]
    Credential { variable: &'static str, path: String, needs: &'static str },
    /// TLS cannot be set up.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The library refuses the settings. Its text is not shown, because it may have parts of them.
    #[error("cannot set up the connection to the store")]
    Client,
}

/// A path, for a sentence that goes on. A text that does not begin as one is not shown, because it may be the secret itself.
fn shown(path: &str) -> String {
    if path.starts_with('/') { format!("{path}, ") } else { String::new() }
}

/// All that is given about a bucket.
pub(super) struct BucketSettings<'a> {
    pub location: &'a Location,
    pub options: &'a BucketOptions,
    pub variables: Variables<'a>,
    pub metrics: &'a Metrics,
}

/// Rules for the variables that give credentials.
pub(super) struct Rules<K: 'static> {
    /// All of them, and what they are for the library.
    pub passed: &'static [(&'static str, K)],
    /// Variables of which the second one is needed beside the first one.
    pub pairs: &'static [(&'static str, &'static str)],
    /// Variables that are names or hosts, of letters, digits, dots, hyphens and colons.
    pub names: &'static [&'static str],
    pub addresses: &'static [&'static str],
    /// Variables that name files.
    pub files: &'static [&'static str],
    /// Variables that give credentials, together with those that they need.
    pub ways: &'static [&'static str],
    /// Variables that tools of the cloud read, and that are not read here.
    pub elsewhere: &'static [&'static str],
    /// The variables to set instead.
    pub instead: &'static str,
}

impl BucketSettings<'_> {
    /// The value of a variable that is set to something.
    pub fn set(&self, name: &str) -> Option<String> {
        let value = (self.variables)(name).map(|text| text.trim().to_owned());
        value.filter(|text| !text.is_empty())
    }

    /// The first setting that is there: the flag, or a variable.
    pub fn given(
        &self,
        flag: (&'static str, &Option<String>),
        variables: &[&'static str],
    ) -> Option<(&'static str, String)> {
        let of_flag = flag.1.clone().map(|text| (flag.0, text));
        of_flag.or_else(|| variables.iter().find_map(|name| self.set(name).map(|text| (*name, text))))
    }

    /// Refuses flags that say nothing about this kind of buckets.
    pub fn check_flags(&self) -> Result<(), BucketSettingError> {
        let BucketOptions { endpoint, region, account, user, addressing, .. } = self.options;
        let kind = self.location.kind();
        let (is_s3, is_azure) = (kind == Kind::S3, kind == Kind::Azure);
        let is_hdfs = matches!(kind, Kind::Hdfs { .. });
        let flags = [
            ("--store-endpoint", endpoint.is_some(), !is_hdfs, "s3://, az:// and gs://"),
            ("--store-region", region.is_some(), is_s3, "s3://"),
            ("--store-addressing", addressing.is_some(), is_s3, "s3://"),
            ("--store-account", account.is_some(), is_azure, "az://"),
            ("--store-user", user.is_some(), is_hdfs, "webhdfs:// and swebhdfs://"),
        ];
        let found = flags.into_iter().find(|(_, is_given, is_of_this, _)| *is_given && !is_of_this);
        found.map_or(Ok(()), |(flag, _, _, of)| Err(BucketSettingError::OfAnother { flag, of }))
    }

    /// Refuses credentials that are incomplete, or that are not where they are looked for.
    pub fn check_credentials<K>(&self, rules: &Rules<K>) -> Result<(), BucketSettingError> {
        let sent = rules.passed.iter().map(|(name, _)| name).filter(|name| !rules.files.contains(name));
        for variable in sent {
            if self.set(variable).is_some_and(|text| !text.bytes().all(|byte| byte.is_ascii_graphic())) {
                return Err(BucketSettingError::Text { variable });
            }
        }
        for variable in rules.names {
            let is_of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte);
            if self.set(variable).is_some_and(|text| !text.bytes().all(is_of_a_name)) {
                return Err(BucketSettingError::Text { variable });
            }
        }
        for setting in rules.addresses {
            let is_address = |text: &str| {
                Url::parse(text).is_ok_and(|url| ["http", "https"].contains(&url.scheme()) && url.has_host())
            };
            if self.set(setting).is_some_and(|text| !is_address(&text)) {
                return Err(BucketSettingError::Endpoint { setting });
            }
        }
        for (there, missing) in rules.pairs {
            if self.set(there).is_some() && self.set(missing).is_none() {
                return Err(BucketSettingError::Half { there, missing });
            }
        }
        for variable in rules.files {
            if let Some(path) = self.set(variable)
                && let Err(source) = std::fs::read(&path)
            {
                return Err(BucketSettingError::CredentialFile { variable, path, source });
            }
        }
        let has_credentials = rules.ways.iter().any(|name| self.set(name).is_some());
        match rules.elsewhere.iter().find(|name| self.set(name).is_some()) {
            Some(name) if !has_credentials => {
                Err(BucketSettingError::Elsewhere { place: (*name).to_owned(), instead: rules.instead })
            }
            _ => Ok(()),
        }
    }

    /// The variables that are set, as the library takes them.
    pub fn passed<K: Copy>(&self, rules: &Rules<K>) -> impl Iterator<Item = (K, String)> {
        rules.passed.iter().filter_map(|(name, key)| Some((*key, self.set(name)?)))
    }

    /// The address of a store that is not the usual one. `may_have` is a path that it may have.
    pub fn endpoint(
        &self,
        variables: &[&'static str],
        may_have: Option<&str>,
    ) -> Result<Option<Url>, BucketSettingError> {
        let Some((setting, text)) = self.given(("--store-endpoint", &self.options.endpoint), variables)
        else {
            return Ok(None);
        };
        let url = Url::parse(&text).map_err(|_| BucketSettingError::Endpoint { setting })?;
        let has_login = !url.username().is_empty() || url.password().is_some();
        let path = url.path().trim_matches('/');
        let is_plain = url.has_host()
            && (path.is_empty() || may_have == Some(path))
            && url.query().is_none()
            && url.fragment().is_none()
            && !has_login;
        match url.scheme() {
            "https" if is_plain => Ok(Some(url)),
            "http" if is_plain && self.options.allows_http => Ok(Some(url)),
            "http" if is_plain => Err(BucketSettingError::InClear { setting }),
            _ => Err(BucketSettingError::Endpoint { setting }),
        }
    }

    /// Makes the connections to the bucket at `url`.
    pub fn connector(&self, url: &str, codes: &'static Codes) -> Result<Connector, BucketSettingError> {
        Ok(Connector::new(url.to_owned(), codes, &self.options.trusted, self.metrics.clone())?)
    }

    /// The library's options for connections. It sets no limits of its own.
    pub fn client(&self) -> ClientOptions {
        ClientOptions::new().with_allow_http(self.options.allows_http).with_timeout_disabled()
    }
}

/// No call is repeated by the library: only we can confirm what it did.
pub(super) fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// Checks what is said of settings of a kind of stores.
#[cfg(test)]
pub(super) mod checks {
    use super::*;
    use crate::bucket::{BucketStore, Pool};

    fn refusal(at: &str, options: &BucketOptions, variables: &[(&str, &str)]) -> String {
        let set = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let location = Location::parse(at).unwrap();
        match BucketStore::new(location, options, &set, Pool::new(1 << 20), 1 << 20, &Metrics::new()) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    /// Flags, variables, and a part of the error that is expected; an empty text if there is none.
    pub type Case<'a> = (&'a BucketOptions, &'a [(&'a str, &'a str)], &'a str);

    pub fn check(at: &str, cases: &[Case<'_>]) {
        for (options, variables, expected) in cases {
            let said = refusal(at, options, variables);
            assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{expected}: {said}");
            assert!(!said.contains("SECRET@"), "{said}");
        }
    }
}
