use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::conf::Surroundings;

const BASICS: [&str; 4] = ["--master", "k8s://h:1", "--deploy-mode", "cluster"];

fn submitted(more: &[&str]) -> Result<SubmitArguments, ArgumentsError> {
    let words = BASICS.iter().chain(more).map(|&word| word.to_owned());
    read(&CommandLine::parse(words).unwrap())
}

fn read(line: &CommandLine) -> Result<SubmitArguments, ArgumentsError> {
    let folder = Path::new("/no/such");
    let (variables, system) = (BTreeMap::new(), BTreeMap::new());
    let surroundings = Surroundings { variables: &variables, system: &system, folder };
    let settings = Settings::resolve(line, &Defaults { files: Vec::new(), surroundings });
    SubmitArguments::new(line, settings.conf, surroundings)
}

fn refused(more: &[&str]) -> String {
    submitted(more).unwrap_err().to_string()
}

#[test]
fn a_jar_of_the_image_is_the_last_of_the_jars_and_gives_no_name() {
    let jar = "local:///a.jar";
    let got = submitted(&["--class", "org.x.Y", "--jars", "http://h/b.jar", jar, "--x", ""]).unwrap();
    assert_eq!(got.resource, MainResource::Java(jar.to_owned()));
    assert_eq!(got.main_class, "org.x.Y");
    assert_eq!(got.arguments, ["--x", ""]);
    let expected = [
        ("spark.app.name", "org.x.Y"),
        ("spark.jars", "http://h/b.jar,local:///a.jar"),
        ("spark.master", "k8s://https://h:1"),
        ("spark.submit.deployMode", "cluster"),
        ("spark.submit.pyFiles", ""),
    ];
    assert_eq!(got.conf.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn python_and_r_have_runners_of_their_own_and_no_jar() {
    let python = submitted(&["--class", "ignored.Class", "local:///a/x.py"]).unwrap();
    assert_eq!(python.main_class, "org.apache.spark.deploy.PythonRunner");
    assert_eq!(python.conf.get("spark.jars"), None);
    let r = submitted(&["dir/x.R"]).unwrap();
    assert_eq!(r.main_class, "org.apache.spark.deploy.RRunner");
    assert_eq!(r.resource, MainResource::R("file:/no/such/dir/x.R".to_owned()));
    assert_eq!(r.conf.get("spark.app.name"), Some("x.R"));
}

#[test]
fn an_application_that_is_fetched_is_known_by_its_name_without_the_query() {
    let fetched = ["--conf", "spark.kubernetes.cloakroom.fetchRemote=true", "https://h/a/x.py?sig=hush"];
    let got = submitted(&fetched).unwrap();
    assert_eq!(got.resource, MainResource::Python("https://h/a/x.py?sig=hush".to_owned()));
    assert_eq!(got.conf.get("spark.app.name"), Some("x.py"));
    // Spark itself takes it for a jar.
    assert!(refused(&fetched[2..]).contains("give --class"));
}

#[test]
fn a_class_of_the_image_needs_no_jar() {
    let got = submitted(&["--class", "org.x.Y", "spark-internal"]).unwrap();
    assert_eq!((got.resource.uri(), got.conf.get("spark.jars")), ("spark-internal", Some("")));
    assert!(refused(&["spark-internal"]).contains("give --class"));
}

#[test]
fn a_driver_on_this_machine_is_refused_with_the_option_to_write() {
    let line = CommandLine::parse(["--master", "k8s://h:1", "x.py"].map(str::to_owned)).unwrap();
    let message = read(&line).unwrap_err().to_string();
    assert!(message.contains("write --deploy-mode cluster, or set CLOAKROOM_SPARK_SUBMIT"), "{message}");
    assert_eq!(
        refused(&["--deploy-mode", "clustr", "x.py"]),
        "--deploy-mode (`spark.submit.deployMode`) is `clustr`: write --deploy-mode cluster"
    );
}

#[test]
fn an_application_that_cannot_run_is_refused_with_the_name_of_the_option() {
    for (more, begins) in [
        (&["--driver-memory", "lots", "x.py"][..], "--driver-memory (`spark.driver.memory`) is `lots`"),
        (&["--driver-memory", "0", "x.py"], "--driver-memory (`spark.driver.memory`) is `0`"),
        (&["--executor-memory", "5q", "x.py"], "--executor-memory (`spark.executor.memory`) is `5q`"),
        (&["--driver-cores", "-1", "x.py"], "--driver-cores (`spark.driver.cores`) is `-1`"),
        (&["--driver-cores", "zwei", "x.py"], "--driver-cores (`spark.driver.cores`) is `zwei`"),
        (&["--executor-cores", "0", "x.py"], "--executor-cores (`spark.executor.cores`) is `0`"),
        (&["--num-executors", "0", "x.py"], "--num-executors (`spark.executor.instances`) is `0`"),
        (
            &["--total-executor-cores", "a", "x.py"],
            "--total-executor-cores (`spark.cores.max`) is `a`: it must be",
        ),
        (&["-c", "spark.cores.max=0", "x.py"], "`spark.cores.max` is `0`: it must be a whole number from 1"),
        (
            &["--driver-java-options", "-Da -Xmx1g", "x.py"],
            "--driver-java-options (`spark.driver.extraJavaOptions`) is `-Da -Xmx1g`: -Xmx is not allowed in it",
        ),
        (
            &["-c", "spark.driver.defaultJavaOptions=-Xmx1g", "x.py"],
            "`spark.driver.defaultJavaOptions` is `-Xmx1g`",
        ),
        (&["-c", "spark.executor.instances=0", "x.py"], "`spark.executor.instances` is `0`"),
        (&[], "missing application resource"),
        (&["local:///x.jar"], "missing class for the jar local:///x.jar"),
        (&["/no/such.jar"], "cannot read /no/such.jar"),
        (&["main.py#x"], "the application takes no #name: leave #x out"),
        (&["--class", "a.B", "a.jar#x"], "the application takes no #name: leave #x out"),
        (&["https://u:hush@h/a b.jar?sig=hush"], "the application https://h/a b.jar is not a URL, because"),
        (&["--class", "a.B", "spark-shell"], "cluster deploy mode is not applicable to Spark shells"),
        (&["--remote", "sc://h", "x.py"], "--remote (`spark.remote`) is `sc://h`: it is for Spark Connect"),
        (&["--proxy-user", "u", "--principal", "p", "x.py"], "only one of --proxy-user and --principal"),
    ] {
        let message = refused(more);
        assert!(message.starts_with(begins), "{message}");
    }
}

#[test]
fn no_executors_at_first_are_fine_where_they_are_allocated_dynamically() {
    let more = ["--num-executors", "0", "-c", "spark.dynamicAllocation.enabled=true", "x.py"];
    assert_eq!(submitted(&more).unwrap().conf.get("spark.executor.instances"), Some("0"));
}

#[test]
fn a_file_named_neither_as_script_nor_as_jar_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["main.PY", "main.ipynb", "main"] {
        let path = folder.path().join(name);
        std::fs::write(&path, "print(1)").unwrap();
        let message = refused(&[path.to_str().unwrap()]);
        assert!(message.contains("is taken for a jar") && message.contains("ends with .py"), "{message}");
    }
    let path = folder.path().join("main.zip");
    zip::ZipWriter::new(std::fs::File::create(&path).unwrap()).finish().unwrap();
    assert!(refused(&[path.to_str().unwrap()]).contains("is taken for a jar"));
}

#[test]
fn the_main_class_of_a_local_jar_is_read_from_its_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app main.jar");
    let mut jar = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    jar.start_file("META-INF/MANIFEST.MF", zip::write::SimpleFileOptions::default()).unwrap();
    std::io::Write::write_all(&mut jar, b"Manifest-Version: 1.0\r\nMain-Class: org.x.Main\r\n\r\n").unwrap();
    jar.finish().unwrap();
    let got = submitted(&[path.to_str().unwrap()]).unwrap();
    assert_eq!(got.main_class, "org.x.Main");
    assert_eq!(got.conf.get("spark.app.name"), Some("app%20main.jar"));
}
