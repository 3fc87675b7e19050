//! Many who ask for the wrong thing keep those who ask for the right one waiting neither for tokens nor for rights.

use std::net::IpAddr;

use cloakroom_testing::tls;
use cloakroom_testing::wait::{until, until_true};
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;

use super::{CALL_TIMEOUT, Duration, Guarded, Mood, OTHER_TOKEN, TOKEN, guarded, guarded_with, problem};
use crate::limits_in_metrics::limit;

/// Far more than are asked about, and than may wait.
const FLOOD: usize = 60;

fn asked(guarded: &Guarded, kind: &str) -> usize {
    guarded.cluster.asked().iter().filter(|asked| *asked == kind).count()
}

// Invariant: made-up tokens and namespaces do not delay known users.
#[tokio::test]
async fn a_flood_of_unknown_tokens_waits_in_a_queue_of_its_own() {
    let guarded = guarded().await;
    assert_eq!(guarded.status("demo").await, 201);
    guarded.cluster.set(Mood::HangsForStrangers);
    let strangers: Vec<String> = (0..FLOOD).map(|number| format!("made-up-token-number-{number}")).collect();
    let mut flood: FuturesUnordered<_> =
        strangers.iter().map(|token| guarded.upload("demo", Some(token))).collect();
    // Those in the queue have no answer until the API server has one.
    let refused = async {
        for _ in 0..FLOOD - 32 {
            let answer = flood.next().await.unwrap();
            assert_eq!(answer.headers()["retry-after"], "2");
            assert_eq!(problem(answer).await.code.as_str(), "overloaded");
        }
    };
    let honest = async {
        until_true("as many are asked about as may be", || asked(&guarded, "TokenReview") == 5).await;
        let queue = || async { limit(&guarded.app, "unknown-tokens").await == Some((32, 32)) };
        until("it is told that the queue is full", queue).await;
        assert_eq!(guarded.status("demo").await, 201, "its token is known");
        guarded.app.clock.advance(Duration::from_secs(61));
        assert_eq!(guarded.status("demo").await, 201, "its token was known, and is asked about again");
        assert_eq!(asked(&guarded, "TokenReview"), 6);
    };
    tokio::join!(refused, honest);
    assert_eq!(asked(&guarded, "TokenReview"), 6, "no others of the flood reached the API server");
    assert_eq!(limit(&guarded.app, "reviews").await, Some((0, 12)));
}

#[tokio::test]
async fn unknown_tokens_of_one_host_turn_none_away_of_another() {
    let guarded = guarded().await;
    guarded.cluster.set(Mood::HangsForStrangers);
    let abuser = reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls::no_roots());
    let abuser = abuser.local_address(IpAddr::from([127, 0, 0, 8])).build().unwrap();
    let url = guarded.app.url("/api/v1/resources/deps.tgz?namespace=demo&label=app%3Dx");
    let made_up = (0..32).map(|number| format!("made-up-token-number-{number}"));
    let mut flood: FuturesUnordered<_> =
        made_up.map(|token| abuser.put(&url).bearer_auth(token).body("jars").send()).collect();
    let full =
        until("the queue is full", async || limit(&guarded.app, "unknown-tokens").await == Some((32, 32)));
    tokio::select! {
        () = full => {}
        Some(answer) = flood.next() => panic!("{answer:?}"),
    }
    let honest = guarded.upload("demo", Some(OTHER_TOKEN));
    let refused = async {
        let answer = flood.next().await.unwrap().unwrap();
        assert_eq!(problem(answer).await.code.as_str(), "overloaded", "the host with most of them");
        guarded.cluster.set(Mood::Good);
        drop(flood);
    };
    let (honest, ()) = tokio::join!(honest, refused);
    assert_eq!(honest.status(), 201);
}

#[tokio::test]
async fn a_hanging_api_server_is_told_to_requests_that_wait_for_a_place_too() {
    let guarded = guarded_with(CALL_TIMEOUT).await;
    guarded.cluster.set(Mood::Hangs);
    let strangers: Vec<String> = (0..12).map(|number| format!("new-token-number-{number}")).collect();
    let answers = join_all(strangers.iter().map(|token| guarded.upload("demo", Some(token)))).await;
    for answer in answers {
        assert_eq!(problem(answer).await.code.as_str(), "authorization-unavailable");
    }
}

#[tokio::test]
async fn a_token_that_is_no_longer_good_is_one_of_the_unknown() {
    let guarded = guarded().await;
    assert_eq!(guarded.status("demo").await, 201);
    *guarded.cluster.is_token_good.lock().unwrap() = false;
    guarded.app.clock.advance(Duration::from_secs(61));
    assert_eq!(guarded.status("demo").await, 401);
    guarded.app.clock.advance(Duration::from_secs(11));
    guarded.cluster.set(Mood::HangsForStrangers);
    let strangers: Vec<String> = (0..33).map(|number| format!("made-up-token-number-{number}")).collect();
    let mut flood: FuturesUnordered<_> =
        strangers.iter().map(|token| guarded.upload("demo", Some(token))).collect();
    assert_eq!(
        problem(flood.next().await.unwrap()).await.code.as_str(),
        "overloaded",
        "the queue of the unknown is full"
    );
    assert_eq!(problem(guarded.upload("demo", Some(TOKEN)).await).await.code.as_str(), "overloaded");
    assert_eq!(asked(&guarded, "TokenReview"), 6);
}

#[tokio::test]
async fn what_one_user_asks_for_keeps_no_other_waiting() {
    let guarded = guarded().await;
    assert_eq!(guarded.status("demo").await, 201);
    guarded.cluster.set(Mood::HangsForMany);
    let namespaces: Vec<String> = (0..FLOOD).map(|number| format!("many-{number}")).collect();
    let flood = join_all(namespaces.iter().map(|namespace| guarded.upload(namespace, Some(TOKEN))));
    let honest = async {
        until_true("as much is asked as may be", || asked(&guarded, "SubjectAccessReview") == 3).await;
        let other = guarded.upload("demo", Some(OTHER_TOKEN)).await;
        assert_eq!(other.status(), 201);
        assert_eq!(guarded.status("demo").await, 201, "its right is known");
        assert_eq!(asked(&guarded, "SubjectAccessReview"), 4);
    };
    tokio::select! {
        _ = flood => panic!("the API server hangs"),
        () = honest => {}
    }
}
