//! Buckets of Google Cloud Storage.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder, GoogleConfigKey};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::backend::Backend;
use super::objects::{Cloud, Library, Objects};
// The library speaks Google's form of the protocol of S3.
use super::s3::CODES;
use super::settings::{BucketSettingError, BucketSettings, Rules, no_retries};

const CREDENTIALS: &str = "GOOGLE_APPLICATION_CREDENTIALS";

/// The types of files with credentials that the library reads.
const TYPES: [&str; 2] = ["service_account", "authorized_user"];
const NEEDS: &str = "the type service_account or authorized_user, and all fields of it";

/// The variable that says which credentials to use.
const RULES: Rules<GoogleConfigKey> = Rules {
    passed: &[(CREDENTIALS, GoogleConfigKey::ApplicationCredentials)],
    pairs: &[],
    // The library reads them by itself.
    names: &["GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"],
    addresses: &[],
    files: &[CREDENTIALS],
    ways: &[CREDENTIALS],
    elsewhere: &["GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY", "GOOGLE_CREDENTIALS"],
    instead: "the file of GOOGLE_APPLICATION_CREDENTIALS",
};

/// What differs from other clouds.
const CLOUD: Cloud = Cloud {
    rights: [
        "storage.objects.create",
        "storage.objects.get",
        "storage.objects.list",
        "storage.multipartUploads.create and .abort",
        "storage.objects.delete",
    ],
    always_has_versions: true,
    takes_no_parts: false,
};

/// Sets up a bucket. No request is made yet.
pub(super) fn connect(
    settings: &BucketSettings<'_>,
) -> Result<(Arc<dyn Backend>, String), BucketSettingError> {
    settings.check_credentials(&RULES)?;
    check_file(settings)?;
    let endpoint = settings.endpoint(&[], None)?;
    let service = endpoint.map_or_else(
        || "https://storage.googleapis.com".to_owned(),
        |url| url.as_str().trim_end_matches('/').to_owned(),
    );
    // As the library writes it.
    let url = format!("{service}/{}", utf8_percent_encode(settings.location.bucket(), NON_ALPHANUMERIC));
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(settings.location.bucket())
        .with_base_url(&service)
        .with_client_options(settings.client())
        .with_retry(no_retries())
        .with_http_connector(settings.connector(&url, &CODES)?);
    for (key, value) in settings.passed(&RULES) {
        builder = builder.with_config(key, value);
    }
    let unusable = |path| BucketSettingError::Credential { variable: CREDENTIALS, path, needs: NEEDS };
    let api = builder
        .build()
        .map_err(|_| settings.set(CREDENTIALS).map_or(BucketSettingError::Client, unusable))?;
    Ok((Objects::new(Arc::new(api), &CLOUD, None), url))
}

/// Refuses a file that the library cannot read, and one that it would read without being told to.
fn check_file(settings: &BucketSettings<'_>) -> Result<(), BucketSettingError> {
    let Some(path) = settings.set(CREDENTIALS) else {
        let home = settings.set("HOME").unwrap_or_default();
        let unasked = Path::new(&home).join(".config/gcloud/application_default_credentials.json");
        if home.is_empty() || !unasked.exists() {
            return Ok(());
        }
        return Err(BucketSettingError::Elsewhere {
            place: unasked.display().to_string(),
            instead: RULES.instead,
        });
    };
    let file = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let kind = file.as_ref().and_then(|file| file["type"].as_str());
    if kind.is_some_and(|kind| TYPES.contains(&kind)) {
        return Ok(());
    }
    Err(BucketSettingError::Credential { variable: CREDENTIALS, path, needs: NEEDS })
}

#[async_trait]
impl Library for GoogleCloudStorage {
    async fn authenticate(&self) -> object_store::Result<()> {
        self.credentials().get_credential().await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::BucketOptions;
    use super::super::settings::checks::check;

    #[test]
    fn settings_of_google_are_checked() {
        let account = BucketOptions { account: Some("example".to_owned()), ..BucketOptions::default() };
        let none = BucketOptions::default();
        let folder = tempfile::tempdir().unwrap();
        let gcloud = folder.path().join(".config/gcloud");
        std::fs::create_dir_all(&gcloud).unwrap();
        let path = gcloud.join("application_default_credentials.json");
        std::fs::write(&path, r#"{"type":"external_account","key":"SECRET@"}"#).unwrap();
        let path = path.to_str().unwrap();
        check(
            "gs://team/a",
            &[
                (&account, &[][..], "--store-account is for az:// only"),
                (&none, &[][..], ""),
                (&none, &[("GOOGLE_APPLICATION_CREDENTIALS", path)], "it needs the type service_account"),
                (&none, &[("GOOGLE_APPLICATION_CREDENTIALS", "eySECRET@")], "cannot read the file of"),
                (&none, &[("HOME", folder.path().to_str().unwrap())], "credentials.json is not read"),
                (&none, &[("GCE_METADATA_HOST", "<SECRET@>")], "GCE_METADATA_HOST has characters"),
            ],
        );
    }
}
