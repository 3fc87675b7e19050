//! What runs, what it is called, and what it needs beside its jar.

use super::keys;
use super::kind::{bare_boolean, boolean, count, count_or_none, list, memory, namespace, text};

/// The lists that name files, in the order in which Spark goes through them.
pub const DEPENDENCY_LISTS: [&str; 4] = [JARS.name(), FILES.name(), ARCHIVES.name(), PY_FILES.name()];

keys! { "The application":
    /// the API server: `k8s://https://HOST:PORT`
    MASTER: String = text("spark.master");
    /// `cluster`
    DEPLOY_MODE: String = text("spark.submit.deployMode");
    /// names of the objects, label `spark-app-name`
    APP_NAME: String = text("spark.app.name").or("the main class, or the file's name");
    /// where everything is created
    NAMESPACE: String = namespace("spark.kubernetes.namespace").or("default").substituted();
    /// jars; those of this machine are [staged](#local-files) or copied, the others are left to the driver
    JARS: String = list("spark.jars").file();
    /// files for the working directories, likewise
    FILES: String = list("spark.files").file();
    /// archives to unpack there, likewise
    ARCHIVES: String = list("spark.archives").file();
    /// `.py`, `.zip` and `.egg` files for `PYTHONPATH`, likewise
    PY_FILES: String = list("spark.submit.pyFiles").file();
    /// Maven coordinates; the driver resolves them
    PACKAGES: String = list("spark.jars.packages");
    /// what to leave out of them
    EXCLUDED_PACKAGES: String = list("spark.jars.excludes");
    /// where to look for them
    REPOSITORIES: String = list("spark.jars.repositories");
    /// where files of this machine are copied to without a staging server, each into a folder of its own
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
    /// how many executors; only checked. With dynamic allocation there may be none to begin with
    EXECUTOR_INSTANCES: i32 = count_or_none("spark.executor.instances").or("2");
    /// whether there may be no executors to begin with
    DYNAMIC_ALLOCATION: bool = bare_boolean("spark.dynamicAllocation.enabled").or("false");
    /// whether executors are kept as long as their shuffle files are needed; the driver's
    SHUFFLE_TRACKING: bool = boolean("spark.dynamicAllocation.shuffleTracking.enabled").or("true");
    /// a warning, if it is `true`: see [above](#dynamic-allocation-without-a-shuffle-service)
    SHUFFLE_SERVICE: bool = boolean("spark.shuffle.service.enabled").or("false");
    /// Spark Connect's, refused
    REMOTE: String = text("spark.remote");
    /// the standalone cluster's, without an effect
    MOST_CORES: i32 = count("spark.cores.max");
    /// settings of Ivy: a file of this machine, which nothing here reads
    IVY_SETTINGS: String = text("spark.jars.ivySettings").file();
    /// version of Python, which must be 3
    PYTHON_VERSION: String = text("spark.kubernetes.pyspark.pythonVersion").until("4.0");
}
