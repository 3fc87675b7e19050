//! The text that `serve --check` prints.

use std::fmt::Write as _;
use std::time::Duration;

use super::descriptors;
use super::settings::ServeSettings;
use crate::commands::local;
use cloakroom_core::size::format_size;
use cloakroom_core::time::format_duration;
use cloakroom_server::descriptors::Allotment;
use cloakroom_server::http::UploadAuth;

/// A name and its value.
type Line = (&'static str, String);

/// The text for a valid configuration.
pub fn of(settings: &ServeSettings, allotment: &Allotment) -> String {
    let mut text = String::from("the configuration is valid\n");
    let connections = ("connections", descriptors::summary(settings, allotment));
    let lines = server(settings).into_iter().chain(limits(settings)).chain(owners(settings));
    for (name, value) in lines.chain(lifecycle(settings)).chain([connections]) {
        // Writing to a String does not fail.
        let _ = writeln!(text, "  {name:<20}  {value}");
    }
    text
}

fn server(settings: &ServeSettings) -> [Line; 5] {
    let scheme = if settings.http.tls.is_some() { "https" } else { "http" };
    let auth = match &settings.http.upload_auth {
        UploadAuth::None => "none: every client that reaches the port may upload".to_owned(),
        UploadAuth::Token(_) => "token".to_owned(),
        UploadAuth::Kubernetes(reviews) => format!("kubernetes: with a token for {}", reviews.accepted()),
    };
    [
        ("serves on", format!("{scheme}://{}", settings.listen)),
        ("operations on", operations(settings)),
        ("upload auth", auth),
        ("data directory", settings.data_dir.display().to_string()),
        ("bundles", bundles(settings)),
    ]
}

fn bundles(settings: &ServeSettings) -> String {
    match &settings.bucket {
        Some(bucket) => {
            format!(
                "in {}, with {} of memory for transfers",
                bucket.location,
                format_size(bucket.memory_bytes)
            )
        }
        None => "in the data directory".to_owned(),
    }
}

fn operations(settings: &ServeSettings) -> String {
    let address =
        settings.ops_listen.map_or_else(|| "the same address".to_owned(), |to| format!("http://{to}"));
    let is_local = match settings.ops_listen {
        Some(to) => to.ip().is_loopback() || to.ip().is_unspecified(),
        None => settings.listen.ip().is_loopback(),
    };
    let admin = match &settings.admin_tokens {
        Some(_) => "with administration",
        None if is_local && local::may_leave_in(&settings.data_dir) => {
            "with administration, by a token of each run"
        }
        None => "without administration",
    };
    format!("{address}, {admin}")
}

fn limits(settings: &ServeSettings) -> [Line; 5] {
    let limits = &settings.limits;
    let total = limits.capacity.max_total_size.map_or_else(|| "off".to_owned(), format_size);
    let share = limits.share.map_or_else(
        || "off: shares need --upload-auth kubernetes".to_owned(),
        |share| format!("{share} of resources, room, memory for owners, uploads and downloads"),
    );
    [
        ("largest bundle", format_size(limits.capacity.max_resource_size)),
        ("all bundles", total),
        ("resources at most", limits.max_resources.to_string()),
        ("namespace's share", share),
        (
            "free space to leave",
            match settings.bucket {
                Some(_) => "not looked at: bundles are in a bucket".to_owned(),
                None => format_size(limits.capacity.min_free_space),
            },
        ),
    ]
}

fn owners(settings: &ServeSettings) -> [Line; 3] {
    let asked = settings.cluster.as_ref().map_or_else(
        || "no API server: resources end only by time or by DELETE".to_owned(),
        |cluster| format!("the API server at {} is asked, as {}", cluster.way(), cluster.credentials()),
    );
    let namespaces = settings.http.namespaces.as_ref().map_or_else(|| "all".to_owned(), ToString::to_string);
    [("owners", asked), ("namespaces", namespaces), ("owner kinds", settings.http.owner_kinds.to_string())]
}

fn lifecycle(settings: &ServeSettings) -> [Line; 10] {
    let policy = &settings.policy;
    let keys = match settings.http.lifetimes.max_key_ttl {
        Duration::ZERO => "off".to_owned(),
        most => format!("good for {} at most", format_duration(most)),
    };
    let finished = policy.finished_owner_retention.map_or_else(|| "ever".to_owned(), format_duration);
    [
        ("unused timeout", format_duration(settings.http.lifetimes.unused_timeout)),
        ("unused at most", format_duration(policy.max_unused)),
        ("read keys", keys),
        ("greatest age", policy.max_age.map_or_else(|| "off".to_owned(), format_duration)),
        ("orphan grace", format_duration(policy.orphan_grace)),
        ("finished owners", format!("count as owners for {finished}")),
        (
            "after a deletion",
            format!("downloads go on for {}", format_duration(settings.limits.deletion_wait)),
        ),
        ("stray age", format_duration(policy.stray_age)),
        ("a sweep every", format_duration(settings.cleanup_interval)),
        (
            "mass deletion",
            format!(
                "held back if most owners of a namespace vanish at once; then at most {} in a sweep",
                policy.max_deletions_per_sweep
            ),
        ),
    ]
}
