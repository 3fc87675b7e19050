//! The conformance suites of the ports: what every store and every ledger must do. A rule is a sentence of the
//! documentation of its port, and is written against the trait alone.
//!
//! - [`stores`] and [`ledgers`] name the implementations, and how a test opens each of them. A new one is an entry
//!   there.
//! - [`store`] and [`ledger`] have the rules.
#![expect(missing_docs, clippy::pedantic, clippy::unwrap_used, reason = "tests are read for what they check")]

pub mod ledger;
pub mod ledgers;
pub mod store;
pub mod stores;

use cloakroom_testing::needs::{Need, trial};
use futures_util::future::LocalBoxFuture;
use libtest_mimic::Trial;

use ledgers::LEDGERS;
use stores::STORES;

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

/// A test of each rule for each store and each ledger. Each has new and empty data.
pub fn trials() -> Vec<Trial> {
    let stores = STORES.iter().flat_map(|made| {
        let trial = |rule| of_rule(made.name(), made.needs(), rule, async || made.create().await);
        store::RULES.iter().map(trial).collect::<Vec<_>>()
    });
    let ledgers = LEDGERS.iter().flat_map(|made| {
        let rules = ledger::RULES.into_iter().flatten();
        let trial = |rule| of_rule(made.name(), made.needs(), rule, async || made.create().await);
        rules.map(trial).collect::<Vec<_>>()
    });
    stores.chain(ledgers).collect()
}

fn of_rule<D: 'static>(
    of: &str,
    needs: Vec<Need>,
    rule: &'static Rule<D>,
    create: impl AsyncFnOnce() -> D + Send + 'static,
) -> Trial {
    trial(&format!("{of}::{}", rule.name), &needs, move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let data = create().await;
            (rule.check)(&data).await;
        });
    })
}
