use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> DependencyUri {
    DependencyUri::parse(text).unwrap()
}

fn remote(text: &str) -> RemoteUri {
    match parse(text) {
        DependencyUri::Http(remote) | DependencyUri::OtherScheme(remote) => remote,
        other => panic!("{other:?}"),
    }
}

fn problem(text: &str) -> String {
    DependencyUri::parse(text).unwrap_err().to_string()
}

#[test]
fn no_scheme_or_file_is_a_path_on_this_machine() {
    let cases = [
        ("app.jar", "app.jar", None),
        ("/opt/a b.jar", "/opt/a b.jar", None),
        ("/opt/a%20b.jar", "/opt/a%20b.jar", None),
        ("dir/x:y.jar", "dir/x:y.jar", None),
        ("/opt/env.tgz#env", "/opt/env.tgz", Some("env")),
        ("file:///opt/a%20b.jar", "/opt/a b.jar", None),
        ("file:/opt/app.jar", "/opt/app.jar", None),
        ("FILE://localhost/opt/app.jar", "/opt/app.jar", None),
        ("file:app.jar", "app.jar", None),
        ("file:///opt/app.jar?x=1#y", "/opt/app.jar", Some("y")),
    ];
    for (text, path, fragment) in cases {
        let DependencyUri::Submitter(file) = parse(text) else {
            panic!("{text}");
        };
        assert_eq!(file.path(), Path::new(path), "{text}");
        assert_eq!(file.fragment(), fragment, "{text}");
    }
}

#[test]
fn local_is_a_path_inside_the_image() {
    for text in ["local:///opt/app.jar", "local:/opt/app.jar"] {
        let DependencyUri::Image(file) = parse(text) else {
            panic!("{text}");
        };
        assert_eq!(file.path(), Path::new("/opt/app.jar"));
    }
    assert_eq!(parse("local:///a").as_str(), "local:///a");
}

#[test]
fn http_is_remote_and_other_schemes_are_remote_by_name() {
    assert!(matches!(parse("HTTPS://h/x.jar"), DependencyUri::Http(uri) if uri.scheme() == "https"));
    for (text, scheme) in [("s3a://b/x.jar", "s3a"), ("hdfs:/x.jar", "hdfs"), ("k8s+v1:x", "k8s+v1")] {
        assert!(matches!(parse(text), DependencyUri::OtherScheme(uri) if uri.scheme() == scheme));
    }
}

#[test]
fn a_file_name_is_the_last_segment_decoded_without_query_and_fragment() {
    let cases = [
        ("http://h/a/x.jar", "x.jar"),
        ("http://h/a/x.jar?sig=a/b#c/d", "x.jar"),
        ("http://h/a%20b.jar", "a b.jar"),
        ("https://h/%C3%A9t%C3%A9.txt", "été.txt"),
        ("s3a://bucket/dir/x.jar", "x.jar"),
        ("hdfs:/dir/x.jar", "x.jar"),
    ];
    for (text, name) in cases {
        assert_eq!(remote(text).file_name().as_deref(), Ok(name), "{text}");
    }
}

#[test]
fn a_file_name_that_is_empty_or_hostile_is_refused() {
    let long = format!("http://h/{}", "x".repeat(256));
    let cases = [
        ("http://h", "is empty"),
        ("http://h/dir/", "is empty"),
        ("http://h?x=/a.jar", "is empty"),
        ("http://h/..", "is the name of a folder"),
        ("http://h/%2e%2E", "is the name of a folder"),
        ("http://h/..%2fetc%2fpasswd", "has an encoded slash"),
        ("http://h/a%00.jar", "has a control character"),
        ("http://h/a%0A.jar", "has a control character"),
        ("http://h/%ff.jar", "is not UTF-8"),
        (&long, "is longer than 255 bytes"),
    ];
    for (text, expected) in cases {
        let message = remote(text).file_name().unwrap_err().to_string();
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn a_text_that_is_no_dependency_is_refused_with_the_way_out() {
    let cases = [
        (" ", "is missing"),
        (r"C:\libs\a.jar", r"`C:\libs\a.jar` is a path of Windows"),
        ("c:/libs/a.jar", "`c:/libs/a.jar` is a path of Windows"),
        ("local://", "names no path"),
        ("file:", "names no path"),
        ("local://opt/app.jar", "write three slashes, local:///opt…"),
        ("http:///app.jar", "names no host"),
        ("http:app.jar", "names no host"),
        ("file:///a%00b", "remove it or its %00"),
        ("/a\0b", "`/a\\0b` has a NUL"),
        ("/a#b\0", "has a NUL"),
        ("file:/a#b\0", "has a NUL"),
        ("#name", "is missing"),
        ("local://a\u{202e}b\u{2028}c\u{200b}d/x", "names the host `a\\u{202e}b\\u{2028}c\\u{200b}d`"),
        ("local://a\u{202e}b/x", "`local://a\\u{202e}b/x`"),
        ("http:a\u{202e}b", "`http:a\\u{202e}b` names no host"),
    ];
    for (text, expected) in cases {
        let message = problem(text);
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn secrets_in_a_remote_uri_are_not_shown() {
    let secret = remote("https://user:pw42@h:8443/d/x.jar?sig=pw42#pw42");
    assert_eq!(secret.redacted(), "https://h:8443/d/x.jar");
    assert_eq!(format!("{secret:?}"), "RemoteUri(https://h:8443/d/x.jar)");
    let message = remote("https://user:pw42@h/?sig=pw42").file_name();
    assert!(!message.unwrap_err().to_string().contains("pw42"));
    assert_eq!(remote("hdfs:/x.jar?pw42").redacted(), "hdfs:/x.jar");
    let inner = remote("jdbc:postgresql://user:pw42@h/db?password=pw42");
    assert_eq!(inner.redacted(), "jdbc:postgresql://h/db");
}

#[test]
fn a_list_is_split_at_commas_trimmed_and_without_empty_entries() {
    let entries: Vec<_> = split_list(" a.jar, ,http://h/b.jar,,").collect();
    assert_eq!(entries, ["a.jar", "http://h/b.jar"]);
    assert_eq!(parse_list(" , "), Ok(Vec::new()));
    // A no-break space is part of a name, as it is in Java.
    let entries = parse_list("hl:e\0\u{a0}\u{7}, a\u{a0}").unwrap();
    assert_eq!(entries.iter().map(DependencyUri::as_str).collect::<Vec<_>>(), ["hl:e\0\u{a0}", "a\u{a0}"]);
    assert_eq!(parse_list("a,local://").unwrap_err().to_string(), problem("local://"));
}

/// Text that is likely to be a URI, or nearly one.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "file:", "local:", "https:", "S3a:", "//", "/", "user:", "@", "h", ":8443", "a.jar", ",", "#", "?",
        "x=1", "%2F", "%00", "%ff", "..", " ", "\u{e9}", "\u{0}", "\u{a0}",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_uri_is_kept_as_it_was_written_and_read_again_as_the_same(text in pieces()) {
        if let Ok(uri) = DependencyUri::parse(&text) {
            prop_assert_eq!(uri.as_str(), text.trim_ascii());
            prop_assert_eq!(DependencyUri::parse(uri.as_str()), Ok(uri));
        }
    }

    #[test]
    fn a_remote_uri_is_shown_without_users_and_queries_and_names_one_file(text in pieces()) {
        let Ok(DependencyUri::Http(remote) | DependencyUri::OtherScheme(remote)) = DependencyUri::parse(&text) else {
            return Ok(());
        };
        let shown = remote.redacted();
        prop_assert!(!shown.contains(['?', '#']), "{}", shown);
        for authority in shown.split("//").skip(1).filter_map(|rest| rest.split('/').next()) {
            prop_assert!(!authority.contains('@'), "{}", shown);
        }
        if let Ok(name) = remote.file_name() {
            prop_assert!(!matches!(name.as_str(), "" | "." | "..") && !name.contains(['/', '\0']), "{}", name);
        }
    }

    #[test]
    fn a_password_is_never_shown(rest in pieces()) {
        let text = format!("https://me:qZ9-x7_w@{rest}");
        let shown = DependencyUri::parse(&text).map_or_else(|error| error.to_string(), |uri| uri.redacted());
        prop_assert!(!shown.contains("qZ9-x7_w"), "{}", shown);
    }
}
