//! Tokens that are for this server only, and tokens for the API server.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::{AUDIENCE, Guarded, Options, PATIENT, TOKEN, Value, guarded_by, json, logs, problem};

const UPLOADER: &str = "system:serviceaccount:spark:cloakroom-uploader";
const OF_API_SERVER: &str = "https://kubernetes.default.svc";

/// The API server's answer about a known token, with these audiences.
fn known_for(audiences: &Value) -> Value {
    json!({"authenticated": true, "user": {"username": UPLOADER}, "audiences": audiences})
}

/// A token with this claim. The API server says `status` of it.
fn token(guarded: &Guarded, audience: &str, status: Value) -> String {
    let claims = json!({"aud": [audience], "sub": UPLOADER}).to_string();
    let token = format!("e30.{}.c2lnbmF0dXJl", BASE64_URL_SAFE_NO_PAD.encode(claims));
    guarded.cluster.others.lock().unwrap().insert(token.clone(), status);
    guarded.app.keep_secret(&token);
    token
}

async fn strict() -> Guarded {
    guarded_by(PATIENT, Options::default(), false).await
}

impl Guarded {
    fn spec(&self, question: usize) -> Value {
        self.cluster.asked.lock().unwrap()[question]["spec"].clone()
    }
}

#[tokio::test]
async fn a_token_for_this_server_needs_the_right_to_create_bundles() {
    for guarded in [strict().await, guarded_by(PATIENT, Options::default(), true).await] {
        let token = token(&guarded, AUDIENCE, known_for(&json!([AUDIENCE])));
        assert_eq!(guarded.upload("demo", Some(&token)).await.status(), 201);
        assert_eq!(guarded.spec(0), json!({"token": token, "audiences": [AUDIENCE]}));
        let wanted =
            json!({"namespace": "demo", "verb": "create", "group": "cloakroom.dev", "resource": "bundles"});
        assert_eq!(guarded.spec(1), json!({"user": UPLOADER, "resourceAttributes": wanted}));
        let refused = problem(guarded.upload("other", Some(&token)).await).await;
        assert_eq!((refused.status, refused.code.as_str()), (403, "forbidden"));
        assert!(
            refused
                .detail
                .contains(&format!("{UPLOADER} may not create bundles.cloakroom.dev in the namespace other")),
            "{}",
            refused.detail
        );
    }
}

#[tokio::test]
async fn a_token_for_the_api_server_is_taken_only_where_an_admin_says_so() {
    let guarded = strict().await;
    let refused = problem(guarded.upload("demo", Some(TOKEN)).await).await;
    assert_eq!((refused.status, refused.code.as_str()), (401, "unauthorized"));
    assert!(
        refused.detail.contains("no such token for the audience cloakroom.cloakroom"),
        "{}",
        refused.detail
    );
    assert_eq!(guarded.spec(0), json!({"token": TOKEN, "audiences": [AUDIENCE]}));
    assert_eq!(guarded.cluster.asked(), ["TokenReview"], "one question for each token");

    let guarded = guarded_by(PATIENT, Options::default(), true).await;
    let token = token(&guarded, OF_API_SERVER, known_for(&json!([OF_API_SERVER])));
    assert_eq!(guarded.upload("demo", Some(&token)).await.status(), 201);
    assert_eq!(guarded.spec(0), json!({"token": token}));
    assert_eq!(guarded.spec(1)["resourceAttributes"]["resource"], "pods");
}

#[tokio::test]
async fn an_answer_about_another_audience_lets_no_token_in() {
    // An API server that knows nothing of audiences answers as if none had been asked about.
    for audiences in [json!([]), Value::Null, json!([OF_API_SERVER]), json!(["cloakroom.other"])] {
        let guarded = strict().await;
        let token = token(&guarded, AUDIENCE, known_for(&audiences));
        assert_eq!(guarded.upload("demo", Some(&token)).await.status(), 401, "{audiences}");
        assert_eq!(guarded.upload_v0("demo", Some(&token), true).await.status(), 401, "{audiences}");
        assert_eq!(guarded.cluster.asked(), ["TokenReview"], "{audiences}");
        guarded.app.assert_nothing_kept().await;
    }
}

#[tokio::test]
async fn a_claim_alone_opens_nothing() {
    for cluster_tokens in [false, true] {
        let guarded = guarded_by(PATIENT, Options::default(), cluster_tokens).await;
        let forged = token(&guarded, AUDIENCE, json!({"error": "invalid bearer token"}));
        assert_eq!(guarded.upload("demo", Some(&forged)).await.status(), 401);
        let other = token(&guarded, "cloakroom.other", json!({"error": "invalid bearer token"}));
        assert_eq!(guarded.upload("demo", Some(&other)).await.status(), 401);
        assert_eq!(guarded.cluster.asked(), ["TokenReview", "TokenReview"]);
    }
}

#[tokio::test]
async fn a_token_that_is_good_elsewhere_too_is_refused() {
    let guarded = strict().await;
    let claims = json!({"aud": [AUDIENCE, OF_API_SERVER], "sub": UPLOADER}).to_string();
    let token = format!("e30.{}.c2lnbmF0dXJl", BASE64_URL_SAFE_NO_PAD.encode(claims));
    guarded.cluster.others.lock().unwrap().insert(token.clone(), known_for(&json!([AUDIENCE])));
    guarded.app.keep_secret(&token);
    assert_eq!(guarded.upload("demo", Some(&token)).await.status(), 401);
}

#[tokio::test]
async fn the_claimed_user_is_in_the_log_and_can_only_be_one_line() {
    let guarded = guarded_by(PATIENT, Options::default(), true).await;
    let upload = |users: &[&[u8]]| {
        let request = guarded.app.put("", "jars").bearer_auth(TOKEN);
        let with = |request: reqwest::RequestBuilder, user: &&[u8]| {
            request.header("x-cloakroom-claimed-user", *user)
        };
        users.iter().fold(request, with).send()
    };
    assert_eq!(upload(&["Ann Müller".as_bytes()]).await.unwrap().status(), 201);
    assert_eq!(logs::lines_with("claimed_user=\"Ann Müller\"").len(), 1);
    let long = [b'a'; 257];
    for users in [&[&b"a"[..], b"b"][..], &[b""], &[b"a\tb"], &[b"\xff"], &[&long]] {
        let refused = problem(upload(users).await.unwrap()).await;
        assert_eq!((refused.status, refused.code.as_str()), (400, "invalid-header"));
        assert!(refused.detail.contains("x-cloakroom-claimed-user"), "{}", refused.detail);
    }
}
