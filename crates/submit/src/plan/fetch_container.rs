//! The init-container that fetches, in whatever pod it is.

use serde_json::{Value, json};

/// The user id of this program's image (the Dockerfile's `USER`). The init-container needs it in a pod that runs as root: it has
/// `runAsNonRoot`, so the kubelet would refuse to start it.
pub(crate) const IMAGE_USER: u32 = 65532;

/// The container, as the restricted pod security standard requires it. It names no user, because clusters that assign users
/// themselves refuse a fixed one; the image has its own.
pub(crate) fn fetch_container(
    name: &str,
    image: Option<&str>,
    args: &[String],
    mounts: &[Value],
    resources: &Value,
) -> Value {
    json!({
        "name": name,
        "image": image,
        "args": args,
        "volumeMounts": mounts,
        "resources": resources,
        // The end of its log then stands in the pod's status, where `follow` reads it.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    })
}
