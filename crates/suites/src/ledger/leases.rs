//! What leases and the cleaner's term allow, by a clock that the test drives.

use std::time::Duration;

use cloakroom_core::resource::{DeletionReason, ResourceId, State};
use cloakroom_storage::ledger::{Authority, Condition, Deletion, LEASE_TIME, LeaseId, LedgerError};

use super::rows::{AnyLedger, completion, new_id, new_lease, open, pending};
use crate::ledgers::LedgerData;
use crate::{Rule, rules};

/// A ledger that was opened for a rule.
struct Leased<'data> {
    ledger: AnyLedger,
    data: &'data LedgerData,
}

pub const RULES: &[Rule<LedgerData>] = rules!(
    an_upload_is_abandoned_by_the_cleaner_only_when_its_lease_has_ended,
    a_lease_that_is_renewed_does_not_end,
    an_upload_that_is_late_is_completed_unless_it_was_abandoned,
    of_two_uploads_each_may_abandon_its_own_only,
    an_upload_whose_lease_was_let_go_can_be_abandoned_at_once,
    what_is_downloaded_is_not_deleted_by_those_who_wait_for_that,
    a_download_that_does_not_renew_its_lease_holds_nothing_off,
    a_download_that_comes_after_the_decision_gets_no_lease,
    a_deletion_that_was_refused_keeps_no_download_off,
    only_the_cleaner_of_this_term_deletes,
    an_uploader_deletes_nothing_that_is_complete,
    only_an_admin_discards_a_row,
    a_lease_that_there_is_not_is_told_by_its_renewal,
    finishing_deletions_leaves_an_upload_that_goes_on,
);

impl<'data> Leased<'data> {
    async fn open(data: &'data LedgerData) -> Self {
        Self { ledger: open(data).await, data }
    }

    async fn uploading(&self) -> (ResourceId, LeaseId) {
        let (id, lease) = (new_id(), new_lease());
        self.ledger.begin(pending(id), lease, &[]).await.unwrap();
        (id, lease)
    }

    async fn complete(&self, (id, lease): (ResourceId, LeaseId)) -> Result<(), LedgerError> {
        self.ledger.complete(completion(id), lease).await
    }

    async fn ready(&self) -> ResourceId {
        let upload = self.uploading().await;
        self.complete(upload).await.unwrap();
        upload.0
    }

    async fn downloading(&self) -> (ResourceId, LeaseId) {
        let (id, lease) = (self.ready().await, new_lease());
        assert!(self.ledger.hold(id, lease).await.unwrap());
        (id, lease)
    }

    async fn cleaner(&self) -> Authority {
        Authority::Cleaner(self.ledger.term().await.unwrap().unwrap())
    }

    async fn is_abandoned_by(&self, id: ResourceId, by: Authority) -> bool {
        self.ledger.abandon(id, by).await.unwrap().is_some()
    }

    async fn is_marked(&self, id: ResourceId, condition: Condition, by: Authority) -> bool {
        let at = completion(id).created_at;
        let deletion = Deletion { id, reason: DeletionReason::Unused, at, condition };
        let is_marked = self.ledger.mark_deleting(deletion, by).await.unwrap();
        let expected = if is_marked { State::Deleting } else { State::Ready };
        assert_eq!(self.ledger.state(id).await.unwrap(), Some(expected));
        is_marked
    }
}

const UNUSED: Condition = Condition::LastUsedAt(None);
const ONE: Duration = Duration::from_millis(1);

async fn an_upload_is_abandoned_by_the_cleaner_only_when_its_lease_has_ended(data: &LedgerData) {
    let it = Leased::open(data).await;
    let (upload, cleaner) = (it.uploading().await, it.cleaner().await);
    it.data.elapse(LEASE_TIME - ONE).await;
    assert!(!it.is_abandoned_by(upload.0, cleaner).await);
    it.data.elapse(ONE).await;
    assert!(it.is_abandoned_by(upload.0, cleaner).await);
    assert!(matches!(it.complete(upload).await, Err(LedgerError::Abandoned { .. })));
    assert!(it.ledger.finish_abandoned(upload.0, None).await.unwrap());
    assert_eq!(it.ledger.state(upload.0).await.unwrap(), None);
}

async fn a_lease_that_is_renewed_does_not_end(data: &LedgerData) {
    let it = Leased::open(data).await;
    let (upload, cleaner) = (it.uploading().await, it.cleaner().await);
    for _ in 0..5 {
        it.data.elapse(LEASE_TIME - ONE).await;
        assert_eq!(it.ledger.renew(&[upload.1]).await.unwrap(), []);
        assert!(!it.is_abandoned_by(upload.0, cleaner).await);
    }
    it.complete(upload).await.unwrap();
}

async fn an_upload_that_is_late_is_completed_unless_it_was_abandoned(data: &LedgerData) {
    let it = Leased::open(data).await;
    let upload = it.uploading().await;
    it.data.elapse(100 * LEASE_TIME).await;
    it.complete(upload).await.unwrap();
    let abandoned = it.uploading().await;
    it.data.elapse(LEASE_TIME).await;
    assert!(it.is_abandoned_by(abandoned.0, it.cleaner().await).await);
    assert!(it.complete(abandoned).await.is_err());
}

async fn of_two_uploads_each_may_abandon_its_own_only(data: &LedgerData) {
    let it = Leased::open(data).await;
    let (one, other) = (it.uploading().await, it.uploading().await);
    assert!(!it.is_abandoned_by(one.0, Authority::Uploader(other.1)).await);
    assert!(!it.is_abandoned_by(one.0, Authority::Ticket).await);
    assert!(!it.is_abandoned_by(one.0, Authority::Admin).await);
    assert!(it.complete((one.0, other.1)).await.is_err());
    assert!(it.is_abandoned_by(other.0, Authority::Uploader(other.1)).await);
    it.complete(one).await.unwrap();
}

async fn an_upload_whose_lease_was_let_go_can_be_abandoned_at_once(data: &LedgerData) {
    let it = Leased::open(data).await;
    let upload = it.uploading().await;
    it.ledger.let_go(upload.1);
    assert!(it.complete(upload).await.is_err());
    assert!(it.is_abandoned_by(upload.0, it.cleaner().await).await);
}

async fn what_is_downloaded_is_not_deleted_by_those_who_wait_for_that(data: &LedgerData) {
    let it = Leased::open(data).await;
    let (id, lease) = it.downloading().await;
    let second = new_lease();
    assert!(it.ledger.hold(id, second).await.unwrap());
    for _ in 0..2 {
        assert!(!it.is_marked(id, UNUSED, it.cleaner().await).await);
        assert!(!it.is_marked(id, UNUSED, Authority::Admin).await);
        it.ledger.let_go(lease);
    }
    it.ledger.let_go(second);
    assert!(it.is_marked(id, UNUSED, it.cleaner().await).await);
    let (id, _) = it.downloading().await;
    assert!(it.is_marked(id, Condition::Always, Authority::Ticket).await, "it was asked for by its holder");
}

async fn a_download_that_does_not_renew_its_lease_holds_nothing_off(data: &LedgerData) {
    let it = Leased::open(data).await;
    let (id, lease) = it.downloading().await;
    it.data.elapse(LEASE_TIME - ONE).await;
    assert_eq!(it.ledger.renew(&[lease]).await.unwrap(), []);
    it.data.elapse(LEASE_TIME - ONE).await;
    assert!(!it.is_marked(id, UNUSED, it.cleaner().await).await);
    it.data.elapse(ONE).await;
    assert!(it.is_marked(id, UNUSED, it.cleaner().await).await);
}

async fn a_download_that_comes_after_the_decision_gets_no_lease(data: &LedgerData) {
    let it = Leased::open(data).await;
    let id = it.ready().await;
    assert!(it.is_marked(id, UNUSED, it.cleaner().await).await);
    assert!(!it.ledger.hold(id, new_lease()).await.unwrap());
}

async fn a_deletion_that_was_refused_keeps_no_download_off(data: &LedgerData) {
    let it = Leased::open(data).await;
    let id = it.ready().await;
    let used_since = Condition::LastUsedAt(Some(completion(id).created_at));
    assert!(!it.is_marked(id, used_since, it.cleaner().await).await);
    assert!(it.ledger.hold(id, new_lease()).await.unwrap());
}

async fn only_the_cleaner_of_this_term_deletes(data: &LedgerData) {
    let before = Leased::open(data).await.cleaner().await;
    let it = Leased::open(data).await;
    let (id, upload) = (it.ready().await, it.uploading().await);
    it.data.elapse(LEASE_TIME).await;
    assert!(!it.is_marked(id, UNUSED, before).await);
    assert!(!it.is_abandoned_by(upload.0, before).await);
    assert!(it.is_marked(id, UNUSED, it.cleaner().await).await);
    assert!(it.is_abandoned_by(upload.0, it.cleaner().await).await);
}

async fn an_uploader_deletes_nothing_that_is_complete(data: &LedgerData) {
    let it = Leased::open(data).await;
    let upload = it.uploading().await;
    it.complete(upload).await.unwrap();
    assert!(!it.is_marked(upload.0, Condition::Always, Authority::Uploader(upload.1)).await);
    assert!(!it.is_abandoned_by(upload.0, Authority::Uploader(upload.1)).await);
}

async fn only_an_admin_discards_a_row(data: &LedgerData) {
    let it = Leased::open(data).await;
    let upload = it.uploading().await;
    it.complete(upload).await.unwrap();
    for by in [Authority::Ticket, Authority::Uploader(upload.1), it.cleaner().await] {
        assert!(!it.ledger.discard(upload.0, by).await.unwrap(), "{by:?}");
        assert!(it.ledger.find(upload.0).await.unwrap().is_some(), "{by:?}");
    }
    assert!(it.ledger.discard(upload.0, Authority::Admin).await.unwrap());
    assert!(it.ledger.find(upload.0).await.unwrap().is_none());
}

async fn a_lease_that_there_is_not_is_told_by_its_renewal(data: &LedgerData) {
    let it = Leased::open(data).await;
    let (kept, ended, unknown) = (it.uploading().await, it.downloading().await, new_lease());
    it.ledger.let_go(ended.1);
    assert_eq!(it.ledger.renew(&[kept.1, ended.1, unknown]).await.unwrap(), [ended.1, unknown]);
}

async fn finishing_deletions_leaves_an_upload_that_goes_on(data: &LedgerData) {
    let it = Leased::open(data).await;
    let upload = it.uploading().await;
    it.data.elapse(LEASE_TIME).await;
    assert!(!it.ledger.finish_abandoned(upload.0, None).await.unwrap());
    it.complete(upload).await.unwrap();
}
