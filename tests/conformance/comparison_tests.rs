//! That the comparison finds what it is there to find.

use std::collections::BTreeSet;

use cloakroom_testing::needs::trial;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::api_server::Call;
use crate::comparison::{Difference, Rules, compare};
use crate::differences;
use crate::effect;
use crate::normal_form::NormalForm;
use crate::outcome::{ObservedEffect, Outcome};
use crate::properties;
use crate::sets::Set;

const APP: &str = "spark-fabd0a7aef5a43e28322961053f1545b";

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 16] = [
        ("equal_outcomes_have_no_difference", equal),
        ("a_changed_field_is_found_by_its_path", changed_field),
        ("a_field_that_only_one_side_has_is_found", extra_field),
        ("an_extra_object_is_found", extra_object),
        ("a_missing_call_is_found", missing_call),
        ("a_wrong_order_of_calls_is_found", wrong_order),
        ("a_wrong_order_of_volumes_is_found_unless_the_list_has_none", order_in_lists),
        ("a_wrong_name_is_one_difference_and_not_two_calls", wrong_name),
        ("another_exit_code_is_found", exit_code),
        ("a_refusal_beside_a_submission_is_one_difference", verdict),
        ("any_way_to_wait_is_the_same_and_not_waiting_is_not", waiting),
        ("an_allowed_difference_allows_only_these_values_in_these_sets", allowed),
        ("an_allowed_difference_that_nothing_needs_is_reported", unused),
        ("what_is_random_gets_the_same_name_wherever_it_is", random_names),
        ("properties_keep_their_escapes_and_lose_their_order", properties_text),
        ("the_effect_of_a_key_is_told_from_two_outcomes", effects),
    ];
    tests.into_iter().map(|(name, test)| trial(&format!("comparison::{name}"), &[], test)).collect()
}

fn call(method: &str, path: &str, body: Value) -> Call {
    let path = format!("/api/v1/namespaces/default/{path}");
    Call {
        method: method.to_owned(),
        path,
        query: [].into(),
        content_type: None,
        authorization: None,
        impersonation: Vec::new(),
        websocket: false,
        status: 200,
        body,
    }
}

fn outcome(calls: &[Call]) -> Outcome {
    Outcome { exit: 0, uploads: [].into(), said: Vec::new(), calls: calls.to_vec() }
}

fn pod(memory: &str) -> Call {
    let container = json!({"name": "spark-kubernetes-driver", "resources": {"limits": {"memory": memory}}});
    call("POST", "pods", json!({"spec": {"containers": [container]}}))
}

fn service() -> Call {
    call("PATCH", "services/a-svc", json!({"kind": "Service"}))
}

fn config_map(name: &str) -> Call {
    call("PATCH", &format!("configmaps/{name}"), json!({"metadata": {"name": name}}))
}

fn differences_of(spark: &[Call], ours: &[Call]) -> Vec<Difference> {
    compare(&outcome(spark), &outcome(ours), &Rules::default())
}

fn places(differences: &[Difference]) -> Vec<&str> {
    differences.iter().map(|difference| difference.at.as_str()).collect()
}

fn difference(at: &str, spark: &str, ours: &str) -> Difference {
    Difference { at: at.to_owned(), spark: spark.to_owned(), ours: ours.to_owned() }
}

fn equal() {
    let calls = [pod("1Gi"), service(), config_map("one"), config_map("two")];
    assert_eq!(differences_of(&calls, &calls), []);
}

fn changed_field() {
    let at = "POST pods: body.spec.containers[spark-kubernetes-driver].resources.limits.memory";
    assert_eq!(differences_of(&[pod("1Gi")], &[pod("2Gi")]), [difference(at, "\"1Gi\"", "\"2Gi\"")]);
}

fn extra_field() {
    let mut more = service();
    more.body["spec"] = json!({"clusterIP": "None"});
    let at = "PATCH services/a-svc: body.spec";
    let text = "{\"clusterIP\":\"None\"}";
    assert_eq!(differences_of(&[service()], &[more.clone()]), [difference(at, "absent", text)]);
    assert_eq!(differences_of(&[more], &[service()]), [difference(at, text, "absent")]);
}

fn extra_object() {
    let extra = [pod("1Gi"), service(), config_map("one")];
    assert_eq!(
        differences_of(&[pod("1Gi"), config_map("one")], &extra),
        [difference("PATCH services/a-svc", "absent", "sent")]
    );
}

fn missing_call() {
    let calls = [pod("1Gi"), config_map("one"), config_map("two"), config_map("three")];
    let without = [pod("1Gi"), config_map("one"), config_map("three")];
    assert_eq!(differences_of(&calls, &without), [difference("PATCH configmaps/two", "sent", "absent")]);
    assert_eq!(differences_of(&[pod("1Gi"), pod("1Gi")], &[pod("1Gi")]).len(), 1);
}

fn wrong_order() {
    let found = differences_of(&[service(), config_map("one")], &[config_map("one"), service()]);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].at, found[1].at);
}

fn order_in_lists() {
    let volumes = |names: &[&str]| {
        let volumes: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        [call("POST", "pods", json!({"volumes": volumes}))]
    };
    let (one, other) = (volumes(&["a", "b"]), volumes(&["b", "a"]));
    assert_eq!(differences_of(&one, &other), [difference("POST pods: body.volumes: order", "a, b", "b, a")]);
    let unordered = BTreeSet::from(["volumes".to_owned()]);
    let rules = Rules { unordered: Some(&unordered), reads: false };
    assert_eq!(compare(&outcome(&one), &outcome(&other), &rules), []);
    let with_duplicates = (volumes(&["a", "b", "a"]), volumes(&["b", "a", "a"]));
    assert_eq!(compare(&outcome(&with_duplicates.0), &outcome(&with_duplicates.1), &rules), []);
    assert!(!differences_of(&with_duplicates.0, &with_duplicates.1).is_empty());
}

fn wrong_name() {
    let found = differences_of(&[config_map("right")], &[config_map("wrong")]);
    let at = "PATCH configmaps/right: ";
    assert_eq!(places(&found), [format!("{at}path"), format!("{at}body.metadata.name")]);
}

fn exit_code() {
    let failed = Outcome { exit: 1, ..outcome(&[]) };
    assert_eq!(compare(&outcome(&[]), &failed, &Rules::default()), [difference("exit", "0", "1")]);
}

fn verdict() {
    let refused = Outcome { exit: 1, ..outcome(&[]) };
    let found = compare(&outcome(&[pod("1Gi"), service()]), &refused, &Rules::default());
    assert_eq!(found, [difference("verdict", "accepted, exit code 0", "refused, exit code 1")]);
    let mut tried = pod("1Gi");
    tried.query.insert("dryRun".to_owned(), "All".to_owned());
    let refused_by_server = Outcome { exit: 1, ..outcome(&[tried]) };
    let found = compare(&outcome(&[pod("1Gi")]), &refused_by_server, &Rules::default());
    assert_eq!(places(&found), ["verdict"]);
}

fn waiting() {
    let mut watch = call("GET", "pods", Value::Null);
    watch.query = [("fieldSelector".to_owned(), "metadata.name=driver".to_owned())].into();
    let (get, events) = (call("GET", "pods/driver", Value::Null), call("GET", "events", Value::Null));
    let spark = [pod("1Gi"), watch.clone(), get.clone()];
    assert_eq!(differences_of(&spark, &[pod("1Gi"), get.clone(), events]), []);
    let found = differences_of(&spark, &[pod("1Gi")]);
    assert_eq!(found, [difference("WAIT pods", "sent", "absent")]);
    let rules = Rules { unordered: None, reads: true };
    assert_eq!(compare(&outcome(&[watch]), &outcome(&[get]), &rules).len(), 2);
}

const ALLOWED: &str = r#"
- sets: memory-*
  at: "POST pods: *.memory"
  spark: '"1Gi"'
  ours: "*"
  reason: a test
"#;

fn allowed() {
    let allowed = differences::read(ALLOWED);
    let found = |spark: &str, ours: &str| differences_of(&[pod(spark)], &[pod(ours)]);
    let left = |set: &str, found| differences::not_allowed(&allowed, "4.3.0", set, found).len();
    assert_eq!(left("memory-one", found("1Gi", "2Gi")), 0);
    assert_eq!(left("memory-one", found("3Gi", "2Gi")), 1);
    assert_eq!(left("cores", found("1Gi", "2Gi")), 1);
}

fn unused() {
    let allowed = differences::read(ALLOWED);
    let found = differences_of(&[pod("1Gi")], &[pod("2Gi")]);
    differences::not_allowed(&allowed, "4.3.0", "cores", found.clone());
    assert_eq!(differences::unused(&allowed).len(), 1);
    differences::not_allowed(&allowed, "4.3.0", "memory-one", found);
    assert_eq!(differences::unused(&allowed), Vec::<String>::new());
}

fn random_names() {
    let mut normal = NormalForm::new(vec![("127.0.0.1:1234".to_owned(), "<server>")], false);
    assert_eq!(
        normal.text("pi-64d453a1fba36662-driver pi-64d453a1fba36662-driver-svc"),
        "pi-<id-1>-driver pi-<id-1>-driver-svc"
    );
    assert_eq!(normal.text("spark-drv-41926ea1fba36a7a-conf-map"), "spark-drv-<id-2>-conf-map");
    assert_eq!(normal.text("x4d453a1fba36662-driver"), "<id-3>-driver");
    assert_eq!(normal.text(&format!("a={APP},http://127.0.0.1:1234")), "a=<app-1>,http://<server>");
    assert_eq!(
        normal.text("/var/data/spark-c950d27b-66cc-4cdb-bb7c-542220fc6638"),
        "/var/data/spark-<uuid-1>"
    );
    let plain = "org.apache.spark.examples.SparkPi — 1408Mi deadbeef";
    assert_eq!(normal.text(plain), plain);
}

fn properties_text() {
    let text =
        "#Java properties built\n#Sat Nov 21 01:05:53 UTC 2026\nspark.b=k8s\\://x\\=y\nspark.a\\=b=1\n";
    let split: Vec<_> = properties::split(text).unwrap();
    let expected = [
        ("#", "Java properties built"),
        ("##", "<date>"),
        ("spark.b", "k8s\\://x\\=y"),
        ("spark.a\\=b", "1"),
    ];
    assert_eq!(split, expected.map(|(key, value)| (key.to_owned(), Value::from(value))));
    assert_eq!(properties::split("#a\n#not a date\n").unwrap()[1].1, "not a date");
    assert_eq!(properties::split("#a\n#b\nspark.a=1\nspark.a=2\n"), None);
    assert_eq!(properties::split("#a\n#b\nspark.a=1"), None);
}

fn effects() {
    let set: Set = serde_saphyr::from_str("{name: a, covers: b, args: [c]}").unwrap();
    let with_property = |value: &str| {
        let data = json!({"data": {"spark.properties": {"spark.a": value}}});
        outcome(&[pod("1Gi"), call("PATCH", "configmaps/a", data)])
    };
    let refused = Outcome { exit: 1, ..outcome(&[]) };
    let observe = |with: &Outcome, without: &Outcome| effect::observe(&set, with, without);
    let one = with_property("1");
    assert_eq!(observe(&one, &one), ObservedEffect::Nothing);
    assert_eq!(observe(&one, &with_property("2")), ObservedEffect::Properties);
    assert_eq!(observe(&one, &refused), ObservedEffect::Verdict);
    assert_eq!(observe(&outcome(&[pod("1Gi")]), &outcome(&[pod("2Gi")])), ObservedEffect::Objects);
}
