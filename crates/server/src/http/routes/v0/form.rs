//! The two parts of an upload form, in either order. The bundle mostly comes before its owner, so it is stored before
//! the owner is known.

use axum::body::Bytes;

use crate::http::error::ApiError;
use crate::http::routes::LONGEST_SHOWN;
use cloakroom_core::client::Client;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::resource::{FileName, Holder};
use cloakroom_core::text::excerpt;
use cloakroom_kubespark::multipart::{BodyEvent, MultipartError, PartHeaders};
use cloakroom_kubespark::v0::{OWNER_PART, RESOURCES_PART, StagedResourcesOwner};
use cloakroom_storage::{NewUpload, Staging, Upload};

/// The most bytes of the owner's part. An owner is a few labels and needs far less.
const LARGEST_OWNER: usize = 64 << 10;

/// The parts of the form that have arrived.
pub(super) struct Form {
    staging: Staging,
    uploaded_by: String,
    holder: Option<Holder>,
    client: Client,
    upload: Option<Upload>,
    owner: Option<Vec<u8>>,
    part: Part,
    owner_is_whole: bool,
    is_done: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    None,
    Resources,
    Owner,
}

impl Form {
    pub(super) fn new(staging: Staging, uploaded_by: String, holder: Option<Holder>, client: Client) -> Self {
        Self {
            staging,
            uploaded_by,
            holder,
            client,
            upload: None,
            owner: None,
            part: Part::None,
            owner_is_whole: false,
            is_done: false,
        }
    }

    /// Processes the next event of the body.
    pub(super) async fn take(&mut self, event: BodyEvent) -> Result<(), ApiError> {
        match event {
            BodyEvent::PartBegin(headers) => self.begin(headers).await?,
            BodyEvent::Data(bytes) => self.data(bytes).await?,
            BodyEvent::PartEnd => {
                self.owner_is_whole |= self.part == Part::Owner;
                self.part = Part::None;
            }
            BodyEvent::Done => self.is_done = true,
        }
        Ok(())
    }

    /// Whether the closing boundary has come.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// How many bytes of the bundle were taken so far.
    pub(super) fn received_bytes(&self) -> u64 {
        self.upload.as_ref().map_or(0, Upload::taken_bytes)
    }

    /// Makes the bundle count for `holder`, whether the bundle has begun or not.
    pub(super) async fn pass_to(&mut self, holder: Holder) -> Result<(), ApiError> {
        if let Some(upload) = &mut self.upload {
            upload.pass_to(&holder).await?;
        }
        self.holder = Some(holder);
        Ok(())
    }

    /// Whether the bundle's part has come.
    pub(super) fn has_resources(&self) -> bool {
        self.upload.is_some()
    }

    /// Hands out the upload. The caller must finish or abandon it.
    pub(super) fn take_upload(&mut self) -> Option<Upload> {
        self.upload.take()
    }

    /// The owner; `None` before its part is complete.
    pub(super) fn owner(&self) -> Result<Option<StagedResourcesOwner>, ApiError> {
        let Some(json) = self.owner.as_ref().filter(|_| self.owner_is_whole) else { return Ok(None) };
        serde_json::from_slice(json).map(Some).map_err(|error| {
            ApiError::new(
                Code::InvalidOwner,
                format!(
                    "the part “{OWNER_PART}” cannot be read: {error}; write \
                     {{\"ownerNamespace\":\"NS\",\"ownerLabels\":{{\"KEY\":\"VALUE\"}},\"ownerType\":\"Pod\"}}"
                ),
            )
        })
    }

    async fn begin(&mut self, headers: PartHeaders) -> Result<(), ApiError> {
        match headers.name.as_str() {
            RESOURCES_PART if self.upload.is_some() => Err(twice(RESOURCES_PART)),
            RESOURCES_PART => {
                let new = NewUpload {
                    announced_bytes: headers.content_length,
                    file_name: headers.file_name.and_then(|name| FileName::parse(&name).ok()),
                    secret: None,
                    uploaded_by: Some(self.uploaded_by.clone()),
                    holder: self.holder.clone(),
                    client: self.client.clone(),
                };
                self.upload = Some(self.staging.begin_upload(new).await?);
                self.part = Part::Resources;
                Ok(())
            }
            OWNER_PART if self.owner.is_some() => Err(twice(OWNER_PART)),
            OWNER_PART => {
                self.owner = Some(Vec::new());
                self.part = Part::Owner;
                Ok(())
            }
            other => {
                let other = excerpt(other, LONGEST_SHOWN);
                Err(invalid(format!(
                    "the form has a part “{other}”: it takes “{RESOURCES_PART}” and “{OWNER_PART}”, one of each"
                )))
            }
        }
    }

    async fn data(&mut self, bytes: Bytes) -> Result<(), ApiError> {
        match (self.part, &mut self.upload, &mut self.owner) {
            (Part::Resources, Some(upload), _) => Ok(upload.write(bytes).await?),
            (Part::Owner, _, Some(owner)) if owner.len() + bytes.len() > LARGEST_OWNER => Err(ApiError::new(
                Code::InvalidOwner,
                format!(
                    "the part “{OWNER_PART}” has more than {LARGEST_OWNER} bytes: it is the owner, in JSON"
                ),
            )),
            (Part::Owner, _, Some(owner)) => {
                owner.extend_from_slice(&bytes);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The error for a form without a bundle.
pub(super) fn no_resources() -> ApiError {
    invalid(format!("the form has no part “{RESOURCES_PART}”: send the bundle in it"))
}

/// The error for a form without an owner.
pub(super) fn no_owner() -> ApiError {
    ApiError::new(
        Code::InvalidOwner,
        format!("the form has no part “{OWNER_PART}”: send the owner's namespace and labels in it, as JSON"),
    )
}

fn twice(part: &str) -> ApiError {
    invalid(format!("the form has two parts “{part}”: it takes one; put all files into one bundle"))
}

fn invalid(detail: String) -> ApiError {
    ApiError::new(Code::InvalidMultipart, detail)
}

impl From<MultipartError> for ApiError {
    fn from(error: MultipartError) -> Self {
        invalid(error.to_string())
    }
}
