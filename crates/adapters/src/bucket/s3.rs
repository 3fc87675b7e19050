//! Buckets of S3, and of stores that speak its protocol.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use reqwest::Url;

use super::Location;
use super::api::Objects;
use super::calls::Connected;
use super::settings::{Addressing, BucketSettingError, BucketSettings, Rules, no_retries};

/// The variables that say which credentials to use.
const RULES: Rules<AmazonS3ConfigKey> = Rules {
    passed: &[
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
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", AmazonS3ConfigKey::MetadataEndpoint),
    ],
    pairs: &[
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"),
        ("AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
    ],
    names: &[],
    addresses: &[
        "AWS_ENDPOINT_URL_STS",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    ],
    files: &["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"],
    ways: &[
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ],
    elsewhere: &["AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"],
    instead: "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
};

/// Sets up a bucket of S3. No request is made yet.
pub(super) fn connect(settings: &BucketSettings<'_>) -> Result<Connected, BucketSettingError> {
    settings.check_credentials(&RULES)?;
    let endpoint = settings.endpoint(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"], None)?;
    let region = region(settings, endpoint.is_some())?;
    let url = address(settings.location, settings.options.addressing, endpoint.as_ref(), &region);
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(settings.location.bucket())
        .with_region(region)
        .with_endpoint(&url)
        // The address has the bucket in it.
        .with_virtual_hosted_style_request(true)
        .with_disable_bulk_delete(true)
        .with_client_options(settings.client())
        .with_retry(no_retries())
        .with_http_connector(settings.connector(&url)?);
    for (key, value) in settings.passed(&RULES) {
        builder = builder.with_config(key, value);
    }
    let api = builder.build().map_err(|_| BucketSettingError::Client)?;
    Ok(Connected::to_objects(Arc::new(api), url, None))
}

/// The region of the bucket. Other stores than AWS take any one, as long as the signature names one.
fn region(settings: &BucketSettings<'_>, has_endpoint: bool) -> Result<String, BucketSettingError> {
    let variables = ["AWS_REGION", "AWS_DEFAULT_REGION"];
    let given = settings.given(("--store-region", &settings.options.region), &variables);
    let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match given {
        Some((_, text)) if !text.is_empty() && is_name(&text) => Ok(text),
        Some((setting, _)) => Err(BucketSettingError::Region { setting }),
        None if has_endpoint => Ok("us-east-1".to_owned()),
        None => Err(BucketSettingError::NoRegion),
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
impl Objects for AmazonS3 {
    async fn authenticate(&self) -> object_store::Result<()> {
        self.credentials().get_credential().await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
