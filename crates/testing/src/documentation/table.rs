//! Every code block of every page, with the test that types it, or the reason why no test does.
//!
//! `documents::every_block_of_the_pages_is_typed_by_a_test_or_listed_with_a_reason` holds this table against the pages.

use super::Block;

/// The test that types a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// `tests/real/pages.rs`, in the order of the page, in an empty network.
    Reader,
    /// `tests/real/pages.rs`, likewise, with an API server and a staging server that speak https.
    Member,
    /// This file of tests, which reads it from the page.
    Test(&'static str),
    /// The test of another chapter, given by page and heading, whose block contains all its lines.
    Chapter(&'static str, &'static str),
    /// No test: the block is neither a command nor a file, and only illustrates.
    Text,
    /// No test, for this reason.
    None(&'static str),
}

/// The blocks of a chapter with a given beginning. Without a beginning, also those of the chapters inside it.
#[derive(Debug)]
pub struct Row {
    pub page: &'static str,
    pub heading: &'static str,
    pub beginning: &'static str,
    pub by: By,
}

impl Row {
    pub fn is_of(&self, block: &Block) -> bool {
        let is_there = match self.beginning {
            "" => block.is_inside(self.heading),
            beginning => block.is_in(self.heading) && block.text.starts_with(beginning),
        };
        self.page == block.page && is_there
    }
}

const fn row(page: &'static str, heading: &'static str, beginning: &'static str, by: By) -> Row {
    Row { page, heading, beginning, by }
}

const RAY_AND_JOBS: &str = "docs/ray-and-jobs.md";
const README: &str = "README.md";
const AIRFLOW: &str = "docs/airflow.md";
const API: &str = "docs/api.md";
const CI: &str = "docs/ci.md";
const BUCKETS: &str = "docs/buckets.md";
const CLIENTS: &str = "docs/clients.md";
const INSTALL: &str = "docs/install.md";
const ADMINISTER: &str = "docs/administer.md";
const DEPLOY: &str = "docs/deploy.md";
const FLAGS: &str = "docs/reference/flags.md";
const LOGS: &str = "docs/reference/metrics-and-logs.md";
const RUN: &str = "docs/run.md";
const OPERATOR: &str = "docs/spark-operator.md";
const STOCK_SPARK: &str = "docs/stock-spark.md";
const SUBMIT: &str = "docs/submit.md";
const TRY: &str = "docs/try.md";
const TROUBLES: &str = "docs/submit-troubleshooting.md";
const VERSIONS: &str = "docs/versions.md";
const CHART: &str = "charts/cloakroom/README.md";

const FOR_SPARK_SUBMIT: &str = "For spark-submit and for the Spark operator";
const IN_FRONT: &str = "In front of a real spark-submit";

const FROM_SOURCE: By = By::None("it builds for minutes; `.ci/run` builds the same sources");
const OF_CI: By = By::None("it takes minutes; `.ci/run` does it");
const MEASURES: By = By::None("it measures, on a machine that does nothing else");
const ANOTHER_TOOL: By = By::None("it is a tool of others, with a registry, a key or a service of theirs");

pub const TABLE: &[Row] = &[
    row(
        RAY_AND_JOBS,
        "A folder into Ray and into a Job",
        "$ cloakroom stage --for pods",
        By::Chapter(RAY_AND_JOBS, "Into a Job"),
    ),
    row(RAY_AND_JOBS, "Into a Job", "", By::Test("tests/node/journeys/folders.rs")),
    row(RAY_AND_JOBS, "Into Ray", "", By::Test("tests/real/ray.rs")),
    row(README, "cloakroom", "flowchart", By::Text),
    row(README, "Try it", "cargo run -- serve", By::Test(".ci/first-look")),
    row(README, "Try it", "cargo run -q -- stage", By::Test(".ci/first-look")),
    row(README, "Try it", "cargo test", By::Test(".ci/run")),
    row(README, "Install", "cargo install", FROM_SOURCE),
    row(README, "Install", "$ tar", By::Chapter(INSTALL, "The binary")),
    row(
        README,
        "Deploy",
        "$ docker build",
        By::None(
            "it needs a container engine; `tests/real/image.rs` makes the same root, and the node has the archive",
        ),
    ),
    row(README, "Deploy", "$ kubectl apply -k manifests/base", By::Test("tests/node/journeys/deploy.rs")),
    row(README, "Deploy", "$ printf", By::Test("tests/node/journeys/release.rs")),
    row(README, "Submit", "$ kubectl create namespace spark", By::Test("tests/node/journeys/deploy.rs")),
    row(TRY, "Stage and fetch", "$ ", By::Reader),
    row(TRY, "Fetch again", "$ ", By::Reader),
    row(TRY, "Fetch again", "error: ", By::Text),
    row(TRY, "List and remove resources", "$ ", By::Reader),
    row(TRY, "Automatic cleanup", "", By::Text),
    row(TRY, "Submit", "$ cloakroom submit --deploy-mode", By::Test("tests/node/journeys/deploy.rs")),
    row(TRY, "Submit", "$ kubectl exec", By::Test("tests/node/journeys/deploy.rs")),
    row(
        TRY,
        "Submit",
        "$ cloakroom submit --master k8s://https://APISERVER:6443 --deploy-mode cluster --driver-memory",
        By::Reader,
    ),
    row(
        TRY,
        "Submit",
        "$ cloakroom submit --master k8s://https://APISERVER:6443 --deploy-mode cluster --name",
        By::Test("tests/node/journeys/failures.rs"),
    ),
    row("CONTRIBUTING.md", "Contributing", "cargo build", OF_CI),
    row("CONTRIBUTING.md", "Fuzzing", "fuzz/run", OF_CI),
    row(
        "CONTRIBUTING.md",
        "The Helm chart",
        "CLOAKROOM_TEST_REFRESH",
        By::None("it writes files of this repository anew"),
    ),
    row("CONTRIBUTING.md", "The Helm chart", "CLOAKROOM_TEST_CHART_TOOLS", OF_CI),
    row(
        CHART,
        "Install",
        "kubectl create namespace",
        By::None(
            "it needs a registry; `tests/node/journeys/chart.rs` installs the chart with an image of the node",
        ),
    ),
    row(CHART, "Install", "# values.yaml", By::Text),
    row(CHART, "Install", "helm test", By::Test("tests/node/journeys/chart.rs")),
    row(CHART, "Install", "openssl", By::Chapter(DEPLOY, "With kustomize")),
    row(CHART, "Upgrade and remove", "helm upgrade", By::Chapter(CHART, "Install")),
    row(CHART, "Upgrade and remove", "kubectl delete deployment", By::Test("tests/real/chart/installed.rs")),
    row(CHART, "In a chart of your own", "dependencies:", By::Test("tests/real/chart/dependency.rs")),
    row(AIRFLOW, "With Airflow", "ln -s", By::Chapter(AIRFLOW, "Install")),
    row(AIRFLOW, "Install", "ln -s", By::Reader),
    row(
        AIRFLOW,
        "The connection",
        "export AIRFLOW_CONN_SPARK_K8S",
        By::Test("tests/node/journeys/airflow.rs"),
    ),
    row(AIRFLOW, "A task", "report = ", By::Text),
    row(AIRFLOW, "Remove what a task leaves", "clean_up = ", By::Test("tests/real/pages/member.rs")),
    row(API, "The HTTP interface", "$ ", By::Chapter(API, "Stage")),
    row(API, "Stage", "$ ", By::Reader),
    row(API, "Splice", "$ ", By::Reader),
    row(API, "Fetch", "$ ", By::Reader),
    row(API, "Read keys", "$ ", By::Reader),
    row(API, "Metadata and release", "$ ", By::Reader),
    row(API, "v0", "$ ", By::Reader),
    row(
        API,
        "Generated clients",
        "curl",
        By::None("`.ci/generated-client` makes the client, with more options"),
    ),
    row(
        API,
        "Generated clients",
        "from cloakroom_client",
        By::None("`.ci/generated_client.py` does this and more"),
    ),
    row(API, "Errors", "{", By::Text),
    row("docs/benchmarks.md", "Benchmarks", "", MEASURES),
    row(CI, "From a CI job", "spark.kubernetes", By::Test("tests/real/pages/member.rs")),
    row(CI, "From a CI job", "curl", By::Member),
    row(CI, "GitHub Actions", "jobs:", By::Test("tests/real/pages/member.rs")),
    row(CI, "GitLab CI", "run:", By::Test("tests/real/pages/member.rs")),
    row(CI, "When a job is cancelled", "./cloakroom", By::Member),
    row(BUCKETS, "A server without a volume", "export AWS_ACCESS_KEY_ID", By::Chapter(BUCKETS, "Begin")),
    row(BUCKETS, "Begin", "export AWS_ACCESS_KEY_ID", By::Test("tests/real/buckets.rs")),
    row(BUCKETS, "Begin", "export AZURE_STORAGE_ACCOUNT", By::Test("tests/real/clouds.rs")),
    row(BUCKETS, "Begin", "export GOOGLE_APPLICATION_CREDENTIALS", By::Test("tests/real/clouds.rs")),
    row(BUCKETS, "Begin", "cloakroom serve --store webhdfs", By::Test("tests/real/clouds.rs")),
    row(
        BUCKETS,
        "In Kubernetes",
        "kubectl create secret",
        By::None("it is for a store of the reader; `tests/real/chart.rs` renders what uses the Secret"),
    ),
    row(BUCKETS, "Copies of the ledger", "cloakroom serve", By::Test("tests/real/logged.rs")),
    row(BUCKETS, "Credentials", "{", By::None("it is for AWS, which cannot be had here")),
    row(CLIENTS, "stage", "$ ", By::Reader),
    row(
        CLIENTS,
        "With a kubeconfig and nothing else",
        "apiVersion",
        By::Test("tests/node/journeys/reach.rs"),
    ),
    row(
        CLIENTS,
        "With a kubeconfig and nothing else",
        "cloakroom stage",
        By::Test("tests/it/through_api_server.rs"),
    ),
    row(
        CLIENTS,
        "With a kubeconfig and nothing else",
        "cloakroom submit",
        By::Test("tests/it/through_api_server/submissions.rs"),
    ),
    row(
        CLIENTS,
        "With a kubeconfig and nothing else",
        "kubectl create rolebinding",
        By::Test("tests/real/through_api_server.rs"),
    ),
    row(CLIENTS, "The ticket", "{", By::Text),
    row(CLIENTS, "Folders", "$ ", By::Reader),
    row(CLIENTS, "Only what changed", "staging 220 files", By::Text),
    row(CLIENTS, "stage and fetch", "$ ", By::Chapter(CLIENTS, "stage")),
    row(CLIENTS, "Progress, retries, exit codes", "$ ", By::Reader),
    row(CLIENTS, FOR_SPARK_SUBMIT, "export CLOAKROOM_SERVER", By::Member),
    row(CLIENTS, FOR_SPARK_SUBMIT, "$ cloakroom stage", By::Member),
    row(CLIENTS, FOR_SPARK_SUBMIT, "args=", By::Test("tests/node/journeys/external.rs")),
    row(CLIENTS, "fetch", "$ ", By::Reader),
    row(CLIENTS, "In a pod", "ID=", By::Test("tests/node/journeys/transfers.rs")),
    row(CLIENTS, "In a pod", "apiVersion: v1", By::Test("tests/node/journeys/transfers.rs")),
    row(CLIENTS, "Retries and a second run", "$ ", By::Reader),
    row(CLIENTS, "Proxies and certificates", "keytool", By::None("each line asks for a password")),
    row(INSTALL, "Install", "sha256sum", By::Reader),
    row(INSTALL, "Install", "$ tar", By::Chapter(INSTALL, "The binary")),
    row(INSTALL, "The binary", "$ ", By::Reader),
    row(
        INSTALL,
        "The Debian package",
        "sudo apt",
        By::None(
            "it changes the machine; `packaging/check` installs and removes the package in a root of its own",
        ),
    ),
    row(INSTALL, "The Debian package", "sudoedit", By::None("it needs systemd")),
    row(
        INSTALL,
        "The image",
        "sudo ctr",
        By::None("`tests/node/images.rs` imports the image with other options"),
    ),
    row(INSTALL, "The image", "skopeo", ANOTHER_TOOL),
    row(INSTALL, "The image", "digest=", ANOTHER_TOOL),
    row(INSTALL, "From source", "cargo install", FROM_SOURCE),
    row(INSTALL, "How a release is made", "packaging/release", OF_CI),
    row(
        "docs/kueue.md",
        "Jobs of spark-submit",
        "cloakroom submit …",
        By::None("Kueue is not run by any test; a gated driver is (`pods::a_gated_pod_keeps_its_resource`)"),
    ),
    row(
        "docs/kueue.md",
        "With Kueue",
        "cloakroom submit …",
        By::Chapter("docs/kueue.md", "Jobs of spark-submit"),
    ),
    row("docs/kueue.md", "Jobs of spark-submit", "--conf", By::Text),
    row("docs/kueue.md", "Jobs of the Spark Operator", "metadata:", By::Text),
    row(
        "docs/migrating.md",
        "Migrating",
        "$ ",
        By::Chapter("docs/migrating.md", "From kubespark's resource staging server"),
    ),
    row("docs/migrating.md", "From kubespark's resource staging server", "containers:", By::Text),
    row("docs/migrating.md", "From kubespark's resource staging server", "$ ", By::Reader),
    row("docs/architecture.md", "Rooms", "flowchart", By::Text),
    row("docs/lifecycle.md", "When a resource is deleted", "stateDiagram", By::Text),
    row(FLAGS, "Properties file", "WARN", By::Text),
    row(RUN, "Run", "kubectl describe", By::Chapter(RUN, "When an upgrade fails")),
    row(RUN, "Start, stop, upgrade", "INFO", By::Text),
    row(LOGS, "Logs", "", By::Text),
    row(ADMINISTER, "Administer", "kubectl exec", By::Test("tests/node/journeys/deploy.rs")),
    row(ADMINISTER, "Administer", "(umask 077", By::Test("tests/real/pages/rotation.rs")),
    row(ADMINISTER, "Administer", "kubectl create secret", By::Test("tests/real/pages/rotation.rs")),
    row(ADMINISTER, "ls", "$ ", By::Reader),
    row(ADMINISTER, "show", "$ ", By::Reader),
    row(ADMINISTER, "rm", "$ ", By::Reader),
    row(ADMINISTER, "clean", "$ ", By::Reader),
    row(ADMINISTER, "resume-deletions", "$ ", By::Test("tests/it/restored.rs")),
    row(ADMINISTER, "Exit codes and JSON", "# larger than", By::Reader),
    row(DEPLOY, "With kustomize", "flowchart", By::Text),
    row(DEPLOY, "Deploy", "kubectl apply -k manifests/base", By::Chapter(README, "Deploy")),
    row(DEPLOY, "With kustomize", "openssl", By::Test("tests/node/journeys/deploy.rs")),
    row(DEPLOY, "With kustomize", "export CLOAKROOM_SERVER", By::Test("tests/node/journeys/deploy.rs")),
    row(DEPLOY, "With kustomize", "apiVersion: kustomize", By::Test("tests/real/manifests.rs")),
    row(DEPLOY, "With Helm", "image:", By::Test("tests/real/chart.rs")),
    row(
        DEPLOY,
        "With Helm",
        "helm upgrade",
        By::None("it needs a registry, as the chapter “Install” of the chart's page"),
    ),
    row(RUN, "A lost or damaged ledger", "error: ", By::Test("tests/it/restored.rs")),
    row(RUN, "When an upgrade fails", "helm upgrade", By::Test("tests/node/journeys/chart.rs")),
    row(RUN, "When an upgrade fails", "kubectl describe", By::Test("tests/node/journeys/chart.rs")),
    row(RUN, "Change tokens and certificate", "", By::Test("tests/real/pages/rotation.rs")),
    row(
        "docs/security.md",
        "Security",
        "(umask 077; kubectl create token cloakroom-uploader",
        By::Chapter("docs/security.md", "Cluster tokens for clients"),
    ),
    row("docs/security.md", "Who uploaded", "name=alice", By::Text),
    row(
        "docs/security.md",
        "Cluster tokens for clients",
        "(umask 077; kubectl create token cloakroom-uploader",
        By::Test("tests/real/upload_tokens.rs"),
    ),
    row(
        OPERATOR,
        "With the Kubeflow Spark Operator",
        "cloakroom stage",
        By::Chapter(OPERATOR, "Stage and apply"),
    ),
    row(OPERATOR, "Stage and apply", "apiVersion:", By::Test("tests/node/journeys/operator.rs")),
    row(OPERATOR, "Stage and apply", "export", By::Test("tests/node/journeys/operator.rs")),
    row(OPERATOR, "Fields to paste", "$ ", By::Member),
    row(
        OPERATOR,
        "This program as the operator's spark-submit",
        "ARG",
        By::None(
            "it needs a container engine; `tests/node/journeys/operator.rs` runs the operator with such a link",
        ),
    ),
    row(
        SUBMIT,
        "Submitting applications",
        "cloakroom submit",
        By::None("the examples of Spark's image are in no package; docs/try.md submits the same jar"),
    ),
    row(STOCK_SPARK, "Stock Spark by one property", "spark.", By::Test("tests/real/stock_spark/scene.rs")),
    row(STOCK_SPARK, "For the admin", "serve", By::Test("tests/real/stock_spark/scene.rs")),
    row(STOCK_SPARK, "For the admin", "key=", By::Test("tests/real/stock_spark/scene.rs")),
    row(STOCK_SPARK, "For the admin", "kubectl", By::Test("tests/node/journeys/stock_spark.rs")),
    row(STOCK_SPARK, "What it needs", "location", By::Test("tests/real/stock_spark/scene.rs")),
    row(STOCK_SPARK, "What it needs", "spark.hadoop", By::Test("tests/real/stock_spark/scene.rs")),
    row(STOCK_SPARK, "A key that is in no path", "", By::Test("tests/real/stock_spark/scene.rs")),
    row(STOCK_SPARK, "A private certificate", "", By::Test("tests/node/journeys/stock_spark.rs")),
    row(SUBMIT, "Local files", "cloakroom submit", By::Test("tests/node/journeys/jobs.rs")),
    row(SUBMIT, "Local files", "--conf", By::Test("tests/node/journeys/jobs.rs")),
    row(SUBMIT, "While it waits", "", By::Text),
    row(SUBMIT, "Under the name spark-submit", "ln -s", By::Reader),
    row(
        SUBMIT,
        IN_FRONT,
        "ln -s",
        By::None("it needs a whole Spark; `tests/real/in_front.rs` stands in front of two versions of it"),
    ),
    row(TROUBLES, "Failures and what to do", "", By::Test("tests/node/journeys/failures.rs")),
    row(TROUBLES, "What is left after a failure", "26/11/21", By::Text),
    row(
        VERSIONS,
        "Upgrade",
        "kubectl apply -k .",
        By::None(
            "it is the reader's own kustomization; `tests/node/journeys/replacement.rs` replaces the server twenty times",
        ),
    ),
    row(VERSIONS, "Versions, upgrades, going back", "kubectl apply -k .", By::Chapter(VERSIONS, "Upgrade")),
    row(VERSIONS, "Upgrade", "helm upgrade", By::Chapter(CHART, "Install")),
    row(VERSIONS, "Going back", "kubectl rollout undo", By::None("it is of Kubernetes alone")),
    row(VERSIONS, "Going back", "helm history", By::Test("tests/real/chart/installed.rs")),
    row(VERSIONS, "Going back", "error: ", By::Text),
    row("tests/old-client/README.md", "A client of the original", "", OF_CI),
    row("tests/hdfs/README.md", "A cluster of HDFS for tests", "", OF_CI),
    row(
        "tests/conformance/README.md",
        "What the real spark-submit sends",
        "",
        By::None("it records a real Spark for minutes"),
    ),
];
