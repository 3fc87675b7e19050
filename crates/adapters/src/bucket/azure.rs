//! Containers of Azure Blob Storage.

use std::sync::Arc;

use async_trait::async_trait;
use hyper::header::{CONTENT_LENGTH, HeaderValue};
use hyper::http::Request;
use object_store::azure::{
    AzureAccessKey, AzureAuthorizer, AzureConfigKey, MicrosoftAzure, MicrosoftAzureBuilder,
};
use object_store::client::{HttpClient, HttpConnector as _, HttpRequestBody};
use object_store::path::Path;
use reqwest::Url;

use super::backend::Backend;
use super::objects::{Cloud, Deletions, Library, Objects};
use super::refusal::{ARCHIVED, CLOSED, Codes, Meaning};
use super::settings::{BucketSettingError, BucketSettings, Rules, no_retries};

const KEY: &str = "AZURE_STORAGE_KEY";

const SAS: &str = "AZURE_STORAGE_SAS_TOKEN";

/// Without anything that gives credentials.
const NONE: Rules<AzureConfigKey> = Rules {
    passed: &[],
    pairs: &[],
    names: &[],
    addresses: &[],
    files: &[],
    ways: &[],
    elsewhere: &[],
    instead: "AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN",
};

/// A key is taken before all else, then a signature: a pod may have the variables of an identity without being asked. The names
/// are those of Azure's own command line.
const BY_KEY: Rules<AzureConfigKey> = Rules { passed: &[(KEY, AzureConfigKey::AccessKey)], ..NONE };
const BY_SAS: Rules<AzureConfigKey> = Rules { passed: &[(SAS, AzureConfigKey::SasKey)], ..NONE };

/// The variables of the identity of a pod, a machine or an application.
const BY_IDENTITY: Rules<AzureConfigKey> = Rules {
    passed: &[
        ("AZURE_CLIENT_ID", AzureConfigKey::ClientId),
        ("AZURE_TENANT_ID", AzureConfigKey::AuthorityId),
        ("AZURE_CLIENT_SECRET", AzureConfigKey::ClientSecret),
        ("AZURE_FEDERATED_TOKEN_FILE", AzureConfigKey::FederatedTokenFile),
        ("AZURE_AUTHORITY_HOST", AzureConfigKey::AuthorityHost),
    ],
    pairs: &[
        ("AZURE_CLIENT_SECRET", "AZURE_CLIENT_ID"),
        ("AZURE_CLIENT_SECRET", "AZURE_TENANT_ID"),
        ("AZURE_FEDERATED_TOKEN_FILE", "AZURE_CLIENT_ID"),
        ("AZURE_FEDERATED_TOKEN_FILE", "AZURE_TENANT_ID"),
    ],
    names: &["AZURE_CLIENT_ID", "AZURE_TENANT_ID"],
    addresses: &["AZURE_AUTHORITY_HOST"],
    files: &["AZURE_FEDERATED_TOKEN_FILE"],
    ways: &["AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE"],
    elsewhere: &["AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_ACCOUNT_KEY"],
    ..NONE
};

/// How Azure names its errors.
pub(super) const CODES: Codes = Codes {
    meanings: &[
        (Meaning::Throttling, &["ServerBusy"]),
        (Meaning::Denying, &["InvalidAuthenticationInfo"]),
        (
            Meaning::OfTheBucket,
            &["AccountBeingCreated", "ContainerBeingDeleted", "ContainerDisabled", "ContainerNotFound"],
        ),
        (Meaning::AbsentObject, &["BlobNotFound"]),
        (
            Meaning::Lasting,
            &["BlobAlreadyExists", "BlobArchived", "BlobImmutableDueToPolicy", "SnapshotsPresent"],
        ),
        (Meaning::OfTheObject, &["BlobArchived", "BlobImmutableDueToPolicy", "SnapshotsPresent"]),
    ],
    advice: &[
        (
            &["AuthenticationFailed", "InvalidAuthenticationInfo"],
            "the key, the signature or the token is not one of the account",
        ),
        (&["AccountIsDisabled"], CLOSED),
        (&["BlobArchived"], ARCHIVED),
    ],
};

/// What differs from other clouds.
const CLOUD: Cloud = Cloud {
    rights: ["blobs/write", "blobs/read", "blobs/read", "blobs/write", "blobs/delete"],
    always_has_versions: false,
    takes_no_parts: true,
};

/// Sets up a container. No request is made yet.
pub(super) fn connect(
    settings: &BucketSettings<'_>,
) -> Result<(Arc<dyn Backend>, String), BucketSettingError> {
    let (key, sas) = (settings.set(KEY), settings.set(SAS));
    let rules = if key.is_some() {
        BY_KEY
    } else if sas.is_some() {
        BY_SAS
    } else {
        BY_IDENTITY
    };
    settings.check_credentials(&rules)?;
    if key.is_some_and(|key| AzureAccessKey::try_new(&key).is_err()) {
        return Err(BucketSettingError::Text { variable: KEY });
    }
    let account = account(settings)?;
    // An emulator has the account in the path.
    let endpoint = settings.endpoint(&[], Some(&account))?;
    let service = endpoint.map_or_else(
        || format!("https://{account}.blob.core.windows.net"),
        |url| url.as_str().trim_end_matches('/').to_owned(),
    );
    let container = settings.location.bucket();
    let url = format!("{service}/{container}");
    let mut builder = MicrosoftAzureBuilder::new()
        .with_account(&account)
        .with_container_name(container)
        .with_endpoint(service)
        .with_client_options(settings.client())
        .with_retry(no_retries())
        .with_http_connector(settings.connector(&url, &CODES)?);
    for (key, value) in settings.passed(&rules) {
        let is_host = key == AzureConfigKey::AuthorityHost;
        // That of a pod in AKS ends with a slash, to which the library would add another.
        builder = builder.with_config(key, if is_host { value.trim_end_matches('/') } else { &value });
    }
    let unusable = |_| {
        if sas.is_some() { BucketSettingError::Text { variable: SAS } } else { BucketSettingError::Client }
    };
    let api = Arc::new(builder.build().map_err(unusable)?);
    let client = settings
        .connector(&url, &CODES)?
        .connect(&settings.client())
        .map_err(|_| BucketSettingError::Client)?;
    let container = Url::parse(&url).map_err(|_| BucketSettingError::Client)?;
    let deletions = OneByOne { api: Arc::clone(&api), client, container, account };
    Ok((Objects::new(api, &CLOUD, Some(Box::new(deletions))), url))
}

/// The storage account.
fn account(settings: &BucketSettings<'_>) -> Result<String, BucketSettingError> {
    let given = settings.given(("--store-account", &settings.options.account), &["AZURE_STORAGE_ACCOUNT"]);
    let (setting, name) = given.ok_or(BucketSettingError::NoAccount)?;
    let is_name = (3..=24).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if is_name { Ok(name) } else { Err(BucketSettingError::Account { setting }) }
}

#[async_trait]
impl Library for MicrosoftAzure {
    async fn authenticate(&self) -> object_store::Result<()> {
        self.credentials().get_credential().await.map(drop)
    }
}

/// Deletes by a request for each object. The library makes a batch of requests instead, whose answer hides how each one ended.
struct OneByOne {
    api: Arc<MicrosoftAzure>,
    client: HttpClient,
    container: Url,
    account: String,
}

#[async_trait]
impl Deletions for OneByOne {
    async fn delete(&self, path: &Path) -> object_store::Result<()> {
        let mut url = self.container.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(path.parts());
        }
        let mut request = Request::delete(url.as_str()).body(HttpRequestBody::empty()).map_err(generic)?;
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        let credential = self.api.credentials().get_credential().await?;
        AzureAuthorizer::new(&credential, &self.account).try_authorize(&mut request)?;
        self.client.execute(request).await.map(drop).map_err(generic)
    }
}

fn generic(source: impl std::error::Error + Send + Sync + 'static) -> object_store::Error {
    object_store::Error::Generic { store: "container", source: source.into() }
}

#[cfg(test)]
mod tests {
    use super::super::settings::BucketOptions;
    use super::super::settings::checks::check;

    #[test]
    fn settings_of_azure_are_checked() {
        let named = |name: &str| BucketOptions { account: Some(name.to_owned()), ..BucketOptions::default() };
        let (account, no_name, none) = (named("example"), named("An.Account"), BucketOptions::default());
        let file = tempfile::NamedTempFile::new().unwrap();
        let identity =
            [("AZURE_CLIENT_ID", "a"), ("AZURE_FEDERATED_TOKEN_FILE", file.path().to_str().unwrap())];
        check(
            "az://team/a",
            &[
                (&account, &[("AZURE_STORAGE_KEY", "a2V5")][..], ""),
                (&account, &[("AZURE_STORAGE_KEY", "a2V5"), ("AZURE_FEDERATED_TOKEN_FILE", "/")], ""),
                (&account, &[("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=a")], ""),
                (&account, &[], ""),
                (&none, &[], "the storage account of the container is not known"),
                (&no_name, &[], "--store-account is not the name"),
                (&account, &[("AZURE_STORAGE_KEY", "SECRET@")], "AZURE_STORAGE_KEY has characters"),
                (&account, &[("AZURE_STORAGE_SAS_TOKEN", "SECRET@")], "AZURE_STORAGE_SAS_TOKEN has"),
                (&account, &[("AZURE_STORAGE_CONNECTION_STRING", "SECRET@")], "is not read: give"),
                (&account, &[("AZURE_TENANT_ID", "<SECRET@>")], "AZURE_TENANT_ID has characters"),
                (&account, &identity, "is set and AZURE_TENANT_ID is not"),
            ],
        );
    }
}
