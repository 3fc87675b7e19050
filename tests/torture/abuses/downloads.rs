//! Downloads that hold slots, and requests that look like downloads.

use std::io::Result;
use std::sync::Arc;
use std::time::Duration;

use crate::abuser::Abuser;

/// Just above the slowest pace that is taken (the default of `--min-rate`), and what is read at a time.
const BYTES_A_SECOND: usize = 20 << 10;

/// An id that no resource has.
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

fn request(method: &str, id: &str, secret: &str, headers: &str) -> String {
    format!(
        "{method} /api/v1/resources/{id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n{headers}\r\n"
    )
}

/// Holds a slot and what the server has read ahead.
pub async fn slow_readers(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let (id, secret) = abuser.bundle();
    let mut connection = abuser.connect_narrow(hand).await?;
    connection.send(request("GET", id, secret, "")).await?;
    let head = connection.head().await?;
    if head.status != 200 {
        abuser.refused(head.status.to_string()).await;
        return Ok(());
    }
    abuser.saw("200");
    loop {
        let mut read = 0;
        while read < BYTES_A_SECOND {
            match connection.sip(BYTES_A_SECOND - read).await? {
                0 => return Ok(()),
                more => read += more,
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        abuser.saw("second");
    }
}

/// Many answers for little; with many ranges, a whole bundle that is not read.
pub async fn heads_and_ranges(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let (id, secret) = abuser.bundle();
    let mut connection = abuser.connect(hand).await?;
    for _ in 0..32 {
        connection.send(request("HEAD", id, secret, "")).await?;
        abuser.saw(format!("{} of HEAD", connection.head().await?.status));
        let at = abuser.number();
        let range = format!("Range: bytes={at}-{at}\r\n");
        abuser.saw(connection.ask(request("GET", id, secret, &range)).await?.outcome());
    }
    let many: Vec<String> = (0..2000).map(|at| format!("{at}-{at}")).collect();
    let range = format!("Range: bytes={}\r\n", many.join(","));
    connection.send(request("GET", id, secret, &range)).await?;
    abuser.saw(format!("{} of many ranges", connection.head().await?.status));
    Ok(())
}

/// Ids that do not exist, and one that does with secrets that are not its own; in both protocols.
pub async fn wrong_tickets(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let (id, _) = abuser.bundle();
    let mut connection = abuser.connect(hand).await?;
    loop {
        let secret = format!("{:x<43}", abuser.number());
        for id in [UNKNOWN, id] {
            abuser.saw(connection.ask(request("GET", id, &secret, "")).await?.outcome());
        }
        let old =
            format!("GET /api/v0/resources/{id} HTTP/1.1\r\nHost: x\r\nAuthorization: {secret}\r\n\r\n");
        abuser.saw(connection.ask(old).await?.outcome());
    }
}

/// Holds the bytes and a descriptor of a bundle that is deleted, for as long as the server lets it.
pub async fn deleted_while_they_are_read(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let mut connection = abuser.connect(hand).await?;
    let length = format!("Content-Length: {}\r\n", 1 << 20);
    connection.send(abuser.upload("label=app%3Dabuser", &length)).await?;
    let answer = connection.ask(vec![7; 1 << 20]).await?;
    let Some((id, secret)) = abuser.keep(&answer) else {
        abuser.refused(answer.outcome()).await;
        return Ok(());
    };
    let mut reader = abuser.connect_narrow(hand).await?;
    reader.send(request("GET", &id, &secret, "")).await?;
    reader.head().await?;
    let deleted = connection.ask(request("DELETE", &id, &secret, "")).await?;
    abuser.saw(format!("{} of DELETE", deleted.head.status));
    abuser.saw(connection.ask(request("GET", &id, &secret, "")).await?.outcome());
    while reader.sip(1024).await? > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
