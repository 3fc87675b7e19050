//! What the abuser does to the API server, whose changes the server follows.

use std::io::{Error, Result};
use std::sync::Arc;

use cloakroom_testing::cluster::{Api, Object};
use reqwest::Method;
use serde_json::Value;

use crate::abuser::Abuser;
use crate::tenants::ABUSER;

/// Fifty pods with the labels of an owner, made and then deleted.
pub async fn pods_that_come_and_go(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let api = abuser.api().await;
    let number = abuser.number();
    let pods: Vec<Object> = (0..50)
        .map(|pod| {
            Object::pod(ABUSER, &format!("pod-{hand}-{number}-{pod}"), &[("app", "abuser"), ("pod", "one")])
        })
        .collect();
    for pod in &pods {
        call(&abuser, api, Method::POST, &pod.collection(), Some(&pod.manifest())).await?;
    }
    for pod in &pods {
        call(&abuser, api, Method::DELETE, &format!("{}?gracePeriodSeconds=0", pod.path()), None).await?;
    }
    Ok(())
}

async fn call(abuser: &Abuser, api: &Api, method: Method, path: &str, body: Option<&Value>) -> Result<()> {
    let (status, _) = api.call(method, path, &[], body).await.map_err(Error::other)?;
    abuser.saw(status.to_string());
    Ok(())
}

/// Bundles for pods that nobody makes: each is due soon, and for each the server asks the API server.
pub async fn owners_that_never_were(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let mut connection = abuser.connect(hand).await?;
    loop {
        let name = format!("name=never-{}", abuser.number());
        let answer = connection.ask(abuser.upload(&name, "Content-Length: 0\r\n")).await?;
        abuser.keep(&answer);
        abuser.saw(answer.outcome());
    }
}

/// Twelve pods with a bundle each, which is downloaded; then all of them go at once.
pub async fn owners_that_vanish(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let api = abuser.api().await;
    let number = abuser.number();
    let pods: Vec<Object> =
        (0..12).map(|pod| Object::pod(ABUSER, &format!("gone-{hand}-{number}-{pod}"), &[])).collect();
    let mut connection = abuser.connect(hand).await?;
    for pod in &pods {
        call(&abuser, api, Method::POST, &pod.collection(), Some(&pod.manifest())).await?;
        let query = format!("name={}", pod.name);
        let answer = connection.ask(abuser.upload(&query, "Content-Length: 0\r\n")).await?;
        let Some((id, secret)) = abuser.keep(&answer) else {
            abuser.refused(answer.outcome()).await;
            continue;
        };
        let download = format!(
            "GET /api/v1/resources/{id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n\r\n"
        );
        abuser.saw(format!("{} of the bundle", connection.ask(download).await?.head.status));
    }
    for pod in &pods {
        call(&abuser, api, Method::DELETE, &format!("{}?gracePeriodSeconds=0", pod.path()), None).await?;
    }
    Ok(())
}
