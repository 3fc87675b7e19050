//! Texts from the tests, for the targets whose input is text.

/// Values of `Range`.
pub const RANGES: &[&str] = &[
    "bytes=0-0",
    "bytes=2-4",
    "bytes=2-",
    "bytes=2-99",
    "bytes=-3",
    "bytes=-99",
    "Bytes=9-9",
    "bytes=-0",
    "bytes=0-99999999999999999999",
    "bytes=10-",
    "bytes=4-2",
    "bytes=0-1,3-4",
    "bytes=a-b",
    "bytes=-",
    "lines=1-2",
    "bytes",
    " bytes = 1-2 ",
    "bytes=18446744073709551615-18446744073709551615",
];

/// Bodies with the boundary `3f2a`.
pub const FORMS: &[&str] = &[
    "--3f2a\r\nContent-Disposition: form-data; name=\"resources\"; filename=\"deps.tgz\"\r\n\
     Content-Type: application/octet-stream\r\n\r\nbytes\r\n--3f2a\r\n\
     Content-Disposition: form-data; name=\"resourcesOwner\"\r\nContent-Type: application/json\r\n\r\n{}\r\n--3f2a--\r\n",
    "--3f2a\r\nContent-Disposition: form-data; name=\"resources\"; filename*=utf-8''caf%C3%A9.tgz\r\n\r\nbytes\r\n--3f2a--\r\n",
    "preamble\r\n--3f2a \t\r\ncontent-disposition : form-data;\r\n\tname=a;\r\n filename=\"b.jar\"\r\nCONTENT-LENGTH: -1\r\n\r\n\
     \r\n--3f2a-\r\n--3f2\r\n\r\n--3f2a--epilogue",
    "--3f2a\r\nContent-Disposition: form-data; name=a\r\n\r\n--3f2a\r\n\r\n\r\n--3f2a--",
    "--3f2a--",
];

/// For every target whose input is a text after at most one byte that selects a form.
pub const ALL: &[(&str, &[&str])] = &[
    ("digests", DIGESTS),
    ("quantities", QUANTITIES),
    ("uris", URIS),
    ("webhdfs", WEBHDFS),
    ("owner", OWNERS),
    ("properties", PROPERTIES),
    ("pod_template", TEMPLATES),
    ("ticket", TICKETS),
    ("log", LOGS),
];

const DIGESTS: &[&str] = &[
    "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:",
    "sha-512=:AAAA:, sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:",
    "sha-512=:AAAA:",
    "",
    "sha-256",
    "sha-256=abc",
    "sha-256=:abc:",
    "sha-256=:AAAA:",
];

const QUANTITIES: &[&str] = &[
    "8GiB",
    "512m",
    "16KiB",
    "8191PiB",
    "8192PiB",
    "17",
    "1.5g",
    "-1g",
    "30m",
    "90s",
    "500ms",
    "106751d",
    "106752d",
    "1min",
    "2H",
    "7us",
    "",
    " 5 gb ",
    "18446744073709551616k",
    "1e3",
    "100n",
    ".5",
];

const WEBHDFS: &[&str] = &[
    "PUT /webhdfs/v1/spark/spark-upload-4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1?op=MKDIRS&user.name=ada&permission=755",
    "PUT /webhdfs/v1/spark/token-0123456789abcdefghijABCDEFGHIJ_-/spark-upload-4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1/my%20app+1%20%25é%23x.jar?op=CREATE&overwrite=true&step=2",
    "GET /webhdfs/v1/spark/spark-upload-4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1/app.jar?op=OPEN&buffersize=65536&step=2&offset=7",
    "GET /webhdfs/v1/spark/spark-upload-4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1/?op=GETFILESTATUS",
    "spark token-0123456789abcdefghijABCDEFGHIJ_-\nspark sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
];

const URIS: &[&str] = &[
    "a.jar",
    "/opt/a b.jar",
    "file:///opt/a%20b.jar",
    "file:/opt/env.tgz#env",
    "file://localhost/a",
    "file://host/a",
    "local:///opt/spark/a.jar",
    "https://user:secret@host:8443/path/a%20b.jar?token=x#f",
    "http:///a",
    "s3a://bucket/a.jar",
    "hdfs:/a",
    "a.jar,b.jar,,https://h/c.jar",
    "http://[::1]:10000/prefix/",
    "https://h/%2e%2e",
    "C:\\a.jar",
    "file:a%00b",
];

const OWNERS: &[&str] = &[
    "\0{\"ownerNamespace\":\"team-a\",\"ownerLabels\":{\"spark-app-selector\":\"spark-0a1b\"},\"ownerType\":\"Pod\"}",
    "\0{\"ownerNamespace\":\"ns\",\"ownerLabels\":{\"example.com/role\":\"\"}}",
    "\0{\"ownerNamespace\":\"ns\",\"ownerLabels\":{\"a\":\"1\",\"a\":\"2\"},\"ownerType\":\"SparkApplication.sparkoperator.k8s.io\"}",
    "\x01namespace=team-a&label=app%3Ddemo&label=b=c&name=driver.pod-1&kind=Deployment&ttl=2h&unusedTimeout=6h",
    "\x01namespace=ns&name=a&ttl=0s",
    "\x01namespace=ns&namespace=b&label=a",
    "\x01color=blue",
];

const PROPERTIES: &[&str] = &[
    "spark.jars=local\\:///data/jars/a%20b.jar,https\\://h/y.jar\nspark.archives=local\\:/data/files/env.tgz\\#env\n",
    "# comment\n! another\r\nkey\\ with\\ blanks : value \\\n   continued\rk=\\u00e9\\ud83d\\ude00\nempty\n\\=\\:=\\t\\n\\r\\f",
    "\\\r\n#a\n\\\n!b\n",
    "a\\\\\\\nb=c\\",
    "a=\\u12",
    "spark.kubernetes.resourceStagingServer.port=10000\nspark.ssl.kubernetes.resourceStagingServer.enabled=true\n\
     spark.ssl.kubernetes.resourceStagingServer.keyPem=/k\nspark.ssl.kubernetes.resourceStagingServer.serverCertPem=/c\n\
     spark.kubernetes.resourceStagingServer.initialAccessExpirationTimeout=30m\n\
     spark.kubernetes.authenticate.resourceStagingServer.oauthToken=token-of-the-server\n",
    "spark.kubernetes.resourceStagingServer.uri=https://h:1\n\
     spark.kubernetes.initcontainer.downloadJarsResourceIdentifier=4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1\n\
     spark.kubernetes.initcontainer.downloadJarsSecretLocation=/s\n\
     spark.kubernetes.initcontainer.remoteJars=https://h/a.jar\nspark.kubernetes.mountDependencies.mountTimeout=5m\n",
];

const TEMPLATES: &[&str] = &[
    "spec: {containers: [{name: a}, {name: b}], priorityClassName: high}\0b",
    "spec:",
    "- spec",
    "spec: [",
    "{\"kind\": \"Pod\", \"spec\": {}}",
    "spec: {}\n---\nspec: {}\n",
    "kind: Deployment\nspec: {}",
    "metadata:\n  labels: {n: 1, b: true}\nspec:\n  containers:\n  - name: a\n    env: [{name: A, value: 5}, {name: E, value: null}]\n    \
     resources: {limits: {cpu: 2, memory: 1.5Gi}}\n    unknown: {a: [1, x]}\n  volumes:\n  - {name: v, emptyDir: {sizeLimit: 1024}}\n",
    "spec: {volumes: [{name: v, configMap: {name: c, defaultMode: 0644, items: [{key: k, path: p, mode: 0400}]}}]}",
    "spec:\n  terminationGracePeriodSeconds: 1.5e1\n  securityContext: {runAsUser: 185, fsGroup: 0x10}\n  hostNetwork: yes\n  \
     containers: [{name: a, ports: [{containerPort: 1e3}], livenessProbe: {httpGet: {port: http}, periodSeconds: \"010\"}}]\n",
    "spec: {unknown: 1e30, containers: [{name: x}]}",
    "x: &a [1, 2]\ny: &b {<<: *a}\nspec: {containers: [*b], dnsConfig: {options: [{name: ndots, value: \"2\"}]}}",
];

const TICKETS: &[&str] = &[
    "\0{\"resourceId\":\"4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1\",\"resourceSecret\":\"0123456789abcdef\",\"sizeBytes\":3,\
     \"sha256\":\"00\",\"createdAt\":\"2026-01-02T03:04:05Z\",\"expiresAt\":\"2026-01-02T03:34:05Z\",\"url\":\"http://h/x\"}",
    "\0{\"resourceId\":\"4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1\",\"resourceSecret\":\"0123456789abcdef\"}",
    "\x01{\"version\":1,\"source\":\"key\",\"sha256\":\"00\",\"files\":[{\"name\":\"a/b.jar\",\"sizeBytes\":3}]}",
    "\x01{\"version\":1,\"source\":\"key\",\"sha256\":\"00\",\"files\":[{\"name\":\"../a\",\"sizeBytes\":3}]}",
    "\x024c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1",
    "\x02../../etc/passwd",
    "\x02gr\u{f6}\u{df}e 1.jar",
    "\x024C1A3C44-54D9-4A1F-9A6E-0B6F6FD7E7B1",
    "\x03{\"sourceSecret\":\"0123456789abcdef\",\"parts\":[{\"send\":700},{\"copy\":[100,65536]}],\"sizeBytes\":66236,\
     \"sha256\":\"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\"}",
    "\x03{\"sourceSecret\":\"\",\"parts\":[{\"copy\":[18446744073709551615,65536]}],\"sizeBytes\":65536,\"sha256\":\"\"}",
];

/// Groups without their last line, groups with another one, stamps and places.
const LOGS: &[&str] = &[
    "\0{\"installation\":\"00000000000000ab\",\"epoch\":3,\"number\":14,\"form\":1}\n",
    "\0{\"installation\":\"00000000000000ab\",\"epoch\":3,\"number\":14,\"form\":1}\n\
     {\"table\":\"strays\",\"key\":{\"key\":\"a\"},\"row\":{\"key\":\"a\",\"blob\":{\"blob\":\"AP8K\"},\
     \"text\":{\"text\":\"/w==\"},\"none\":null,\"least\":-9223372036854775808}}\n\
     {\"table\":\"strays\",\"key\":{\"key\":\"gone\"}}\n",
    "\0{\"installation\":\"00000000000000ab\",\"epoch\":1,\"number\":1,\"form\":1}\n{\"table\":\"strays\",\"key\":{},\"mode\":1}\n",
    "\0{\"installation\":\"ab\",\"epoch\":18446744073709551615,\"number\":0,\"form\":-1}\n",
    "\x01{\"installation\":\"00000000000000ab\",\"epoch\":1,\"number\":1,\"form\":1}\n{\"sha256\":\"00\"}\n",
    "\x02form-1 00000000000000ab 3 9 7 1-0 serves\n",
    "\x02form-1 00000000000000ab 18446744073709551615 0 1 0-0 begins",
    "\x02form-1 00000000000000ab 3 9 7 1-0 yields",
    "\x02form-1 00000000000000ab 3 9 7 1-0 stopped",
    "\x02form-2 anything",
    "\x02form-0 00000000000000ab 3 9 7 serves",
    "\x0200000000000000ab 12 0000000000000007\n",
    "\x0312-345",
    "\x031-18446744073709551615",
    "\x0312-03",
    "\x03+1-2",
    "\x031-2-3",
];
