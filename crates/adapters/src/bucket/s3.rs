//! Buckets of S3, and of stores that speak its protocol.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use reqwest::Url;

use super::backend::Backend;
use super::objects::{Cloud, Library, Objects};
use super::refusal::{ARCHIVED, CLOSED, Codes, Meaning, NO_CHECKSUM};
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

/// How S3 and stores like it name their errors.
pub(super) const CODES: Codes = Codes {
    meanings: &[
        (Meaning::Throttling, &["RequestLimitExceeded", "SlowDown", "TooManyRequests"]),
        (
            Meaning::Unfinished,
            &["BadDigest", "IncompleteBody", "RequestTimeout", "XAmzContentSHA256Mismatch"],
        ),
        (Meaning::Denying, &["ExpiredToken", "InvalidAccessKeyId", "InvalidToken"]),
        (
            Meaning::OfTheBucket,
            &["AuthorizationHeaderMalformed", "NoSuchBucket", "PermanentRedirect", "TemporaryRedirect"],
        ),
        (Meaning::AbsentObject, &["NoSuchKey"]),
        (Meaning::OfTheObject, &["InvalidObjectState"]),
        (Meaning::Full, &["QuotaExceeded", "XMinioStorageFull"]),
    ],
    advice: &[
        (&["InvalidAccessKeyId", "XAdminUserNotFound"], "the store does not know the access key"),
        (&["SignatureDoesNotMatch"], "the secret key does not belong to the access key"),
        (&["ExpiredToken"], "the temporary credentials have expired"),
        (
            &["InvalidToken", "TokenRefreshRequired"],
            "the session token is damaged, or belongs to another key (AWS_SESSION_TOKEN)",
        ),
        (&["AccountProblem", "AllAccessDisabled", "NotSignedUp"], CLOSED),
        (&["AuthorizationHeaderMalformed"], "is it the right region? (--store-region)"),
        (
            &["PermanentRedirect", "TemporaryRedirect"],
            "the bucket is at another address (--store-endpoint, --store-region)",
        ),
        (&["RequestTimeTooSkewed"], "the clock here and that of the store differ: one of them is wrong"),
        (
            &["SecondLevelDomainForbidden"],
            "the store wants the bucket as a part of the host name (--store-addressing virtual)",
        ),
        (&["InvalidObjectState"], ARCHIVED),
        (&["BadDigest", "XAmzContentSHA256Mismatch"], "the bytes were changed on their way"),
        (&["MissingContentMD5"], NO_CHECKSUM),
    ],
};

/// What differs from other clouds.
const CLOUD: Cloud = Cloud {
    rights: [
        "s3:PutObject",
        "s3:GetObject",
        "s3:ListBucket",
        "s3:PutObject and s3:AbortMultipartUpload",
        "s3:DeleteObject",
    ],
    always_has_versions: false,
    takes_no_parts: false,
};

/// Sets up a bucket of S3. No request is made yet.
pub(super) fn connect(
    settings: &BucketSettings<'_>,
) -> Result<(Arc<dyn Backend>, String), BucketSettingError> {
    settings.check_credentials(&RULES)?;
    let endpoint = settings.endpoint(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"], None)?;
    let region = region(settings, endpoint.is_some())?;
    let url = address(settings.location.bucket(), settings.options.addressing, endpoint.as_ref(), &region);
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(settings.location.bucket())
        .with_region(region)
        .with_endpoint(&url)
        // The address has the bucket in it.
        .with_virtual_hosted_style_request(true)
        .with_disable_bulk_delete(true)
        .with_client_options(settings.client())
        .with_retry(no_retries())
        .with_http_connector(settings.connector(&url, &CODES)?);
    for (key, value) in settings.passed(&RULES) {
        builder = builder.with_config(key, value);
    }
    let api = builder.build().map_err(|_| BucketSettingError::Client)?;
    Ok((Objects::new(Arc::new(api), &CLOUD, None), url))
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
fn address(bucket: &str, addressing: Option<Addressing>, endpoint: Option<&Url>, region: &str) -> String {
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
impl Library for AmazonS3 {
    async fn authenticate(&self) -> object_store::Result<()> {
        self.credentials().get_credential().await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::BucketOptions;
    use super::super::settings::checks::check;
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
            assert_eq!(address(bucket, addressing, endpoint, region), expected);
        }
    }

    const KEY: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "AKIA"), ("AWS_SECRET_ACCESS_KEY", "SECRET")];

    #[test]
    fn settings_that_cannot_work_are_refused_without_their_secrets() {
        let at = |endpoint: &str| BucketOptions {
            endpoint: Some(endpoint.to_owned()),
            ..BucketOptions::default()
        };
        let here = at("https://localhost:9000");
        let user = BucketOptions { user: Some("ann".to_owned()), ..BucketOptions::default() };
        let region = BucketOptions { region: Some("eu central".to_owned()), ..BucketOptions::default() };
        check(
            "s3://team/prefix",
            &[
                (&here, &KEY[..], ""),
                (&user, &KEY[..], "--store-user is for webhdfs:// and swebhdfs:// only"),
                (&BucketOptions::default(), &KEY[..], "the region of the bucket is not known"),
                (&region, &KEY[..], "--store-region is not the name of a region"),
                (&at("https://u:SECRET@localhost"), &KEY[..], "--store-endpoint is not an address"),
                (&at("https://localhost/path"), &KEY[..], "--store-endpoint is not an address"),
                (&at("localhost:9000"), &KEY[..], "--store-endpoint is not an address"),
                (&at("https://localhost:99999"), &KEY[..], "--store-endpoint is not an address"),
                (&at("http://localhost"), &KEY[..], "--store-allow-http"),
                (&here, &KEY[..1], "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not"),
                (&here, &KEY[1..], "AWS_SECRET_ACCESS_KEY is set and AWS_ACCESS_KEY_ID is not"),
                (
                    &here,
                    &[("AWS_PROFILE", "team"), ("AWS_ROLE_SESSION_NAME", "a")],
                    "AWS_PROFILE is not read",
                ),
                (
                    &here,
                    &[("AWS_ACCESS_KEY_ID", "…"), ("AWS_SECRET_ACCESS_KEY", "SECRET")],
                    "AWS_ACCESS_KEY_ID has characters",
                ),
                (
                    &here,
                    &[
                        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/nonexistent"),
                        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/a"),
                    ],
                    "cannot read /nonexistent, the file of AWS_WEB_IDENTITY_TOKEN_FILE",
                ),
                (
                    &here,
                    &[("AWS_EC2_METADATA_SERVICE_ENDPOINT", "nowhere")],
                    "AWS_EC2_METADATA_SERVICE_ENDPOINT is not",
                ),
                (
                    &here,
                    &[("AWS_WEB_IDENTITY_TOKEN_FILE", "eySECRET@"), ("AWS_ROLE_ARN", "a")],
                    "cannot read the file of",
                ),
            ],
        );
    }
}
