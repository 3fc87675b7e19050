//! Uploads that hold room, slots and memory.

use std::io::Result;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crate::abuser::Abuser;
use crate::connection::Connection;

const OWNER: &str = "label=app%3Dabuser";

/// More than one bundle may have, and the most that it may have.
const TOO_LARGE_BYTES: u64 = 20 << 30;
const LARGEST_BYTES: u64 = 2 << 30;

const SLOWLY: Duration = Duration::from_secs(1);

/// Holds room that it never fills, at four times the slowest pace that is taken: as large a piece as there is, so that all
/// hands together leave nothing.
pub async fn announced_and_trickled(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    if hand == 0 {
        return let_in(&abuser, hand, TOO_LARGE_BYTES).await.map(drop);
    }
    for halvings in 0..14 {
        if let Some(mut connection) = let_in(&abuser, hand, LARGEST_BYTES >> halvings).await? {
            loop {
                connection.send(vec![7; 64 << 10]).await?;
                tokio::time::sleep(SLOWLY).await;
            }
        }
    }
    abuser.saw("nothing left");
    Ok(())
}

/// Holds a slot, and sends nothing until it is thrown out.
pub async fn stalled(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let Some(mut connection) = let_in(&abuser, hand, 1 << 20).await? else { return Ok(()) };
    connection.send(vec![7; 1 << 10]).await?;
    let answer = connection.answer().await?;
    abuser.saw(answer.outcome());
    Ok(())
}

/// 8 KiB, each byte of it with a length and two line ends, as fast as the server takes it, which is not fast.
pub async fn chunks_of_one_byte(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    const IN_A_BLOCK: usize = 1 << 10;
    let head = abuser.upload(OWNER, "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n");
    let Some(mut connection) = begun(&abuser, hand, head).await? else { return Ok(()) };
    let block = b"1\r\nx\r\n".repeat(IN_A_BLOCK);
    for _ in 0..(8 << 10) / IN_A_BLOCK {
        connection.send(&block).await?;
        abuser.saw("block");
    }
    let answer = connection.ask("0\r\n\r\n").await?;
    abuser.saw(answer.outcome());
    abuser.discard(&mut connection, &answer).await
}

/// As much as the server takes, of bundles that are deleted again.
pub async fn at_full_speed(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    const BYTES: u64 = 20_000_000;
    static BUNDLE: LazyLock<Vec<u8>> = LazyLock::new(|| vec![7; BYTES as usize]);
    let Some(mut connection) = let_in(&abuser, hand, BYTES).await? else { return Ok(()) };
    let answer = connection.ask(BUNDLE.as_slice()).await?;
    abuser.saw(answer.outcome());
    abuser.discard(&mut connection, &answer).await
}

/// Half of what was announced, and then no connection.
pub async fn broken_off(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let Some(mut connection) = let_in(&abuser, hand, 1 << 20).await? else { return Ok(()) };
    connection.send(vec![7; 512 << 10]).await?;
    abuser.saw("broken off");
    Ok(())
}

/// An upload that the server waits for; nothing if it was refused.
pub async fn let_in(abuser: &Abuser, hand: u64, bytes: u64) -> Result<Option<Connection>> {
    let headers = format!("Content-Length: {bytes}\r\nExpect: 100-continue\r\n");
    begun(abuser, hand, abuser.upload(OWNER, &headers)).await
}

async fn begun(abuser: &Abuser, hand: u64, request: String) -> Result<Option<Connection>> {
    let mut connection = abuser.connect(hand).await?;
    connection.send(request).await?;
    let head = connection.head().await?;
    if head.status == 100 {
        abuser.saw("100");
        return Ok(Some(connection));
    }
    let answer = connection.rest_of(head).await?;
    abuser.refused(answer.outcome()).await;
    Ok(None)
}
