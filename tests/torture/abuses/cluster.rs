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
