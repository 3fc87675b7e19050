//! What `cloakroom submit --help` and `--version` say.

/// The Spark whose objects are made unless a setting says otherwise.
const NEWEST_SPARK: &str = cloakroom::submit::plan::NEWEST_SPARK;

/// spark-submit's options, those that do something on Kubernetes first.
pub const USAGE: &str = "\
Usage: cloakroom submit [options] <app jar | python file | R file> [app arguments]
       cloakroom submit --kill SUBMISSION_ID --master k8s://…
       cloakroom submit --status SUBMISSION_ID --master k8s://…

spark-submit for Kubernetes without a JVM. Called under a name such as spark-submit or spark3-submit, or with an option
of these first, the program is this command.

What and where:
  --master MASTER_URL          k8s://https://HOST:PORT, k8s://HOST:PORT (https) or
                               k8s://http://HOST:PORT [env: MASTER]
  --deploy-mode cluster        Required: Spark's default is client, which needs a JVM on this machine
                               [env: DEPLOY_MODE]
  --kubernetes-namespace NS    Namespace of the application [default: default]
  --class CLASS_NAME           Main class (Java, Scala) [default: what the manifest of a local jar says]
  --name NAME                  Name of the application [default: the class, or the file's name]
  --jars JARS                  Comma-separated jars for the class paths of driver and executors
  --py-files PY_FILES          Comma-separated .zip, .egg and .py files for PYTHONPATH
  --files FILES                Comma-separated files for the working directory of each executor
  --archives ARCHIVES          Comma-separated archives to unpack in the working directory of each executor
  --packages COORDINATES       Comma-separated Maven coordinates, groupId:artifactId:version; the driver
                               resolves them
  --exclude-packages NAMES     Comma-separated groupId:artifactId to leave out of --packages
  --repositories URLS          Comma-separated repositories to search for --packages

Settings:
  -c, --conf PROP=VALUE        A Spark property
  --properties-file FILE       File of properties [default: conf/spark-defaults.conf]
  --load-spark-defaults        Read conf/spark-defaults.conf as well where --properties-file is given
  --driver-memory MEM          Memory of the driver [env: SPARK_DRIVER_MEMORY] [default: 1g]
  --driver-cores NUM           Cores of the driver [default: 1]
  --driver-java-options OPTS   Java options of the driver
  --driver-class-path PATHS    Class path entries of the driver
  --driver-library-path PATHS  Library path entries of the driver
  --executor-memory MEM        Memory of an executor [env: SPARK_EXECUTOR_MEMORY] [default: 1g]
  --executor-cores NUM         Cores of an executor [env: SPARK_EXECUTOR_CORES] [default: 1]
  --num-executors NUM          Number of executors; with dynamic allocation the least at first [default: 2]
  --proxy-user NAME            User to impersonate; not together with --principal
  --principal PRINCIPAL        Kerberos principal
  --keytab KEYTAB              File with the keys of the principal

Other actions:
  --kill SUBMISSION_ID         Delete a driver: NAMESPACE:POD, or NAMESPACE:PREFIX* for several
  --status SUBMISSION_ID       Say how a driver is, in the same forms
  --dry-run                    Print the objects as YAML and send nothing (not an option of spark-submit)
  -v, --verbose                Say what was understood
  --version                    Say which Spark's objects are made
  -h, --help                   This text

For other cluster managers:
  --queue NAME                 YARN's; does nothing here, as with spark-submit
  --supervise                  The standalone cluster's; does nothing here
  --total-executor-cores NUM   The standalone cluster's; does nothing here
  --remote URL                 Spark Connect's; refused

If CLOAKROOM_SPARK_SUBMIT names a real spark-submit, that program gets everything but Kubernetes in cluster mode: other
masters, client mode, shells, --version. Arguments and environment stay the same.

The exit code is the application's: 0, or the driver's own (1 if it has none). With
spark.kubernetes.cloakroom.exitCode=spark it is 0 whatever happened to the application, as with spark-submit.
";

/// Programs look for `version` and what follows it.
pub fn version() -> String {
    format!(
        "Spark version {NEWEST_SPARK} (its objects are made; no Spark is needed here)\ncloakroom {}\n\
         Type --help for more information.",
        env!("CARGO_PKG_VERSION")
    )
}
