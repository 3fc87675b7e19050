//! Buckets of S3, and of stores that speak its protocol.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cloakroom_core::metrics::Metrics;
use cloakroom_outbound::certificates::{TrustError, TrustedCertificates};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{ClientOptions, RetryConfig};
use reqwest::Url;

use super::calls::{Api, Bucket};
use super::connector::Connector;
use super::{BucketStore, Location, Pool};

/// How a bucket is named in addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    /// `https://BUCKET.HOST/KEY`
    Virtual,
    /// `https://HOST/BUCKET/KEY`
    Path,
}

/// What flags say of a bucket.
#[derive(Debug, Clone, Default)]
pub struct S3Options {
    /// The address of a store that is not that of AWS.
    pub endpoint: Option<String>,
    /// The region of the bucket.
    pub region: Option<String>,
    /// How the bucket is named in addresses; `None` for what is usual at the endpoint.
    pub addressing: Option<Addressing>,
    /// Whether the store may be spoken to without TLS.
    pub allows_http: bool,
    /// Certificates to trust beside the system's.
    pub trusted: TrustedCertificates,
}

/// Gives the value of a variable of the environment.
pub type S3Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Why there is no store with these settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// No setting names the region.
    #[error("the region of the bucket is not known: give --store-region, or set AWS_REGION")]
    NoRegion,
    /// The region is not a name.
    #[error("{setting} is not the name of a region, such as eu-central-1")]
    Region {
        /// The flag or variable that gives it.
        setting: &'static str,
    },
    /// The endpoint is not the address of a server.
    #[error("{setting} is not an address like https://HOST or https://HOST:PORT")]
    Endpoint {
        /// The flag or variable that gives it.
        setting: &'static str,
    },
    /// A variable has a text that cannot be sent.
    #[error("{variable} has characters that cannot be in it")]
    Text {
        /// The variable.
        variable: &'static str,
    },
    /// The endpoint is one without TLS.
    #[error(
        "{setting} is an address without TLS, so that all on the way can read the bundles, and use the requests again for \
         minutes: give an https address, or --store-allow-http"
    )]
    InClear {
        /// The flag or variable that gives it.
        setting: &'static str,
    },
    /// A variable is there and another one is not that it needs.
    #[error("{there} is set and {missing} is not: it needs both")]
    Half {
        /// The variable that is set.
        there: &'static str,
        /// The variable that is not.
        missing: &'static str,
    },
    /// The credentials are in a profile.
    #[error(
        "{variable} names a profile, and profiles are not read: give the credentials in AWS_ACCESS_KEY_ID and \
         AWS_SECRET_ACCESS_KEY, or by the service account of the pod"
    )]
    Profile {
        /// The variable that names it.
        variable: &'static str,
    },
    /// A file with a token cannot be read.
    #[error("cannot read {path}, the file of {variable}")]
    TokenFile {
        /// The variable that names it.
        variable: &'static str,
        /// The file.
        path: String,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// TLS cannot be set up.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The library refuses the settings. Its text is not shown, because it may have parts of them.
    #[error("cannot set up the connection to the store")]
    Client,
}

/// The variables that say which credentials to use, and what they are for the library.
const CREDENTIALS: [(&str, AmazonS3ConfigKey); 10] = [
    ("AWS_ACCESS_KEY_ID", AmazonS3ConfigKey::AccessKeyId),
    ("AWS_SECRET_ACCESS_KEY", AmazonS3ConfigKey::SecretAccessKey),
    ("AWS_SESSION_TOKEN", AmazonS3ConfigKey::Token),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", AmazonS3ConfigKey::WebIdentityTokenFile),
    ("AWS_ROLE_ARN", AmazonS3ConfigKey::RoleArn),
    ("AWS_ROLE_SESSION_NAME", AmazonS3ConfigKey::RoleSessionName),
    ("AWS_ENDPOINT_URL_STS", AmazonS3ConfigKey::StsEndpoint),
    ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", AmazonS3ConfigKey::ContainerCredentialsRelativeUri),
    ("AWS_CONTAINER_CREDENTIALS_FULL_URI", AmazonS3ConfigKey::ContainerCredentialsFullUri),
    ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", AmazonS3ConfigKey::ContainerAuthorizationTokenFile),
];

/// The service of EC2 that gives out credentials, if it has another address.
const METADATA: (&str, AmazonS3ConfigKey) =
    ("AWS_EC2_METADATA_SERVICE_ENDPOINT", AmazonS3ConfigKey::MetadataEndpoint);

/// Variables of which the second one is needed beside the first one.
const PAIRS: [(&str, &str); 5] = [
    ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"),
    ("AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID"),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"),
    ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
];

/// Variables that give credentials, together with those that they need.
const WAYS: [&str; 4] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
];

/// Variables that are addresses.
const ADDRESSES: [&str; 3] =
    ["AWS_ENDPOINT_URL_STS", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_EC2_METADATA_SERVICE_ENDPOINT"];

/// Variables that name files with tokens.
const TOKEN_FILES: [&str; 2] = ["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"];

/// Variables that name a profile, or a file with profiles.
const PROFILES: [&str; 3] = ["AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"];

impl BucketStore {
    /// A store in a bucket of S3. No request is made yet. `largest` is how many bytes a blob may have. Each request is counted in
    /// `metrics`.
    pub fn in_s3(
        location: Location,
        options: &S3Options,
        variables: S3Variables<'_>,
        pool: Pool,
        largest: u64,
        metrics: &Metrics,
    ) -> Result<Self, SettingError> {
        let set =
            |name: &str| variables(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        check_credentials(&set)?;
        let endpoint = endpoint(options, &set)?;
        let region = region(options, endpoint.is_some(), &set)?;
        let url = address(&location, options.addressing, endpoint.as_ref(), &region);
        let is_in_clear = url.starts_with("http:");
        let connector = Connector::new(url.clone(), &options.trusted, metrics.clone())?;
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(location.bucket())
            .with_region(region)
            .with_endpoint(url)
            // The address has the bucket in it.
            .with_virtual_hosted_style_request(true)
            .with_disable_bulk_delete(true)
            .with_client_options(
                ClientOptions::new().with_allow_http(options.allows_http).with_timeout_disabled(),
            )
            .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
            .with_http_connector(connector);
        for (name, key) in CREDENTIALS.into_iter().chain([METADATA]) {
            if let Some(value) = set(name) {
                builder = builder.with_config(key, value);
            }
        }
        let api = builder.build().map_err(|_| SettingError::Client)?;
        Ok(Self(Arc::new(Bucket {
            api: Arc::new(api),
            location,
            pool,
            largest,
            is_in_clear,
            succeeded_at: Mutex::default(),
        })))
    }
}

/// Refuses credentials that are incomplete, or that are not where the library reads them.
fn check_credentials(set: &impl Fn(&str) -> Option<String>) -> Result<(), SettingError> {
    for (variable, _) in CREDENTIALS {
        if set(variable).is_some_and(|text| !text.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(SettingError::Text { variable });
        }
    }
    for setting in ADDRESSES {
        if set(setting).is_some_and(|text| Url::parse(&text).is_err()) {
            return Err(SettingError::Endpoint { setting });
        }
    }
    for (there, missing) in PAIRS {
        if set(there).is_some() && set(missing).is_none() {
            return Err(SettingError::Half { there, missing });
        }
    }
    for variable in TOKEN_FILES {
        if let Some(path) = set(variable)
            && let Err(source) = std::fs::read(&path)
        {
            return Err(SettingError::TokenFile { variable, path, source });
        }
    }
    let has_credentials = WAYS.iter().any(|name| set(name).is_some());
    match PROFILES.into_iter().find(|name| set(name).is_some()) {
        Some(variable) if !has_credentials => Err(SettingError::Profile { variable }),
        _ => Ok(()),
    }
}

/// The address of a store that is not AWS.
fn endpoint(options: &S3Options, set: &impl Fn(&str) -> Option<String>) -> Result<Option<Url>, SettingError> {
    let of_variable = |name| set(name).map(|text| (name, text));
    let given = options.endpoint.clone().map(|text| ("--store-endpoint", text));
    let given =
        given.or_else(|| of_variable("AWS_ENDPOINT_URL_S3")).or_else(|| of_variable("AWS_ENDPOINT_URL"));
    let Some((setting, text)) = given else { return Ok(None) };
    let url = Url::parse(&text).map_err(|_| SettingError::Endpoint { setting })?;
    let has_login = !url.username().is_empty() || url.password().is_some();
    let is_plain = url.has_host() && url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    match url.scheme() {
        "https" if is_plain && !has_login => Ok(Some(url)),
        "http" if is_plain && !has_login && options.allows_http => Ok(Some(url)),
        "http" if is_plain && !has_login => Err(SettingError::InClear { setting }),
        _ => Err(SettingError::Endpoint { setting }),
    }
}

/// The region of the bucket. Other stores than AWS take any one, as long as the signature names one.
fn region(
    options: &S3Options,
    has_endpoint: bool,
    set: &impl Fn(&str) -> Option<String>,
) -> Result<String, SettingError> {
    let of_variable = |name| set(name).map(|text| (name, text));
    let given = options.region.clone().map(|text| ("--store-region", text));
    let given = given.or_else(|| of_variable("AWS_REGION")).or_else(|| of_variable("AWS_DEFAULT_REGION"));
    let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match given {
        Some((_, text)) if !text.is_empty() && is_name(&text) => Ok(text),
        Some((setting, _)) => Err(SettingError::Region { setting }),
        None if has_endpoint => Ok("us-east-1".to_owned()),
        None => Err(SettingError::NoRegion),
    }
}

/// The address of the bucket.
fn address(
    location: &Location,
    addressing: Option<Addressing>,
    endpoint: Option<&Url>,
    region: &str,
) -> String {
    let bucket = location.bucket();
    // The certificate of AWS is for one label before its own name.
    let is_usual = endpoint.is_none() && !bucket.contains('.');
    let usual = if is_usual { Addressing::Virtual } else { Addressing::Path };
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    let (scheme, authority) = match endpoint {
        Some(url) => (url.scheme(), url.authority().to_owned()),
        None => ("https", format!("s3.{region}.{domain}")),
    };
    match addressing.unwrap_or(usual) {
        Addressing::Virtual => format!("{scheme}://{bucket}.{authority}"),
        Addressing::Path => format!("{scheme}://{authority}/{bucket}"),
    }
}

#[async_trait]
impl Api for AmazonS3 {
    async fn authenticate(&self) -> object_store::Result<()> {
        self.credentials().get_credential().await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(options: &S3Options, variables: &[(&str, &str)]) -> String {
        let set = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let location = Location::parse("s3://team/prefix").unwrap();
        match BucketStore::in_s3(location, options, &set, Pool::new(1 << 20), 1 << 20, &Metrics::new()) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    const KEY: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "AKIA"), ("AWS_SECRET_ACCESS_KEY", "SECRET")];

    #[test]
    fn settings_that_cannot_work_are_refused_without_their_secrets() {
        let at = |endpoint: &str| S3Options { endpoint: Some(endpoint.to_owned()), ..S3Options::default() };
        let here = at("https://localhost:9000");
        let region = S3Options { region: Some("eu central".to_owned()), ..S3Options::default() };
        for (options, variables, expected) in [
            (&here, &KEY[..], ""),
            (&S3Options::default(), &KEY[..], "the region of the bucket is not known"),
            (&region, &KEY[..], "--store-region is not the name of a region"),
            (&at("https://u:SECRET@localhost"), &KEY[..], "--store-endpoint is not an address"),
            (&at("https://localhost/path"), &KEY[..], "--store-endpoint is not an address"),
            (&at("localhost:9000"), &KEY[..], "--store-endpoint is not an address"),
            (&at("https://localhost:99999"), &KEY[..], "--store-endpoint is not an address"),
            (&at("http://localhost"), &KEY[..], "--store-allow-http"),
            (&here, &KEY[..1], "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not"),
            (&here, &KEY[1..], "AWS_SECRET_ACCESS_KEY is set and AWS_ACCESS_KEY_ID is not"),
            (&here, &[("AWS_PROFILE", "team"), ("AWS_ROLE_SESSION_NAME", "a")], "profiles are not read"),
            (
                &here,
                &[("AWS_ACCESS_KEY_ID", "…"), ("AWS_SECRET_ACCESS_KEY", "SECRET")],
                "AWS_ACCESS_KEY_ID has characters",
            ),
            (
                &here,
                &[("AWS_WEB_IDENTITY_TOKEN_FILE", "/nonexistent"), ("AWS_ROLE_ARN", "arn:aws:iam::1:role/a")],
                "cannot read /nonexistent, the file of AWS_WEB_IDENTITY_TOKEN_FILE",
            ),
            (
                &here,
                &[("AWS_EC2_METADATA_SERVICE_ENDPOINT", "nowhere")],
                "AWS_EC2_METADATA_SERVICE_ENDPOINT is not",
            ),
        ] {
            let said = refusal(options, variables);
            assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{expected}: {said}");
            assert!(!said.contains("SECRET@"), "{said}");
        }
    }

    #[test]
    fn a_bucket_is_named_as_is_usual_where_it_is() {
        let url = Url::parse("http://127.0.0.1:9000").unwrap();
        for (bucket, addressing, endpoint, region, expected) in [
            ("team", None, None, "eu-central-1", "https://team.s3.eu-central-1.amazonaws.com"),
            ("my.team", None, None, "eu-central-1", "https://s3.eu-central-1.amazonaws.com/my.team"),
            ("team", None, None, "cn-north-1", "https://team.s3.cn-north-1.amazonaws.com.cn"),
            ("team", Some(Addressing::Path), None, "us-east-1", "https://s3.us-east-1.amazonaws.com/team"),
            ("team", None, Some(&url), "us-east-1", "http://127.0.0.1:9000/team"),
            ("team", Some(Addressing::Virtual), Some(&url), "us-east-1", "http://team.127.0.0.1:9000"),
        ] {
            let location = Location::parse(&format!("s3://{bucket}")).unwrap();
            assert_eq!(address(&location, addressing, endpoint, region), expected);
        }
    }
}
