//! What to do about a file that has no way into the pod.

use cloakroom_spark::keys::{SERVER_URI, UPLOAD_PATH};

pub(super) fn no_way(why: &str) -> String {
    format!(
        "is on this machine, where no pod can reach it{why}: deploy a staging server (docs/deploy.md) and set `{}` to its address, put the file into the image and write local:///…, give an http(s) URL, \
         or set `{UPLOAD_PATH}` to a folder that pods see as well",
        &SERVER_URI
    )
}
