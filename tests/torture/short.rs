//! The short form: each abuse alone and all of them together, beside small bundles. Figures are printed and not judged.

use cloakroom_testing::needs::trial;
use cloakroom_testing::wait::until;
use libtest_mimic::Trial;

use crate::abuses::{ALL, Abuse};
use crate::figures::figures_are_those_of_the_requests_that_succeeded;
use crate::reach::Reach;
use crate::round::{Beside, Field, Round};
use crate::secrets::planted_secrets_are_found;
use crate::tenants::ABUSER;
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

pub fn trials() -> Vec<Trial> {
    let alone = ALL.iter().map(|abuse| {
        let abuse: &'static [Abuse] = std::slice::from_ref(abuse);
        torture(&format!("no_honest_request_fails_beside::{}", abuse[0].name), move || {
            runtime().block_on(beside(abuse, Reach::Directly))
        })
    });
    let behind_one_address = ALL.iter().filter(|abuse| SENT_BY_PROXIES.contains(&abuse.name)).map(|abuse| {
        let abuse: &'static [Abuse] = std::slice::from_ref(abuse);
        torture(&format!("no_honest_request_fails_behind_one_address_with::{}", abuse[0].name), move || {
            runtime().block_on(beside(abuse, Reach::ThroughOneAddress))
        })
    });
    let together = [
        ("no_honest_request_fails_beside::everything_at_once", Reach::Directly),
        ("no_honest_request_fails_behind_one_address_with::everything_at_once", Reach::ThroughOneAddress),
    ];
    let together = together
        .map(|(name, reach)| torture(name, move || runtime().block_on(beside_everything_at_once(reach))));
    let tools = [
        trial("planted_secrets_are_found", &[], planted_secrets_are_found),
        trial(
            "figures_are_those_of_the_requests_that_succeeded",
            &[],
            figures_are_those_of_the_requests_that_succeeded,
        ),
    ];
    alone.chain(behind_one_address).chain(together).chain(tools).collect()
}

async fn beside(abuse: &'static [Abuse], reach: Reach) {
    let field = Field::new((tenants().await, reach), SIZE_BYTES, abuse[0].flags).await;
    expect_nothing_of(field.round(abuse, Beside::Nothing, ALONE_SECONDS).await);
}

/// And afterwards: the server starts again in its limits, and what the abuser left goes.
async fn beside_everything_at_once(reach: Reach) {
    let field = Field::new((tenants().await, reach), SIZE_BYTES, &IMPATIENT).await;
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

fn expect_nothing_of(round: Round) {
    assert!(round.complaints.is_empty(), "{}", round.complaints.join("\n"));
}
