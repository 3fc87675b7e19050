//! Certificates and keys that a server cannot start with.

use std::path::Path;

use cloakroom_testing::process::{command, stderr};
use cloakroom_testing::tls::signed_by_ca;

#[test]
fn files_that_cannot_be_used_are_a_start_error_that_names_them() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (pem, other) = (signed_by_ca(one.path(), &["localhost"]), signed_by_ca(two.path(), &["localhost"]));
    let missing = one.path().join("missing.pem");
    let name = |path: &Path| path.display().to_string();
    let mismatch = format!(
        "the private key in {} does not fit the certificate in {}",
        name(&other.key),
        name(&pem.cert)
    );
    for (cert, key, says) in [
        (&pem.cert, &other.key, mismatch),
        (&pem.cert, &pem.cert, format!("cannot read a private key in PEM form from {}", name(&pem.cert))),
        (&pem.key, &pem.key, format!("there is no certificate in {}", name(&pem.key))),
        (&missing, &pem.key, format!("cannot read a certificate in PEM form from {}", name(&missing))),
        (&pem.cert, &missing, format!("cannot read a private key in PEM form from {}", name(&missing))),
    ] {
        let data_dir = one.path().join("data");
        let mut serve = command();
        serve.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&data_dir);
        let output = serve.arg("--tls-cert").arg(cert).arg("--tls-key").arg(key).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(&format!("error: {says}")), "{}", stderr(&output));
        assert!(!data_dir.exists());
    }
}
