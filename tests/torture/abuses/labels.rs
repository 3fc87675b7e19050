//! Resources that have no bytes, and cost by their number and their owners.

use std::io::Result;
use std::sync::Arc;

use crate::abuser::Abuser;

/// Kinds that a server takes as they are.
const KINDS: [&str; 4] = ["Pod", "Deployment", "StatefulSet", "Job"];

const EMPTY: &str = "Content-Length: 0\r\n";

/// Sixty labels as long as Kubernetes has them, which one owner may not have, and as many as it may, by turns.
pub async fn a_flood_of_empty_bundles(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let mut connection = abuser.connect(hand).await?;
    loop {
        let number = abuser.number();
        let labels = if number.is_multiple_of(2) { 60 } else { 9 };
        let prefix = ["a".repeat(60).as_str(); 4].join(".");
        let query: Vec<String> = (0..labels)
            .map(|label| format!("label={prefix}/{:n<60}%3D{number:v>60}", format!("l{label}")))
            .collect();
        let answer = connection.ask(abuser.upload(&query.join("&"), EMPTY)).await?;
        abuser.keep(&answer);
        abuser.saw(answer.outcome());
    }
}

/// Each makes the server ask for one more key of labels.
pub async fn new_label_keys_and_kinds(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let mut connection = abuser.connect(hand).await?;
    loop {
        let number = abuser.number();
        let kind = KINDS[(number % 4) as usize];
        let answer =
            connection.ask(abuser.upload(&format!("label=key-{number}%3Dx&kind={kind}"), EMPTY)).await?;
        abuser.keep(&answer);
        abuser.saw(answer.outcome());
    }
}

/// Each leaves a tombstone.
pub async fn staged_and_deleted(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let mut connection = abuser.connect(hand).await?;
    loop {
        let answer = connection.ask(abuser.upload("label=app%3Dabuser", EMPTY)).await?;
        abuser.saw(answer.outcome());
        abuser.discard(&mut connection, &answer).await?;
    }
}
