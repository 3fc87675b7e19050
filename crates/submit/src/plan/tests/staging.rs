//! Local files that travel through a staging server or in a secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_kubespark::InitContainerProperties;
use cloakroom_spark::{MainResource, Properties};
use serde_json::{Value, json};

use super::{PlanCase, object};
use crate::Submission;

const IMAGE: &str = "repo.example/cloakroom:1";
const JARS: &str = "file:///var/spark-data/spark-jars";
const FILES: &str = "file:///var/spark-data/spark-files";

fn staged() -> PlanCase {
    PlanCase::new()
        .with("spark.kubernetes.resourceStagingServer.uri", "http://staging.example:31000/")
        .with("spark.kubernetes.initContainer.image", IMAGE)
}

fn names(bundle: Option<&std::sync::Arc<cloakroom_transfer::bundle::PackPlan>>) -> Vec<String> {
    bundle.into_iter().flat_map(|plan| plan.files()).map(|file| file.name.clone()).collect()
}

/// The names of the files in each bundle: first jars, then the others.
fn bundles(submission: &Submission) -> (Vec<String>, Vec<String>) {
    let plan = submission.staging.as_ref().unwrap();
    (names(plan.jars.as_ref()), names(plan.files.as_ref()))
}

fn last_argument(submission: &Submission) -> &Value {
    submission.container()["args"].as_array().unwrap().last().unwrap()
}

fn init_container(submission: &Submission) -> &Value {
    submission.pod["spec"]["initContainers"].as_array().unwrap().last().unwrap()
}

/// The init-container's properties, from the config map or the secret.
fn init_properties(submission: &Submission) -> String {
    let mut objects = submission.after_pod.iter();
    let found = objects.find(|object| object["data"]["download-submitted-files"].is_string()).unwrap();
    let text = found["data"]["download-submitted-files"].as_str().unwrap();
    if found["kind"] == "Secret" {
        String::from_utf8(STANDARD.decode(text).unwrap()).unwrap()
    } else {
        text.to_owned()
    }
}

#[tokio::test]
async fn a_java_application_travels_in_two_bundles_with_its_jar_in_spark_jars() {
    let case = staged()
        .with_file("app.jar", "a")
        .with_file("lib/dep one.jar", "d")
        .with_file("data.txt", "t")
        .with_file("prod.conf", "c")
        .with_file("env.tar.gz", "z")
        .with("spark.jars", "local:///opt/x.jar,http://h/y.jar?sig=s,lib/dep one.jar,app.jar")
        .with("spark.files", "data.txt,prod.conf#app.conf")
        .with("spark.archives", "env.tar.gz#env")
        .with_resource(MainResource::Java("app.jar".to_owned()));
    let submission = case.submission().await;
    let properties = submission.properties();
    assert_eq!(
        properties["spark.jars"],
        format!("{JARS}/dep%20one.jar,{JARS}/app.jar,local:///opt/x.jar,http://h/y.jar?sig=s")
    );
    assert_eq!(properties["spark.files"], format!("{FILES}/data.txt,{FILES}/app.conf"));
    assert_eq!(properties["spark.archives"], format!("{FILES}/env.tar.gz#env"));
    assert_eq!(properties["spark.kubernetes.submitInDriver"], "true");
    assert_eq!(last_argument(&submission), &format!("{JARS}/app.jar"));
    let (jars, files) = bundles(&submission);
    assert_eq!(
        (jars, files),
        (
            vec!["dep one.jar".to_owned(), "app.jar".to_owned()],
            vec!["data.txt".to_owned(), "app.conf".to_owned(), "env.tar.gz".to_owned()]
        )
    );
    assert!(submission.uploads.is_empty());
    let plan = submission.staging.as_ref().unwrap();
    let labels: Vec<_> = plan.owner.labels().collect();
    assert_eq!((labels, plan.owner.name()), (vec![("spark-app-selector", submission.app_id.as_str())], None));
    assert_eq!((plan.owner.kind().as_str(), plan.owner.namespace()), ("Pod", "default"));
}

#[tokio::test]
async fn a_python_application_has_its_script_and_modules_in_one_bundle() {
    let case = staged()
        .without("spark.jars")
        .with_file("main.py", "")
        .with_file("mod.py", "")
        .with_file("pkg.zip", "")
        .with("spark.submit.pyFiles", "mod.py,pkg.zip")
        .with_resource(MainResource::Python("main.py".to_owned()));
    let submission = case.submission().await;
    assert_eq!(submission.properties()["spark.submit.pyFiles"], format!("{FILES}/mod.py,{FILES}/pkg.zip"));
    assert_eq!(last_argument(&submission), &format!("{FILES}/main.py"));
    let (jars, files) = bundles(&submission);
    assert_eq!((jars.len(), files), (0, vec!["mod.py".into(), "pkg.zip".into(), "main.py".to_owned()]));
    let properties = init_properties(&submission);
    assert!(properties.contains("downloadFilesResourceIdentifier") && !properties.contains("downloadJars"));
}

#[tokio::test]
async fn the_init_container_follows_the_originals_contract() {
    let case = staged()
        .with_file("a.jar", "")
        .with_file("t.yaml", "spec: {initContainers: [{name: mine}], containers: [{name: main}]}")
        .with("spark.jars", "a.jar")
        .with("spark.kubernetes.driver.podTemplateFile", "t.yaml")
        .with("spark.kubernetes.resourceStagingServer.internal.uri", "http://staging.spark:10000")
        .with("spark.kubernetes.mountdependencies.mountTimeout", "7")
        .with("spark.kubernetes.driverEnv.HTTP_PROXY", "http://proxy:1");
    let submission = case.submission().await;
    assert_eq!(submission.pod["spec"]["initContainers"][0]["name"], "mine");
    let init = init_container(&submission);
    assert_eq!((&init["name"], &init["image"]), (&json!("spark-init"), &json!(IMAGE)));
    assert_eq!(init["args"], json!(["/etc/spark-init/spark-init.properties"]));
    assert_eq!(init["env"], json!([{"name": "HTTP_PROXY", "value": "http://proxy:1"}]));
    let resources = &submission.container()["resources"];
    assert_eq!(init["resources"]["limits"]["memory"], resources["limits"]["memory"]);
    assert_eq!(init["resources"]["requests"], resources["requests"]);
    assert_eq!(
        init["securityContext"],
        json!({
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true,
            "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"},
        })
    );
    assert_eq!(init["terminationMessagePolicy"], "FallbackToLogsOnError");
    let mounts: Vec<_> = init["volumeMounts"].as_array().unwrap().iter().map(|it| &it["mountPath"]).collect();
    assert_eq!(
        mounts,
        [
            "/var/spark-data/spark-jars",
            "/var/spark-data/spark-files",
            "/etc/spark-init",
            "/mnt/secrets/spark-init"
        ]
    );
    for (volume, path) in [
        ("download-jars-volume", "/var/spark-data/spark-jars"),
        ("download-files", "/var/spark-data/spark-files"),
    ] {
        let (volume, mount) = submission.volume(volume);
        assert_eq!((&volume["emptyDir"], &mount["mountPath"]), (&json!({}), &json!(path)));
    }
    let map = object(&submission, "-init-config");
    let items = json!([{"key": "download-submitted-files", "path": "spark-init.properties"}]);
    let volumes = submission.pod["spec"]["volumes"].as_array().unwrap();
    let volume = volumes.iter().find(|it| it["name"] == "spark-init-properties").unwrap();
    assert_eq!(volume["configMap"], json!({"name": map["metadata"]["name"], "items": items}));
    let volume = volumes.iter().find(|it| it["name"] == "spark-init-secret").unwrap();
    assert_eq!(volume["secret"]["secretName"], object(&submission, "-init-secret")["metadata"]["name"]);
    let made = submission.made();
    assert!(made.last().unwrap().starts_with("ConfigMap spark-drv-"), "{made:?}");
    let text = init_properties(&submission);
    let properties = Properties::parse("init", &text).unwrap();
    let read = InitContainerProperties::from(&properties).unwrap();
    assert_eq!(read.server_uri.as_deref(), Some("http://staging.spark:10000"));
    assert_eq!(read.mount_timeout.as_secs(), 420);
    let secret_file = read.jars.unwrap().secret_file;
    assert_eq!(secret_file.to_str(), Some("/mnt/secrets/spark-init/downloadSubmittedJarsSecret"));
    assert_eq!((read.files, read.warnings), (None, Vec::new()));
}

#[tokio::test]
async fn what_is_made_for_files_is_found_by_the_applications_label() {
    let with_files = || {
        let files = [("main.py", "print()"), ("a.txt", "a")];
        let case = files.into_iter().fold(PlanCase::new(), |case, (name, text)| case.with_file(name, text));
        case.with("spark.files", "a.txt").with_resource(MainResource::Python("main.py".to_owned()))
    };
    let server = "spark.kubernetes.resourceStagingServer.uri";
    let staged = || {
        let case = with_files().with(server, "http://staging.example:31000/");
        case.with("spark.kubernetes.initContainer.image", IMAGE)
    };
    let remote = staged()
        .with("spark.files", "a.txt,https://h/b.txt")
        .with("spark.kubernetes.cloakroom.fetchRemote", "true");
    for (case, ends) in [
        (with_files(), &["-submitted-files"][..]),
        (staged(), &["-init-config", "-init-secret"]),
        (remote, &["-init-secret"]),
    ] {
        let submission = case.submission().await;
        for end in ends {
            let labels = &object(&submission, end)["metadata"]["labels"];
            assert_eq!(labels, &json!({"spark-app-selector": submission.app_id}), "{end}");
        }
    }
}

#[tokio::test]
async fn nothing_is_added_where_nothing_is_staged() {
    let submission = staged().submission().await;
    assert!(submission.staging.is_none() && submission.pod["spec"].get("initContainers").is_none());
    assert!(submission.made().iter().all(|name| !name.contains("init")));
}

#[tokio::test]
async fn jars_of_one_name_are_numbered_with_a_warning() {
    let case = staged()
        .with_file("a/x.jar", "1")
        .with_file("b/x.jar", "2")
        .with_file("c/x.jar", "3")
        .with("spark.files", "c/x.jar")
        .with("spark.jars", "a/x.jar,b/x.jar,a/x.jar")
        .with_resource(MainResource::Java("b/x.jar".to_owned()));
    let submission = case.submission().await;
    // The file keeps its name, because the application may open it. Spark copies both into one folder.
    assert_eq!(submission.properties()["spark.files"], format!("{FILES}/x.jar"));
    assert_eq!(submission.properties()["spark.jars"], format!("{JARS}/x-1.jar,{JARS}/x-2.jar"));
    assert_eq!(last_argument(&submission), &format!("{JARS}/x-2.jar"));
    assert_eq!(submission.warnings.len(), 2, "{:?}", submission.warnings);
    assert!(
        submission.warnings[0].ends_with("/a/x.jar becomes x-1.jar, because something else is called x.jar")
    );
}

#[tokio::test]
async fn a_jar_does_not_take_the_name_of_one_in_the_image() {
    let case = staged().with_file("x.jar", "").with("spark.jars", "local:///opt/x.jar,x.jar");
    assert_eq!(
        case.submission().await.properties()["spark.jars"],
        format!("{JARS}/x-1.jar,local:///opt/x.jar")
    );
}

#[tokio::test]
async fn one_name_for_two_files_is_refused_across_the_lists() {
    let case = || {
        staged()
            .with_file("a/x.py", "1")
            .with_file("b/x.py", "2")
            .with_file("a/y.zip", "3")
            .with_file("b/y.zip", "4")
            .with_file("m,n.txt", "5")
    };
    let python = |script: &str| MainResource::Python(script.to_owned());
    let clash = "x.py would be x.py in the driver's working directory, as ";
    for (case, problem) in [
        (case().with("spark.files", "a/x.py,b/x.py"), clash),
        (case().with("spark.files", "a/x.py").with("spark.submit.pyFiles", "b/x.py"), clash),
        (case().with("spark.files", "a/x.py").with_resource(python("b/x.py")), clash),
        (case().with("spark.files", "a/x.py,https://u:hush@h/b/x.py?c"), "as https://h/b/x.py is"),
        (
            case().with("spark.files", "a/x.py#e").with("spark.archives", "hdfs://h/y.zip#e"),
            "as hdfs://h/y.zip is",
        ),
        (case().with("spark.archives", "a/y.zip,b/y.zip#other"), "y.zip would be y.zip"),
        (case().with("spark.archives", "a/y.zip").with("spark.files", "a/y.zip"), "y.zip would be y.zip"),
        (case().with("spark.archives", "a/y.zip#e").with("spark.files", "a/x.py#e"), "y.zip would be e in"),
        (case().with("spark.files", "a/x.py#../x"), "cannot be called “../x” in the pod"),
        (case().with("spark.files", "m*n.txt"), "Spark separates the entries of its lists by commas"),
    ] {
        let message = case.refusal().await;
        assert!(message.contains(problem) && !message.contains(['\n', '?']), "{message}");
    }
    let same = case().with("spark.files", "a/x.py").with("spark.submit.pyFiles", "a/x.py");
    assert_eq!(bundles(&same.submission().await).1, ["x.py"], "the same file twice is no clash");
}

#[tokio::test]
async fn a_staging_server_wins_over_an_upload_path_with_a_note() {
    let case = staged().with_file("a.jar", "").with("spark.jars", "a.jar");
    let case = case.with("spark.kubernetes.file.upload.path", "s3a://bucket/x");
    let submission = case.submission().await;
    assert!(submission.uploads.is_empty() && submission.staging.is_some());
    assert!(submission.warnings[0].contains("`spark.kubernetes.file.upload.path` is not used"));
}

#[tokio::test]
async fn an_upload_path_of_stock_spark_to_a_server_is_not_used() {
    const PATH: &str = "swebhdfs://server.example:443/spark/token-0123456789abcdefghijABCDEFGHIJ_-";
    let case = staged().with_file("a.jar", "").with("spark.jars", "a.jar");
    let submission = case.with("spark.kubernetes.file.upload.path", PATH).submission().await;
    assert!(submission.uploads.is_empty() && submission.staging.is_some());
    assert_eq!(submission.warnings, Vec::<String>::new());
    // Without a server, small files travel as without the path.
    let case = PlanCase::new().with_file("a.txt", "words").with("spark.files", "a.txt");
    let submission = case.with("spark.kubernetes.file.upload.path", PATH).submission().await;
    assert!(submission.uploads.is_empty() && submission.staging.is_none());
}

#[tokio::test]
async fn the_image_may_have_its_older_setting_and_is_missed_before_sending() {
    let case = || staged().with_file("a.jar", "").with("spark.jars", "a.jar");
    let bed_without = || case().without("spark.kubernetes.initContainer.image");
    let old = bed_without().with("spark.kubernetes.initcontainer.docker.image", "old:1").submission().await;
    assert_eq!(init_container(&old)["image"], "old:1");
    let unreachable = bed_without().with("spark.kubernetes.resourceStagingServer.uri", "http://127.0.0.1:1");
    let unreachable =
        unreachable.with("spark.kubernetes.resourceStagingServer.internal.uri", "http://staging.example");
    let unreachable = unreachable.with("spark.kubernetes.cloakroom.retryTimeout", "0s");
    let message = unreachable.refusal().await;
    let expected = "the staging server at http://127.0.0.1:1 does not say which image the init-container is to have: \
                    connection refused; check the address (`spark.kubernetes.resourceStagingServer.uri`), that the server \
                    runs, and that no firewall or NetworkPolicy stands in between";
    assert_eq!(message, expected);
}

#[tokio::test]
async fn pods_certificates_travel_in_the_secret_and_java_stores_are_refused() {
    let tls = "spark.ssl.kubernetes.resourceStagingServer";
    let made = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
    let (pem, key) = (made.cert.pem().replace('\r', ""), made.signing_key.serialize_pem());
    let case = || staged().with_file("a.jar", "").with("spark.jars", "a.jar").with_file("ca.pem", &pem);
    let case = || case().with(&format!("{tls}.enabled"), "true");
    let shipped = case().with(&format!("{tls}.clientCertPem"), "ca.pem").submission().await;
    assert_eq!(object(&shipped, "-init-secret")["data"]["ssl-certificate"], STANDARD.encode(&pem));
    let path = "clientCertPem=/mnt/secrets/spark-init/ssl-certificate\n";
    assert!(init_properties(&shipped).contains(path));
    assert_eq!(shipped.staging.as_ref().unwrap().trusted.to_pem(), pem);

    let in_image = case()
        .with(&format!("{tls}.clientCertPem"), "ca.pem")
        .with(&format!("{tls}.internal.clientCertPem"), "local:///etc/ca.pem")
        .submission()
        .await;
    assert!(init_properties(&in_image).contains("clientCertPem=/etc/ca.pem\n"));
    assert!(object(&in_image, "-init-secret")["data"].get("ssl-certificate").is_none());

    let off = case().with(&format!("{tls}.internal.enabled"), "false");
    let off = off.with(&format!("{tls}.clientCertPem"), "ca.pem").submission().await;
    assert!(!init_properties(&off).contains("clientCertPem"));

    let store = case().with(&format!("{tls}.trustStore"), "/etc/trust.jks").refusal().await;
    assert!(store.contains("keytool -list -rfc -keystore /etc/trust.jks > ca.pem"), "{store}");
    for internal in ["", "internal."] {
        let setting = format!("{tls}.{internal}clientCertPem");
        let both = case().with_file("both.pem", key.clone() + &pem).with(&setting, "both.pem");
        let secret = object(&both.submission().await, "-init-secret").clone();
        assert_eq!(secret["data"]["ssl-certificate"], STANDARD.encode(&pem), "a key stays here");
        for (name, content, problem) in [
            ("key.pem", key.as_str(), "has no “-----BEGIN CERTIFICATE-----” in it"),
            ("empty.pem", "", "has no “-----BEGIN CERTIFICATE-----” in it"),
            ("bad.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "cannot be read"),
        ] {
            let message = case().with_file(name, content).with(&setting, name).refusal().await;
            assert!(message.starts_with(&format!("`{setting}` is `{name}`: ")), "{message}");
            assert!(message.contains(problem), "{message}");
        }
        let message = case().with(&setting, "nothing.pem").refusal().await;
        assert!(
            message.ends_with("`nothing.pem`: there is no such file on the submitting machine"),
            "{message}"
        );
    }

    let password = case().with(&format!("{tls}.trustStorePassword"), "hunter2").submission().await;
    assert!(!password.properties().values().any(|value| value.contains("hunter2")));
}

#[tokio::test]
async fn executors_get_the_init_container_in_the_users_own_template() {
    let case = || {
        staged()
            .with_file("a.jar", "")
            .with("spark.jars", "a.jar")
            .with("spark.kubernetes.cloakroom.executorStaging", "init")
            .with("spark.executorEnv.A", "b")
    };
    let template = |submission: &Submission| -> Value {
        let map = object(submission, "-driver-podspec-conf-map");
        serde_json::from_str(map["data"]["podspec-configmap-key"].as_str().unwrap()).unwrap()
    };
    let alone = case().submission().await;
    let own = template(&alone);
    assert_eq!(own["spec"]["containers"][0]["name"], "spark-kubernetes-executor");
    let init = &own["spec"]["initContainers"][0];
    assert_eq!((&init["name"], &init["env"][0]["name"]), (&json!("spark-init"), &json!("A")));
    assert_eq!(init["resources"]["limits"], json!({"memory": "1024Mi"}));
    assert_eq!(own["spec"]["volumes"].as_array().unwrap().len(), 4);

    let user = "metadata: {labels: {mine: 'yes'}}\nspec: {containers: [{name: side}, {name: main}], \
                volumes: [{name: v, emptyDir: {}}]}";
    let key = "spark.kubernetes.executor.podTemplate";
    let both = case().with_file("e.yaml", user).with(&format!("{key}File"), "e.yaml");
    let first = template(&both.submission().await);
    assert_eq!(first["metadata"]["labels"]["mine"], "yes");
    assert_eq!(first["spec"]["containers"][0]["volumeMounts"].as_array().unwrap().len(), 2);
    assert_eq!(first["spec"]["volumes"][0]["name"], "v");
    let named = template(&both.with(&format!("{key}ContainerName"), "main").submission().await);
    assert!(named["spec"]["containers"][0].get("volumeMounts").is_none());
    assert_eq!(named["spec"]["containers"][1]["volumeMounts"].as_array().unwrap().len(), 2);

    let other = case().with("spark.kubernetes.cloakroom.executorStaging", "yes").refusal().await;
    assert!(other.contains("it must be one of driver, init"), "{other}");
}

#[tokio::test]
async fn addresses_that_the_init_container_fetches_are_in_nothing_but_a_secret() {
    let case = staged()
        .with("spark.kubernetes.cloakroom.fetchRemote", "true")
        .with("spark.jars", "https://h/app.jar?sig=hush,hdfs://nn/z.jar")
        .with("spark.files", "https://h/data.txt?sig=hush")
        .with("spark.archives", "https://h/env.zip?sig=hush#env")
        .with_resource(MainResource::Java("https://h/app.jar?sig=hush".to_owned()));
    let submission = case.submission().await;
    assert!(submission.staging.is_none(), "nothing is staged");
    let properties = submission.properties();
    assert_eq!(properties["spark.jars"], format!("{JARS}/app.jar,hdfs://nn/z.jar"));
    assert_eq!(properties["spark.files"], format!("{FILES}/data.txt"));
    assert_eq!(properties["spark.archives"], format!("{FILES}/env.zip#env"));
    assert_eq!(last_argument(&submission), &format!("{JARS}/app.jar"));
    let text = init_properties(&submission);
    let read = InitContainerProperties::from(&Properties::parse("init", &text).unwrap()).unwrap();
    let jars: Vec<_> = read.remote_jars.iter().map(cloakroom_spark::RemoteUri::as_str).collect();
    assert_eq!(jars, ["https://h/app.jar?sig=hush"]);
    assert_eq!(read.remote_files.len(), 2);
    let objects = submission.after_pod.iter().filter(|object| object["kind"] != "Secret");
    for object in objects.chain([&submission.pod]) {
        assert!(!object.to_string().contains("hush"), "{object}");
    }
    let renamed = staged()
        .with("spark.kubernetes.cloakroom.fetchRemote", "true")
        .with("spark.files", "https://h/data.txt?sig=hush#other");
    let message = renamed.refusal().await;
    assert!(message.contains("keeps its name when it is fetched") && !message.contains("hush"), "{message}");
}

#[tokio::test]
async fn small_files_travel_in_a_secret_where_there_is_no_server() {
    let case = || {
        PlanCase::new()
            .with_file("main.py", "print()")
            .with_file("a b.txt", "two")
            .with("spark.files", "a b.txt")
            .with_resource(MainResource::Python("main.py".to_owned()))
    };
    let submission = case().submission().await;
    let folder = "file:///etc/spark-submitted-files";
    assert_eq!(submission.properties()["spark.files"], format!("{folder}/a%20b.txt"));
    assert_eq!(last_argument(&submission), &format!("{folder}/main.py"));
    let secret = object(&submission, "-submitted-files");
    assert_eq!(
        secret["data"],
        json!({"file-0": STANDARD.encode("two"), "main.py": STANDARD.encode("print()")})
    );
    let (volume, mount) = submission.volume("submitted-files");
    let items = json!([{"key": "file-0", "path": "a b.txt"}, {"key": "main.py", "path": "main.py"}]);
    assert_eq!(volume["secret"], json!({"secretName": secret["metadata"]["name"], "items": items}));
    assert_eq!(mount["mountPath"], "/etc/spark-submitted-files");
    assert!(submission.pod["spec"].get("initContainers").is_none());

    case().with_file("a b.txt", vec![0; 10_240 - 7]).submission().await;
    let message = case().with_file("a b.txt", vec![0; 10_240 - 6]).refusal().await;
    let why = "without a server at most 10 KiB travel in a secret): deploy a staging server \
               (docs/deploy.md) and set `spark.kubernetes.cloakroom.namespace`";
    assert!(message.contains(why), "{message}");
    let message = PlanCase::new().with_file("a.jar", "").with("spark.jars", "a.jar").refusal().await;
    assert!(message.contains("a.jar is on this machine") && message.contains("deploy a staging server"));
}

#[tokio::test]
async fn folders_in_the_pod_are_two_absolute_ones() {
    let prefix = "spark.kubernetes.mountdependencies.";
    let case = || staged().with_file("a.jar", "").with("spark.jars", "a.jar");
    let moved = case().with(&format!("{prefix}jarsDownloadDir"), "/mnt/my jars/").submission().await;
    assert_eq!(moved.properties()["spark.jars"], "file:///mnt/my%20jars/a.jar");
    assert_eq!(moved.volume("download-jars-volume").1["mountPath"], "/mnt/my jars");
    for (key, value, problem) in [
        ("jarsDownloadDir", "relative", "it must be an absolute path"),
        ("jarsDownloadDir", "/", "it must be an absolute path"),
        ("filesDownloadDir", "/a/../b", "it must be an absolute path"),
        ("filesDownloadDir", "/var/spark-data/spark-jars", "is the same folder"),
        ("mountTimeout", "0", "longer than zero"),
    ] {
        let message = case().with(&format!("{prefix}{key}"), value).refusal().await;
        assert!(message.contains(problem), "{message}");
    }
}
