//! Uploads in the protocol of the original, whose owner comes last.

use std::io::Result;
use std::sync::Arc;

use crate::abuser::Abuser;
use crate::connection::Answer;
use crate::connection::Connection;
use crate::tenants::{ABUSER, HONEST};

/// As long as a boundary may be.
const BOUNDARY: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

const BUNDLE_BYTES: usize = 2 << 20;

/// A bundle of what is a delimiter but for its last letter.
pub async fn near_boundaries(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let near = format!("\r\n--{}x", &BOUNDARY[1..]);
    let bundle = near.repeat(BUNDLE_BYTES / near.len());
    let (mut connection, answer) = sent(&abuser, hand, BOUNDARY, ABUSER, &bundle).await?;
    abuser.saw(answer.outcome());
    abuser.discard(&mut connection, &answer).await
}

/// A bundle of delimiters, as short as they can be, each with a letter more.
pub async fn delimiters_and_a_letter(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let near = "\r\n--Bx";
    let bundle = near.repeat(BUNDLE_BYTES / near.len());
    let (mut connection, answer) = sent(&abuser, hand, "B", ABUSER, &bundle).await?;
    abuser.saw(answer.outcome());
    abuser.discard(&mut connection, &answer).await
}

/// The whole bundle is sent before the server can know that it is for others.
pub async fn for_the_namespace_of_others(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let (_, answer) = sent(&abuser, hand, BOUNDARY, HONEST, &"x".repeat(BUNDLE_BYTES)).await?;
    abuser.keep(&answer);
    abuser.saw(answer.outcome());
    Ok(())
}

async fn sent(
    abuser: &Abuser,
    hand: u64,
    boundary: &str,
    namespace: &str,
    bundle: &str,
) -> Result<(Connection, Answer)> {
    let owner = format!(
        r#"{{"ownerNamespace":"{namespace}","ownerLabels":{{"app":"{namespace}"}},"ownerType":"Pod"}}"#
    );
    let part = |name: &str, content: &str| {
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{content}\r\n")
    };
    let form = format!("{}{}--{boundary}--\r\n", part("resources", bundle), part("resourcesOwner", &owner));
    let head = format!(
        "POST /api/v0/resources HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: multipart/form-data; boundary={boundary}\r\nContent-Length: {}\r\n\r\n",
        abuser.token(),
        form.len()
    );
    let mut connection = abuser.connect(hand).await?;
    connection.send(head).await?;
    let answer = connection.ask(form).await?;
    Ok((connection, answer))
}
