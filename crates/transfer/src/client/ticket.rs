//! Requests about a staged resource, and about the server itself.

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder, Response};
use serde::de::DeserializeOwned;

use super::address::ServerAddress;
use super::answer::has_content_type;
use super::failure::Failure;
use super::http::HttpClient;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::protocol::v1::{self, KeyedUrl, Metadata, ReadKeyTerms, ServerInfo, Ticket};
use cloakroom_core::resource::ResourceId;
use cloakroom_core::time::SparkDuration;

impl HttpClient {
    /// Asks the server for its description.
    pub async fn server_info(&self, server: &ServerAddress) -> Result<ServerInfo, Failure> {
        let url = server.join(v1::INFO);
        self.json(self.to_server().request(Method::GET, url), &[]).await
    }

    /// Asks for the metadata of a ticket's resource. This does not count as a use of the resource.
    pub async fn resource_metadata(
        &self,
        server: &ServerAddress,
        ticket: &Ticket,
    ) -> Result<Metadata, Failure> {
        self.metadata(server, &ticket.resource_id, &ticket.resource_secret).await
    }

    /// Whether the server says that it has deleted the resource with this id and secret. Only the server that had the
    /// resource can say so, and only to a client that sends the secret.
    pub async fn is_gone(
        &self,
        server: &ServerAddress,
        id: &ResourceId,
        secret: &str,
    ) -> Result<bool, Failure> {
        match self.metadata(server, &id.to_string(), secret).await {
            Ok(_) => Ok(false),
            Err(Failure::Answered(answer)) if answer.status == 410 && answer.has_code(Code::Gone) => Ok(true),
            Err(failure) => Err(failure),
        }
    }

    async fn metadata(&self, server: &ServerAddress, id: &str, secret: &str) -> Result<Metadata, Failure> {
        let url = server.join(&v1::metadata_path(id));
        let request = self.to_server().request(Method::GET, url);
        self.json(request.bearer_auth(secret), &[secret]).await
    }

    /// Makes a URL that downloads the ticket's resource without a header, until it ends. It begins as the server has it.
    pub async fn make_read_key(
        &self,
        server: &ServerAddress,
        ticket: &Ticket,
        ttl: Option<SparkDuration>,
    ) -> Result<KeyedUrl, Failure> {
        let url = server.join(&v1::keys_path(&ticket.resource_id));
        let terms = serde_json::json!(ReadKeyTerms { ttl: ttl.map(|ttl| ttl.to_string()) }).to_string();
        let request = self.to_server().request(Method::POST, url);
        let request = request.header(CONTENT_TYPE, "application/json").body(terms);
        self.json(request.bearer_auth(&ticket.resource_secret), &[&ticket.resource_secret]).await
    }

    /// Releases a ticket's resource. If the resource is already gone, that is a success.
    pub async fn release(&self, server: &ServerAddress, ticket: &Ticket) -> Result<(), Failure> {
        let url = server.join(&v1::resource_path(&ticket.resource_id));
        let request = self.to_server().request(Method::DELETE, url);
        self.in_time(async {
            let response = self.ask(request.bearer_auth(&ticket.resource_secret)).await?;
            match response.status().as_u16() {
                200..=299 | 404 | 410 => Ok(()),
                _ => Err(self.answered(response, &[&ticket.resource_secret]).await),
            }
        })
        .await
    }

    async fn json<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        secrets: &[&str],
    ) -> Result<T, Failure> {
        let request = request.header(ACCEPT, "application/json");
        self.in_time(async { self.read_json(self.ask(request).await?, secrets).await }).await
    }

    async fn read_json<T: DeserializeOwned>(
        &self,
        response: Response,
        secrets: &[&str],
    ) -> Result<T, Failure> {
        if !response.status().is_success() {
            return Err(self.answered(response, secrets).await);
        }
        let is_json = has_content_type(response.headers(), "application/json");
        let body = self.whole_body(response).await?;
        let read = Some(body).filter(|_| is_json).and_then(|body| serde_json::from_slice(&body).ok());
        read.ok_or_else(|| Failure::Foreign { why: "the server there is not a cloakroom server".to_owned() })
    }

    async fn in_time<T>(&self, exchange: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let after = self.timeouts().request;
        tokio::time::timeout(after, exchange).await.unwrap_or(Err(Failure::NoAnswer { after }))
    }
}
