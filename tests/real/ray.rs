//! Real Ray works in a folder that was staged. Its one token goes to every host, so it gets a URL with a key.

use std::fs;

use cloakroom_testing::documentation::block;
use cloakroom_testing::needs::{Need, path, trial};
use cloakroom_testing::page_shell::Terminal;
use cloakroom_testing::process;
use libtest_mimic::Trial;

/// Names a Python environment with `ray[default]`.
const RAY: &str = "CLOAKROOM_TEST_RAY";

/// What is in the folder `hello`. Ray removes the folder around everything in an archive. Without `--top` that would be
/// the package.
const FOLDER: [(&str, &str); 5] = [
    ("work/.gitignore", "*.log\n"),
    ("work/old.log", "left out\n"),
    ("work/__init__.py", ""),
    ("work/words.py", "WORD = 'from the folder'\n"),
    (
        "work/main.py",
        "import os, ray

@ray.remote
def task():
    from work.words import WORD
    return WORD, os.listdir(), os.path.exists('work/old.log')

ray.init()
print('a task says:', *ray.get(task.remote()))
",
    ),
];

/// What the job prints.
const RAN: &str = "a task says: from the folder ['work'] False";

/// Ends all keys of the ticket.
const END_KEYS: &str = r#"curl -fsS --cacert tls.crt -X DELETE -H "Authorization: Bearer $(jq -r .resourceSecret ticket.json)" "$(jq -r .url ticket.json)/keys""#;

/// A staging server that speaks TLS.
const SERVE: &str = "cloakroom serve --no-kubernetes --tls-cert tls.crt --tls-key tls.key >said 2>&1 &
for look in $(seq 300); do ! grep -q 'serves on https' said || break; sleep 0.1; done
grep 'serves on https' said
export CLOAKROOM_SERVER=https://127.0.0.1:10000 CLOAKROOM_CA_FILE=tls.crt";

/// A cluster of one node, which trusts the server's certificate. It has a token for other hosts, and sends it to every
/// host.
const CLUSTER: &str = r#"export RAY_TMPDIR=$PWD RAY_USAGE_STATS_ENABLED=0
REQUESTS_CA_BUNDLE=$PWD/tls.crt RAY_RUNTIME_ENV_BEARER_TOKEN=a-token-for-other-hosts \
    ray start --head --num-cpus=1 --object-store-memory=80000000"#;

pub fn trials() -> Vec<Trial> {
    let needs = [
        Need::Below(RAY, "bin/ray".to_owned()),
        Need::Program("curl"),
        Need::Program("jq"),
        Need::Program("openssl"),
        Need::Namespaces,
        Need::Root,
    ];
    vec![trial("ray::a_job_works_in_a_folder_that_was_staged", &needs, a_job)]
}

fn a_job() {
    let mut terminal = started();
    let page = block("docs/ray-and-jobs.md", "Into Ray", "url=");
    let (stage, submit) = page.split_once('\n').unwrap();
    // With files for what it says and for its exit code.
    let submit = |name: &str| format!("{submit} >{name} 2>&1; echo $? >{name}.code");
    terminal.prepare(stage);
    terminal.prepare(&submit("job"));
    ran(&terminal, "job");
    is_shown_by_ray_alone(&mut terminal);

    // With its key ended, the node still has the folder. It does not get another folder.
    terminal.prepare(END_KEYS);
    terminal.prepare(&format!("({}) & job=$!", submit("again")));
    terminal.prepare(stage);
    terminal.prepare(END_KEYS);
    terminal.prepare(&submit("refused"));
    terminal.prepare("wait $job");
    ran(&terminal, "again");
    let (said, code) = (read(&terminal, "refused"), read(&terminal, "refused.code"));
    assert!(code == "1\n" && said.contains("404 Client Error: Not Found for url"), "{code}{said}");
}

fn ran(terminal: &Terminal, name: &str) {
    let (said, code) = (read(terminal, name), read(terminal, &format!("{name}.code")));
    assert!(code == "0\n" && said.contains(RAN), "{code}{said}");
}

/// The shell of a user, in a network of its own. It is the first process of its namespace: all that it starts, Ray's
/// daemons too, ends with it.
fn started() -> Terminal {
    let namespaces = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let mut terminal = Terminal::open(&namespaces, &process::binary());
    for (name, text) in FOLDER {
        let file = terminal.folder().join("hello").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let programs = path(RAY).join("bin");
    terminal.prepare(&format!("ip link set lo up; PATH={}:$PATH", programs.display()));
    terminal.prepare("ray() { timeout 100 ray \"$@\"; }");
    let page = block("docs/deploy.md", "With kustomize", "openssl");
    let (certificate, _) = page.split_once("\n(umask").unwrap();
    terminal.prepare(&format!("NODE=127.0.0.1; {certificate}"));
    terminal.prepare(SERVE);
    terminal.prepare(CLUSTER);
    terminal
}

/// As the page about security says, the key is in Ray's dashboard and in the logs of its nodes. The server has it nowhere.
fn is_shown_by_ray_alone(terminal: &mut Terminal) {
    terminal.prepare("printf %s \"${url##*token=}\" >key; curl -fsS http://127.0.0.1:8265/api/jobs/ >jobs");
    terminal.prepare("curl -fsS --cacert tls.crt $CLOAKROOM_SERVER/metrics >metrics");
    let key = read(terminal, "key");
    assert!(key.len() > 40, "{key}");
    for shown in ["jobs", "ray/session_latest/logs/runtime_env_agent.log"] {
        assert!(
            read(terminal, shown).contains(&key),
            "the page about security says that {shown} has the key"
        );
    }
    for hidden in ["said", "metrics"] {
        let text = read(terminal, hidden);
        assert!(
            !text.contains(&key) && !text.contains("a-token-for-other-hosts"),
            "a token is in {hidden}: {text}"
        );
    }
}

fn read(terminal: &Terminal, name: &str) -> String {
    let file = terminal.folder().join(name);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
