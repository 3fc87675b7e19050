//! What holds memory where bundles are in a bucket: a part of each upload, and what each download has read ahead.

use std::io::Result;
use std::sync::Arc;
use std::time::Duration;

use super::{downloads, uploads};
use crate::abuser::Abuser;

/// One hand in so many uploads.
const HANDS_TO_AN_UPLOAD: u64 = 9;

/// Announced by an upload; it takes five minutes.
const BYTES: u64 = 64 << 20;

/// Far above the slowest pace that is taken, and sent at a time.
const BYTES_A_SECOND: usize = 200 << 10;

/// As many transfers as a client may have at once, and none of them fast.
pub async fn slow_readers_and_writers(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    if !hand.is_multiple_of(HANDS_TO_AN_UPLOAD) {
        return downloads::slow_readers(abuser, hand).await;
    }
    let Some(mut connection) = uploads::let_in(&abuser, hand, BYTES).await? else { return Ok(()) };
    loop {
        connection.send(vec![7; BYTES_A_SECOND]).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
