//! Who gets memory, and who gives it back.

use std::net::IpAddr;

use bytes::Bytes;
use cloakroom_storage::store::StoreError;
use futures_util::FutureExt as _;

use super::*;

const PART: usize = 5 << 20;
const DOWNLOAD: u64 = 512 << 10;
const SHORT: Duration = Duration::from_millis(20);

/// Nothing is slow by itself.
const LONG: Patience = {
    let long = Duration::from_hours(1);
    Patience { look: SHORT, slow_download: long, turn: long, wait: long, slow_upload: long }
};

/// All that waits for its client is slow.
const NONE: Patience = {
    let none = Duration::ZERO;
    Patience { look: SHORT, slow_download: none, turn: none, wait: none, slow_upload: none }
};

fn host(last: u8) -> Client {
    Client::Host(IpAddr::from([10, 0, 0, last]).into())
}

fn bytes(count: usize) -> Bytes {
    Bytes::from(vec![7; count])
}

async fn take(pool: &Pool, last: u8, bytes: u64) -> Taken {
    pool.take(&host(last), bytes).await
}

/// Room for so many parts.
fn pool(parts: usize, patience: Patience) -> Pool {
    Pool::with_patience((parts * PART) as u64, patience)
}

/// As many slow downloads of `client` as a pool of so many parts has at most.
fn downloads(pool: &Pool, parts: usize, client: &Client) -> Vec<Pause<()>> {
    let most = (parts * PART * 3 / 4) as u64 / DOWNLOAD;
    let taken = (0..most).map(|_| pool.take(client, DOWNLOAD).now_or_never().unwrap());
    taken.map(|memory| pool.pause_download((), memory)).collect()
}

#[tokio::test]
async fn a_part_has_its_memory_until_it_was_sent() {
    let pool = pool(2, LONG);
    let (first, _second) = (pool.part(&host(1), PART).await, pool.part(&host(2), PART).await);
    let mut from = bytes(PART + 1);
    assert!(first.fill(&mut from).unwrap() && from.len() == 1);
    let (sent, memory) = first.take().unwrap();
    assert_eq!(sent, bytes(PART));
    let mut waiting = pin!(take(&pool, 3, PART as u64));
    assert!(timeout(4 * SHORT, waiting.as_mut()).await.is_err(), "no client is slow");
    assert_eq!(pool.uses().used, 3 * PART as u64);
    drop(memory);
    waiting.await;
    assert_eq!(pool.uses().used, PART as u64);
}

#[tokio::test]
async fn one_client_leaves_a_quarter_to_the_next_one() {
    let pool = pool(8, LONG);
    let _held = downloads(&pool, 8, &host(1));
    assert!(pool.take(&host(1), DOWNLOAD).now_or_never().is_none());
    let _part = pool.part(&host(2), PART).now_or_never().unwrap();
}

#[tokio::test]
async fn a_part_and_a_download_fit_into_any_pool_that_has_room_for_them() {
    let pool = Pool::with_patience(PART as u64 + DOWNLOAD, LONG);
    let _part = pool.part(&host(1), PART).await;
    let _download = pool.take(&host(1), DOWNLOAD).now_or_never().unwrap();
}

#[tokio::test]
async fn next_is_who_has_least() {
    let pool = pool(4, LONG);
    let first = pool.take(&host(1), 2 * PART as u64).await;
    let (_second, third) = (pool.take(&host(2), PART as u64).await, pool.take(&host(3), PART as u64).await);
    let mut greedy = pin!(take(&pool, 1, PART as u64));
    let mut modest = pin!(take(&pool, 2, PART as u64));
    let mut new = pin!(take(&pool, 4, PART as u64));
    for waiting in [greedy.as_mut(), modest.as_mut(), new.as_mut()] {
        assert!(waiting.now_or_never().is_none());
    }
    drop(third);
    let new = new.await;
    assert!(modest.as_mut().now_or_never().is_none() && greedy.as_mut().now_or_never().is_none());
    drop(new);
    modest.await;
    drop(first);
    greedy.await;
}

#[tokio::test]
async fn slow_downloads_of_a_client_with_more_than_its_share_give_way() {
    let pool = pool(4, NONE);
    let mut held = downloads(&pool, 4, &host(1));
    let share = pool.take(&host(2), 2 * PART as u64).await;
    let taken_back = held.iter().filter(|held| held.with(|()| ()).is_none()).count();
    assert_eq!(taken_back as u64 * DOWNLOAD, PART as u64, "as many as it takes, the slowest first");
    assert!(held.remove(0).end().is_none() && held.pop().unwrap().end().is_some());
    // With two clients a half is the share of each, so the other one gives nothing more.
    let mut more = pin!(take(&pool, 2, 2 * PART as u64));
    assert!(timeout(4 * SHORT, more.as_mut()).await.is_err());
    drop(share);
    more.await;
}

#[tokio::test]
async fn slow_downloads_do_not_keep_out_a_part_larger_than_an_equal_share() {
    let pool = Pool::with_patience(12 * DOWNLOAD, NONE);
    let downloads = [1, 2].map(|client| [1, 2, 3, 4].map(|_| client)).concat();
    let held: Vec<_> = downloads
        .into_iter()
        .map(|client| pool.pause_download((), take(&pool, client, DOWNLOAD).now_or_never().unwrap()))
        .collect();
    let _part = timeout(Duration::from_secs(10), pool.part(&host(3), PART)).await.unwrap();
    assert_eq!(held.iter().filter(|held| held.with(|()| ()).is_some()).count(), 2);
}

#[tokio::test]
async fn downloads_of_one_client_take_turns() {
    let turns = pool(4, NONE);
    let held = downloads(&turns, 4, &host(1));
    let _one_more = turns.take(&host(1), DOWNLOAD).await;
    assert!(held[0].with(|()| ()).is_none() && held[1].with(|()| ()).is_some());
    let patient = pool(4, Patience { turn: LONG.turn, ..NONE });
    let _held = downloads(&patient, 4, &host(1));
    assert!(timeout(4 * SHORT, patient.take(&host(1), DOWNLOAD)).await.is_err(), "each has its turn");
}

#[tokio::test]
async fn slow_uploads_give_their_part_up_when_others_wait_and_only_then() {
    let pool = pool(4, NONE);
    let slow = [1, 1, 1, 2].map(|client| pool.part(&host(client), PART).now_or_never().unwrap());
    for part in &slow {
        assert!(!part.fill(&mut bytes(1)).unwrap());
    }
    let memory = pool.take(&host(3), PART as u64).await;
    let given_up = |part: &Part| matches!(part.fill(&mut bytes(1)), Err(StoreError::TooSlow));
    assert!(given_up(&slow[0]) && slow[1..].iter().all(|part| !given_up(part)), "the oldest, and one alone");
    drop(memory);
    let [_, second, third, fourth] = slow;
    let _more = [pool.take(&host(3), PART as u64).await, pool.take(&host(4), PART as u64).await];
    assert!(matches!(second.take(), Err(StoreError::TooSlow)));
    assert!(third.take().is_ok() && fourth.take().is_ok(), "they have no more than their share");
}

#[tokio::test]
async fn whoever_does_not_wait_any_more_gets_nothing() {
    let pool = pool(1, LONG);
    let part = pool.part(&host(1), PART).await;
    {
        let mut gone = pin!(take(&pool, 2, PART as u64));
        assert!(gone.as_mut().now_or_never().is_none());
    }
    let mut waiting = pin!(take(&pool, 3, u64::MAX));
    assert!(waiting.as_mut().now_or_never().is_none());
    drop(part);
    let all = waiting.await;
    assert_eq!(pool.uses().used, PART as u64);
    drop(all);
    assert_eq!(pool.uses().used, 0);
    assert!(pool.queue().is_unused());
}
