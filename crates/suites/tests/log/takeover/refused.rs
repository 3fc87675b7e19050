//! Buckets in which something is missing, damaged or of another one, and what an admin does about it.

use std::time::Duration;

use cloakroom_storage::log::WriterState;
use tokio::sync::Notify;

use super::{Server, at, installation};

// Invariant: a log that is not whole, and a bucket that has lost its stamp, its copies or the end of its log, stop
// the start and are named.
#[tokio::test]
async fn a_log_that_is_not_whole_is_refused_and_its_group_is_named() {
    let damaged = |server: &Server| {
        server.add_group(at(1, 1), "a");
        let whole = server.store.objects().groups[&at(1, 1)].clone();
        server.store.objects().groups.insert(at(1, 1), whole.slice(..whole.len() / 2));
    };
    let misplaced = |server: &Server| {
        server.add_group(at(1, 2), "a");
        let other = server.store.objects().groups.remove(&at(1, 2)).unwrap();
        server.store.objects().groups.insert(at(1, 1), other);
    };
    let gap = |server: &Server| server.add_group(at(1, 2), "a");
    for (spoil, says) in [
        (
            &damaged as &dyn Fn(&Server),
            "log/1-1 cannot be used, because its digest is not that of its content: put it back",
        ),
        (
            &misplaced,
            "log/1-1 cannot be used, because it says that it is the group 1-2 of the installation 00000000000000ab",
        ),
        (&gap, "log/1-1 is missing, and the next one is there"),
    ] {
        let server = Server::new();
        server.set_stamp(1, WriterState::Stopped);
        server.store.objects().copies.insert(at(1, 0), Vec::new());
        spoil(&server);
        let refused = server.starts().await.err().unwrap().to_string();
        assert!(refused.starts_with(says), "{refused}");
        assert!(!server.store.objects().copies.contains_key(&at(2, 0)), "{says}");
    }
}

#[tokio::test]
async fn a_ledger_whose_stamp_is_missing_is_not_begun_anew() {
    let server = Server::new();
    drop(server.starts().await.unwrap().heartbeat);
    server.store.objects().stamp = None;
    let refused = server.starts().await.err().unwrap().to_string();
    assert!(refused.starts_with("stamp is missing, which says which server writes"), "{refused}");
    assert_eq!(server.store.objects().copies[&at(1, 0)], b"begins\n");
}

/// It is read some groups ahead.
#[tokio::test]
async fn a_long_log_is_read_in_order_and_a_gap_anywhere_is_found() {
    let long = || {
        let server = Server::new();
        server.set_stamp(1, WriterState::Stopped);
        server.store.objects().copies.insert(at(1, 0), Vec::new());
        (1..=100).for_each(|number| server.add_group(at(1, number), &number.to_string()));
        server
    };
    let server = long();
    drop(server.starts().await.unwrap());
    let numbers: Vec<String> = (1..=100).map(|number| number.to_string()).collect();
    assert_eq!(server.file().text(), numbers.join("\n") + "\nbegins\n");
    for missing in [1, 2, 3, 6, 7, 14, 30, 61, 62, 63, 94, 99] {
        let server = long();
        server.store.objects().groups.remove(&at(1, missing));
        let refused = server.starts().await.err().unwrap().to_string();
        assert!(refused.starts_with(&format!("log/1-{missing} is missing")), "{refused}");
    }
    let server = long();
    server.store.objects().groups.remove(&at(1, 100));
    drop(server.starts().await.unwrap());
}

/// Servers may have claimed later epochs than that of the last object, and written nothing yet.
#[tokio::test]
async fn an_admin_goes_on_without_the_stamp_in_an_epoch_that_no_server_has() {
    let first = Server::new();
    let (heartbeat, _beats) = first.starts().await.unwrap().heartbeat;
    first.add_group(at(1, 1), "a");
    first.store.objects().stamp = None;
    let second = first.beside();
    let started = second.starts_after(Duration::ZERO, &Notify::new()).await.unwrap();
    assert_eq!(started.start, at(1_000_002, 0));
    assert_eq!(second.file().text(), "begins\na\nbegins\n");
    assert_eq!(second.store.objects().stamp.unwrap().installation, installation());
    assert_eq!(heartbeat.seen().await.unwrap(), started.start.epoch);
    assert!(heartbeat.ended().is_some());
}

#[tokio::test]
async fn a_damaged_copy_is_named_and_an_admin_goes_back_behind_it() {
    let server = Server::new();
    server.set_stamp(2, WriterState::Stopped);
    server.store.objects().copies.insert(at(1, 0), b"whole\n".to_vec());
    server.store.objects().copies.insert(at(2, 0), b"damaged\n".to_vec());
    let refused = server.starts().await.err().unwrap().to_string();
    assert!(refused.starts_with("ledger/2-0.db cannot be used, because it is no database"), "{refused}");
    let back = Server { restore: Some(at(1, 0)), ..server.beside() };
    drop(back.starts().await.unwrap());
    assert_eq!(back.file().text(), "whole\nrestored 1-0\nbegins\n");
}

#[tokio::test]
async fn a_ledger_whose_copies_are_missing_is_not_begun_anew() {
    let server = Server::new();
    let (heartbeat, _beats) = server.starts().await.unwrap().heartbeat;
    heartbeat.beat().await.unwrap();
    server.set_stamp(1, WriterState::Stopped);
    server.store.objects().copies.clear();
    let refused = server.starts().await.err().unwrap().to_string();
    assert!(refused.starts_with("there is no copy of the ledger of stamp any more"), "{refused}");
}

/// Its server was killed before it renewed its stamp, which still says that it begins.
#[tokio::test]
async fn a_log_whose_only_copy_is_missing_is_not_begun_anew() {
    let server = Server::new();
    server.set_stamp(1, WriterState::Begins);
    server.add_group(at(1, 1), "a");
    let refused = server.starts_after(Duration::from_millis(5), &Notify::new()).await.err().unwrap();
    assert!(refused.to_string().starts_with("there is no copy of the ledger of stamp any more"), "{refused}");
    assert!(server.store.objects().groups.contains_key(&at(1, 1)));
}

#[tokio::test]
async fn a_copy_that_is_not_there_is_refused_and_the_next_start_need_not_wait() {
    let server = Server::new();
    server.set_stamp(1, WriterState::Stopped);
    server.store.objects().copies.insert(at(1, 0), Vec::new());
    let wrong = Server { restore: Some(at(1, 7)), ..server.beside() };
    let refused = wrong.starts().await.err().unwrap().to_string();
    assert_eq!(refused, "there is no copy 1-7 of the ledger: there are 1-0 of 1970-01-01T00:00:00Z");
    assert_eq!(server.starts().await.unwrap().start, at(3, 0));
}

#[tokio::test]
async fn what_lies_behind_the_end_of_the_log_is_refused_and_nothing_is_removed() {
    let group_of_a_missing_copy = |server: &Server| server.add_group(at(2, 1), "a");
    let behind_two_missing_ones = |server: &Server| server.add_group(at(1, 4), "a");
    for (spoil, found) in
        [(&group_of_a_missing_copy as &dyn Fn(&Server), "log/2-1"), (&behind_two_missing_ones, "log/1-4")]
    {
        let server = Server::new();
        server.set_stamp(2, WriterState::Stopped);
        server.store.objects().copies.insert(at(1, 0), Vec::new());
        server.add_group(at(1, 1), "a");
        spoil(&server);
        let before = server.store.objects().groups.len();
        let refused = server.starts().await.err().unwrap().to_string();
        assert!(refused.starts_with(&format!("{found} is there")), "{refused}");
        assert!(refused.contains("leads there from 1-1, where the log ends"), "{refused}");
        assert_eq!(server.store.objects().groups.len(), before);
    }
}

#[tokio::test]
async fn an_admin_goes_back_if_the_log_cannot_be_read_but_by_no_flag_left_over() {
    let server = Server::new();
    server.set_stamp(1, WriterState::Stopped);
    server.store.objects().copies.insert(at(1, 0), b"copy\n".to_vec());
    server.add_group(at(1, 2), "a");
    assert!(server.starts().await.is_err());
    let back = || Server { restore: Some(at(1, 0)), ..server.beside() };
    let first = back();
    let epoch = first.starts().await.unwrap().start.epoch;
    assert_eq!(first.file().text(), "copy\nrestored 1-0\nbegins\n");
    server.set_stamp(epoch, WriterState::Stopped);
    server.add_group(at(epoch, 2), "b");
    let refused = back().starts().await.err().unwrap().to_string();
    assert!(refused.starts_with(&format!("log/{epoch}-1 is missing")), "{refused}");
}

/// Its last group is missing, or its newest copy with all behind it.
#[tokio::test]
async fn a_log_that_ends_before_what_its_stamp_says_is_refused() {
    for reached in [at(1, 3), at(2, 0)] {
        let server = Server::new();
        server.set_stamp_at(reached, reached.epoch, WriterState::Stopped);
        server.store.objects().copies.insert(at(1, 0), b"copy\n".to_vec());
        (1..=2).for_each(|number| server.add_group(at(1, number), "a"));
        for _ in 0..2 {
            let refused = server.starts().await.err().unwrap().to_string();
            let says = format!("the log of the ledger ends at 1-2, and had reached {reached}, as stamp says");
            assert!(refused.starts_with(&says), "{refused}");
        }
        server.add_group(at(1, 3), "back");
        let is_whole = reached == at(1, 3);
        assert_eq!(server.starts().await.is_ok(), is_whole);
    }
}

#[tokio::test]
async fn an_earlier_stamp_is_refused_and_an_admin_goes_on_with_all() {
    let server = Server::new();
    server.set_stamp(2, WriterState::Stopped);
    for (place, text) in [(at(2, 0), "old\n"), (at(3, 0), "new\n")] {
        server.store.objects().copies.insert(place, text.into());
    }
    server.add_group(at(3, 1), "a");
    let before = server.store.objects().stamp;
    let refused = server.starts().await.err().unwrap().to_string();
    assert!(refused.contains("it names the epoch 2, and the ledger has reached 3-1"), "{refused}");
    assert_eq!(server.store.objects().stamp, before, "nothing is claimed");
    let started = server.starts_after(Duration::ZERO, &Notify::new()).await.unwrap();
    assert_eq!(started.start, at(1_000_004, 0));
    assert_eq!(server.file().text(), "new\na\nbegins\n");
}

#[tokio::test]
async fn what_can_be_read_of_a_damaged_log_stays_as_a_copy() {
    let server = Server::new();
    server.set_stamp(1, WriterState::Stopped);
    server.store.objects().copies.insert(at(1, 0), b"copy\n".to_vec());
    server.add_group(at(1, 1), "a");
    server.add_group(at(1, 3), "a");
    let back = Server { restore: Some(at(1, 0)), ..server.beside() };
    let started = back.starts().await.unwrap();
    assert_eq!(back.file().text(), "copy\nrestored 1-0\nbegins\n");
    assert_eq!(server.store.objects().copies[&at(1, 1)], b"copy\na\nbegins\n");
    assert_eq!(started.start, at(2, 0));
}
