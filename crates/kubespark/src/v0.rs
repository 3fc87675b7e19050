//! kubespark's protocol (2017), as its clients speak it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The path at which bundles are staged, with and without a trailing slash.
pub const RESOURCES: &str = "/api/v0/resources";
/// The name of the part with the bundle.
pub const RESOURCES_PART: &str = "resources";
/// The name of the part with the owner, in JSON.
pub const OWNER_PART: &str = "resourcesOwner";

/// The `resourcesOwner` part.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StagedResourcesOwner {
    /// The owner's namespace.
    pub owner_namespace: String,
    /// The labels that all owning objects carry.
    pub owner_labels: BTreeMap<String, String>,
    /// The owner's kind. kubespark knows only `Pod`.
    #[serde(default = "pod")]
    pub owner_type: String,
}

/// The form of an upload, as the OpenAPI document describes it. The server reads the form piece by piece, and never
/// holds all of it.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct UploadForm {
    /// The bundle.
    #[schema(value_type = String, format = Binary)]
    pub resources: Vec<u8>,
    /// The objects that the bundle lives for, in JSON.
    pub resources_owner: StagedResourcesOwner,
}

fn pod() -> String {
    cloakroom_core::resource::POD.to_owned()
}

/// The ticket, in the form of v0.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubmittedResourceIdAndSecret {
    /// Names the resource.
    pub resource_id: String,
    /// The secret that downloads need. Not shown again.
    pub resource_secret: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_owner_with_any_texts_reads_back_and_is_a_pod_without_a_type(
            namespace in ".{0,12}",
            labels in prop::collection::btree_map(".{0,8}", ".{0,8}", 0..5),
            kind in ".{0,8}",
        ) {
            let owner = StagedResourcesOwner {
                owner_namespace: namespace.clone(),
                owner_labels: labels.clone(),
                owner_type: kind.clone(),
            };
            let mut json = serde_json::to_value(&owner).unwrap();
            let read: StagedResourcesOwner = serde_json::from_value(json.clone()).unwrap();
            prop_assert_eq!((read.owner_namespace, read.owner_labels, read.owner_type), (namespace, labels, kind));
            json.as_object_mut().unwrap().remove("ownerType");
            let read: StagedResourcesOwner = serde_json::from_value(json).unwrap();
            prop_assert_eq!(read.owner_type, "Pod");
        }
    }
}
