//! What an abusive tenant does. Each function is one try of one of its hands, which begins again when it returns.

mod cluster;
mod connections;
mod downloads;
mod forms;
mod labels;
mod memory;
mod splices;
mod uploads;

use std::io::Result;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::abuser::Abuser;

/// One kind of abuse.
pub struct Abuse {
    pub name: &'static str,
    /// How many of them at once.
    pub hands: u64,
    pub work: fn(Arc<Abuser>, u64) -> BoxFuture<'static, Result<()>>,
    /// What it must have got, at least so often, when it is alone with the honest tenant.
    pub comes_to: &'static [(&'static str, u64)],
    /// Of the server that it is tried on alone.
    pub flags: &'static [&'static str],
}

macro_rules! flags {
    () => {
        &[]
    };
    ($flags:expr) => {
        &$flags
    };
}

macro_rules! abuses {
    ($($work:path: $hands:literal hands, comes to $comes_to:expr $(, with $flags:expr)?;)+) => {
        /// All of them.
        pub static ALL: &[Abuse] = &[$(Abuse {
            name: stringify!($work),
            hands: $hands,
            work: |abuser, hand| $work(abuser, hand).boxed(),
            comes_to: &$comes_to,
            flags: flags!($($flags)?),
        },)+];
    };
}

abuses! {
    labels::a_flood_of_empty_bundles: 8 hands,
        comes to [("400 invalid-owner", 1), ("507 insufficient-storage", 1)],
        with ["--max-resources", "1000"];
    labels::new_label_keys_and_kinds: 4 hands, comes to [("201", 50)];
    labels::staged_and_deleted: 4 hands, comes to [("204 of DELETE", 50)];
    uploads::announced_and_trickled: 18 hands,
        comes to [("413 too-large", 1), ("100", 1), ("nothing left", 1)];
    uploads::stalled: 80 hands, comes to [("100", 8), ("503 overloaded", 1)];
    uploads::chunks_of_one_byte: 64 hands, comes to [("block", 64), ("503 overloaded", 1)];
    uploads::at_full_speed: 16 hands, comes to [("201", 16)];
    uploads::broken_off: 8 hands, comes to [("broken off", 20)];
    forms::near_boundaries: 8 hands, comes to [("200", 4)];
    forms::delimiters_and_a_letter: 8 hands, comes to [("200", 4)];
    forms::for_the_namespace_of_others: 8 hands, comes to [("403 forbidden", 8)];
    downloads::slow_readers: 600 hands, comes to [("200", 64), ("503", 1)];
    downloads::heads_and_ranges: 8 hands, comes to [("200 of HEAD", 50), ("206", 50), ("200 of many ranges", 8)];
    downloads::wrong_tickets: 8 hands, comes to [("401 unauthorized", 20), ("404 not-found", 50)];
    downloads::deleted_while_they_are_read: 16 hands, comes to [("204 of DELETE", 16), ("410 gone", 16)];
    memory::slow_readers_and_writers: 144 hands, comes to [("100", 7), ("second", 900)];
    splices::copied_in_vain: 8 hands, comes to [("400 digest-mismatch", 4)];
    splices::half_recipes: 64 hands, comes to [("503 overloaded", 1)];
    connections::half_open: 300 hands, comes to [("open", 300)];
    connections::slow_heads: 300 hands, comes to [("open", 300)];
    connections::junk_tokens: 16 hands, comes to [("401 unauthorized", 20)];
    connections::refused_again_and_again: 1000 hands, comes to [("401 unauthorized", 100)];
    cluster::pods_that_come_and_go: 4 hands, comes to [("201", 50), ("200", 50)];
    cluster::owners_that_never_were: 4 hands, comes to [("201", 50)],
        with ["--unused-timeout", "1s", "--orphan-grace", "1s", "--cleanup-interval", "1s"];
    cluster::owners_that_vanish: 4 hands, comes to [("200 of the bundle", 20), ("200", 20)],
        with ["--orphan-grace", "1s", "--cleanup-interval", "1s"];
}
