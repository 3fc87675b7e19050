//! Who may upload, if the server asks the cluster.

use super::{ServerFiles, text, value};
use cloakroom_testing::process;

#[test]
fn upload_auth_by_kubernetes_needs_a_cluster_and_no_token_file() {
    let files = ServerFiles::new();
    let said = files.refused(&["--upload-auth", "kubernetes"], &[]);
    assert!(said.contains("--upload-auth kubernetes") && said.contains("--kubeconfig"), "{said}");
    let tokens = files.file("tokens", "correct-horse-battery\n");
    let said = files.refused(&["--upload-auth", "kubernetes", "--upload-token-file", text(&tokens)], &[]);
    assert!(said.contains("contradict"), "{said}");
}

#[test]
fn the_audience_is_the_usual_namespaces_and_other_tokens_are_warned_of() {
    let files = ServerFiles::new();
    let url = ("spark.kubernetes.resourceStagingServer.apiServer.url", "https://10.0.0.1");
    let token = ("spark.kubernetes.authenticate.resourceStagingServer.oauthToken", "s3cret-of-the-api");
    let file = files.properties(&[url, token]);
    let by_cluster = [text(&file), "--upload-auth", "kubernetes"];
    for (more, auth, warns) in [
        (&[][..], "kubernetes: with a token for the audience cloakroom.cloakroom", false),
        (
            &["--upload-audience", "cloakroom.b"],
            "kubernetes: with a token for the audience cloakroom.b",
            false,
        ),
        (
            &["--accept-cluster-tokens"],
            "kubernetes: with a token for the audience cloakroom.cloakroom or for the API server",
            true,
        ),
    ] {
        let output = files.check(&[&by_cluster[..], more].concat(), &[]);
        let said = process::stderr(&output);
        assert!(output.status.success(), "{said}");
        assert_eq!(value(&super::stdout(&output), "upload auth"), auth);
        assert_eq!(said.contains("WARN --accept-cluster-tokens"), warns, "{said}");
    }
    for audience in ["", " ", "a b", "a\tb", "ä"] {
        let said = files.refused(&[&by_cluster[..], &["--upload-audience", audience]].concat(), &[]);
        assert!(said.contains("--upload-audience"), "{said}");
    }
}

#[test]
fn flags_of_the_cluster_are_refused_where_it_is_not_asked() {
    let files = ServerFiles::new();
    for flags in [&["--upload-audience", "a"][..], &["--accept-cluster-tokens"]] {
        for auth in [&[][..], &["--upload-auth", "none"]] {
            let said = files.refused(&[flags, auth].concat(), &[]);
            assert!(said.contains(&format!("{} is for --upload-auth kubernetes only", flags[0])), "{said}");
        }
    }
}

#[test]
fn an_upload_auth_that_does_not_exist_is_refused_with_those_that_do() {
    let said = ServerFiles::new().refused(&["--upload-auth", "magic"], &[]);
    for known in ["magic", "none", "token", "kubernetes"] {
        assert!(said.contains(known), "{said}");
    }
}

#[test]
fn upload_keys_are_checked_before_the_server_starts() {
    let files = ServerFiles::new();
    let good = files.file("keys", "spark token-0123456789abcdef0123456789abcdef\n");
    let bad = files.file("bad-keys", "spark token-tooshort\n");
    let tokens = files.file("tokens", "correct-horse-battery\n");
    for (flags, says) in [
        (&["--webhdfs-key-file", text(&good)][..], "are for --webhdfs only"),
        (&["--webhdfs-plain-keys"], "are for --webhdfs only"),
        (&["--webhdfs", "--webhdfs-key-file", text(&bad)], "a line is NAMESPACE token-…"),
        (&["--webhdfs", "--webhdfs-key-file", "/nowhere/keys"], "/nowhere/keys"),
        (
            &["--webhdfs", "--upload-auth", "token", "--upload-token-file", text(&tokens)],
            "give their file with --webhdfs-key-file",
        ),
    ] {
        let said = files.refused(flags, &[]);
        assert!(said.contains(says) && !said.contains("tooshort"), "{said}");
    }
    assert!(files.check(&["--webhdfs", "--webhdfs-key-file", text(&good)], &[]).status.success());
}
