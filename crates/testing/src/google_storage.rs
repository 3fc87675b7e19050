//! A stand-in for Google Cloud Storage: it translates the dialect of its XML API for a gateway that speaks S3. Objects have numbers
//! (generations) there, by which conditions name them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use percent_encoding::percent_decode_str;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::needs::Need;
use crate::s3_gateway::{ACCESS_KEY, S3Gateway, SECRET_KEY};
use crate::tls;

/// The bucket that it has from the start. Requests have other characters in place of its marks.
pub const BUCKET: &str = "the-team.example";

const CONDITION: &str = "x-goog-if-generation-match";
/// They look like times in microseconds.
const FIRST_GENERATION: u64 = 1_700_000_000_000_000;
const GENERATION: HeaderName = HeaderName::from_static("x-goog-generation");

/// The headers that are signed, and the word for a body that is not.
const SIGNED: &str = "host;x-amz-content-sha256;x-amz-date";
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// The headers of requests that mean the same in both dialects.
const SAME: [&str; 4] = ["content-length", "content-type", "if-match", "range"];

/// A running stand-in. Its gateway ends when this is dropped.
pub struct GoogleStorage {
    pub gateway: S3Gateway,
    address: SocketAddr,
    folder: TempDir,
}

struct Translator {
    gateway: String,
    client: reqwest::Client,
    /// The ETags of generations.
    generations: Mutex<HashMap<u64, String>>,
}

impl GoogleStorage {
    pub fn needs() -> Vec<Need> {
        S3Gateway::needs().into_iter().chain([Need::Program("openssl")]).collect()
    }

    /// Starts it with an empty bucket.
    pub async fn start() -> Self {
        let gateway = S3Gateway::start_with_bucket(BUCKET).await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls::no_roots());
        let translator = Translator {
            gateway: gateway.url(),
            client: client.build().unwrap(),
            generations: Mutex::default(),
        };
        let router = Router::new().fallback(translated).with_state(Arc::new(translator));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let folder = tempfile::tempdir().unwrap();
        make_service_account(folder.path());
        Self { gateway, address, folder }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The file with the key of a service account.
    pub fn credentials(&self) -> PathBuf {
        self.folder.path().join("account.json")
    }
}

/// Makes the file of a service account, with a key that signs its tokens.
fn make_service_account(folder: &Path) {
    let made = Command::new("openssl").args(["genpkey", "-algorithm", "RSA"]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let account = json!({
        "type": "service_account",
        "private_key": String::from_utf8(made.stdout).unwrap(),
        "private_key_id": "key-of-the-tests",
        "client_email": "cloakroom@example.iam.gserviceaccount.com",
    });
    std::fs::write(folder.join("account.json"), account.to_string()).unwrap();
}

async fn translated(State(translator): State<Arc<Translator>>, request: Request) -> Response {
    if !request.headers().get("authorization").is_some_and(|token| token.as_bytes().starts_with(b"Bearer ey"))
    {
        let refusal = "<Error><Code>AuthenticationRequired</Code></Error>";
        return (StatusCode::UNAUTHORIZED, refusal).into_response();
    }
    let (head, body) = request.into_parts();
    // In a signature of S3 the path is written with its slashes.
    let path = percent_decode_str(head.uri.path()).decode_utf8().unwrap();
    let query = head.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let url = format!("{}{path}{query}", translator.gateway);
    let mut headers = signed(head.method.as_str(), &translator.gateway, &path, head.uri.query());
    translator.translate_headers(&head.headers, &mut headers);
    let mut sent = translator.client.request(head.method, url).headers(headers);
    if head.headers.contains_key("content-length") {
        sent = sent.body(reqwest::Body::wrap_stream(body.into_data_stream()));
    }
    let answer = sent.send().await.unwrap();
    let mut translated = Response::new(Body::empty());
    *translated.status_mut() = answer.status();
    *translated.headers_mut() = answer.headers().clone();
    if let Some(etag) = answer.headers().get("etag") {
        let generation = translator.generation(etag.to_str().unwrap());
        translated.headers_mut().insert(GENERATION, HeaderValue::from(generation));
    }
    translated.map(|_| Body::from_stream(answer.bytes_stream()))
}

/// The headers by which the gateway knows who asks: version 4 of AWS's signatures, without a digest of the body.
fn signed(method: &str, gateway: &str, path: &str, query: Option<&str>) -> HeaderMap {
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let (day, host) = (&time[..8], gateway.trim_start_matches("http://"));
    let mut pairs: Vec<&str> = query.unwrap_or_default().split('&').collect();
    pairs.sort_unstable();
    let canonical = format!(
        "{method}\n{path}\n{}\nhost:{host}\nx-amz-content-sha256:{UNSIGNED}\nx-amz-date:{time}\n\n{SIGNED}\n{UNSIGNED}",
        pairs.join("&")
    );
    let scope = format!("{day}/us-east-1/s3/aws4_request");
    let digest = hex(&Sha256::digest(canonical));
    let key = ["us-east-1", "s3", "aws4_request"]
        .into_iter()
        .fold(hmac(format!("AWS4{SECRET_KEY}").as_bytes(), day), |key, next| hmac(&key, next));
    let signature = hex(&hmac(&key, &format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{digest}")));
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}, SignedHeaders={SIGNED}, Signature={signature}"
    );
    [("authorization", authorization), ("x-amz-content-sha256", UNSIGNED.to_owned()), ("x-amz-date", time)]
        .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
        .into_iter()
        .collect()
}

/// HMAC with SHA-256. The key is no longer than a block.
fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let pad = |with: u8| (0..64).map(|at| key.get(at).unwrap_or(&0) ^ with).collect::<Vec<u8>>();
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Translator {
    fn translate_headers(&self, from: &HeaderMap, into: &mut HeaderMap) {
        for name in SAME {
            if let Some(value) = from.get(name) {
                into.insert(HeaderName::from_static(name), value.clone());
            }
        }
        match from.get(CONDITION).map(|generation| generation.to_str().unwrap().parse().unwrap()) {
            Some(0) => drop(into.insert("if-none-match", HeaderValue::from_static("*"))),
            Some(generation) => {
                // Another generation is one that no object has.
                let known = self.generations.lock().unwrap().get(&generation).cloned();
                let etag = known.unwrap_or_else(|| r#""none""#.to_owned()).parse().unwrap();
                into.insert("if-match", etag);
            }
            None => {}
        }
    }

    /// The generation of an object with this ETag.
    fn generation(&self, etag: &str) -> u64 {
        let mut generations = self.generations.lock().unwrap();
        let known = generations.iter().find(|(_, known)| *known == etag).map(|(generation, _)| *generation);
        known.unwrap_or_else(|| {
            let next = FIRST_GENERATION + generations.len() as u64;
            generations.insert(next, etag.to_owned());
            next
        })
    }
}
