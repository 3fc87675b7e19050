//! Copies of the ledger take the place of the groups that they have, and one of each of the last days stays.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::tz::TimeZone;

use super::{Answer, Heartbeat, KeptCopy, LogError, LogStore, Position, Trim};

/// How many of the newest copies are kept.
const NEWEST: usize = 7;

/// From how many days one copy is kept.
const DAYS: usize = 7;

/// Keeps the file at `path` as the copy `at`, and removes what it makes superfluous. Returns `false` if another server has taken
/// over meanwhile.
pub async fn keep_copy(
    store: &dyn LogStore,
    heartbeat: &Heartbeat,
    at: Position,
    path: &Path,
) -> Result<bool, LogError> {
    let step = Trim::Copy(at);
    store.write_copy(at, path).await?;
    go_on(step.answered(Answer::Done), store, heartbeat).await
}

/// Removes what the copy with which this epoch begins makes superfluous. Returns `false` if another server has taken over meanwhile.
pub async fn remove_earlier_epochs(store: &dyn LogStore, heartbeat: &Heartbeat) -> Result<bool, LogError> {
    go_on(Trim::Check(Position::start(heartbeat.epoch())), store, heartbeat).await
}

async fn go_on(mut step: Trim, store: &dyn LogStore, heartbeat: &Heartbeat) -> Result<bool, LogError> {
    loop {
        let answer = match step {
            Trim::Check(_) => Answer::Stamp(heartbeat.seen().await?),
            Trim::Remove(at) => {
                for old in superfluous(&store.copies().await?) {
                    store.remove_copy(old).await?;
                }
                store.remove_groups(at).await?;
                Answer::Done
            }
            Trim::Done => return Ok(true),
            Trim::Copy(_) | Trim::Ended => return Ok(false),
        };
        step = step.answered(answer);
    }
}

/// Which of `copies`, in the order of their places, can go: all but the newest seven, and the first one of each of the last seven
/// days that have any. So a server that is stopped again and again does not push out the copies of the days before, and what an
/// admin has put back can be undone.
fn superfluous(copies: &[KeptCopy]) -> Vec<Position> {
    let day = |copy: &KeptCopy| copy.written_at.to_zoned(TimeZone::UTC).date();
    let days: BTreeSet<_> = copies.iter().map(day).collect();
    let mut days: BTreeSet<_> = days.into_iter().rev().take(DAYS).collect();
    let older = &copies[..copies.len().saturating_sub(NEWEST)];
    // The first one of a day takes it out of the set.
    older.iter().filter(|copy| !days.remove(&day(copy))).map(|copy| copy.at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_copies_stay_and_the_first_of_each_of_seven_days() {
        let copy = |epoch, number, time: &str| KeptCopy {
            at: Position { epoch, number },
            written_at: time.parse().unwrap(),
        };
        let mut all: Vec<_> =
            (1..=9).map(|day| copy(day, 0, &format!("2026-01-{day:02}T10:00:00Z"))).collect();
        all.extend((1..=10).map(|number| copy(9, number, &format!("2026-01-09T11:{number:02}:00Z"))));
        let (early, late) = (&all[..2], &all[9..12]);
        let gone: Vec<_> = [early, late].concat().iter().map(|copy| copy.at).collect();
        assert_eq!(superfluous(&all), gone);
        assert_eq!(superfluous(&all[8..9]), []);
        assert_eq!(superfluous(&[]), []);
    }
}
