//! The entrypoint of an image. For Spark's image, it does what Spark's entrypoint script does with `driver …` and
//! `executor`.

use super::environment::Environment;
use super::image::Entrypoint;

impl Entrypoint {
    /// The command line for a container's arguments.
    pub fn command(&self, args: Vec<String>, environment: &Environment) -> Vec<String> {
        match self {
            Self::Program(program) => [program.clone(), args].concat(),
            Self::Spark => match args.first().map(String::as_str) {
                Some("driver") => driver(&args[1..], environment),
                Some("executor") => executor(environment),
                _ => args,
            },
        }
    }
}

fn value<'a>(environment: &'a Environment, name: &str) -> Option<&'a str> {
    let mut latest = environment.iter().rev();
    latest.find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The spark-submit of the image, in client mode, bound to the pod's address.
fn driver(args: &[String], environment: &Environment) -> Vec<String> {
    let home = value(environment, "SPARK_HOME").unwrap();
    let address = value(environment, "SPARK_DRIVER_BIND_ADDRESS").unwrap_or_default();
    let head = [
        format!("{home}/bin/spark-submit"),
        "--conf".to_owned(),
        format!("spark.driver.bindAddress={address}"),
        "--deploy-mode".to_owned(),
        "client".to_owned(),
    ];
    [&head, args].concat()
}

/// The executor's JVM. All its settings are in the environment.
fn executor(environment: &Environment) -> Vec<String> {
    let get = |name: &str| value(environment, name).unwrap_or_default().to_owned();
    let memory = get("SPARK_EXECUTOR_MEMORY");
    let java = value(environment, "JAVA_HOME").map_or("java".to_owned(), |home| format!("{home}/bin/java"));
    let mut command = vec![java];
    command.extend(java_options(environment));
    command.extend([format!("-Xms{memory}"), format!("-Xmx{memory}"), "-cp".to_owned()]);
    command.push(class_path(environment));
    command.push("org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend".to_owned());
    for (option, name) in [
        ("--driver-url", "SPARK_DRIVER_URL"),
        ("--executor-id", "SPARK_EXECUTOR_ID"),
        ("--cores", "SPARK_EXECUTOR_CORES"),
        ("--app-id", "SPARK_APPLICATION_ID"),
        ("--hostname", "SPARK_EXECUTOR_POD_IP"),
        ("--resourceProfileId", "SPARK_RESOURCE_PROFILE_ID"),
        ("--podName", "SPARK_EXECUTOR_POD_NAME"),
    ] {
        command.extend([option.to_owned(), get(name)]);
    }
    command
}

/// The values of `SPARK_JAVA_OPT_0` and so on, by number.
fn java_options(environment: &Environment) -> Vec<String> {
    let mut options: Vec<(u32, &String)> = environment
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("SPARK_JAVA_OPT_")?.parse().ok()?, value)))
        .collect();
    options.sort();
    options.into_iter().map(|(_, value)| value.clone()).collect()
}

/// The class path: configuration first, then the user's additions, then Spark.
fn class_path(environment: &Environment) -> String {
    let home = value(environment, "SPARK_HOME").unwrap();
    let conf = value(environment, "SPARK_CONF_DIR").map_or(format!("{home}/conf"), str::to_owned);
    let jars = format!("{home}/jars/*");
    let parts = [
        Some(conf.as_str()),
        value(environment, "HADOOP_CONF_DIR"),
        value(environment, "SPARK_CLASSPATH"),
        Some(&jars),
        value(environment, "SPARK_EXTRA_CLASSPATH"),
        value(environment, "SPARK_DIST_CLASSPATH"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(":")
}
