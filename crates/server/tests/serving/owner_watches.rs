//! An API server at fault never costs a bundle whose owner is there; when it is well again, what is orphaned goes after
//! a new grace.

use std::time::{Duration, Instant};

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::{KeepReason, Namespaces};
use cloakroom_core::retry::Backoff;
use cloakroom_server::owners::{Owners as _, Presence, Unknown, WatchState};
use cloakroom_testing::api_server::{Call, FakeApiServer, Fault, Verb};
use cloakroom_testing::cluster::{CLOAKROOM_USER, NAMESPACE, POD, rights};
use cloakroom_testing::wait::until_true;

use crate::support::WatchedApp;
use crate::support::owners::owner;
use crate::support::watched::{HOUR, MINUTE, SECOND, Watching};

const DEMO: [(&str, &str); 1] = [("app", "demo")];

/// Two bundles in use: the owner of the first stays, that of the second is deleted behind the server's back.
struct Two {
    watched: WatchedApp,
    owned: Ticket,
    orphan: Ticket,
}

impl Two {
    async fn start_with(watching: Watching) -> Self {
        let watched = WatchedApp::start_with(watching).await;
        watched.api.create_pod("demo", "driver", &DEMO);
        watched.api.create_pod("demo", "doomed", &[("app", "doomed")]);
        let owned = watched.stage_demo().await;
        let orphan = watched.stage("namespace=demo&label=app%3Ddoomed").await;
        for app in ["app=demo", "app=doomed"] {
            watched.until(&owner(app), Presence::Present).await;
        }
        watched.fetch(&owned).await;
        watched.fetch(&orphan).await;
        watched.sweep().await;
        Self { watched, owned, orphan }
    }

    async fn start() -> Self {
        Self::start_with(Watching::default()).await
    }

    /// Time passes while nothing is known; nothing goes. Meanwhile the second owner is deleted.
    async fn assert_nothing_goes(&self, because: &str) {
        self.watched.sweep_after(30 * SECOND).await;
        self.watched.api.delete_pod("demo", "doomed");
        self.watched.assert_nothing_goes_for(HOUR).await;
        self.watched.assert_kept(&self.owned, because).await;
        self.watched.assert_kept(&self.orphan, because).await;
    }

    /// All is well again: after a new grace the orphan goes, and nothing else.
    async fn assert_only_the_orphan_goes(&self) {
        let watched = &self.watched;
        watched.until(&owner("app=doomed"), Presence::Absent).await;
        watched.until(&owner("app=demo"), Presence::Present).await;
        assert_eq!(watched.sweep_after(30 * SECOND).await.expired, 0);
        assert_eq!(watched.sweep_after(59 * SECOND).await.expired, 0, "before the new grace is over");
        assert_eq!(watched.sweep_after(SECOND).await.expired, 1);
        watched.assert_gone(&self.orphan, "orphaned").await;
        watched.assert_kept(&self.owned, "owner-present").await;
    }
}

#[tokio::test]
async fn an_api_server_that_is_down_at_start_costs_nothing_and_is_found_later() {
    let api = FakeApiServer::start();
    api.stop();
    let watched = WatchedApp::start_on(api, Watching::default()).await;
    let ticket = watched.stage_demo().await;
    watched.fetch(&ticket).await;
    watched.assert_nothing_goes_for(HOUR).await;
    watched.assert_kept(&ticket, "watch-failing").await;
    watched.api.create_pod("demo", "driver", &DEMO);
    watched.api.start_again();
    watched.until(&owner("app=demo"), Presence::Present).await;
    watched.sweep().await;
    watched.assert_kept(&ticket, "owner-present").await;
}

// Invariant: nothing is deleted while the API server is unreachable, refuses or is silent.
#[tokio::test]
async fn while_the_api_server_is_down_for_an_hour_nothing_goes() {
    let two = Two::start().await;
    two.watched.api.stop();
    two.watched.until_watches(WatchState::Failing).await;
    two.assert_nothing_goes("watch-failing").await;
    two.watched.api.start_again();
    two.assert_only_the_orphan_goes().await;
}

#[tokio::test]
async fn an_api_server_that_was_away_is_listed_anew_in_case_it_knows_less() {
    let watched = WatchedApp::start().await;
    watched.stage_demo().await;
    watched.until_watches(WatchState::Ready).await;
    watched.api.stop();
    watched.until_watches(WatchState::Failing).await;
    watched.api.forget_calls();
    watched.api.start_again();
    watched.until_watches(WatchState::Ready).await;
    let lists = watched.api.calls_to(Verb::List);
    // With a limit of 1, it was only asked whether it answers.
    let whole = lists.iter().filter(|call| call.parameter("limit") != Some("1")).count();
    assert_eq!(whole, 2, "one for each of the two watches of pods");
}

#[tokio::test]
async fn a_server_that_starts_while_the_api_server_is_down_lets_nothing_go() {
    let Two { watched, owned, orphan } = Two::start().await;
    watched.api.stop();
    let watched = watched.restart(&[]).await;
    let two = Two { watched, owned, orphan };
    two.watched.until_watches(WatchState::Failing).await;
    two.assert_nothing_goes("watch-failing").await;
    two.watched.api.start_again();
    two.assert_only_the_orphan_goes().await;
}

// Invariant: an absence counts only as far as it was watched without a gap, across restarts too.
#[tokio::test]
async fn an_absence_that_was_not_watched_to_its_end_does_not_count() {
    let two = Two::start().await;
    two.watched.api.delete_pod("demo", "doomed");
    two.watched.until(&owner("app=doomed"), Presence::Absent).await;
    two.watched.sweep_after(30 * SECOND).await;
    two.watched.assert_kept(&two.orphan, "owner-gone").await;
    two.watched.api.stop();
    two.watched.until_watches(WatchState::Failing).await;
    two.watched.assert_nothing_goes_for(2 * MINUTE).await;
    two.watched.api.start_again();
    two.assert_only_the_orphan_goes().await;
}

#[tokio::test]
async fn answers_that_refuse_everything_cost_nothing() {
    for (status, state, because) in [
        (401, WatchState::Failing, "watch-failing"),
        (403, WatchState::Forbidden, "forbidden"),
        (500, WatchState::Failing, "watch-failing"),
        (503, WatchState::Failing, "watch-failing"),
    ] {
        let two = Two::start().await;
        two.watched.api.fail(Verb::Any, Fault::Status(status));
        two.watched.api.end_watches();
        two.watched.until_watches(state).await;
        two.assert_nothing_goes(because).await;
        two.watched.api.heal();
        two.assert_only_the_orphan_goes().await;
    }
}

#[tokio::test]
async fn rights_that_are_taken_away_and_given_back_cost_nothing() {
    let two = Two::start().await;
    two.watched.api.revoke_all(CLOAKROOM_USER);
    two.watched.api.end_watches();
    two.watched.until_watches(WatchState::Forbidden).await;
    two.assert_nothing_goes("forbidden").await;
    two.watched.api.grant_rules(CLOAKROOM_USER, None, rights());
    two.assert_only_the_orphan_goes().await;
}

#[tokio::test]
async fn a_list_without_the_watch_is_not_enough() {
    let two = Two::start().await;
    two.watched.api.fail(Verb::Watch, Fault::Status(403));
    two.watched.api.end_watches();
    two.watched.until_watches(WatchState::Forbidden).await;
    two.assert_nothing_goes("forbidden").await;
    two.watched.api.heal();
    two.assert_only_the_orphan_goes().await;
}

#[tokio::test]
async fn an_api_server_that_asks_for_patience_gets_it() {
    let two = Two::start().await;
    two.watched.api.fail(Verb::Any, Fault::TooManyRequests(2 * SECOND));
    two.watched.api.end_watches();
    two.watched.until_watches(WatchState::Failing).await;
    let asked = two.watched.api.calls().len();
    let since = std::time::Instant::now();
    two.assert_nothing_goes("watch-failing").await;
    let calls = two.watched.api.calls().len() - asked;
    // Without the wait it would be a call every 40 ms, from each of two watches.
    let most = 2 * (1 + usize::try_from(since.elapsed().as_secs()).unwrap() / 2) + 2;
    assert!(calls <= most, "{calls} calls in {:?}", since.elapsed());
    two.watched.api.heal();
    two.assert_only_the_orphan_goes().await;
}

#[tokio::test]
async fn an_api_server_that_does_not_answer_costs_nothing() {
    let mut watching = Watching::default();
    watching.settings.call_timeout = Duration::from_millis(300);
    watching.timeouts.silence = Duration::from_millis(1500);
    let two = Two::start_with(watching).await;
    two.watched.api.fail(Verb::Any, Fault::Hang);
    two.watched.api.end_watches();
    two.watched.until_watches(WatchState::Failing).await;
    assert_eq!(two.watched.owners.confirm(&owner("app=demo")).await, Presence::Unknown(Unknown::Failing));
    two.assert_nothing_goes("watch-failing").await;
    two.watched.api.heal();
    two.assert_only_the_orphan_goes().await;
}

#[tokio::test]
async fn interrupted_or_expired_watches_resume_with_what_was_missed() {
    let interrupt: [fn(&FakeApiServer); 4] = [
        FakeApiServer::end_watches,
        FakeApiServer::cut_watches,
        |api| {
            api.compact();
            api.end_watches();
        },
        |api| {
            api.fail(Verb::Watch, Fault::Cut);
            api.cut_watches();
        },
    ];
    for (number, interrupt) in interrupt.into_iter().enumerate() {
        let two = Two::start().await;
        let api = &two.watched.api;
        api.forget_calls();
        interrupt(api);
        until_true("the watches are opened again", || api.calls_to(Verb::Watch).len() >= 2).await;
        two.watched.sweep_after(30 * SECOND).await;
        api.delete_pod("demo", "doomed");
        api.heal();
        two.assert_only_the_orphan_goes().await;
        let lists =
            api.calls_to(Verb::List).iter().filter(|call| call.parameter("limit") != Some("1")).count();
        assert_eq!(lists > 0, number == 2, "only a 410 makes everything to be listed again");
    }
}

#[tokio::test]
async fn a_410_while_listing_begins_the_list_anew() {
    let two = Two::start().await;
    two.watched.api.fail(Verb::List, Fault::Expired);
    two.watched.api.compact();
    two.watched.api.end_watches();
    two.watched.until_watches(WatchState::Starting).await;
    two.assert_nothing_goes("watch-starting").await;
    two.watched.api.heal();
    two.assert_only_the_orphan_goes().await;
}

#[tokio::test]
async fn a_410_on_every_watch_makes_lists_with_growing_pauses() {
    let mut watching = Watching::default();
    let first = Duration::from_millis(20);
    watching.settings.intervals.backoff = Backoff { first, longest: MINUTE, longest_asked: MINUTE };
    let watched = WatchedApp::start_with(watching).await;
    watched.stage_demo().await;
    watched.until_watches(WatchState::Ready).await;
    watched.api.forget_calls();
    watched.api.fail(Verb::Watch, Fault::Expired);
    let began = Instant::now();
    watched.api.end_watches();
    // By two watches, so one of them lists seven times.
    until_true("there are many lists", || watched.api.calls_to(Verb::List).len() >= 14).await;
    assert!(began.elapsed() >= first * 30, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_list_that_is_empty_by_mistake_costs_nothing_after_a_fresh_read() {
    let two = Two::start().await;
    let watched = &two.watched;
    watched.api.fail(Verb::List, Fault::Empty);
    watched.api.compact();
    watched.api.end_watches();
    watched.until(&owner("app=demo"), Presence::Absent).await;
    watched.sweep().await;
    watched.sweep_after(59 * SECOND).await;
    // The mistake ends before the grace does.
    watched.api.heal();
    assert_eq!(watched.sweep_after(SECOND).await.expired, 0);
    for app in ["app=demo", "app=doomed"] {
        watched.until(&owner(app), Presence::Present).await;
    }
    watched.assert_nothing_goes_for(5 * MINUTE).await;
    watched.assert_kept(&two.owned, "owner-present").await;
}

// Invariant: a fresh read precedes every deletion for lack of an owner.
#[tokio::test]
async fn a_dead_watch_that_is_still_open_costs_nothing_and_begins_anew() {
    let watched = WatchedApp::start().await;
    let ticket = watched.stage_demo().await;
    let owner = owner("app=demo");
    watched.until(&owner, Presence::Absent).await;
    watched.until_watches(WatchState::Ready).await;
    watched.api.silence_watches();
    watched.api.create_pod("demo", "driver", &DEMO);
    watched.sweep().await;
    assert_eq!(watched.owners.presence(&owner), Presence::Absent, "the watch is dead");
    let swept = watched.sweep_after(30 * MINUTE).await;
    assert_eq!((swept.expired, swept.kept.get(&KeepReason::OwnerPresent)), (0, Some(&1)));
    watched.until(&owner, Presence::Present).await;
    watched.sweep().await;
    watched.assert_kept(&ticket, "owner-present").await;
    let said = cloakroom_testing::logs::lines_with("the watch did not know of an owner that is there");
    assert!(!said.is_empty());
}

#[tokio::test]
async fn a_watch_that_says_finished_is_doubted_as_well() {
    let watched = WatchedApp::start().await;
    let ticket = watched.stage_demo().await;
    watched.api.create_pod("demo", "driver", &DEMO);
    watched.fetch(&ticket).await;
    watched.api.finish_pod("demo", "driver");
    watched.until(&owner("app=demo"), Presence::Finished).await;
    watched.sweep().await;
    watched.api.silence_watches();
    watched.api.create_pod("demo", "second-driver", &DEMO);
    assert_eq!(watched.sweep_after(25 * HOUR).await.expired, 0);
    watched.until(&owner("app=demo"), Presence::Present).await;
    watched.assert_kept(&ticket, "owner-present").await;
}

// Invariant: a sweep that learns nothing new makes no call.
#[tokio::test]
async fn a_sweep_that_deletes_nothing_costs_no_call() {
    let two = Two::start().await;
    let unused = two.watched.stage("namespace=demo&label=app%3Ddemo").await;
    two.watched.until_watches(WatchState::Ready).await;
    // The first one finds out which cluster it is.
    assert_eq!(two.watched.sweep().await.expired, 0);
    two.watched.api.forget_calls();
    for _ in 0..50 {
        assert_eq!(two.watched.sweep_after(30 * SECOND).await.expired, 0);
    }
    assert_eq!(two.watched.api.calls(), []);
    assert_eq!(two.watched.fate(&unused).await, None);
}

#[tokio::test]
async fn two_bundles_of_one_owner_cost_one_fresh_read() {
    let watched = WatchedApp::start().await;
    let tickets = [
        watched.stage("namespace=demo&name=driver").await,
        watched.stage("namespace=demo&name=driver").await,
    ];
    watched.until(&owner("driver"), Presence::Absent).await;
    watched.until_watches(WatchState::Ready).await;
    assert_eq!(watched.sweep().await.expired, 0);
    watched.api.forget_calls();
    assert_eq!(watched.sweep_after(30 * MINUTE).await.expired, 2);
    for ticket in &tickets {
        watched.assert_gone(ticket, "unused").await;
    }
    let is_identity = |call: &Call| call.path.ends_with("/namespaces/kube-system");
    let (identity, calls): (Vec<_>, Vec<_>) = watched.api.calls().into_iter().partition(is_identity);
    assert_eq!(identity.len(), 1, "before anything goes, it is asked whether it is the same cluster");
    // First those at work, then all.
    let fields: Vec<_> = calls.iter().map(|call| call.parameter("fieldSelector").unwrap()).collect();
    let unfinished = "metadata.name=driver,status.phase!=Succeeded,status.phase!=Failed";
    assert_eq!(fields, [unfinished, "metadata.name=driver"]);
    for call in &calls {
        assert_eq!(
            (call.verb, call.parameter("limit"), call.parameter("resourceVersion")),
            (Verb::List, Some("1"), None)
        );
        assert_eq!(call.path, POD.path(Some("demo")));
    }
}

#[tokio::test]
async fn a_new_label_key_lists_anew_and_its_owner_loses_nothing_meanwhile() {
    let two = Two::start().await;
    let watched = &two.watched;
    watched.api.create_pod("demo", "waiting", &[("team", "etl")]);
    // Its labels came before anybody asked for them.
    watched.catch_up().await;
    watched.api.fail(Verb::List, Fault::Hang);
    let new = owner("team=etl");
    let query = "namespace=demo&label=team%3Detl";
    let ticket = watched.stage(query).await;
    until_true("all is listed again", || !watched.api.calls_to(Verb::List).is_empty()).await;
    assert_eq!(watched.owners.presence(&new), Presence::Unknown(Unknown::Starting));
    assert_eq!(watched.sweep_after(HOUR).await.expired, 0);
    watched.assert_kept(&ticket, "watch-starting").await;
    // What is known of the others goes on being known.
    watched.assert_kept(&two.owned, "owner-present").await;
    watched.api.heal();
    // The hanging list never ends by itself; the API server drops it.
    watched.api.stop();
    watched.api.start_again();
    watched.until(&new, Presence::Present).await;
    watched.sweep().await;
    watched.assert_kept(&ticket, "owner-present").await;
}

#[tokio::test]
async fn a_failing_watch_of_unfinished_pods_hides_only_which_pods_still_run() {
    let two = Two::start().await;
    let watched = &two.watched;
    watched.api.finish_pod("demo", "doomed");
    watched.until(&owner("app=doomed"), Presence::Finished).await;
    watched.sweep().await;
    watched.api.fail_with("fieldSelector", Verb::Any, Fault::Status(500));
    watched.api.end_watches();
    let states = || {
        let watches = watched.owners.watches();
        let state = |of| watches.iter().find(|watch| watch.unfinished_only == of).unwrap().state;
        (state(false), state(true))
    };
    until_true("it fails alone", || states() == (WatchState::Ready, WatchState::Failing)).await;
    watched.until(&owner("app=doomed"), Presence::Unknown(Unknown::Failing)).await;
    // Only the watch that works knows of this one.
    watched.api.create_pod("demo", "late", &[("app", "late")]);
    let late = watched.stage("namespace=demo&label=app%3Dlate").await;
    watched.until(&owner("app=late"), Presence::Unknown(Unknown::Failing)).await;
    assert_eq!(watched.owners.presence(&owner("app=nobody")), Presence::Absent);
    watched.assert_nothing_goes_for(2 * HOUR).await;
    assert_eq!(watched.sweep_after(48 * HOUR).await.expired, 0);
    watched.assert_kept(&two.orphan, "watch-failing").await;
    watched.assert_kept(&two.owned, "owner-present").await;
    watched.api.heal();
    watched.until(&owner("app=doomed"), Presence::Finished).await;
    watched.until(&owner("app=late"), Presence::Present).await;
    // What has finished stays finished: the retention is long over.
    watched.sweep().await;
    watched.assert_gone(&two.orphan, "owner-finished").await;
    watched.assert_kept(&two.owned, "owner-present").await;
    watched.assert_kept(&late, "owner-present").await;
}

#[tokio::test]
async fn with_its_namespace_an_owner_is_gone() {
    let api = FakeApiServer::start();
    api.revoke_all(CLOAKROOM_USER);
    // As a Role and a ClusterRole do it: rights on pods end with their namespace, those on namespaces do not.
    api.grant_rules(CLOAKROOM_USER, Some("demo"), rights());
    api.grant_rules(CLOAKROOM_USER, None, namespaces_only());
    api.create_pod("demo", "driver", &DEMO);
    let mut watching = Watching::default();
    watching.settings.namespaces = Some(Namespaces::parse("demo").unwrap());
    let watched = WatchedApp::start_on(api, watching).await;
    let ticket = watched.stage_demo().await;
    watched.until(&owner("app=demo"), Presence::Present).await;
    watched.fetch(&ticket).await;
    watched.sweep().await;
    watched.api.revoke_all(CLOAKROOM_USER);
    watched.api.grant_rules(CLOAKROOM_USER, None, namespaces_only());
    watched.api.end_watches();
    watched.until_watches(WatchState::Forbidden).await;
    watched.assert_nothing_goes_for(HOUR).await;
    watched.assert_kept(&ticket, "forbidden").await;
    watched.api.delete(NAMESPACE, "", "demo");
    watched.until(&owner("app=demo"), Presence::Absent).await;
    watched.until_watches(WatchState::NamespaceGone).await;
    watched.sweep().await;
    assert_eq!(watched.sweep_after(59 * SECOND).await.expired, 0);
    assert_eq!(watched.sweep_after(SECOND).await.expired, 1);
    watched.assert_gone(&ticket, "orphaned").await;
}

fn namespaces_only() -> serde_json::Value {
    serde_json::json!([{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}])
}

#[tokio::test]
async fn a_namespace_that_is_deleted_takes_its_owners_along() {
    let two = Two::start().await;
    two.watched.api.delete(NAMESPACE, "", "demo");
    two.watched.until(&owner("app=demo"), Presence::Absent).await;
    two.watched.until(&owner("app=doomed"), Presence::Absent).await;
    two.watched.sweep().await;
    assert_eq!(two.watched.sweep_after(MINUTE).await.expired, 2);
}
