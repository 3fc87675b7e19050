//! What a check says of limits that an admin may not expect.

use super::{ServerFiles, process, text};

const SHARES: [&str; 7] = [
    "--upload-auth",
    "kubernetes",
    "--min-free-space",
    "0b",
    "--max-resource-size",
    "8MiB",
    "--max-total-size",
];

impl ServerFiles {
    /// A properties file with an API server in it.
    fn with_cluster(&self) -> String {
        let file = self.properties(&[
            ("spark.kubernetes.resourceStagingServer.apiServer.url", "https://10.0.0.1"),
            ("spark.kubernetes.authenticate.resourceStagingServer.oauthToken", "s3cret-of-the-api"),
        ]);
        text(&file).to_owned()
    }

    /// The warnings of a good configuration.
    fn warnings(&self, arguments: &[&str]) -> Vec<String> {
        let output = self.check(arguments, &[]);
        let said = process::stderr(&output);
        assert!(output.status.success(), "{arguments:?}: {said}");
        said.lines().filter(|line| line.contains("WARN")).map(str::to_owned).collect()
    }

    fn warns(&self, arguments: &[&str], expected: &[&str]) {
        let warnings = self.warnings(arguments);
        assert_eq!(warnings.len(), 1, "{arguments:?}: {warnings:?}");
        for expected in expected {
            assert!(warnings[0].contains(expected), "{arguments:?}: “{expected}” is missing: {warnings:?}");
        }
    }
}

#[test]
fn every_value_of_the_check_stands_apart_from_its_name() {
    let files = ServerFiles::new();
    let file = files.with_cluster();
    let said = files.valid(&[&file, "--upload-auth", "kubernetes", "--max-resource-size", "1MiB"], &[]);
    for line in said.lines().skip(1) {
        let parts = line.strip_prefix("  ").and_then(|line| line.split_once("  "));
        assert!(parts.is_some_and(|(_, value)| !value.trim().is_empty()), "“{line}” in\n{said}");
    }
    assert!(
        said.contains(
            "  namespace's share     25% of resources, room, memory for owners, uploads and downloads\n"
        ),
        "{said}"
    );
}

#[test]
fn a_disk_without_room_for_any_bundle_is_warned_about() {
    let files = ServerFiles::new();
    let keeps =
        ["every upload will be refused: ", "cloakroom-data has ", "--min-free-space keeps 1 PiB; make room"];
    files.warns(&["--no-kubernetes", "--min-free-space", "1PiB"], &keeps);
    assert_eq!(files.warnings(&["--no-kubernetes", "--min-free-space", "0b"]), Vec::<String>::new());
}

#[test]
fn a_bundle_larger_than_a_share_or_as_large_as_the_room_is_warned_about() {
    let files = ServerFiles::new();
    let file = files.with_cluster();
    let flags = |total, more: &[&'static str]| [&[&*file][..], &SHARES, &[total], more].concat();
    let more_than_a_share =
        ["--max-resource-size (8 MiB) is 40% of the room (20 MiB by --max-total-size)", "--share 25%"];
    files.warns(&flags("20MiB", &[]), &more_than_a_share);
    for total in ["8MiB", "5MiB"] {
        files.warns(
            &flags(total, &["--share", "50%"]),
            &["takes all the room", "by --max-total-size", "lower"],
        );
    }
    // Of a disk that is smaller than the bundle.
    let huge = [&*file, "--upload-auth", "kubernetes", "--max-resource-size", "4PiB"];
    files.warns(&huge, &["takes all the room", "by the disk's size"]);
    for (total, more) in [("32MiB", &[][..]), ("20MiB", &["--share", "40%"]), ("20MiB", &["--share=100%"])] {
        assert!(files.warnings(&flags(total, more)).is_empty(), "{total} {more:?}");
    }
    assert!(files.warnings(&["--max-total-size", "1MiB"]).is_empty(), "without shares there is no floor");
}

#[test]
fn a_share_where_there_are_none_is_said_to_have_no_effect() {
    let files = ServerFiles::new();
    let tokens = files.file("tokens", "correct-horse-battery\n");
    for auth in [&[][..], &["--upload-auth", "none"], &["--upload-token-file", text(&tokens)]] {
        files.warns(
            &[auth, &["--share", "10%"]].concat(),
            &["--share 10% has no effect", "--upload-auth", "kubernetes"],
        );
        assert!(files.warnings(auth).is_empty());
    }
    let output = files.check(&[], &[("CLOAKROOM_SHARE", "10%")]);
    assert!(process::stderr(&output).contains("--share 10% has no effect"), "{}", process::stderr(&output));
}

#[test]
fn a_limit_of_resources_beyond_the_manifests_memory_is_warned_about() {
    let files = ServerFiles::new();
    files.warns(
        &["--max-resources", "1000000"],
        &["1.5 GiB of memory", "1 KiB for each", "2000000 tombstones"],
    );
    assert!(files.warnings(&["--max-resources", "200000"]).is_empty());
}

#[test]
fn a_password_in_the_public_url_is_refused_and_not_repeated() {
    let files = ServerFiles::new();
    for address in
        ["https://jo:hunter2@stage.example.com", "https://jo:hunter2@stage.example.com/a?b", "jo:hunter2@h"]
    {
        let said = files.refused(&["--public-url", address], &[]);
        assert!(said.contains("--public-url") && said.contains("without a user name"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}
