//! Keys of the driver's pod, of its ports and service, and those that are always set for the driver.

use super::keys;
use super::kind::{
    boolean, bytes, count, count_or_none, cpus, factor, factor_or_none, heap, image, list, mebibytes, one_of,
    pod_name, port, port_with_blanks, text, word,
};

keys! { TABLE = "The driver's pod":
    /// image of driver and executors
    CONTAINER_IMAGE: String = image("spark.kubernetes.container.image").substituted();
    /// image of the driver; wins over the image of both
    DRIVER_CONTAINER_IMAGE: String =
        image("spark.kubernetes.driver.container.image").renamed("spark.kubernetes.driver.docker.image").substituted();
    /// image of the executors
    EXECUTOR_CONTAINER_IMAGE: String =
        image("spark.kubernetes.executor.container.image").renamed("spark.kubernetes.executor.docker.image").substituted();
    /// pull policy
    CONTAINER_IMAGE_PULL_POLICY: &'static str =
        word("spark.kubernetes.container.image.pullPolicy", "`Always`, `Never`, `IfNotPresent`", |text, _| {
            one_of(text, &["Always", "Never", "IfNotPresent"])
        })
        .or("IfNotPresent").renamed("spark.kubernetes.docker.image.pullPolicy").substituted();
    /// pull secrets, behind those of the template
    PULL_SECRETS: String = list("spark.kubernetes.container.image.pullSecrets").substituted();
    /// the driver's heap
    DRIVER_MEMORY: u64 = heap("spark.driver.memory").or("1g");
    /// Java options of the driver
    DRIVER_JAVA_OPTIONS: String = text("spark.driver.extraJavaOptions");
    /// Java options of the driver, in front of the extra ones
    DRIVER_DEFAULT_JAVA_OPTIONS: String = text("spark.driver.defaultJavaOptions");
    /// class path entries of the driver
    DRIVER_CLASS_PATH: String = text("spark.driver.extraClassPath");
    /// library path entries of the driver
    DRIVER_LIBRARY_PATH: String = text("spark.driver.extraLibraryPath");
    /// memory of the container beside the heap
    DRIVER_MEMORY_OVERHEAD: u64 = mebibytes("spark.driver.memoryOverhead")
        .also(&["spark.yarn.driver.memoryOverhead"])
        .renamed("spark.kubernetes.driver.memoryOverhead").substituted();
    /// memory beside the heap, as a part of the heap; wins over the factor of both
    DRIVER_MEMORY_OVERHEAD_FACTOR: f64 = factor("spark.driver.memoryOverheadFactor").or("the factor of both").substituted();
    /// the same factor, for driver and executors
    MEMORY_OVERHEAD_FACTOR: f64 = factor_or_none("spark.kubernetes.memoryOverheadFactor")
        .or("0.1, for Python and R 0.4").substituted();
    /// minimum memory beside the heap
    DRIVER_MIN_MEMORY_OVERHEAD: u64 = mebibytes("spark.driver.minMemoryOverhead").or("384m").since("4.0").substituted();
    /// memory of an executor's container beside its heap
    EXECUTOR_MEMORY_OVERHEAD: u64 =
        mebibytes("spark.executor.memoryOverhead").renamed("spark.kubernetes.executor.memoryOverhead").substituted();
    /// CPU request of the driver
    DRIVER_CORES: i32 = count("spark.driver.cores").or("1");
    /// CPU request of the driver; wins over `spark.driver.cores`
    DRIVER_REQUEST_CORES: String = cpus("spark.kubernetes.driver.request.cores").substituted();
    /// CPU limit of the driver
    DRIVER_LIMIT_CORES: String = cpus("spark.kubernetes.driver.limit.cores").substituted();
    /// how many devices of the kind `vendor/NAME`
    DRIVER_RESOURCE_AMOUNT: i32 = count_or_none("spark.driver.resource.NAME.amount");
    /// vendor of the device, such as `nvidia.com`
    DRIVER_RESOURCE_VENDOR: String = text("spark.driver.resource.NAME.vendor");
    /// the pod's name
    DRIVER_POD_NAME: String = pod_name("spark.kubernetes.driver.pod.name").or("made from the application's name").substituted();
    /// labels; `{{APP_ID}}` is filled in
    DRIVER_LABELS: String = text("spark.kubernetes.driver.label.KEY");
    /// annotations; `{{APP_ID}}` is filled in
    DRIVER_ANNOTATIONS: String = text("spark.kubernetes.driver.annotation.KEY");
    /// node selector of driver and executors
    NODE_SELECTOR: String = text("spark.kubernetes.node.selector.KEY");
    /// node selector of the driver; wins over that of both
    DRIVER_NODE_SELECTOR: String = text("spark.kubernetes.driver.node.selector.KEY");
    /// scheduler of driver and executors
    SCHEDULER: String = text("spark.kubernetes.scheduler.name").substituted();
    /// scheduler of the driver; wins over that of both
    DRIVER_SCHEDULER: String = text("spark.kubernetes.driver.scheduler.name").substituted();
    /// environment variables of the driver
    DRIVER_ENV: String = text("spark.kubernetes.driverEnv.NAME");
    /// environment variables of the executors
    EXECUTOR_ENV: String = text("spark.executorEnv.NAME");
    /// mounts the secret NAME at the path that is the value
    DRIVER_SECRETS: String = text("spark.kubernetes.driver.secrets.NAME");
    /// environment variable from `secret:key`
    DRIVER_SECRET_KEYS: String = text("spark.kubernetes.driver.secretKeyRef.VARIABLE");
    /// pod template of the driver: a path, `file:`, `local:` or `http(s):`
    DRIVER_POD_TEMPLATE: String = text("spark.kubernetes.driver.podTemplateFile").substituted().file();
    /// name of Spark's container in that template
    DRIVER_TEMPLATE_CONTAINER: String =
        text("spark.kubernetes.driver.podTemplateContainerName").or("the first one").substituted();
    /// pod template of the executors; travels to the driver in a config map
    EXECUTOR_POD_TEMPLATE: String = text("spark.kubernetes.executor.podTemplateFile").substituted().file();
    /// name of Spark's container in that template
    EXECUTOR_TEMPLATE_CONTAINER: String =
        text("spark.kubernetes.executor.podTemplateContainerName").or("the first one").substituted();
    /// classes of extra feature steps; only Volcano's is supported
    EXTRA_STEPS: String = list("spark.kubernetes.driver.pod.featureSteps").substituted();
    /// classes of Spark's feature steps to leave out
    EXCLUDED_STEPS: String = list("spark.kubernetes.driver.pod.excludedFeatureSteps").since("4.1").substituted();
    /// template of Volcano's `PodGroup`
    POD_GROUP_FILE: String = text("spark.kubernetes.scheduler.volcano.podGroupTemplateFile").file();
    /// template of Volcano's `PodGroup`, as text
    POD_GROUP_JSON: String = text("spark.kubernetes.scheduler.volcano.podGroupTemplateJson");
    /// `allowPrivilegeEscalation` of driver and executors
    PRIVILEGE_ESCALATION: bool =
        boolean("spark.kubernetes.securityContext.allowPrivilegeEscalation").or("false").since("4.3").substituted();
    /// `allowPrivilegeEscalation` of the driver; wins over that of both
    DRIVER_PRIVILEGE_ESCALATION: bool =
        boolean("spark.kubernetes.driver.securityContext.allowPrivilegeEscalation").since("4.3").substituted();
    /// largest size of the files of `SPARK_CONF_DIR` that travel with the properties
    CONFIG_MAP_MAX_SIZE: i64 = bytes("spark.kubernetes.configMap.maxSize").or("1048576").substituted();
    /// CPU request of an executor; of its init-container, with `executorStaging=init`
    EXECUTOR_REQUEST_CORES: String = text("spark.kubernetes.executor.request.cores").substituted();
    /// CPU limit of an executor, likewise
    EXECUTOR_LIMIT_CORES: String = text("spark.kubernetes.executor.limit.cores").substituted();
}

keys! { NETWORK = "Ports and service":
    /// port of the driver
    DRIVER_PORT: u16 = port("spark.driver.port").or("7078");
    /// port of the driver's block manager
    DRIVER_BLOCK_MANAGER_PORT: u16 = port("spark.driver.blockManager.port").or("7079");
    /// port of block managers; acts on the pod, not on the service
    BLOCK_MANAGER_PORT: u16 = port("spark.blockManager.port").or("7079");
    /// port of Spark's web UI
    UI_PORT: u16 = port_with_blanks("spark.ui.port").or("4040").substituted();
    /// port of Spark Connect
    CONNECT_PORT: u16 = port("spark.connect.grpc.binding.port").or("15002").since("4.0");
    /// labels of the service
    SERVICE_LABELS: String = text("spark.kubernetes.driver.service.label.KEY");
    /// annotations of the service
    SERVICE_ANNOTATIONS: String = text("spark.kubernetes.driver.service.annotation.KEY");
    /// IP family policy of the service
    IP_FAMILY_POLICY: &'static str = word(
        "spark.kubernetes.driver.service.ipFamilyPolicy",
        "`SingleStack`, `PreferDualStack`, `RequireDualStack`",
        |text, _| one_of(text, &["SingleStack", "PreferDualStack", "RequireDualStack"]),
    ).or("SingleStack").substituted();
    /// IP families of the service
    IP_FAMILIES: &'static str = word(
        "spark.kubernetes.driver.service.ipFamilies",
        "`IPv4`, `IPv6`, `IPv4,IPv6`, `IPv6,IPv4`",
        |text, _| {
            let known = ["IPv4", "IPv6", "IPv4,IPv6", "IPv6,IPv4"].into_iter().find(|families| *families == text);
            known.ok_or_else(|| "it must be one of `IPv4`, `IPv6`, `IPv4,IPv6`, `IPv6,IPv4`".to_owned())
        },
    ).or("IPv4").substituted();
    /// whether DNS has the driver's address before the driver is ready
    PUBLISH_NOT_READY: bool =
        boolean("spark.kubernetes.driver.service.publishNotReadyAddresses").or("false").since("4.3").substituted();
    /// refused: the driver binds to the address of its pod
    BIND_ADDRESS: String = text("spark.driver.bindAddress");
}

keys! { ALWAYS_SET = "Always set for the driver":
    /// `spark-` and 32 hexadecimal digits
    APP_ID: String = text("spark.app.id");
    /// when the application was submitted, in milliseconds since 1970
    SUBMIT_TIME: String = text("spark.app.submitTime");
    /// name of the driver's service
    DRIVER_HOST: String = text("spark.driver.host");
    /// `true`
    SUBMIT_IN_DRIVER: bool = boolean("spark.kubernetes.submitInDriver");
    /// `java`, `python` or `r`
    RESOURCE_TYPE: String = text("spark.kubernetes.resource.type");
    /// config map with Hadoop's configuration, for the executors
    EXECUTOR_HADOOP_CONFIG_MAP: String = text("spark.kubernetes.executor.hadoopConfigMapName");
}
