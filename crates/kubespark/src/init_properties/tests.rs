use super::*;

const TLS: &str = "spark.ssl.kubernetes.resourceStagingServer";
const INIT: &str = "spark.kubernetes.initcontainer";
const MOUNT: &str = "spark.kubernetes.mountdependencies";
const URI: &str = "spark.kubernetes.resourceStagingServer.uri";

fn read(text: &str) -> Result<InitContainerProperties, PropertyError> {
    InitContainerProperties::from(&Properties::parse("init.properties", text).unwrap())
}

fn refusal(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn a_file_of_kubesparks_submission_client_is_read() {
    let properties = read(&format!(
        "#Mon Nov 13 10:11:12 UTC 2017\n\
         {URI}=http\\://10.0.0.1\\:31000\n\
         {INIT}.downloadJarsResourceIdentifier=jars-id\n\
         {INIT}.downloadJarsSecretLocation=/mnt/secrets/spark-init/downloadSubmittedJarsSecret\n\
         {INIT}.downloadFilesResourceIdentifier=files-id\n\
         {INIT}.downloadFilesSecretLocation=/mnt/secrets/spark-init/downloadSubmittedFilesSecret\n\
         {INIT}.remoteJars=http\\://h/a.jar,https\\://h/b.jar?sig\\=x\n\
         {INIT}.remoteFiles=\n\
         {MOUNT}.jarsDownloadDir=/jars\n\
         {MOUNT}.mountTimeout=10\n\
         {TLS}.enabled=true\n\
         {TLS}.clientCertPem=/mnt/secrets/spark-init/ssl-certificate\n"
    ))
    .unwrap();
    let secret = |name| PathBuf::from(format!("/mnt/secrets/spark-init/{name}"));
    let remote: Vec<_> = properties.remote_jars.iter().map(RemoteUri::as_str).collect();
    assert_eq!(properties.server_uri.as_deref(), Some("http://10.0.0.1:31000"));
    assert_eq!(
        properties.jars,
        Some(TicketFile {
            resource_id: "jars-id".to_owned(),
            secret_file: secret("downloadSubmittedJarsSecret"),
        })
    );
    assert_eq!(properties.files.unwrap().resource_id, "files-id");
    assert_eq!(remote, ["http://h/a.jar", "https://h/b.jar?sig=x"]);
    assert_eq!(properties.remote_files, []);
    assert_eq!(properties.jars_dir, PathBuf::from("/jars"));
    assert_eq!(properties.files_dir, PathBuf::from(DEFAULT_FILES_DIR));
    assert_eq!(properties.mount_timeout, Duration::from_mins(10));
    assert_eq!(properties.ca_cert_pem, Some(secret("ssl-certificate")));
    assert_eq!(properties.warnings, Vec::<String>::new());
}

#[test]
fn an_empty_file_has_the_defaults() {
    let properties = read("").unwrap();
    assert_eq!(properties.jars_dir, PathBuf::from("/var/spark-data/spark-jars"));
    assert_eq!(properties.mount_timeout, Duration::from_mins(5));
    assert_eq!(properties.jars, None);
}

#[test]
fn a_ticket_needs_both_halves_and_a_server() {
    let cases = [
        (
            format!("{INIT}.downloadJarsResourceIdentifier=id"),
            format!("is set without `{INIT}.downloadJarsSecretLocation`; set both or neither"),
        ),
        (
            format!("{INIT}.downloadFilesSecretLocation=/s"),
            format!("is set without `{INIT}.downloadFilesResourceIdentifier`; set both or neither"),
        ),
        (
            format!("{INIT}.downloadFilesSecretLocation=/s\n{INIT}.downloadFilesResourceIdentifier=id"),
            format!(
                "init.properties, line 2: `{INIT}.downloadFilesResourceIdentifier` is set without `{URI}`"
            ),
        ),
    ];
    for (text, expected) in cases {
        let message = refusal(&text);
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn remote_entries_that_cannot_be_fetched_are_named_with_a_way_out() {
    let cases = [
        ("local:///opt/a.jar", "`local:///opt/a.jar` is in the image already"),
        ("/opt/a.jar", "`/opt/a.jar` is a path of the submitting machine"),
        (
            "hdfs://nn/a.jar",
            "has the scheme `hdfs`, and the init-container fetches only http and https; leave",
        ),
        ("s3a://b/a.jar?pw42", "`s3a://b/a.jar` has the scheme `s3a`"),
        ("http://h/..", "the name of a folder; use a URI that ends in"),
        ("http://h/?pw42", "is empty; use a URI"),
    ];
    for (entry, expected) in cases {
        for list in ["remoteJars", "remoteFiles"] {
            let message = refusal(&format!("\n{INIT}.{list}=http://h/ok.jar,{entry}"));
            assert!(message.starts_with(&format!("init.properties, line 2: `{INIT}.{list}`: ")));
            assert!(message.contains(expected), "{message}");
            assert!(!message.contains("pw42"), "{message}");
        }
    }
}

#[test]
fn a_java_trust_store_is_refused_with_its_conversion_and_no_password() {
    let message = refusal(&format!(
        "{TLS}.enabled=true\n{TLS}.trustStore=/mnt/trust.jks\n{TLS}.trustStoreType=JKS\n\
         {TLS}.trustStorePassword=pw42"
    ));
    assert_eq!(
        message,
        format!(
            "init.properties, line 2: `{TLS}.trustStore` is a Java store, and only PEM files are read here; \
             convert it with\n    keytool -list -rfc -keystore /mnt/trust.jks -storetype JKS > ca.pem\n\
             then set `{TLS}.clientCertPem` to the path of ca.pem, and remove `{TLS}.trustStore`"
        )
    );
}

#[test]
fn a_certificate_and_a_trust_store_exclude_each_other() {
    let message = refusal(&format!("{TLS}.enabled=true\n{TLS}.trustStore=/t\n{TLS}.clientCertPem=/c"));
    assert!(message.contains("excludes"), "{message}");
}

#[test]
fn trust_without_tls_is_ignored_with_a_warning() {
    for enabled in ["", "spark.ssl.kubernetes.resourceStagingServer.enabled=false"] {
        let text = format!("{TLS}.clientCertPem=/c\n{TLS}.trustStore=/t\n{enabled}");
        let properties = read(&text).unwrap();
        assert_eq!(properties.ca_cert_pem, None);
        assert_eq!(properties.warnings.len(), 2);
        assert_eq!(
            properties.warnings[0],
            format!(
                "init.properties, line 1: `{TLS}.clientCertPem` is ignored: \
                 it has an effect only if `{TLS}.enabled` is true"
            )
        );
    }
}

#[test]
fn the_server_must_be_an_http_address_and_the_timeout_a_time() {
    assert!(refusal(&format!("{URI}=h:10000")).contains("begins with http:// or https://"));
    assert!(refusal(&format!("{MOUNT}.mountTimeout=soon")).contains("`soon` is not a time"));
}

#[test]
fn keys_without_a_meaning_here_are_warned_about() {
    let warnings = read("spark.kubernetes.resourceStagingServer.port=1").unwrap().warnings;
    assert_eq!(
        warnings,
        ["init.properties, line 1: `spark.kubernetes.resourceStagingServer.port` is ignored: \
             it has no meaning for `cloakroom fetch`"]
    );
}
