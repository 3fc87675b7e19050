use std::path::Path;

use super::*;

const TLS: &str = "spark.ssl.kubernetes.resourceStagingServer";
const AUTHENTICATE: &str = "spark.kubernetes.authenticate.resourceStagingServer";
const SERVER: &str = "spark.kubernetes.resourceStagingServer";

fn read(text: &str) -> Result<StagingServerProperties, PropertyError> {
    StagingServerProperties::from(&Properties::parse("server.properties", text).unwrap())
}

fn refusal(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn kubesparks_sample_file_is_read_without_a_warning() {
    let properties = read(&format!("{SERVER}.port=10000\n{TLS}.enabled=false\n")).unwrap();
    assert_eq!(properties.port, Some(10000));
    assert_eq!(properties.unused_timeout, None);
    assert_eq!(properties.tls, None);
    assert!(properties.api_server.use_service_account_credentials);
    assert_eq!(properties.warnings, Vec::<String>::new());
}

#[test]
fn a_bare_unused_timeout_is_in_milliseconds() {
    let timeout =
        |value| read(&format!("{SERVER}.initialAccessExpirationTimeout={value}")).unwrap().unused_timeout;
    assert_eq!(timeout("1800000"), Some(Duration::from_mins(30)));
    assert_eq!(timeout("30m"), Some(Duration::from_mins(30)));
}

#[test]
fn impossible_values_are_refused_with_file_line_key_and_what_would_do() {
    let cases = [
        (format!("{SERVER}.port"), "65536", "write a whole number from 0 to 65535"),
        (format!("{SERVER}.port"), "-1", "write a whole number from 0 to 65535"),
        (
            format!("{SERVER}.initialAccessExpirationTimeout"),
            "-1",
            "it is negative; write a whole number with a unit",
        ),
        (
            format!("{SERVER}.initialAccessExpirationTimeout"),
            "0",
            "leaves no time at all; write a longer one",
        ),
        (format!("{SERVER}.apiServer.url"), "kubernetes.default", "begins with http:// or https://"),
        (format!("{SERVER}.apiServer.caCertFile"), "https://h/ca.pem", "write its path"),
        (format!("{TLS}.enabled"), "yes", "is neither true nor false; write one of them"),
        (format!("{AUTHENTICATE}.useServiceAccountCredentials"), "1", "neither true nor false"),
    ];
    for (key, value, expected) in cases {
        let message = refusal(&format!("# first\n{key}={value}\n"));
        assert!(message.starts_with(&format!("server.properties, line 2: `{key}`: `{value}`")), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn booleans_are_read_whatever_their_case() {
    let text = format!("{AUTHENTICATE}.useServiceAccountCredentials=FALSE\n{TLS}.enabled=False");
    let properties = read(&text).unwrap();
    assert!(!properties.api_server.use_service_account_credentials);
}

#[test]
fn tls_is_served_from_pem_files_whatever_the_form_of_their_paths() {
    let text = format!(
        "{TLS}.enabled=true\n{TLS}.keyPem=local:///mnt/key.pem\n{TLS}.serverCertPem=/mnt/a#b/cert.pem\n"
    );
    let tls = read(&text).unwrap().tls.unwrap();
    assert_eq!(tls.key_pem, Path::new("/mnt/key.pem"));
    assert_eq!(tls.cert_pem, Path::new("/mnt/a#b/cert.pem"));
}

#[test]
fn pem_files_without_enabled_are_warned_about() {
    let properties = read(&format!("{TLS}.keyPem=/k\n{TLS}.serverCertPem=/c\n")).unwrap();
    assert_eq!(properties.tls, None);
    assert_eq!(
        properties.warnings,
        [
            format!(
                "server.properties, line 1: `{TLS}.keyPem` is ignored: TLS is off until `{TLS}.enabled` is true"
            ),
            format!(
                "server.properties, line 2: `{TLS}.serverCertPem` is ignored: TLS is off until `{TLS}.enabled` is true"
            ),
        ]
    );
}

#[test]
fn tls_needs_key_and_certificate_and_no_key_store_beside_them() {
    let cases = [
        ("", "is true, and no key and certificate are given; set"),
        ("keyPem=/k", "is set without `spark.ssl.kubernetes.resourceStagingServer.serverCertPem`"),
        ("serverCertPem=/c", "is set without `spark.ssl.kubernetes.resourceStagingServer.keyPem`"),
        ("keyStore=/s\nspark.ssl.kubernetes.resourceStagingServer.keyPem=/k", "excludes"),
        ("keyStore=/s\nspark.ssl.kubernetes.resourceStagingServer.serverCertPem=/c", "excludes"),
    ];
    for (setting, expected) in cases {
        let message = refusal(&format!("{TLS}.enabled=true\n{TLS}.{setting}\n"));
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_java_key_store_is_refused_with_its_conversion_and_no_password() {
    let message = refusal(&format!(
        "{TLS}.enabled=true\n{TLS}.keyStore=file:///mnt/store.jks\n{TLS}.keyStoreType=JKS\n\
         {TLS}.keyStorePassword=pw42\n{TLS}.keyPassword=pw42\n"
    ));
    assert_eq!(
        message,
        format!(
            "server.properties, line 2: `{TLS}.keyStore` is a Java store, and only PEM files are read here; \
             convert it with\n    keytool -importkeystore -srckeystore /mnt/store.jks -srcstoretype JKS \
             -destkeystore staging-server.p12 -deststoretype PKCS12\n    \
             openssl pkcs12 -in staging-server.p12 -nodes -nocerts -out key.pem\n    \
             openssl pkcs12 -in staging-server.p12 -nokeys -out cert.pem\n\
             then set `{TLS}.keyPem` to the path of key.pem and `{TLS}.serverCertPem` to the path of cert.pem, \
             and remove `{TLS}.keyStore`"
        )
    );
}

#[test]
fn the_api_server_is_asked_with_what_the_file_gives() {
    let text = format!(
        "{SERVER}.apiServer.url=https://api:6443\n{SERVER}.apiServer.caCertFile=/other.pem\n\
         {AUTHENTICATE}.caCertFile=/ca.pem\n{AUTHENTICATE}.clientKeyFile=/key\n\
         {AUTHENTICATE}.clientCertFile=/cert\n{AUTHENTICATE}.oauthTokenFile=/token\n"
    );
    let properties = read(&text).unwrap();
    assert_eq!(
        properties.api_server,
        ApiServerProperties {
            url: Some("https://api:6443".to_owned()),
            ca_cert_file: Some("/ca.pem".into()),
            client_key_file: Some("/key".into()),
            client_cert_file: Some("/cert".into()),
            oauth_token: None,
            oauth_token_file: Some("/token".into()),
            use_service_account_credentials: true,
        }
    );
    assert_eq!(properties.warnings.len(), 1);
    assert!(properties.warnings[0].contains(&format!("`{SERVER}.apiServer.caCertFile` is ignored")));
}

#[test]
fn half_a_client_certificate_is_ignored_with_a_warning() {
    let properties = read(&format!("{AUTHENTICATE}.clientKeyFile=/key\n")).unwrap();
    assert_eq!(properties.api_server.client_key_file, None);
    assert!(properties.warnings[0].contains("it needs `spark.kubernetes.authenticate"));
}

#[test]
fn a_token_and_a_token_file_exclude_each_other() {
    let message = refusal(&format!("{AUTHENTICATE}.oauthToken=pw42\n{AUTHENTICATE}.oauthTokenFile=/token\n"));
    assert!(message.contains("`spark.kubernetes.authenticate.resourceStagingServer.oauthToken` excludes"));
    assert!(!message.contains("pw42"), "{message}");
}

#[test]
fn the_token_is_in_no_debug_output_and_no_warning() {
    let text = format!("{AUTHENTICATE}.oauthToken=pw42\n{TLS}.keyStorePassword=pw42\nfoo=pw42");
    let properties = read(&text).unwrap();
    let token = properties.api_server.oauth_token.as_ref().unwrap();
    assert_eq!(token.expose(), "pw42");
    assert!(!format!("{properties:?}").contains("pw42"));
}

#[test]
fn keys_without_a_meaning_here_are_warned_about_with_their_line() {
    let properties = read("\u{feff}a=1\nspark.app.name=x\n").unwrap();
    assert_eq!(
        properties.warnings,
        [
            "server.properties, line 1: `\\u{feff}a` is ignored: it has no meaning for `cloakroom serve`",
            "server.properties, line 2: `spark.app.name` is ignored: it has no meaning for `cloakroom serve`",
        ]
    );
}
