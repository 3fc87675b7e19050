//! The advice for a file that has no way into the pod.

use cloakroom_spark::keys::{CLOAKROOM_SERVER_NAMESPACE, SERVER_URI, UPLOAD_PATH};

pub(super) fn no_way(why: &str) -> String {
    format!(
        "is on this machine, where no pod can reach it{why}: deploy a staging server (docs/deploy.md) and set \
         `{CLOAKROOM_SERVER_NAMESPACE}` to its namespace or `{SERVER_URI}` to its address, put the file into the image and \
         write local:///…, give an http(s) URL, or set `{UPLOAD_PATH}` to a folder that pods see as well"
    )
}
