use cloakroom_storage::copies::CopyName;
use cloakroom_testing::front::Turn;
use libtest_mimic::Trial;

use super::{Behind, noise, trials};

pub fn trials() -> Vec<Trial> {
    trials![copies_of_the_ledger_are_kept_listed_read_and_removed]
}

async fn copies_of_the_ledger_are_kept_listed_read_and_removed() {
    let behind = Behind::start(|_| Turn::Pass).await;
    let (store, folder) = (behind.store(), tempfile::tempdir().unwrap());
    assert_eq!(store.copies().await.unwrap(), []);
    let names =
        ["2026-01-02T12-00-00Z", "2026-01-01T12-00-00Z"].map(|name| name.parse::<CopyName>().unwrap());
    // One is sent in parts, and one in a single request.
    for (name, bytes) in names.iter().zip([12 << 20, 4096]) {
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::write(&from, noise(bytes)).unwrap();
        store.keep_copy(*name, &from).await.unwrap();
        store.read_copy(*name, &to).await.unwrap();
        assert!(std::fs::read(&to).unwrap() == std::fs::read(&from).unwrap());
        std::fs::remove_file(&to).unwrap();
    }
    let of_others = behind.gateway.objects().join("prefix/ledger/notes.txt");
    std::fs::write(of_others, "by another program").unwrap();
    assert_eq!(store.copies().await.unwrap(), [names[1], names[0]]);
    for _ in 0..2 {
        store.remove_copy(names[1]).await.unwrap();
    }
    assert_eq!(store.copies().await.unwrap(), [names[0]]);
}
