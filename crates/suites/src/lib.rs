//! The conformance suites of the ports: what every store and every ledger must do. A rule is a sentence of the
//! documentation of its port, and is written against the trait alone.
//!
//! - [`stores`] and [`ledgers`] name the implementations, and how a test opens each of them. A new one is an entry
//!   there.
//! - [`store`], [`log`] and [`ledger`] have the rules.
#![expect(clippy::pedantic, clippy::unwrap_used, reason = "tests are read for what they check")]

pub mod ledger;
pub mod ledgers;
pub mod log;
mod memory;
pub mod memory_log;
pub mod store;
pub mod stores;

use cloakroom_testing::needs::{Need, trial};
use futures_util::future::LocalBoxFuture;
use libtest_mimic::Trial;

use ledgers::LEDGERS;
use stores::{BUCKETS, CEPH, DISK, FAULTY_BUCKETS, STORES};

/// A rule of a port, on the data of one implementation.
pub struct Rule<D: 'static> {
    name: &'static str,
    check: fn(&D) -> LocalBoxFuture<'_, ()>,
}

/// Names functions as the rules that they are.
macro_rules! rules {
    ($($rule:ident),+ $(,)?) => {
        &[$($crate::Rule { name: stringify!($rule), check: |data| Box::pin($rule(data)) }),+]
    };
}
use rules;

/// An implementation of a port, and how tests get it.
pub struct Implementation<D> {
    /// The first part of the names of its tests.
    pub name: &'static str,
    /// What it needs beyond Rust. Its tests are skipped with a message where that is missing.
    pub needs: fn() -> Vec<Need>,
    /// Makes new and empty data.
    pub create: fn() -> LocalBoxFuture<'static, D>,
}

impl<D> Implementation<D> {
    /// A test of each rule. Each has data of its own.
    fn trials(&'static self, rules: impl IntoIterator<Item = &'static Rule<D>>) -> Vec<Trial> {
        let rules = rules.into_iter().map(|rule| {
            trial(&format!("{}::{}", self.name, rule.name), &(self.needs)(), || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let data = (self.create)().await;
                    (rule.check)(&data).await;
                });
            })
        });
        rules.collect()
    }
}

/// The tests of all rules, for each store and each ledger.
pub fn trials() -> Vec<Trial> {
    let stores =
        STORES.into_iter().chain([&CEPH]).flat_map(|store| store.implementation.trials(store::RULES));
    let ledgers = LEDGERS.into_iter().flat_map(|ledger| ledger.trials(ledger::RULES.into_iter().flatten()));
    let logs = BUCKETS.into_iter().flat_map(|store| store.implementation.trials(log::RULES));
    let faulty = FAULTY_BUCKETS.iter().flat_map(|bucket| bucket.trials(log::RULES));
    let disks = DISK.implementation.trials(store::DISK_RULES);
    stores.chain(disks).chain(ledgers).chain(logs).chain(faulty).collect()
}
