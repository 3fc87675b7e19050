//! Submissions: the address is the master's, and settings win over the kubeconfig, which wins over the service account.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_cluster::{
    Access, ApiServer, Basic, ContentSource, Credentials, Given, Impersonation, Proxies, SubmissionAccess,
};
use cloakroom_core::text::SecretText;
use cloakroom_testing::scripted::{Request, Scripted};
use cloakroom_testing::tls::server_config;

use super::folder::{CredentialFolder, answer, ca, quick, token, version};
use super::refused;

fn access(folder: &CredentialFolder, url: &str, credentials: Credentials) -> SubmissionAccess {
    let path = folder.path("kube/config");
    let kubeconfig = path.exists().then(|| (vec![path], "KUBECONFIG".to_owned()));
    SubmissionAccess {
        url: Given::new(url.to_owned(), "--master"),
        credentials,
        credentials_setting: "submission.*".to_owned(),
        ca_setting: "`caCertFile`".to_owned(),
        trust_certificates: None,
        context: None,
        kubeconfig,
        folder: Some(folder.path("account")),
        account_token: None,
        proxies: Proxies::default(),
    }
}

/// Takes any certificate.
fn trusting(access: SubmissionAccess) -> SubmissionAccess {
    SubmissionAccess { trust_certificates: Some("`trustCertificates`".to_owned()), ..access }
}

fn kubeconfig(folder: &CredentialFolder, cluster: &str, user: &str) {
    let text = format!(
        "current-context: here\ncontexts:\n- {{name: here, context: {{cluster: c, user: u}}}}\n\
         - {{name: there, context: {{cluster: c, user: v}}}}\nclusters:\n- {{name: c, cluster: {{{cluster}}}}}\n\
         users:\n- {{name: u, user: {{{user}}}}}\n- {{name: v, user: {{token: of-there}}}}\n"
    );
    folder.write("kube/config", &text);
}

/// What is sent to a server on this machine.
async fn sent(access: SubmissionAccess) -> Request {
    let server = Scripted::start(|_, _| answer(200, "{}").into()).await;
    let access = Access::Submission(Box::new(SubmissionAccess {
        url: Given::new(server.url(), "--master"),
        ..access
    }));
    version(&ApiServer::connect_with(&access, quick()).unwrap()).await.unwrap();
    server.requests().last().unwrap().clone()
}

/// Which credential is sent to a server on this machine.
async fn shown(access: SubmissionAccess) -> Option<String> {
    sent(access).await.header("authorization").map(str::to_owned)
}

fn for_somebody_else(user: &str) -> Credentials {
    let impersonation = Impersonation { user: user.to_owned(), groups: vec!["dev".to_owned()] };
    Credentials {
        impersonation: Some(Given::new(impersonation, "KUBERNETES_IMPERSONATE_USERNAME")),
        ..Credentials::default()
    }
}

#[tokio::test]
async fn settings_win_over_the_kubeconfig_which_wins_over_the_service_account() {
    let folder = CredentialFolder::new();
    let none = Credentials::default;
    assert_eq!(shown(access(&folder, "", none())).await, None);
    let pem = folder.certificate("account");
    folder.account("of-the-account", None);
    std::fs::copy(&pem.ca, folder.path("account/ca.crt")).unwrap();
    assert_eq!(shown(access(&folder, "", none())).await.as_deref(), Some("Bearer of-the-account"));
    kubeconfig(&folder, "server: 'https://elsewhere.invalid'", "token: of-the-config");
    assert_eq!(shown(access(&folder, "", none())).await.as_deref(), Some("Bearer of-the-config"));
    let there = SubmissionAccess { context: Some("there".to_owned()), ..access(&folder, "", none()) };
    assert_eq!(shown(there).await.as_deref(), Some("Bearer of-there"));
    assert_eq!(shown(access(&folder, "", token("given"))).await.as_deref(), Some("Bearer given"));
}

#[tokio::test]
async fn a_name_and_a_password_replace_the_credentials_of_the_kubeconfig() {
    let folder = CredentialFolder::new();
    kubeconfig(&folder, "server: 'https://elsewhere.invalid'", "token: of-the-config");
    let basic = Basic { user: "ann".to_owned(), password: SecretText::new("hunter2") };
    let credentials =
        Credentials { basic: Some(Given::new(basic, "the password")), ..Credentials::default() };
    let sent = shown(access(&folder, "", credentials.clone())).await;
    assert_eq!(sent.as_deref(), Some("Basic YW5uOmh1bnRlcjI="));
    let clear = refused(&Access::Submission(Box::new(access(&folder, "http://192.0.2.1:6443", credentials))));
    assert!(clear.contains("the password would travel in clear") && !clear.contains("hunter2"), "{clear}");
}

#[tokio::test]
async fn an_impersonation_keeps_the_credentials_and_replaces_the_kubeconfigs() {
    let folder = CredentialFolder::new();
    kubeconfig(&folder, "server: 'https://elsewhere.invalid'", "token: t, as: carl, as-uid: '7'");
    let header = |request: &Request, name: &str| request.header(name).map(str::to_owned);
    let of_config = sent(access(&folder, "", Credentials::default())).await;
    assert_eq!(header(&of_config, "impersonate-user").as_deref(), Some("carl"));
    let access = access(&folder, "", for_somebody_else("bob"));
    assert!(access.to_string().ends_with("says, on behalf of “bob” (KUBERNETES_IMPERSONATE_USERNAME)"));
    let of_setting = sent(access.clone()).await;
    for (name, value) in [
        ("authorization", Some("Bearer t")),
        ("impersonate-user", Some("bob")),
        ("impersonate-group", Some("dev")),
        ("impersonate-uid", None),
    ] {
        assert_eq!(header(&of_setting, name).as_deref(), value, "{name}");
    }
    let with_token = Credentials { token: token("given").token, ..for_somebody_else("bob") };
    let with_token = sent(SubmissionAccess { credentials: with_token, ..access }).await;
    assert_eq!(header(&with_token, "authorization").as_deref(), Some("Bearer given"));
    assert_eq!(header(&with_token, "impersonate-user").as_deref(), Some("bob"));
}

#[tokio::test]
async fn the_token_of_a_service_account_can_be_elsewhere_or_unwanted() {
    let folder = CredentialFolder::new();
    let none = Credentials::default;
    let token = folder.write("elsewhere", "of-the-file\n");
    let account_token = Some(Given::new(token, "KUBERNETES_AUTH_SERVICEACCOUNT_TOKEN"));
    let elsewhere = SubmissionAccess { account_token, ..access(&folder, "", none()) };
    assert_eq!(elsewhere.to_string(), "KUBERNETES_AUTH_SERVICEACCOUNT_TOKEN says");
    assert_eq!(shown(elsewhere.clone()).await.as_deref(), Some("Bearer of-the-file"));
    let pem = folder.certificate("account");
    folder.account("of-the-account", Some(&pem.ca));
    assert_eq!(shown(elsewhere).await.as_deref(), Some("Bearer of-the-file"));
    let unwanted = SubmissionAccess { folder: None, ..access(&folder, "", none()) };
    assert_eq!(shown(unwanted).await, None);
    let missing = Some(Given::new(folder.path("nothing"), "KUBERNETES_AUTH_SERVICEACCOUNT_TOKEN"));
    let missing = SubmissionAccess { account_token: missing, ..access(&folder, "https://h", none()) };
    let said = refused(&Access::Submission(Box::new(missing)));
    assert!(
        said.contains("cannot read") && said.contains("(KUBERNETES_AUTH_SERVICEACCOUNT_TOKEN)"),
        "{said}"
    );
}

#[tokio::test]
async fn a_ca_as_text_may_be_pem_or_base64_and_other_text_is_refused() {
    let folder = CredentialFolder::new();
    let pem = folder.certificate("kube");
    let server = Scripted::start_tls(server_config(&pem, None), |_, _| answer(200, "{}").into()).await;
    let with = |text: String| {
        let ca_cert = Some(Given::new(ContentSource::Inline(SecretText::new(text)), "CERTS_CA_DATA"));
        let credentials = Credentials { ca_cert, ..Credentials::default() };
        Access::Submission(Box::new(access(&folder, &server.url(), credentials)))
    };
    let text = std::fs::read_to_string(&pem.ca).unwrap();
    for text in [STANDARD.encode(&text), text] {
        version(&ApiServer::connect(&with(text)).unwrap()).await.unwrap();
    }
    let said = refused(&with("hunter2!".to_owned()));
    assert!(said.contains("CERTS_CA_DATA is neither PEM nor the base64 form") && !said.contains("hunter2"));
}

#[tokio::test]
async fn the_ca_of_the_kubeconfig_is_trusted_for_the_master() {
    let folder = CredentialFolder::new();
    let pem = folder.certificate("kube");
    let server = Scripted::start_tls(server_config(&pem, None), |_, _| answer(200, "{}").into()).await;
    kubeconfig(&folder, "server: 'https://elsewhere.invalid', certificate-authority: ca.pem", "token: t");
    let submission = access(&folder, &server.url(), Credentials::default());
    version(&ApiServer::connect(&Access::Submission(Box::new(submission))).unwrap()).await.unwrap();
}

// Invariant: a token is sent only to a server that proves its identity, and is in no message.
#[tokio::test]
async fn a_token_goes_to_nobody_who_cannot_prove_who_it_is() {
    let folder = CredentialFolder::new();
    let said = |access| refused(&Access::Submission(Box::new(access)));
    let clear = said(access(&folder, "http://192.0.2.1:6443", token("hunter2")));
    assert!(clear.contains("`oauthToken` would travel in clear"), "{clear}");
    let anybody = said(trusting(access(&folder, "https://192.0.2.1:6443", token("hunter2"))));
    assert!(anybody.contains("name the API server's CA with `caCertFile`"), "{anybody}");
    assert!(!clear.contains("hunter2") && !anybody.contains("hunter2"));
}

#[tokio::test]
async fn any_certificate_is_accepted_only_if_a_setting_says_so() {
    let folder = CredentialFolder::new();
    let pem = folder.certificate("kube");
    let server = Scripted::start_tls(server_config(&pem, None), |_, _| answer(200, "{}").into()).await;
    let connect = |access| ApiServer::connect(&Access::Submission(Box::new(access))).unwrap();
    let strict = access(&folder, &server.url(), Credentials::default());
    assert!(version(&connect(strict.clone())).await.is_err());
    version(&connect(trusting(strict))).await.unwrap();
}

#[tokio::test]
async fn a_context_that_is_not_there_is_refused_with_those_that_are() {
    let folder = CredentialFolder::new();
    kubeconfig(&folder, "server: 'https://h'", "token: t");
    let wanted = SubmissionAccess {
        context: Some("nowhere".to_owned()),
        ..access(&folder, "https://h", Credentials::default())
    };
    let said = refused(&Access::Submission(Box::new(wanted)));
    assert!(said.contains("it has no context “nowhere”; it has “here”, “there”"), "{said}");
}

#[tokio::test]
async fn several_kubeconfigs_are_one_as_for_kubectl() {
    let folder = CredentialFolder::new();
    let contexts = folder
        .write("one", "current-context: here\ncontexts:\n- {name: here, context: {cluster: c, user: u}}\n");
    let users = folder.write(
        "two",
        "current-context: there\nclusters:\n- {name: c, cluster: {server: 'https://h'}}\nusers:\n\
         - {name: u, user: {token: of-the-second}}\n",
    );
    let files = Some((vec![contexts, users], "KUBECONFIG".to_owned()));
    let submission = access(&folder, "", Credentials::default());
    let merged = SubmissionAccess { kubeconfig: files, ..submission };
    assert_eq!(shown(merged).await.as_deref(), Some("Bearer of-the-second"));
}

#[tokio::test]
async fn a_kubeconfig_that_trusts_anybody_is_refused_unless_a_ca_is_named() {
    let folder = CredentialFolder::new();
    let pem = folder.certificate("kube");
    kubeconfig(&folder, "server: 'https://h', insecure-skip-tls-verify: true", "token: t");
    let insecure = access(&folder, "https://192.0.2.1", Credentials::default());
    let said = refused(&Access::Submission(Box::new(insecure)));
    assert!(
        said.contains("insecure-skip-tls-verify of the cluster “c”") && said.contains("caCertFile"),
        "{said}"
    );
    let access = access(&folder, "https://192.0.2.1", ca(pem.ca));
    assert!(ApiServer::connect(&Access::Submission(Box::new(access))).is_ok());
}

#[test]
fn the_source_of_the_credentials_is_named() {
    let folder = CredentialFolder::new();
    let anonymous = access(&folder, "", Credentials::default());
    assert!(anonymous.to_string().starts_with("an anonymous user: there is neither"), "{anonymous}");
    kubeconfig(&folder, "server: 'https://h'", "token: t");
    let config = access(&folder, "", Credentials::default());
    assert_eq!(
        config.to_string(),
        format!("the current context of {} says", folder.path("kube/config").display())
    );
    let given = access(&folder, "", token("x"));
    assert_eq!(given.to_string(), "submission.* says");
}
