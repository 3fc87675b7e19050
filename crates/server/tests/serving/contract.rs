//! The OpenAPI document describes what is served, all of it and nothing else; request ids are everywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cloakroom_core::protocol::problem::Code;
use cloakroom_testing::logs;
use cloakroom_testing::wire::ask;
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::support::TestApp;
use crate::support::app::{Options, problem};

const ID: &str = "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1";
const METHODS: [&str; 7] = ["get", "head", "post", "put", "delete", "patch", "options"];

async fn document(app: &TestApp) -> Value {
    let response = app.get("/api/openapi.json").send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"application/json".parse().unwrap())
    );
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

/// Path to methods, as documented.
fn documented(document: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let paths = document["paths"].as_object().unwrap();
    let methods = |item: &Value| {
        let keys = item.as_object().unwrap().keys().map(String::as_str);
        keys.filter(|key| METHODS.contains(key)).map(str::to_owned).collect()
    };
    paths.iter().map(|(path, item)| (path.clone(), methods(item))).collect()
}

async fn status_and_code(app: &TestApp, method: &str, path: &str) -> (u16, String) {
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
    let response =
        app.client.request(method.clone(), app.url(&path.replace("{id}", ID))).send().await.unwrap();
    let status = response.status().as_u16();
    if status < 400 || method == Method::HEAD {
        (status, String::new())
    } else {
        (status, problem(response).await.code.to_string())
    }
}

#[tokio::test]
async fn everything_in_the_document_is_served_and_nothing_else_on_its_paths() {
    let app = TestApp::start().await;
    let document = document(&app).await;
    let documented = documented(&document);
    assert!(documented.len() >= 10, "{documented:?}");
    for (path, methods) in &documented {
        for method in METHODS {
            let (status, code) = status_and_code(&app, method, path).await;
            // HEAD comes with GET (RFC 9110, section 9.3.2) and needs no words.
            let is_documented = methods.contains(method) || (method == "head" && methods.contains("get"));
            assert_eq!(status != 405, is_documented, "{method} {path} answers {status}");
            assert_ne!(code, "no-such-path", "{method} {path}");
        }
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// What stands between `before` and `after`, each time.
fn between<'a>(text: &'a str, before: &str, after: char) -> Vec<&'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split(after).next()).collect()
}

#[tokio::test]
async fn every_route_in_the_source_is_in_the_document() {
    let app = TestApp::start().await;
    let documented = documented(&document(&app).await);
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http"), &mut files);
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    // Routes without utoipa's macro are those of these constants, and WebHDFS, which is Hadoop's.
    let by_hand: BTreeSet<&str> = between(&text, ".route(", ',').into_iter().map(str::trim).collect();
    assert_eq!(by_hand, BTreeSet::from(["BELOW", "HEALTHZ", "METRICS", "OPENAPI", "READYZ"]));
    for path in ["/healthz", "/readyz", "/api/openapi.json"] {
        assert!(documented[path].contains("get"), "{path}");
    }
    assert!(
        !documented.contains_key("/metrics"),
        "its format is Prometheus', which no generator of clients knows"
    );
    let described = [between(&text, "path = \"", '"'), between(&text, ", \"/api", '"')].concat();
    assert!(described.len() >= 15);
    for path in described {
        let path = if path.starts_with("/") { path.to_owned() } else { format!("/api{path}") };
        assert!(documented.contains_key(&path) || documented.contains_key(&format!("/api{path}")), "{path}");
    }
}

#[tokio::test]
async fn every_error_code_is_in_the_document_with_its_status() {
    let document = document(&TestApp::start().await).await;
    let code = &document["components"]["schemas"]["Code"];
    let listed: Vec<&str> =
        code["enum"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let all: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(listed, all);
    let description = code["description"].as_str().unwrap();
    for code in Code::ALL {
        let line = format!("`{}` ({}): ", code.as_str(), code.status());
        assert!(description.contains(&line), "{line}: {description}");
    }
    let property = &document["components"]["schemas"]["Problem"]["properties"]["code"];
    assert!(property.to_string().contains("#/components/schemas/Code"), "{property}");
}

/// Every operation, with its method and path.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(METHODS.contains(&method.as_str()), "{method} {path}");
            found.push((format!("{method} {path}"), operation));
        }
    }
    found
}

// Invariant: clients can be generated from the OpenAPI document: each operation has its id, bundles are bytes, errors
// have their body.
#[tokio::test]
async fn every_operation_has_an_id_of_its_own() {
    let document = document(&TestApp::start().await).await;
    let mut ids = BTreeSet::new();
    for (name, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap_or_else(|| panic!("{name} has no id"));
        assert!(ids.insert(id), "{name}: another operation has the id {id}");
        let is_camel_case = id.starts_with(|c: char| c.is_ascii_lowercase())
            && id.chars().all(|c: char| c.is_ascii_alphanumeric());
        assert!(is_camel_case, "{name}: {id}");
        assert_eq!(id.contains("V0"), name.contains("/api/v0"), "{name}: {id}");
    }
    assert!(ids.len() > 20, "{ids:?}");
}

/// What a reference leads to.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let path = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
    path.map_or(schema, |path| document.pointer(path).unwrap_or_else(|| panic!("nothing is at {path}")))
}

#[tokio::test]
async fn bundles_are_bytes_and_nothing_is_an_array_of_integers() {
    fn check(value: &Value) {
        if value["type"] == "array" {
            assert_ne!(value["items"]["type"], "integer", "{value}");
        }
        match value {
            Value::Object(fields) => fields.values().for_each(check),
            Value::Array(items) => items.iter().for_each(check),
            _ => {}
        }
    }
    let mut document = document(&TestApp::start().await).await;
    // A range of a source is a pair of numbers.
    let ranges = document["components"]["schemas"]["RecipePart"].take();
    assert!(ranges.to_string().contains("its first byte, and its length"), "{ranges}");
    check(&document);
    let bytes = serde_json::json!({"type": "string", "format": "binary"});
    let mut bodies = Vec::new();
    for (name, operation) in operations(&document) {
        let answers = operation["responses"].as_object().unwrap().values();
        for body in std::iter::once(&operation["requestBody"]).chain(answers) {
            for (content_type, content) in body["content"].as_object().into_iter().flatten() {
                let schema = resolved(&document, &content["schema"]);
                match content_type.as_str() {
                    "application/octet-stream" => assert_eq!(*schema, bytes, "{name}"),
                    "multipart/form-data" => {
                        let bundle = &schema["properties"]["resources"];
                        assert_eq!((&bundle["type"], &bundle["format"]), (&bytes["type"], &bytes["format"]));
                        let owner = resolved(&document, &schema["properties"]["resourcesOwner"]);
                        assert!(owner["properties"].get("ownerNamespace").is_some(), "{name}: {schema}");
                        assert_eq!(schema["required"], serde_json::json!(["resources", "resourcesOwner"]));
                    }
                    _ => continue,
                }
                bodies.push(name.clone());
            }
        }
    }
    // Six uploads in v1 and two in v0, and two downloads in v1 and one in v0, each whole or a part.
    assert_eq!(bodies.len(), 6 + 2 + 3 * 2, "{bodies:?}");
}

#[tokio::test]
async fn every_error_has_a_problem_as_its_body_and_answers_to_head_have_none() {
    let document = document(&TestApp::start().await).await;
    let problem = serde_json::json!({
        "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
    });
    for (name, operation) in operations(&document) {
        let answers = operation["responses"].as_object().unwrap();
        assert!(answers.contains_key("500"), "{name}");
        for (status, answer) in answers {
            assert!(status.parse::<u16>().is_ok(), "{name}: generators do not know the status {status}");
            assert!(answer["headers"].get("x-request-id").is_some(), "{name} {status}");
            let content = answer.get("content");
            if name.starts_with("head ") {
                assert_eq!(content, None, "{name} {status}");
            } else if status.as_str() >= "400" {
                assert_eq!(content, Some(&problem), "{name} {status}");
            }
        }
    }
    let fields = document["components"]["schemas"]["Problem"]["required"].clone();
    assert_eq!(fields, serde_json::json!(["type", "title", "status", "code", "detail"]));
}

#[tokio::test]
async fn what_opens_an_operation_is_a_scheme_and_no_parameter() {
    let document = document(&TestApp::start().await).await;
    let schemes = document["components"]["securitySchemes"].as_object().unwrap();
    let mut used = BTreeSet::new();
    for (name, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            // OpenAPI 3.1, parameter object: a header of this name is ignored.
            assert_ne!(parameter["name"], "authorization", "{name}");
            assert_ne!(parameter["schema"]["type"][1], "null", "{name}: {parameter}");
        }
        for requirement in operation["security"].as_array().into_iter().flatten() {
            used.extend(requirement.as_object().unwrap().keys().cloned());
        }
        let is_admin = operation["security"].to_string().contains("adminToken");
        assert_eq!(is_admin, name.contains(" /admin/"), "{name}");
    }
    assert_eq!(used, schemes.keys().cloned().collect());
}

/// Requests that are answered with an error, by what the document calls their path.
fn errors(app: &TestApp) -> Vec<(&'static str, RequestBuilder)> {
    let v1 = |method: Method, query: &str| {
        app.client.request(method, app.url(&format!("/api/v1/resources{query}")))
    };
    let owner = "?namespace=demo&label=app=x";
    let get = |id: &str| app.get(&format!("/api/v1/resources/{id}"));
    vec![
        ("/api/v1/resources", v1(Method::PUT, "?")),
        ("/api/v1/resources", v1(Method::PUT, "?namespace=demo&label=app=x&x=y")),
        ("/api/v1/resources", v1(Method::POST, owner).header("content-digest", "x")),
        ("/api/v1/resources", v1(Method::POST, owner).header("content-type", "multipart/form-data")),
        (
            "/api/v1/resources",
            v1(Method::PUT, owner).header("content-digest", format!("sha-256=:{}=:", "A".repeat(43))),
        ),
        ("/api/v1/resources", v1(Method::PUT, owner).body(vec![7; 1001])),
        ("/api/v1/resources", v1(Method::PUT, owner).body(vec![7; 900])),
        ("/api/v1/resources/{id}", app.put("&x=y", "jars")),
        ("/api/v1/resources/{id}", get(ID)),
        ("/api/v1/resources/{id}", get(ID).bearer_auth("x")),
        ("/api/v1/resources/{id}", app.client.delete(app.url(&format!("/api/v1/resources/{ID}")))),
        ("/api/v1/resources/{id}/metadata", get(&format!("{ID}/metadata"))),
        ("/api/v1/resources/{id}/metadata", get(&format!("{ID}/metadata")).bearer_auth("x")),
        ("/api/v0/resources", app.client.post(app.url("/api/v0/resources"))),
        ("/api/v0/resources/{id}", app.get(&format!("/api/v0/resources/{ID}"))),
    ]
}

async fn small() -> TestApp {
    let mut options = Options::default();
    options.limits.capacity.max_resource_size = 1000;
    options.limits.capacity.max_total_size = Some(800);
    TestApp::start_with(options).await
}

#[tokio::test]
async fn every_error_that_is_answered_is_documented_where_it_occurs() {
    let app = small().await;
    let document = document(&app).await;
    let mut seen = BTreeSet::new();
    for (path, request) in errors(&app) {
        let (client, request) = request.build_split();
        let request = request.unwrap();
        let method = request.method().as_str().to_lowercase();
        let problem = problem(client.execute(request).await.unwrap()).await;
        let responses = &document["paths"][path][&method]["responses"];
        let status = problem.status.to_string();
        let response = responses.get(&status);
        let response = response.unwrap_or_else(|| panic!("{method} {path} {status} is not documented"));
        let says = response["description"].as_str().unwrap();
        assert!(says.contains(problem.code.as_str()), "{method} {path}: {says}: {}", problem.code);
        assert!(response["content"].get("application/problem+json").is_some(), "{method} {path} {status}");
        seen.insert(problem.code.to_string());
    }
    assert!(seen.len() >= 9, "{seen:?}");
}

#[tokio::test]
async fn a_callers_request_id_is_kept_in_answer_problem_and_log() {
    let app = small().await;
    let ticket = app.stage("jars").await;
    let etag = format!("\"{}\"", ticket.sha256);
    let mut requests: Vec<RequestBuilder> = errors(&app).into_iter().map(|(_, request)| request).collect();
    requests.extend([
        app.put("", "jars"),
        app.download(&ticket),
        app.download(&ticket).header("if-none-match", etag),
        app.client.head(&ticket.url).bearer_auth("x"),
        app.client.patch(&ticket.url),
        app.get("/nowhere"),
        app.get("/healthz"),
        app.delete(&ticket),
        app.download(&ticket),
    ]);
    for (number, request) in requests.into_iter().enumerate() {
        let id = format!("Caller-{:016x}/{number}", rand::random::<u64>());
        let response = request.header("x-request-id", &id).send().await.unwrap();
        assert_eq!(response.headers()["x-request-id"], id, "{number}");
        let status = response.status();
        if status.as_u16() == 201 {
            app.ticket(response).await;
        } else if status.is_client_error() && response.headers()["content-length"] != "0" {
            let body = response.text().await.unwrap();
            assert!(body.is_empty() || body.contains(&format!("\"requestId\":\"{id}\"")), "{body}");
        }
        let lines = logs::lines_with(&id);
        let is_said = |line: &String| {
            line.contains("answered") && line.contains(&format!("status={}", status.as_u16()))
        };
        assert!(lines.iter().any(is_said), "{number}: {lines:?}");
    }
}

#[tokio::test]
async fn a_hostile_request_id_is_replaced() {
    let app = TestApp::start().await;
    let long = "a".repeat(129);
    for hostile in ["", " ", "a b", "a\tb", "<script>", "é", "\"", "a\u{7f}", "a;b", &long] {
        for path in ["/healthz", "/nowhere", "/api/v1/resources"] {
            let answer = ask(
                app.address,
                format!("GET {path} HTTP/1.1\r\nHost: x\r\nX-Request-Id: {hostile}\r\n\r\n"),
            )
            .await;
            if answer.status == 400 {
                // Not even a header: the connection's own answer.
                assert_eq!(hostile, "a\u{7f}");
                continue;
            }
            let id = answer.header("x-request-id");
            assert!(
                id.len() == 16 && id.chars().all(|c| c.is_ascii_hexdigit()),
                "{hostile:?} {path}: {id:?}"
            );
        }
    }
    let most = "a".repeat(128);
    let answer =
        ask(app.address, format!("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: {most}\r\n\r\n")).await;
    assert_eq!(answer.header("x-request-id"), most);
}

#[tokio::test]
async fn what_conditional_requests_answer_is_in_the_document() {
    let app = TestApp::start().await;
    let document = document(&app).await;
    let ticket = app.stage("jars").await;
    for (version, method) in
        [("v0", Method::GET), ("v0", Method::HEAD), ("v1", Method::GET), ("v1", Method::HEAD)]
    {
        let path = format!("/api/{version}/resources/{{id}}");
        let responses = &document["paths"][&path][method.as_str().to_lowercase()]["responses"];
        for (name, value, expected) in
            [("if-match", "\"x\"", 412), ("if-none-match", "*", 304), ("range", "bytes=1-2", 206)]
        {
            let url = app.url(&path.replace("{id}", &ticket.resource_id));
            let request = app.client.request(method.clone(), url).bearer_auth(&ticket.resource_secret);
            let status = request.header(name, value).send().await.unwrap().status().as_u16();
            let expected = if (expected, &method) == (206, &Method::HEAD) { 200 } else { expected };
            assert_eq!(status, expected, "{method} {path} {name}");
            assert!(
                responses.get(status.to_string()).is_some(),
                "{method} {path} {name}: {status} is not documented"
            );
        }
    }
}
