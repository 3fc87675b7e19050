//! The claim in a ledger, and the count of its changes.

use cloakroom_storage::ledger::{Fact, Finish, Restored};
use cloakroom_storage::log::Position;
use cloakroom_storage::stamp::{Claim, ClaimState, Installation, Stamp};

use super::rows::{at, deleting, new_id, open, pending};
use crate::ledgers::LedgerData;
use crate::{Rule, rules};

pub const RULES: &[Rule<LedgerData>] = rules!(
    a_claim_is_durable,
    the_copy_that_was_put_back_is_remembered,
    each_change_is_counted_and_a_claim_is_none,
);

fn claim(number: u64, state: ClaimState) -> Claim {
    let random = &mut rand::rng();
    let installation = Installation::generate(random);
    let [before, stamp] =
        [number.saturating_sub(1), number].map(|number| Stamp::new(installation, number, random));
    Claim { stamp, before: (number > 1).then_some(before), state }
}

async fn a_claim_is_durable(data: &LedgerData) {
    assert_eq!(open(data).await.facts().await.unwrap().claim, None);
    for (number, state) in [(1, ClaimState::Begun), (1, ClaimState::Made), (u64::MAX, ClaimState::Behind)] {
        let claim = claim(number, state);
        open(data).await.write(Fact::Claim(claim)).await.unwrap();
        assert_eq!(open(data).await.facts().await.unwrap().claim, Some(claim));
    }
}

async fn the_copy_that_was_put_back_is_remembered(data: &LedgerData) {
    assert_eq!(open(data).await.facts().await.unwrap().restored, None);
    for is_behind in [true, false] {
        let restored = Restored { copy: Position { epoch: 3, number: 7 }, is_behind };
        open(data).await.write(Fact::Restored(restored)).await.unwrap();
        assert_eq!(open(data).await.facts().await.unwrap().restored, Some(restored));
    }
}

async fn each_change_is_counted_and_a_claim_is_none(data: &LedgerData) {
    let ledger = open(data).await;
    let mut before = ledger.changes();
    let mut has_changed = async |what: &str, expected: bool| {
        let now = ledger.changes();
        assert_eq!(now > before, expected, "{what}");
        before = now;
    };
    let id = new_id();
    ledger.begin(pending(id)).await.unwrap();
    has_changed("an upload", true).await;
    ledger.abandon(id).await.unwrap().unwrap();
    ledger.finish(id, Finish::Abandoned { late: None }).await.unwrap();
    has_changed("the end of an upload", true).await;
    ledger.write(Fact::Claim(claim(1, ClaimState::Made))).await.unwrap();
    ledger.find(id).await.unwrap();
    ledger.mark_used(id, at(1)).await.unwrap();
    ledger.write(Fact::Strays { found: Vec::new(), gone: Vec::new() }).await.unwrap();
    has_changed("a claim, and what changes no row", false).await;
    let id = deleting(&ledger).await;
    has_changed("a deletion that is decided", true).await;
    ledger.finish(id, Finish::Deleted).await.unwrap();
    has_changed("its end", true).await;
}
