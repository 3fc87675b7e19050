//! Every value has an effect, and every mistake a sentence.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::helm::{Helm, chart};

/// A value, another one than the default, and the file of values that it is tried with.
const OTHERS: &[(&str, &str, &str)] = &[
    ("image.repository", "\"registry.example.com/cloakroom\"", "base"),
    ("image.digest", DIGEST, "base"),
    ("image.tag", "\"other\"", "base"),
    ("image.pullPolicy", "\"Always\"", "base"),
    ("global.imageRegistry", "\"registry.example.com\"", "base"),
    ("global.imagePullSecrets", "[\"registry\"]", "base"),
    ("global.storageClass", "\"fast\"", "base"),
    ("imagePullSecrets", "[{\"name\": \"registry\"}]", "base"),
    ("fullnameOverride", "\"staging\"", "base"),
    ("uploadAuth", "\"none\"", "base"),
    ("acceptClusterTokens", "false", "accept-cluster-tokens"),
    ("adminToken", "true", "base"),
    ("webhdfs", "true", "base"),
    ("tokens.existingSecret", "\"other\"", "upload-auth-token"),
    ("ownerKinds", "{\"CronJob\": \"cronjobs\"}", "base"),
    ("namespaces", "[\"a\", \"b\"]", "base"),
    ("maxAge", "\"3d\"", "base"),
    ("store.url", "\"s3://other/prefix\"", "bucket"),
    ("store.endpoint", "\"https://other.example.com\"", "bucket"),
    ("store.region", "\"eu-central-1\"", "bucket"),
    ("store.account", "\"other\"", "bucket"),
    ("store.user", "\"other\"", "bucket"),
    ("store.allowHttp", "true", "bucket"),
    ("store.existingSecret", "\"\"", "bucket"),
    ("store.caSecret", "\"ca\"", "bucket"),
    ("networkPolicy.storePorts", "[9000]", "bucket"),
    ("serviceAccount", "{\"create\": false, \"name\": \"other\"}", "base"),
    ("serviceAccount.annotations", "{\"a\": \"b\"}", "base"),
    ("persistence.size", "\"1Ti\"", "base"),
    ("persistence.storageClassName", "\"fast\"", "base"),
    ("persistence.accessMode", "\"ReadWriteOncePod\"", "base"),
    ("persistence.existingClaim", "\"other\"", "base"),
    ("persistence.keep", "false", "base"),
    ("service.type", "\"LoadBalancer\"", "base"),
    ("service.nodePort", "31001", "nodeport"),
    ("service.annotations", "{\"a\": \"b\"}", "base"),
    ("service.ipFamilyPolicy", "\"RequireDualStack\"", "base"),
    ("service.ipFamilies", "[\"IPv6\"]", "base"),
    ("service.externalTrafficPolicy", "\"Local\"", "nodeport"),
    ("service", "{\"type\": \"LoadBalancer\", \"loadBalancerClass\": \"example.com/inner\"}", "base"),
    ("service", "{\"type\": \"LoadBalancer\", \"loadBalancerSourceRanges\": [\"192.0.2.0/24\"]}", "base"),
    ("tls.existingSecret", "\"other\"", "base"),
    ("tls.certManager.issuerRef", "{\"name\": \"ca\"}", "base"),
    ("tls.certManager", "{\"issuerRef\": {\"name\": \"ca\"}, \"dnsNames\": [\"a.example.com\"]}", "base"),
    ("tls.certManager", "{\"issuerRef\": {\"name\": \"ca\"}, \"ipAddresses\": [\"192.0.2.1\"]}", "base"),
    ("ingress.enabled", "false", "ingress"),
    ("ingress.host", "\"other.example.com\"", "ingress"),
    ("ingress.className", "\"nginx\"", "ingress"),
    ("ingress.tlsSecret", "\"\"", "ingress"),
    ("ingress.annotations", "{\"a\": \"b\"}", "ingress"),
    ("gateway.enabled", "false", "gateway"),
    ("gateway.host", "\"other.example.com\"", "gateway"),
    ("gateway.parentRefs", "[{\"name\": \"other\"}]", "gateway"),
    ("monitoring.enabled", "false", "monitoring"),
    ("monitoring.labels", "{\"release\": \"other\"}", "monitoring"),
    ("monitoring.namespace", "\"other\"", "monitoring"),
    ("monitoring.runbookUrl", "\"https://git.example.com/run.md\"", "monitoring"),
    ("networkPolicy.enabled", "false", "base"),
    ("networkPolicy.dnsPorts", "[53, 5353]", "base"),
    ("networkPolicy.apiServerPorts", "[16443]", "base"),
    ("networkPolicy.apiServerCidrs", "[\"192.0.2.10/32\"]", "base"),
    ("extraEnv", "[{\"name\": \"CLOAKROOM_LOG\", \"value\": \"debug\"}]", "base"),
    ("extraArgs", "[\"--log=debug\"]", "base"),
    ("resources", "{\"limits\": {\"memory\": \"1Gi\"}}", "base"),
    ("priorityClassName", "\"high\"", "base"),
    ("nodeSelector", "{\"disk\": \"fast\"}", "base"),
    ("tolerations", "[{\"key\": \"storage\", \"operator\": \"Exists\"}]", "base"),
    ("affinity", "{\"nodeAffinity\": {}}", "base"),
    (
        "topologySpreadConstraints",
        "[{\"maxSkew\": 1, \"topologyKey\": \"zone\", \"whenUnsatisfiable\": \"ScheduleAnyway\"}]",
        "base",
    ),
    ("extraVolumes", "[{\"name\": \"ca\", \"configMap\": {\"name\": \"ca\"}}]", "base"),
    ("extraVolumeMounts", "[{\"name\": \"ca\", \"mountPath\": \"/ca\"}]", "base"),
    ("initContainers", "[{\"name\": \"chown\", \"image\": \"busybox\"}]", "base"),
    ("podLabels", "{\"team\": \"data\"}", "base"),
    ("podAnnotations", "{\"a\": \"b\"}", "base"),
    ("terminationGracePeriodSeconds", "60", "base"),
    ("podSecurityContext", "{\"fsGroup\": 1}", "base"),
    ("securityContext", "{\"readOnlyRootFilesystem\": false}", "base"),
];

const DIGEST: &str = "\"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"";

pub fn every_value(helm: &Helm) {
    let mut tried = BTreeSet::new();
    let mut before = BTreeMap::new();
    for (name, other, file) in OTHERS {
        let files = [format!("ci/{file}-values.yaml")];
        let changed = helm.render_with(&files, &format!("{name}={other}"));
        let before = before.entry(file).or_insert_with(|| helm.render(&files, &[]));
        assert_ne!(changed.objects(), before.objects(), "{name}={other} changes nothing");
        tried.extend(leaves(name, &serde_json::from_str(other).unwrap()));
    }
    let schema: Value =
        serde_json::from_str(&std::fs::read_to_string(chart().join("values.schema.json")).unwrap()).unwrap();
    let mut known = BTreeSet::new();
    add_leaves(&schema, "", &mut known);
    // This is for a parent chart.
    known.remove("enabled");
    assert!(known.len() > 40, "the schema is read wrong");
    assert_eq!(known.difference(&tried).collect::<Vec<_>>(), Vec::<&String>::new(), "these were not tried");
}

/// The value itself, and those in it.
fn leaves(name: &str, value: &Value) -> Vec<String> {
    let inner = value.as_object().into_iter().flat_map(|fields| fields.keys());
    inner.map(|key| format!("{name}.{key}")).chain([name.to_owned()]).collect()
}

fn add_leaves(schema: &Value, at: &str, known: &mut BTreeSet<String>) {
    for (key, inner) in schema["properties"].as_object().unwrap() {
        let name = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        // An issuerRef is one thing, with fields of cert-manager's.
        if inner["properties"].is_object() && !name.ends_with("Ref") {
            add_leaves(inner, &name, known);
        } else {
            known.insert(name);
        }
    }
}

/// Values that contradict each other or are missing, and the sentence that is said; an ellipsis at its end stands for a pattern.
const WRONG: &[(&[&str], &str)] = &[
    (
        &["image.repository="],
        "image.repository is missing: set it to the name of the image in your registry, such as registry.example.com/cloakroom",
    ),
    (
        &["image.tag="],
        "image.digest is missing: set it to the digest of the image that you pushed, sha256:… (or set image.tag, which can be moved to another image)",
    ),
    (
        &["image.digest=sha256:12"],
        "at '/image/digest': 'sha256:12' does not match pattern '^(sha256:[0-9a-f]{64})?$'",
    ),
    (
        &["image.repository=registry.example.com/cloakroom:0.1.0"],
        "at '/image/repository': 'registry.example.com/cloakroom:0.1.0' does not match pattern…",
    ),
    (
        &["image.repository=https://registry.example.com/cloakroom"],
        "image.repository begins with a scheme, which the name of an image does not have: write registry.example.com/cloakroom",
    ),
    (
        &["global.imageRegistry=oci://registry.example.com"],
        "global.imageRegistry begins with a scheme, which the name of an image does not have: write registry.example.com",
    ),
    (&["image.registry=example.com"], "at '/image': additional properties 'registry' not allowed"),
    (&["replicas=2"], "at '': additional properties 'replicas' not allowed"),
    (&["uploadAuth=basic"], "at '/uploadAuth': value must be one of 'kubernetes', 'token', 'none'"),
    (
        &["tokens.existingSecret=", "uploadAuth=token", "adminToken=true"],
        "tokens.existingSecret is missing: name a Secret with the key upload-token and the key admin-token",
    ),
    (
        &["tokens.existingSecret=", "adminToken=true"],
        "tokens.existingSecret is missing: name a Secret with the key admin-token",
    ),
    (
        &["acceptClusterTokens=true", "uploadAuth=token"],
        "acceptClusterTokens is for uploadAuth kubernetes only: leave it out, or choose that",
    ),
    (
        &["tls.existingSecret=a", "tls.certManager.issuerRef.name=b"],
        "tls.existingSecret and tls.certManager.issuerRef are both set: keep the first for a certificate of your own, or the second for one that cert-manager makes",
    ),
    (
        &["tls.certManager.dnsNames={a.example.com}"],
        "tls.certManager.issuerRef is missing: name the issuer that signs the certificate, such as { name: my-ca, kind: ClusterIssuer }",
    ),
    (&["tls.certManager.issuerRef.kind=Issuer"], "at '/tls/certManager/issuerRef': missing property 'name'"),
    (
        &["ingress.enabled=true"],
        "ingress.host is missing: set it to the name by which clients reach the server, such as cloakroom.example.com",
    ),
    (
        &["gateway.enabled=true", "gateway.parentRefs[0].name=gateway"],
        "gateway.host is missing: set it to the name by which clients reach the server, such as cloakroom.example.com",
    ),
    (
        &["gateway.enabled=true", "gateway.host=a.example.com"],
        "gateway.parentRefs is missing: name your Gateway, such as [{ name: gateway, namespace: gateway-system, sectionName: https }]",
    ),
    (
        &[
            "ingress.enabled=true",
            "ingress.host=a.example.com",
            "gateway.enabled=true",
            "gateway.host=b.example.com",
            "gateway.parentRefs[0].name=gateway",
        ],
        "ingress.host and gateway.host differ: tickets begin with one name, so set both to the same",
    ),
    (
        &["ingress.enabled=true", "ingress.host=*.example.com"],
        "ingress.host has a *, and tickets begin with this name: write one name, such as cloakroom.example.com",
    ),
    (
        &["gateway.enabled=true", "gateway.host=*.example.com", "gateway.parentRefs[0].name=gateway"],
        "gateway.host has a *, and tickets begin with this name: write one name, such as cloakroom.example.com",
    ),
    (
        &["ownerKinds.SparkApplication=sparkapplications"],
        "ownerKinds has SparkApplication, which is no built-in kind: write its API group behind it, as in SparkApplication.sparkoperator.k8s.io",
    ),
    (
        &["ownerKinds.pod=pods"],
        "ownerKinds has pod, which is no built-in kind: write its API group behind it, as in SparkApplication.sparkoperator.k8s.io",
    ),
    (
        &["ownerKinds=null"],
        "ownerKinds is empty: name one kind or more that bundles can belong to, such as Pod: pods",
    ),
    (
        &["service.type=NodePort", "service.nodePort=10000"],
        "at '/service/nodePort': minimum: got 10,000, want 30,000",
    ),
    (
        &["service.loadBalancerSourceRanges={192.0.2.0}"],
        "at '/service/loadBalancerSourceRanges/0': '192.0.2.0' does not match pattern…",
    ),
    (
        &["service.loadBalancerSourceRanges={192.0.2.0/24}", "service.type=NodePort"],
        "service.loadBalancerSourceRanges is for service.type LoadBalancer only: leave it out, or choose that",
    ),
    (
        &["service.loadBalancerClass=example.com/inner"],
        "service.loadBalancerClass is for service.type LoadBalancer only: leave it out, or choose that",
    ),
    (
        &["service.externalTrafficPolicy=Local"],
        "service.externalTrafficPolicy is for service.type NodePort and LoadBalancer only: leave it out, or choose one of them",
    ),
    (&["service.ipFamilies={ipv6}"], "at '/service/ipFamilies/0': value must be one of 'IPv4', 'IPv6'"),
    (
        &["serviceAccount.create=false"],
        "serviceAccount.name is missing: with serviceAccount.create false, name an account that exists in the release's namespace",
    ),
    (
        &["serviceAccount.create=false", "serviceAccount.name=a", "serviceAccount.annotations.b=c"],
        "serviceAccount.annotations is set, and serviceAccount.create is false: annotate the account where it is made",
    ),
    (&["service.nodePort=32768"], "at '/service/nodePort': maximum: got 32,768, want 32,767"),
    (&["namespaces={Spark}"], "at '/namespaces/0': 'Spark' does not match pattern…"),
    (
        &["monitoring.runbookUrl=https://git.example.com/run.md#alerts"],
        "at '/monitoring/runbookUrl': 'https://git.example.com/run.md#alerts' does not match pattern…",
    ),
    (
        &["store.url=az://team/cloakroom"],
        "store.account is missing: name the storage account of the container of az://",
    ),
    (
        &["store.url=webhdfs://namenode:9870/team", "store.user=a"],
        "store.allowHttp is false, and webhdfs:// is without TLS: set it, or use swebhdfs://",
    ),
    (
        &["store.url=swebhdfs://Name_Node:9871/team"],
        "store.user is missing: name the user of the folder of webhdfs://",
    ),
    (
        &["store.url=s3://team/a", "store.endpoint=http://s3.example.com:9000"],
        "store.allowHttp is false, and store.endpoint is without TLS: set it, or write https://",
    ),
    (
        &["store.url=swebhdfs://one/team", "store.user=a", "store.existingSecret=b"],
        "store.existingSecret is set: HDFS takes no credentials",
    ),
    (&["persistence.size=big"], "at '/persistence/size': 'big' does not match pattern…"),
    (&["podLabels.a=9007199254740993"], "at '/podLabels/a': maximum: got …"),
    (
        &["extraVolumes[0].name=data"],
        "extraVolumes has data, which the chart itself has: choose another name",
    ),
    (
        &["extraVolumes[0].name=tls", "tls.existingSecret=a"],
        "extraVolumes has tls, which the chart itself has: choose another name",
    ),
    (
        &["extraVolumes[0].name=a", "extraVolumes[1].name=a"],
        "extraVolumes has a twice: keep one, or choose another name",
    ),
    (
        &["extraVolumeMounts[0].name=data", "extraVolumeMounts[0].mountPath=/var/lib/cloakroom/"],
        "extraVolumeMounts has /var/lib/cloakroom, which the chart itself has: choose another mountPath",
    ),
    (
        &["initContainers[0].name=cloakroom"],
        "initContainers has cloakroom, which the chart itself has: choose another name",
    ),
    (&["extraEnv[0].name=A", "extraEnv[1].name=A"], "extraEnv has A twice: keep one, or choose another name"),
    (
        &["podLabels.app\\.kubernetes\\.io/instance=a"],
        "podLabels has app.kubernetes.io/instance, which the chart itself sets: leave it out",
    ),
    (
        &["monitoring.labels.helm\\.sh/chart=a"],
        "monitoring.labels has helm.sh/chart, which the chart itself sets: leave it out",
    ),
];

/// The container gets a Secret with credentials as variables, and at Google as a file.
pub fn clouds(helm: &Helm) {
    for (values, variables, path) in [
        (["store.url=s3://team/p", "store.region=a"], ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"], None),
        (
            ["store.url=az://team/p", "store.account=example"],
            ["CLOAKROOM_STORE_ACCOUNT", "AZURE_STORAGE_KEY"],
            None,
        ),
        (
            ["store.url=gs://team/p", "fullnameOverride=a"],
            ["CLOAKROOM_STORE", "GOOGLE_APPLICATION_CREDENTIALS"],
            Some("/etc/cloakroom/store-credentials"),
        ),
    ] {
        let values = [&values[..], &["store.existingSecret=key"]].concat();
        let rendered = helm.render(&["ci/base-values.yaml".to_owned()], &values);
        let server = rendered.objects().iter().find(|object| object["kind"] == "Deployment").unwrap();
        let pod = &server["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let names: Vec<_> = container["env"].as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
        assert!(
            variables.iter().all(|variable| names.contains(&&Value::from(*variable))),
            "{values:?}: {names:?}"
        );
        let of_credentials = |list: &Value| {
            let found = list.as_array().unwrap().iter().find(|entry| entry["name"] == "store-credentials");
            found.cloned().unwrap_or_default()
        };
        assert_eq!(of_credentials(&container["volumeMounts"])["mountPath"].as_str(), path);
        let secret = &of_credentials(&pod["volumes"])["secret"]["secretName"];
        assert_eq!(secret.as_str(), path.map(|_| "key"));
    }
}

pub fn wrong_values(helm: &Helm) {
    let files = ["ci/base-values.yaml".to_owned()];
    for (values, sentence) in WRONG {
        let output = helm.chart(&["template"], &files, values);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{values:?} is accepted");
        let [complaint] = complaints(&said)[..] else { panic!("{values:?}: {said}") };
        let is_said = match sentence.strip_suffix('…') {
            Some(beginning) => complaint.starts_with(beginning),
            None => complaint == *sentence,
        };
        assert!(is_said, "{values:?}: {said}");
    }
    // What is wrong is said all at once.
    let output = helm.chart(&["template"], &[], &["ingress.enabled=true"]);
    let said = String::from_utf8(output.stderr).unwrap();
    let complaints = complaints(&said);
    assert_eq!(complaints.len(), 3, "{said}");
    for (complaint, name) in complaints.iter().zip(["image.repository", "image.digest", "ingress.host"]) {
        assert!(complaint.starts_with(&format!("{name} is missing: ")), "{said}");
    }
}

/// What is wrong, line by line, without Helm's words around it.
fn complaints(said: &str) -> Vec<&str> {
    let is_about_values = |line: &&str| {
        let around = ["Error: values don't meet", "cloakroom:", "Use --debug"];
        !line.is_empty() && !around.iter().any(|words| line.starts_with(words))
    };
    let lines = said.lines().filter(is_about_values);
    let sentences = lines.map(|line| match line.split_once("): ") {
        Some((place, sentence)) if place.starts_with("Error: execution error at ") => sentence,
        _ => line.trim_start_matches("- "),
    });
    sentences.collect()
}
