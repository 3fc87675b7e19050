//! Calls to an API server as one account.

use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::{Client, Method};
use rustls::ClientConfig;
use serde_json::{Value, json};

use super::kind::{NAMESPACE, Object};
use crate::wait::until;

/// Longer than any of these calls takes.
const CALL: Duration = Duration::from_secs(10);

/// The address of an API server, and the account for its calls.
#[derive(Clone)]
pub struct Api {
    client: Client,
    base: String,
    token: String,
}

/// Status and body of an answer. A body that is no JSON becomes a JSON string.
pub type Answer = (u16, Value);

impl Api {
    /// `base` is a URL without a path. Each test needs its own, because connections end with a test's runtime.
    pub fn new(base: &str, token: &str, tls: ClientConfig) -> Self {
        let client = Client::builder().no_proxy().tls_backend_preconfigured(tls).build().unwrap();
        Self { client, base: base.to_owned(), token: token.to_owned() }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, &[], None).await.unwrap()
    }

    /// Only the metadata, as `cloakroom` asks for it; `form` is `PartialObjectMetadata` or `…List`.
    pub async fn get_metadata(&self, path: &str, form: &str) -> Answer {
        let accept = format!("application/json;as={form};g=meta.k8s.io;v=v1");
        self.call(Method::GET, path, &[("accept", &accept)], None).await.unwrap()
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::POST, path, &[], Some(body)).await.unwrap()
    }

    pub async fn merge(&self, path: &str, patch: &Value) -> Answer {
        let headers = [("content-type", "application/merge-patch+json")];
        self.call(Method::PATCH, path, &headers, Some(patch)).await.unwrap()
    }

    pub async fn delete(&self, path: &str) -> Answer {
        let path = format!("{path}?propagationPolicy=Background");
        self.call(Method::DELETE, &path, &[], None).await.unwrap()
    }

    /// One call, which may fail.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> reqwest::Result<Answer> {
        let mut request = self.request(method, path).timeout(CALL);
        if body.is_some() && !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.body(body.map(Value::to_string).unwrap_or_default()).send().await?;
        let status = response.status().as_u16();
        let text = response.text().await?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
    }

    pub async fn create(&self, object: &Object) {
        let (status, answer) = self.post(&object.collection(), &object.manifest()).await;
        assert_eq!(status, 201, "{answer}");
    }

    pub async fn create_namespace(&self, name: &str) {
        self.create(&Object::new(NAMESPACE, "", name, &[])).await;
    }

    /// Deletes an object, and waits until it is gone.
    pub async fn remove(&self, object: &Object) {
        let path = object.path();
        let (status, answer) = self.delete(&path).await;
        assert!([200, 202].contains(&status), "{answer}");
        until(&format!("{path} is gone"), async || self.get(&path).await.0 == 404).await;
    }

    /// Deletes a namespace and what is in it, and waits until both are gone.
    pub async fn remove_namespace(&self, name: &str) {
        self.remove(&Object::new(NAMESPACE, "", name, &[])).await;
    }

    /// Sets the phase of a pod as at its end: `Succeeded` or `Failed`.
    pub async fn finish_pod(&self, pod: &Object, phase: &str) {
        let (status, answer) =
            self.merge(&format!("{}/status", pod.path()), &json!({"status": {"phase": phase}})).await;
        assert_eq!(status, 200, "{answer}");
    }

    /// Opens a watch, with a query that may be empty, and waits for the head of its answer. Of two `timeoutSeconds` the
    /// first counts.
    pub async fn watch(&self, path: &str, query: &str, accept: &str) -> Watch {
        let path = format!("{path}?{query}&watch=true&timeoutSeconds=60");
        let request = self.request(Method::GET, &path).header("accept", accept);
        let response = tokio::time::timeout(CALL, request.send()).await.unwrap().unwrap();
        Watch { status: response.status().as_u16(), body: response.bytes_stream().boxed(), read: Vec::new() }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        if self.token.is_empty() { request } else { request.bearer_auth(&self.token) }
    }
}

/// The events of a watch.
pub struct Watch {
    pub status: u16,
    body: futures_util::stream::BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    read: Vec<u8>,
}

/// The next thing that a watch gets.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    Event(Value),
    /// The server ended it, as after `timeoutSeconds`.
    End,
    /// The connection broke, after so many bytes of a line.
    Broken(usize),
    /// Nothing came in the time that the test waited.
    Silence,
}

impl Watch {
    pub async fn next(&mut self, patience: Duration) -> Next {
        tokio::time::timeout(patience, self.read()).await.unwrap_or(Next::Silence)
    }

    /// What comes after any bookmarks. `patience` is for each of them.
    pub async fn after_bookmarks(&mut self, patience: Duration) -> Next {
        loop {
            match self.next(patience).await {
                Next::Event(event) if event["type"] == "BOOKMARK" => {}
                other => return other,
            }
        }
    }

    /// The next event that is no bookmark: its type, the object's name and its resource version.
    pub async fn change(&mut self) -> (String, String, String) {
        match self.after_bookmarks(CALL).await {
            Next::Event(event) => {
                let metadata = &event["object"]["metadata"];
                (text(&event["type"]), text(&metadata["name"]), text(&metadata["resourceVersion"]))
            }
            other => panic!("a change was expected, and it was {other:?}"),
        }
    }

    async fn read(&mut self) -> Next {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Next::Event(serde_json::from_slice(&line).unwrap());
            }
            match self.body.next().await {
                Some(Ok(bytes)) => self.read.extend_from_slice(&bytes),
                Some(Err(_)) => return Next::Broken(self.read.len()),
                None => return Next::End,
            }
        }
    }
}

/// A JSON string's text; empty for everything else.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
