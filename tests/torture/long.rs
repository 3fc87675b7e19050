//! The long form, by hand and on a quiet machine: the full load, five rounds with the abuser and five without, in turns.

use std::time::Duration;

use libtest_mimic::Trial;

use crate::abuses::{ALL, Abuse};
use crate::figures::{Direction, Figures, Measured, median};
use crate::reach::Reach;
use crate::round::{Beside, Field};
use crate::tenants::Store;
use crate::{runtime, tenants, torture};

/// Asks for the long form, and says how many seconds one round of it lasts.
const SECONDS: &str = "CLOAKROOM_TEST_TORTURE_SECONDS";

const ROUNDS: usize = 5;

/// Of one bundle.
const SIZE_BYTES: usize = 20_000_000;

/// With the abuser, the slowest in a hundred takes less than so many times what it takes without.
const MOST_TIMES_P99: f64 = 3.0;

pub fn trials() -> Vec<Trial> {
    let Some(seconds) = std::env::var(SECONDS).ok() else { return Vec::new() };
    let seconds = seconds.parse().unwrap_or_else(|_| panic!("{SECONDS} is not a number of seconds"));
    let beside = |what: &str, abuses: &'static [Abuse]| {
        let ways = [
            ("beside", Reach::Directly, Store::Disk),
            ("behind_one_address_with", Reach::ThroughOneAddress, Store::Disk),
            ("with_a_bucket_beside", Reach::Directly, Store::Bucket),
        ];
        ways.map(|(how, reach, store)| {
            let name = format!("the_honest_p99_stays_below_three_times_{how}::{what}");
            torture(&name, move || runtime().block_on(compare(abuses, (reach, store), seconds)))
        })
    };
    let alone = ALL.iter().flat_map(|abuse| beside(abuse.name, std::slice::from_ref(abuse)));
    alone.chain(beside("everything_at_once", ALL)).collect()
}

/// Two servers, of which one is never abused: what a round leaves behind counts in the next ones of the other.
async fn compare(abuses: &'static [Abuse], (reach, store): (Reach, Store), seconds: u64) {
    let flags = if let [alone] = abuses { alone.flags } else { &[] };
    let quiet = Field::new((tenants().await, reach), store, SIZE_BYTES, flags).await;
    let abused = Field::new((tenants().await, reach), store, SIZE_BYTES, flags).await;
    let (mut without, mut with, mut complaints) = (Vec::new(), Vec::new(), Vec::new());
    for number in 1..=ROUNDS {
        for (name, field, abuses, rounds) in
            [("without", &quiet, &ALL[..0], &mut without), ("with", &abused, abuses, &mut with)]
        {
            println!("round {number}, {name} the abuser:");
            let round = field.round(abuses, Beside::Others, seconds).await;
            complaints.extend(round.complaints.iter().map(|what| format!("round {number}, {name}: {what}")));
            rounds.push(round.measured);
            field.honest.renew_the_stock().await;
        }
    }
    complaints.extend(judged(&without, &with));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Prints the medians, and says what is not as it must be.
fn judged(without: &[Measured], with: &[Measured]) -> Vec<String> {
    let mut complaints = Vec::new();
    for direction in [Direction::Upload, Direction::Download] {
        let times = (medians(without, direction), medians(with, direction));
        let (Some(without), Some(with)) = times else {
            complaints.push(format!("{direction:?}: a round without any that succeeded"));
            continue;
        };
        let ratio = with.p99.as_secs_f64() / without.p99.as_secs_f64();
        println!(
            "{direction:?}, medians of {ROUNDS} rounds: without {without}, with {with}: p99 {ratio:.2} times"
        );
        if ratio >= MOST_TIMES_P99 {
            complaints.push(format!("{direction:?}: p99 is {ratio:.2} times that without the abuser"));
        }
    }
    complaints
}

/// Of each figure, over all rounds.
fn medians(rounds: &[Measured], direction: Direction) -> Option<Figures> {
    let figures: Option<Vec<Figures>> = rounds.iter().map(|round| round.figures(direction)).collect();
    let figures = figures?;
    let of = |which: fn(&Figures) -> Duration| median(figures.iter().map(which).collect());
    Some(Figures { median: of(|figures| figures.median)?, p99: of(|figures| figures.p99)? })
}
