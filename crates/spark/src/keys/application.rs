//! Keys of the application: what runs, its name, its dependencies, and waiting for its end.

use std::time::Duration;

use super::keys;
use super::kind::{boolean, count, count_or_none, interval, list, memory, namespace, text};

/// The lists of files, in the order in which Spark handles them.
pub const DEPENDENCY_LISTS: [&str; 4] = [JARS.name(), FILES.name(), ARCHIVES.name(), PY_FILES.name()];

keys! { TABLE = "The application":
    /// the API server: `k8s://https://HOST:PORT`
    MASTER: String = text("spark.master").or("that of the kubeconfig's context");
    /// must be `cluster`
    DEPLOY_MODE: String = text("spark.submit.deployMode");
    /// names of the objects, label `spark-app-name`
    APP_NAME: String = text("spark.app.name").or("the main class, or the file's name");
    /// where everything is created
    NAMESPACE: String = namespace("spark.kubernetes.namespace").or("default").substituted();
    /// jars; those of this machine are [staged](../submit.md#local-files) or copied, the driver gets the others
    /// unchanged
    JARS: String = list("spark.jars").file();
    /// files for the working directories, likewise
    FILES: String = list("spark.files").file();
    /// archives to unpack there, likewise
    ARCHIVES: String = list("spark.archives").file();
    /// `.py`, `.zip` and `.egg` files for `PYTHONPATH`, likewise
    PY_FILES: String = list("spark.submit.pyFiles").file();
    /// Maven coordinates; the driver resolves them
    PACKAGES: String = list("spark.jars.packages");
    /// dependencies of these packages to leave out
    EXCLUDED_PACKAGES: String = list("spark.jars.excludes");
    /// repositories to search for these packages
    REPOSITORIES: String = list("spark.jars.repositories");
    /// folder for copies of this machine's files, if there is no staging server; each gets a folder of its own
    UPLOAD_PATH: String = text("spark.kubernetes.file.upload.path").substituted();
    /// Python of driver and executors; else the variable `PYSPARK_PYTHON` of this machine
    PYTHON: String = text("spark.pyspark.python").substituted();
    /// Python of the driver alone; else `spark.pyspark.python`, else the variable `PYSPARK_DRIVER_PYTHON`, else
    /// `PYSPARK_PYTHON`
    DRIVER_PYTHON: String = text("spark.pyspark.driver.python").substituted();
    /// heap of an executor; only checked
    EXECUTOR_MEMORY: u64 = memory("spark.executor.memory").or("1g");
    /// cores of an executor; only checked
    EXECUTOR_CORES: i32 = count("spark.executor.cores").or("1");
    /// number of executors; only checked. With dynamic allocation it may be 0
    EXECUTOR_INSTANCES: i32 = count_or_none("spark.executor.instances").or("2");
    /// whether the number of executors changes while the application runs; then it may begin with 0
    DYNAMIC_ALLOCATION: bool = boolean("spark.dynamicAllocation.enabled").or("false");
    /// whether the driver keeps executors as long as their shuffle files are needed
    SHUFFLE_TRACKING: bool = boolean("spark.dynamicAllocation.shuffleTracking.enabled").or("true");
    /// `true` only gives a warning ([why](../submit.md#dynamic-allocation-without-a-shuffle-service))
    SHUFFLE_SERVICE: bool = boolean("spark.shuffle.service.enabled").or("false");
    /// refused, because it is for Spark Connect
    REMOTE: String = text("spark.remote");
    /// for Spark's standalone cluster; no effect here
    MOST_CORES: i32 = count("spark.cores.max");
    /// file with Ivy's settings; cloakroom does not read it
    IVY_SETTINGS: String = text("spark.jars.ivySettings").file();
    /// version of Python; must be 3
    PYTHON_VERSION: String = text("spark.kubernetes.pyspark.pythonVersion").until("4.0");
}

keys! { WAITING = "Waiting":
    /// whether to wait for the application's end
    WAIT_APP_COMPLETION: bool =
        boolean("spark.kubernetes.submission.waitAppCompletion").or("true").substituted();
    /// how often the state of the application is printed
    REPORT_INTERVAL: Duration = interval("spark.kubernetes.report.interval").or("1s").substituted();
    /// how often the executor pods are listed
    EXECUTOR_POLLING_INTERVAL: Duration =
        interval("spark.kubernetes.executor.apiPollingInterval").or("30s").substituted();
    /// how long an executor may be missing before it counts as lost
    MISSING_POD_DETECT_DELTA: Duration =
        interval("spark.kubernetes.executor.missingPodDetectDelta").or("30s").substituted();
}
