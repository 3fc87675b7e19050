//! Connections that ask for nothing, or for what they have no right to.

use std::io::Result;
use std::sync::Arc;
use std::time::Duration;

use crate::abuser::Abuser;

/// Says nothing until it is thrown out.
pub async fn half_open(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let mut connection = abuser.connect_without_proxy(hand).await?;
    abuser.saw("open");
    while connection.sip(1024).await? > 0 {}
    Ok(())
}

/// One byte of a head in a second.
pub async fn slow_heads(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let mut connection = abuser.connect_without_proxy(hand).await?;
    abuser.saw("open");
    for byte in abuser.upload("label=app%3Dabuser", "Content-Length: 0\r\n").bytes() {
        connection.send([byte]).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

/// Tokens that only the API server can tell from good ones, each once: the abuser's own with another signature.
pub async fn junk_tokens(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let (signed, signature) = abuser.token().rsplit_once('.').unwrap();
    let mut connection = abuser.connect(hand).await?;
    loop {
        let number = abuser.number().to_string();
        let junk = format!("{signed}.{number}{}", &signature[number.len()..]);
        let upload = abuser.upload("label=app%3Dabuser", "Content-Length: 0\r\n");
        let answer = connection.ask(upload.replace(abuser.token(), &junk)).await?;
        abuser.saw(answer.outcome());
    }
}

/// Uploads without a token, each on a new connection, all from one address.
pub async fn refused_again_and_again(abuser: Arc<Abuser>, _: u64) -> Result<()> {
    let mut connection = abuser.connect(0).await?;
    connection.reset_at_the_end()?;
    let upload = abuser.upload("label=app%3Dabuser", "Content-Length: 0\r\n");
    let without_token = upload.replace(&format!("Authorization: Bearer {}\r\n", abuser.token()), "");
    abuser.saw(connection.ask(without_token).await?.outcome());
    Ok(())
}
