//! Answers calls. Faults come first, then authentication and authorization, then the objects.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::Shared;
use super::access::User;
use super::answers::{Refusal, json_response, no_such_path, stream};
use super::discovery::document;
use super::faults::{Call, Fault, Verb};
use super::pod_stream;
use super::request::{Request, Route, Target};
use super::selectors::Selectors;
use super::service_proxy;
use super::watch::{self, Subject};

/// More than any object here.
const LONGEST_BODY: usize = 4 << 20;
/// The API server's own when a client names none is a random time above half an hour.
const WATCH_TIMEOUT: Duration = Duration::from_mins(30);

type Outcome = Result<Response, Refusal>;

pub async fn answer(State(shared): State<Shared>, request: axum::extract::Request) -> Response {
    let request = match service_proxy::Wanted::read(request) {
        Ok(wanted) => return wanted.answer(&shared).await.unwrap_or_else(|refusal| refusal.response()),
        Err(request) => *request,
    };
    let request = match pod_stream::Wanted::read(request) {
        Ok(wanted) => return wanted.answer(&shared).unwrap_or_else(|refusal| refusal.response()),
        Err(request) => *request,
    };
    let (parts, body) = request.into_parts();
    let kinds = shared.lock().kinds.clone();
    let request = Request::read(&kinds, &parts);
    if let Route::Nothing = request.route
        && parts.uri.path() == "/readyz"
    {
        return axum::response::IntoResponse::into_response("ok");
    }
    let body = axum::body::to_bytes(body, LONGEST_BODY).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let user = shared.lock().access.user(&request.token).cloned();
    let fault = {
        let mut inside = shared.lock();
        inside.calls.push(Call {
            verb: request.verb,
            user: user.as_ref().map(|user| user.name.clone()).unwrap_or_default(),
            path: request.path.clone(),
            query: request.query.clone(),
            content_type: request.content_type.clone(),
            body: body.clone(),
        });
        inside.faults.of(request.verb, request.kind(), &request.query)
    };
    let outcome = match fault {
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::LostAnswer) => {
            let done = admit(&shared, &request, user.as_ref())
                .and_then(|user| handle(&shared, &request, &user, &body));
            done.map(|_| stream(watch::cut()))
        }
        Some(fault) => fail(&shared, &request, user.as_ref(), fault),
        None => {
            admit(&shared, &request, user.as_ref()).and_then(|user| handle(&shared, &request, &user, &body))
        }
    };
    outcome.unwrap_or_else(|refusal| refusal.response())
}

fn fail(shared: &Shared, request: &Request, user: Option<&User>, fault: Fault) -> Outcome {
    let expired = Refusal::expired(1, 2);
    match fault {
        Fault::Status(code) => Err(Refusal::new(code, format!("the test wants a {code}"))),
        Fault::Forbidden => {
            let name = user.map_or("system:anonymous", |user| user.name.as_str());
            Err(Refusal::new(403, request.attributes().unwrap_or_default().refusal(name)))
        }
        Fault::TooManyRequests(after) => {
            let seconds = Some(after.as_secs());
            Err(Refusal { retry_after_seconds: seconds, ..Refusal::new(429, "Too many requests") })
        }
        Fault::NoDryRun => {
            Err(Refusal::new(400, "admission webhook \"inject.example.com\" does not support dry run"))
        }
        Fault::Expired if request.verb == Verb::Watch => Ok(stream(Body::from(watch::error_line(&expired)))),
        Fault::Expired => Err(expired),
        Fault::Cut | Fault::LostAnswer => Ok(stream(watch::cut())),
        Fault::Silent | Fault::Hang => Ok(stream(watch::silent())),
        Fault::Empty => {
            let version = shared.lock().world.version;
            let kind = request.kind().ok_or_else(|| Refusal::new(500, "only lists can be empty"))?;
            let metadata = json!({"resourceVersion": version.to_string()});
            Ok(json_response(200, &request.form.list(kind, &[], &metadata)))
        }
    }
}

/// The caller, if the call is allowed.
fn admit(shared: &Shared, request: &Request, user: Option<&User>) -> Result<User, Refusal> {
    let user = user.ok_or_else(|| Refusal::new(401, "Unauthorized"))?;
    if let Some(wanted) = request.attributes()
        && !shared.lock().access.allows(&user.name, &user.groups, &wanted)
    {
        return Err(Refusal::new(403, wanted.refusal(&user.name)));
    }
    Ok(user.clone())
}

fn handle(shared: &Shared, request: &Request, user: &User, body: &Value) -> Outcome {
    match &request.route {
        Route::TokenReview => Ok(json_response(201, &shared.lock().access.review_token(body))),
        Route::SelfReview => {
            let status = json!({"userInfo": {"username": user.name, "groups": user.groups}});
            Ok(json_response(201, &json!({"kind": "SelfSubjectReview", "status": status})))
        }
        Route::TokenRequest(account) => {
            let token = shared.lock().access.request_token(account, body);
            let absent = || Refusal::new(404, format!("serviceaccounts \"{}\" not found", account.name));
            token.map(|answer| json_response(201, &answer)).ok_or_else(absent)
        }
        Route::AccessReview => Ok(json_response(201, &shared.lock().access.review_access(body, user))),
        Route::Discovery => {
            let segments: Vec<&str> = request.path.split('/').filter(|segment| !segment.is_empty()).collect();
            let found = document(&shared.lock().kinds, &segments);
            Ok(found.map_or_else(no_such_path, |document| json_response(200, &document)))
        }
        Route::Objects(target) => objects(shared, request, target, body),
        // The real server answers an unknown path below a known group with a Status, and any other one with a line of
        // text.
        Route::Unknown(wanted) if shared.lock().kinds.iter().any(|kind| kind.group == wanted.group) => {
            Err(Refusal::new(404, "the server could not find the requested resource"))
        }
        Route::Unknown(_) | Route::Nothing => Ok(no_such_path()),
    }
}

fn objects(shared: &Shared, request: &Request, target: &Target, body: &Value) -> Outcome {
    let kind = &target.kind;
    let namespace = target.namespace.as_deref().unwrap_or_default();
    let shown = |code, object: Arc<Value>| json_response(code, &request.form.object(&object));
    match (request.verb, target.name.as_deref()) {
        (Verb::Watch, None) => watch(shared, request, target),
        (Verb::List, None) => list(shared, request, target),
        (Verb::Get, Some(name)) if target.subresource.as_deref() == Some("log") => {
            let key = (namespace.to_owned(), name.to_owned());
            let log = shared.lock().logs.get(&key).cloned();
            log.map(|text| last_lines(request, &text)).ok_or_else(|| Refusal::not_found(kind, name))
        }
        (Verb::Get, Some(name)) => {
            let found = shared.lock().world.get(kind, namespace, name).cloned();
            found.map(|object| shown(200, object)).ok_or_else(|| Refusal::not_found(kind, name))
        }
        (Verb::Create, None) if request.parameter("dryRun") == "All" => {
            let tried = shared.lock().world.try_to_create(kind, namespace, body);
            tried.map(|()| json_response(201, body))
        }
        (Verb::Create, None) => shared
            .change(|world| world.create(kind, namespace, body.clone()))
            .map(|object| shown(201, object)),
        (Verb::Delete, Some(name)) => {
            let uid = body["preconditions"]["uid"].as_str();
            shared
                .change(|world| world.delete_if(kind, namespace, name, uid))
                .map(|object| shown(200, object))
        }
        (Verb::Patch, Some(name)) if request.content_type == "application/apply-patch+yaml" => {
            if request.parameter("fieldManager").is_empty() {
                return Err(Refusal::new(400, "fieldManager is required for apply patch"));
            }
            if request.parameter("dryRun") == "All" {
                let mut inside = shared.lock();
                if let Some(there) = inside.world.get(kind, namespace, name) {
                    return Ok(json_response(200, there));
                }
                let tried = inside.world.try_to_create(kind, namespace, body);
                return tried.map(|()| json_response(201, body));
            }
            let applied = shared.change(|world| world.apply(kind, namespace, name, body));
            applied.map(|(is_new, object)| shown(if is_new { 201 } else { 200 }, object))
        }
        (Verb::Patch, Some(name)) => {
            let is_status = target.subresource.as_deref() == Some("status");
            shared
                .change(|world| world.merge(kind, namespace, name, body, is_status))
                .map(|object| shown(200, object))
        }
        _ => Err(Refusal::new(405, "the server does not allow this method on the requested resource")),
    }
}

/// As the kubelet does it: the last `tailLines` lines, and of these the first `limitBytes` bytes.
fn last_lines(request: &Request, text: &str) -> Response {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let wanted = request.parameter("tailLines").parse().unwrap_or(lines.len());
    let mut text = lines[lines.len().saturating_sub(wanted)..].concat();
    text.truncate(request.parameter("limitBytes").parse().unwrap_or(usize::MAX).min(text.len()));
    axum::response::IntoResponse::into_response(text)
}

fn selectors(request: &Request, target: &Target) -> Result<Selectors, Refusal> {
    let (labels, fields) = (request.parameter("labelSelector"), request.parameter("fieldSelector"));
    Selectors::parse(&target.kind, labels, fields).map_err(|message| Refusal::new(400, message))
}

fn list(shared: &Shared, request: &Request, target: &Target) -> Outcome {
    let selectors = selectors(request, target)?;
    let limit = request.parameter("limit").parse().unwrap_or_default();
    let mut inside = shared.lock();
    let page = match request.parameter("continue") {
        "" => {
            let found = inside.world.select(&target.kind, target.namespace.as_deref(), &selectors);
            inside.world.page(found, limit)
        }
        token => inside.world.next_page(token, limit)?,
    };
    let mut metadata = json!({"resourceVersion": page.version.to_string()});
    if let Some(token) = &page.continue_token {
        metadata["continue"] = token.as_str().into();
        metadata["remainingItemCount"] = page.remaining.into();
    }
    Ok(json_response(200, &request.form.list(&target.kind, &page.items, &metadata)))
}

fn watch(shared: &Shared, request: &Request, target: &Target) -> Outcome {
    let since = match request.parameter("resourceVersion") {
        "" | "0" => None,
        text => Some(
            text.parse().map_err(|_| Refusal::new(400, format!("invalid resource version \"{text}\"")))?,
        ),
    };
    let starts_with_all = request.is_true("sendInitialEvents");
    let seconds = request.parameter("timeoutSeconds").parse().map(Duration::from_secs);
    let subject = Subject {
        kind: target.kind,
        namespace: target.namespace.clone(),
        selectors: selectors(request, target)?,
        form: request.form,
        since: since.filter(|_| !starts_with_all),
        wants_bookmarks: request.is_true("allowWatchBookmarks"),
        marks_initial_events: starts_with_all,
        timeout: seconds.unwrap_or(WATCH_TIMEOUT),
    };
    let oldest = shared.lock().world.oldest;
    if let Some(version) = subject.since.filter(|version| *version < oldest) {
        return Ok(stream(Body::from(watch::error_line(&Refusal::expired(version, oldest)))));
    }
    Ok(stream(watch::open(&shared.inside, shared.changed.subscribe(), subject)))
}
