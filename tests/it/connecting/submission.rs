//! Submissions: the address is the master's, and settings win over the kubeconfig, which wins over the service account.

use cloakroom::kubernetes::{Access, ApiServer, SubmissionAccess};
use cloakroom::spark::{OauthToken, SubmissionCredentials};

use super::place::{Place, answer, quick, tls_config, version};
use super::refused;
use crate::support::scripted::Scripted;

fn access(place: &Place, url: &str, credentials: SubmissionCredentials) -> SubmissionAccess {
    let path = place.path("kube/config");
    let kubeconfig = path.exists().then(|| (vec![path], "KUBECONFIG".to_owned()));
    SubmissionAccess {
        url: url.to_owned(),
        credentials,
        context: None,
        kubeconfig,
        folder: place.path("account"),
    }
}

fn token(text: &str) -> SubmissionCredentials {
    SubmissionCredentials { oauth_token: Some(OauthToken::new(text)), ..SubmissionCredentials::default() }
}

fn kubeconfig(place: &Place, cluster: &str, user: &str) {
    let text = format!(
        "current-context: here\ncontexts:\n- {{name: here, context: {{cluster: c, user: u}}}}\n\
         - {{name: there, context: {{cluster: c, user: v}}}}\nclusters:\n- {{name: c, cluster: {{{cluster}}}}}\n\
         users:\n- {{name: u, user: {{{user}}}}}\n- {{name: v, user: {{token: of-there}}}}\n"
    );
    place.write("kube/config", &text);
}

/// Which token is shown to a server on this machine.
async fn shown(access: SubmissionAccess) -> Option<String> {
    let server = Scripted::start(|_, _| answer(200, "{}").into()).await;
    let access = Access::Submission(Box::new(SubmissionAccess { url: server.url(), ..access }));
    version(&ApiServer::connect_with(&access, quick()).unwrap()).await.unwrap();
    server.requests().last().unwrap().header("authorization").map(str::to_owned)
}

#[tokio::test]
async fn settings_win_over_the_kubeconfig_which_wins_over_the_service_account() {
    let place = Place::new();
    let none = SubmissionCredentials::default;
    assert_eq!(shown(access(&place, "", none())).await, None);
    let pem = place.certificate("account");
    place.account("of-the-account", None);
    std::fs::copy(&pem.ca, place.path("account/ca.crt")).unwrap();
    assert_eq!(shown(access(&place, "", none())).await.as_deref(), Some("Bearer of-the-account"));
    kubeconfig(&place, "server: 'https://elsewhere.invalid'", "token: of-the-config");
    assert_eq!(shown(access(&place, "", none())).await.as_deref(), Some("Bearer of-the-config"));
    let there = SubmissionAccess { context: Some("there".to_owned()), ..access(&place, "", none()) };
    assert_eq!(shown(there).await.as_deref(), Some("Bearer of-there"));
    assert_eq!(shown(access(&place, "", token("given"))).await.as_deref(), Some("Bearer given"));
}

#[tokio::test]
async fn the_ca_of_the_kubeconfig_is_trusted_for_the_master() {
    let place = Place::new();
    let pem = place.certificate("kube");
    let server = Scripted::start_tls(tls_config(&pem, None), |_, _| answer(200, "{}").into()).await;
    kubeconfig(&place, "server: 'https://elsewhere.invalid', certificate-authority: ca.pem", "token: t");
    let submission = access(&place, &server.url(), SubmissionCredentials::default());
    version(&ApiServer::connect(&Access::Submission(Box::new(submission))).unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_token_goes_to_nobody_who_cannot_prove_who_it_is() {
    let place = Place::new();
    let said =
        |url: &str, credentials| refused(&Access::Submission(Box::new(access(&place, url, credentials))));
    let clear = said("http://192.0.2.1:6443", token("hunter2"));
    assert!(
        clear.contains("`spark.kubernetes.authenticate.submission.oauthToken` would travel in clear"),
        "{clear}"
    );
    let trusting = SubmissionCredentials { trust_certificates: true, ..token("hunter2") };
    let anybody = said("https://192.0.2.1:6443", trusting);
    assert!(
        anybody
            .contains("name the API server's CA with `spark.kubernetes.authenticate.submission.caCertFile`"),
        "{anybody}"
    );
    assert!(!clear.contains("hunter2") && !anybody.contains("hunter2"));
}

#[tokio::test]
async fn any_certificate_is_taken_where_it_was_asked_for_and_nothing_secret_is_sent() {
    let place = Place::new();
    let pem = place.certificate("kube");
    let server = Scripted::start_tls(tls_config(&pem, None), |_, _| answer(200, "{}").into()).await;
    let connect = |credentials| {
        ApiServer::connect(&Access::Submission(Box::new(access(&place, &server.url(), credentials)))).unwrap()
    };
    assert!(version(&connect(SubmissionCredentials::default())).await.is_err());
    let trusting = SubmissionCredentials { trust_certificates: true, ..SubmissionCredentials::default() };
    version(&connect(trusting)).await.unwrap();
}

#[tokio::test]
async fn a_context_that_is_not_there_is_refused_with_those_that_are() {
    let place = Place::new();
    kubeconfig(&place, "server: 'https://h'", "token: t");
    let wanted = SubmissionAccess {
        context: Some("nowhere".to_owned()),
        ..access(&place, "https://h", SubmissionCredentials::default())
    };
    let said = refused(&Access::Submission(Box::new(wanted)));
    assert!(said.contains("it has no context “nowhere”; it has “here”, “there”"), "{said}");
}

#[tokio::test]
async fn several_kubeconfigs_are_one_as_for_kubectl() {
    let place = Place::new();
    let contexts = place
        .write("one", "current-context: here\ncontexts:\n- {name: here, context: {cluster: c, user: u}}\n");
    let users = place.write(
        "two",
        "current-context: there\nclusters:\n- {name: c, cluster: {server: 'https://h'}}\nusers:\n\
         - {name: u, user: {token: of-the-second}}\n",
    );
    let files = Some((vec![contexts, users], "KUBECONFIG".to_owned()));
    let submission = access(&place, "", SubmissionCredentials::default());
    let merged = SubmissionAccess { kubeconfig: files, ..submission };
    assert_eq!(shown(merged).await.as_deref(), Some("Bearer of-the-second"));
}

#[tokio::test]
async fn a_kubeconfig_that_trusts_anybody_is_refused_unless_a_ca_is_named() {
    let place = Place::new();
    let pem = place.certificate("kube");
    kubeconfig(&place, "server: 'https://h', insecure-skip-tls-verify: true", "token: t");
    let insecure = access(&place, "https://192.0.2.1", SubmissionCredentials::default());
    let said = refused(&Access::Submission(Box::new(insecure)));
    assert!(
        said.contains("insecure-skip-tls-verify of the cluster “c”") && said.contains("caCertFile"),
        "{said}"
    );
    let with_ca = SubmissionCredentials { ca_cert_file: Some(pem.ca), ..SubmissionCredentials::default() };
    let access = access(&place, "https://192.0.2.1", with_ca);
    assert!(ApiServer::connect(&Access::Submission(Box::new(access))).is_ok());
}

#[test]
fn the_source_of_the_credentials_is_named() {
    let place = Place::new();
    let anonymous = access(&place, "", SubmissionCredentials::default());
    assert!(anonymous.to_string().starts_with("an anonymous user: there is neither"), "{anonymous}");
    kubeconfig(&place, "server: 'https://h'", "token: t");
    let config = access(&place, "", SubmissionCredentials::default());
    assert_eq!(
        config.to_string(),
        format!("the current context of {} says", place.path("kube/config").display())
    );
    let given = access(&place, "", token("x"));
    assert_eq!(given.to_string(), "spark.kubernetes.authenticate.submission.* says");
}
