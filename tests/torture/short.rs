//! The short form: each abuse alone and all of them together, beside small bundles. Figures are printed and not judged.

use cloakroom_testing::needs::trial;
use cloakroom_testing::wait::until;
use libtest_mimic::Trial;

use crate::abuses::{ALL, Abuse};
use crate::figures::figures_are_those_of_the_requests_that_succeeded;
use crate::reach::Reach;
use crate::round::{Beside, Field, Round};
use crate::secrets::planted_secrets_are_found;
use crate::tenants::{ABUSER, Store};
use crate::{runtime, tenants, torture};

/// Of one bundle: what a server without optimisation takes six times in a second beside other work.
const SIZE_BYTES: usize = 2 << 20;

/// How long the load lasts beside one abuse, and beside all.
const ALONE_SECONDS: u64 = 2;
const TOGETHER_SECONDS: u64 = 6;

/// What costs most where a namespace has no address of its own.
const SENT_BY_PROXIES: [&str; 5] = [
    "uploads::stalled",
    "downloads::slow_readers",
    "downloads::wrong_tickets",
    "connections::junk_tokens",
    "connections::refused_again_and_again",
];

/// What holds memory longest where bundles are in a bucket.
const HOLD_MEMORY: [&str; 4] = [
    "uploads::at_full_speed",
    "downloads::slow_readers",
    "memory::slow_readers_and_writers",
    "splices::copied_in_vain",
];

/// So that what the abuser leaves is little, and soon due: it was never downloaded, or the pods that own it are gone.
const IMPATIENT: [&str; 8] = [
    "--max-resources",
    "1000",
    "--unused-timeout",
    "10s",
    "--orphan-grace",
    "1s",
    "--cleanup-interval",
    "1s",
];

/// A way to try abuses, and how its tests are called.
struct Way {
    name: &'static str,
    reach: Reach,
    store: Store,
    /// Which abuses are tried alone.
    alone: fn(&str) -> bool,
}

const WAYS: [Way; 3] = [
    Way { name: "beside", reach: Reach::Directly, store: Store::Disk, alone: |_| true },
    Way {
        name: "behind_one_address_with",
        reach: Reach::ThroughOneAddress,
        store: Store::Disk,
        alone: |name| SENT_BY_PROXIES.contains(&name),
    },
    Way {
        name: "with_a_bucket_beside",
        reach: Reach::Directly,
        store: Store::Bucket,
        alone: |name| HOLD_MEMORY.contains(&name),
    },
];

pub fn trials() -> Vec<Trial> {
    let honest = WAYS.iter().flat_map(|way| {
        let test_name = |of_abuse: &str| format!("no_honest_request_fails_{}::{of_abuse}", way.name);
        let alone = ALL.iter().filter(|abuse| (way.alone)(abuse.name)).map(move |abuse| {
            let abuse: &'static [Abuse] = std::slice::from_ref(abuse);
            torture(&test_name(abuse[0].name), move || runtime().block_on(way.beside(abuse)))
        });
        let together = torture(&test_name("everything_at_once"), move || {
            runtime().block_on(way.beside_everything_at_once())
        });
        alone.chain([together])
    });
    let tools = [
        trial("planted_secrets_are_found", &[], planted_secrets_are_found),
        trial(
            "figures_are_those_of_the_requests_that_succeeded",
            &[],
            figures_are_those_of_the_requests_that_succeeded,
        ),
    ];
    honest.chain(tools).collect()
}

impl Way {
    async fn beside(&self, abuse: &'static [Abuse]) {
        let field = self.field(abuse[0].flags).await;
        expect_nothing_of(field.round(abuse, Beside::Nothing, ALONE_SECONDS).await);
    }

    /// And afterwards: the server starts again in its limits, and what the abuser left goes.
    async fn beside_everything_at_once(&self) {
        let field = self.field(&IMPATIENT).await;
        expect_nothing_of(field.round(ALL, Beside::Others, TOGETHER_SECONDS).await);
        field.server.restart(&IMPATIENT);
        field.honest.renew_the_stock().await;
        field.tenants.remove_pods_of(ABUSER).await;
        until("what the abuser left is gone", async || {
            field.server.resources_of(ABUSER).await.is_ok_and(|count| count == 0)
        })
        .await;
        assert_eq!(field.server.group().killed(), 0, "the kernel killed the server at its second start");
        field.secrets.assert_none_in("the log", &field.server.log());
    }

    async fn field(&self, flags: &[&str]) -> Field {
        Field::new((tenants().await, self.reach), self.store, SIZE_BYTES, flags).await
    }
}

fn expect_nothing_of(round: Round) {
    assert!(round.complaints.is_empty(), "{}", round.complaints.join("\n"));
}
