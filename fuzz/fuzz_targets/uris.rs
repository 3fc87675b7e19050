//! Dependencies of Spark, and addresses of servers.
#![no_main]

use cloakroom_server::http::PublicUrl;
use cloakroom_spark::{DependencyUri, FileUri, RemoteUri, parse_list, split_list};
use cloakroom_transfer::client::ServerAddress;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(uri) = DependencyUri::parse(text) {
        assert_eq!(uri.as_str(), text.trim_ascii());
        assert_eq!(DependencyUri::parse(uri.as_str()), Ok(uri.clone()));
        match &uri {
            DependencyUri::Submitter(file) | DependencyUri::Image(file) => check_file(file),
            DependencyUri::Http(remote) => {
                assert!(matches!(remote.scheme(), "http" | "https"));
                check_remote(remote);
            }
            DependencyUri::OtherScheme(remote) => check_remote(remote),
        }
    }
    check_list(text);
    check_address(text);
    check_password(text);
    if let Ok(url) = text.parse::<PublicUrl>() {
        let printed = url.to_string();
        assert_eq!(printed.parse(), Ok(url), "{text:?}");
        let authority = printed.split('/').nth(2).unwrap_or_default();
        assert!(!authority.contains('@') && !printed.contains('?'), "{printed:?}");
    }
});

fn check_file(file: &FileUri) {
    use std::os::unix::ffi::OsStrExt as _;
    for path in [file.path(), file.whole_path()] {
        assert!(!path.as_os_str().is_empty());
        assert!(!path.as_os_str().as_bytes().contains(&0), "{path:?}");
    }
}

/// The redacted form has no user information and no query, and the file name is a single name.
fn check_remote(remote: &RemoteUri) {
    let shown = remote.redacted();
    assert!(!shown.contains('?') && !shown.contains('#'), "{shown:?}");
    for inner in shown.split("//").skip(1) {
        assert!(!inner.split('/').next().unwrap_or_default().contains('@'), "{shown:?}");
    }
    assert_eq!(format!("{remote:?}"), format!("RemoteUri({shown})"));
    if let Ok(name) = remote.file_name() {
        assert!(!matches!(name.as_str(), "" | "." | ".."));
        assert!(!name.contains('/') && !name.contains(char::is_control) && name.len() <= 255, "{name:?}");
    }
}

fn check_list(text: &str) {
    assert!(split_list(text).all(|entry| !entry.is_empty() && !entry.contains(',') && trim(entry) == entry));
    if let Ok(list) = parse_list(text) {
        let joined = list.iter().map(DependencyUri::as_str).collect::<Vec<_>>().join(",");
        assert_eq!(parse_list(&joined), Ok(list));
    }
}

fn check_address(text: &str) {
    if let Ok(address) = ServerAddress::parse(text) {
        let joined = address.join("/api/v1");
        assert!(matches!(joined.scheme(), "http" | "https"));
        assert!(
            joined.path().ends_with("/api/v1") && joined.query().is_none() && joined.fragment().is_none()
        );
        assert!(joined.username().is_empty() && joined.password().is_none());
        // Without TLS, a token stays on this machine.
        assert!(!address.is_confidential() || joined.scheme() == "https" || address.is_loopback());
    }
}

/// A password in front of any text.
fn check_password(text: &str) {
    const PASSWORD: &str = "qZ9-x7_w";
    if text.contains(PASSWORD) {
        return;
    }
    let with_password = format!("https://me:{PASSWORD}@{text}");
    let shown =
        DependencyUri::parse(&with_password).map_or_else(|error| error.to_string(), |uri| uri.redacted());
    assert!(!shown.contains(PASSWORD), "{shown}");
    let refused = ServerAddress::parse(&with_password).expect_err("a password in it");
    assert!(!refused.to_string().contains(PASSWORD), "{refused}");
}

/// As Java's `trim`: characters up to the blank are removed.
fn trim(text: &str) -> &str {
    text.trim_matches(|character| character <= ' ')
}
