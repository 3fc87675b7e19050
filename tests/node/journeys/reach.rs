//! Users who reach the API server and nothing else. The server is the one of README's first commands: no port of the node leads
//! to it.

use cloakroom_testing::documentation::block;
use cloakroom_testing::jobs::{EXIT_CODE, Job};

use super::Journey;
use super::deploy::deployed;
use super::jobs::{arguments, newest_driver, submission, with_roles};
use crate::cluster::cluster;
use crate::images::VERSIONS;
use crate::shell::{At, Ran, laptop, run, start, until};
use crate::world;

pub const JOURNEYS: &[Journey] = &[
    Journey("a_java_job_needs_a_kubeconfig_and_the_shipped_roles", || job(Job::Java)),
    Journey("a_python_job_needs_a_kubeconfig_and_the_shipped_roles", || job(Job::Python)),
    Journey("a_job_with_one_new_jar_of_two_hundred_sends_that_jar", again),
    Journey("each_missing_right_has_its_sentence", each_right),
    Journey("a_firewall_before_the_pods_is_gone_around", around_a_firewall),
    Journey("an_upload_outlives_a_restart_of_the_api_server", restart),
];

const CHAPTER: &str = "With a kubeconfig and nothing else";

/// Of docs/clients.md.
fn of_the_page(beginning: &str) -> String {
    block("docs/clients.md", CHAPTER, beginning)
}

/// A new namespace with the shipped roles, and its submitter with the right to reach the server.
fn namespace(name: &str) {
    deployed();
    with_roles(name);
    let bindings = of_the_page("kubectl create rolebinding");
    let of_an_account = bindings.lines().find(|line| line.contains("--serviceaccount")).unwrap();
    let binding = of_an_account.replace("rolebinding jobs", &format!("rolebinding {name}"));
    laptop(&binding.replace("--serviceaccount=spark", &format!("--serviceaccount={name}")));
}

/// All files of a job, by an account with the shipped roles alone. Something in the job's namespace looks like the server.
fn job(job: Job) {
    let (version, namespace) = (VERSIONS[0], format!("far-{}", job.name()));
    self::namespace(&namespace);
    laptop(&format!(
        "kubectl create service clusterip cloakroom -n {namespace} --tcp=10000:10000
         kubectl label service cloakroom -n {namespace} app.kubernetes.io/name=cloakroom
         kubectl create configmap cloakroom -n {namespace} --from-literal=server=http://192.0.2.1:10000"
    ));
    let ran = run(
        At::Laptop,
        // It is named, because small files would travel in a Secret otherwise.
        &format!(
            "export CLOAKROOM_SERVER_NAMESPACE=cloakroom
             {} {}",
            submission(&namespace, version).replace("settings.conf", "plain.conf"),
            arguments(version, job).join(" ")
        ),
    );
    let through = "the Service cloakroom in the namespace cloakroom, through the API server";
    assert!(ran.stderr.contains(through), "{}", ran.stderr);
    ran.ended_with(EXIT_CODE);
    let log = newest_driver(&namespace);
    assert_eq!(Job::complaint(&log), None, "{log}");
}

/// Two submissions, each with all jars. One jar was built anew in between.
fn again() {
    const JARS: usize = 200;
    const JAR_BYTES: usize = 300_000;
    let name = "again";
    namespace(name);
    // Java takes a zip with something in front of it.
    let build =
        |number| format!("(head -c {JAR_BYTES} /dev/urandom; cat lib/dep.jar) >many/dep-{number}.jar");
    let all: Vec<String> = (1..=JARS).map(|number| format!("many/dep-{number}.jar")).collect();
    laptop(&format!("mkdir many; for number in $(seq {JARS}); do {}; done", build("$number")));
    let submit = || {
        let submission = submission(name, VERSIONS[0]).replace("settings.conf", "plain.conf");
        let ran = run(
            At::Laptop,
            &format!(
                "export CLOAKROOM_SERVER_NAMESPACE=cloakroom
                 {submission} --class org.example.App --jars {} target/app.jar
                 kubectl delete pod driver -n {name}",
                all.join(",")
            ),
        );
        let ran = ran.ok();
        let staged = ran.stderr.lines().find(|line| line.contains(" Staged the ")).unwrap();
        eprintln!("node: {staged}");
        ran.stderr
    };
    let reused = "of it travelled: the server had the rest since";
    let first = submit();
    assert!(!first.contains(reused), "{first}");
    laptop(&build(&(JARS / 2).to_string()));
    let second = submit();
    let travelled = second.lines().find(|line| line.contains(reused)).unwrap_or_else(|| panic!("{second}"));
    eprintln!("node: {travelled}");
    assert!(travelled.starts_with("29") && travelled.contains(" KiB of it"), "{travelled}");
}

/// By the submitter of the namespace, whose kubeconfig was made last.
fn stage(namespace: &str, file: &str) -> String {
    format!(
        "KUBECONFIG=submitter.kubeconfig cloakroom stage --server-namespace cloakroom -n {namespace} -l app=a {file}"
    )
}

/// One is taken away at a time, and given back.
fn each_right() {
    let name = "rights";
    namespace(name);
    let stage = || run(At::Laptop, &stage(name, "app.jar"));
    let says = |words: &str| until(&format!("“{words}” is said"), || stage().stderr.contains(words));
    stage().ok();
    for (of, binding, words) in [
        ("cloakroom", name, "does not let you reach the Service cloakroom in the namespace cloakroom"),
        (name, "cloakroom-token", "cannot create resource \"serviceaccounts/token\""),
        (name, "cloakroom-uploader", "may not create bundles.cloakroom.dev in the namespace rights"),
    ] {
        laptop(&format!(
            "kubectl get rolebinding {binding} -n {of} -o json | jq 'del(.metadata.uid, .metadata.resourceVersion)' >taken.json
             kubectl delete rolebinding {binding} -n {of}"
        ));
        says(words);
        laptop("kubectl apply -f taken.json");
        until("the right is back", || stage().code == Some(0));
    }
}

/// The control plane reaches the kubelet, and no pod.
fn around_a_firewall() {
    const RULE: &str = "OUTPUT -p tcp -d 10.244.0.0/16 --dport 10000 -j DROP";
    let name = "walled";
    namespace(name);
    laptop(&format!(
        "head -c 100000000 /dev/urandom >around.bin
         kubectl apply -f - <<'END'\n{}\nEND",
        of_the_page("apiVersion")
    ));
    let stage = stage(name, "around.bin");
    told("through the proxy", &laptop(&stage));
    run(At::Node, &format!("iptables -I {RULE}")).ok();
    let without = run(At::Laptop, &stage);
    laptop(&format!(
        "kubectl create rolebinding streams -n cloakroom --role=cloakroom-streams --serviceaccount={name}:spark-submitter"
    ));
    let with = run(At::Laptop, &stage);
    run(At::Node, &format!("iptables -D {RULE}")).ok();
    let way = "by a stream to its pod through the API server";
    assert!(without.code != Some(0) && !without.stderr.contains(way), "{}", without.stderr);
    let staged = with.ok();
    assert!(staged.stderr.contains(way), "{}", staged.stderr);
    told("by a stream to the pod", &staged);
}

fn told(how: &str, staged: &Ran) {
    eprintln!("node: {how}: {}", staged.stderr.lines().last().unwrap_or_default());
}

/// The bytes are on their way when the API server ends. It comes back once the server has given the upload up.
fn restart() {
    let name = "restarted";
    namespace(name);
    laptop("head -c 500000000 /dev/urandom >long.bin");
    let upload = start(&stage(name, "long.bin"));
    let incoming = format!("ls {}/*/incoming | grep -q -", world::folder().join("volumes").display());
    let is_on_its_way = || run(At::Node, &incoming).code == Some(0);
    until("the upload is on its way", is_on_its_way);
    cluster().stop_api_server();
    until("the server has given it up", || !is_on_its_way());
    cluster().start_api_server();
    let staged = upload.end().ok();
    assert!(
        staged.stderr.contains("the connection broke after"),
        "the upload was not interrupted: {}",
        staged.stderr
    );
    told("through a restart of the API server", &staged);
}
