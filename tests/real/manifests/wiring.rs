//! What refers to what: ports, selectors, volumes, accounts, hosts.

use cloakroom_testing::known::{list, text};
use serde_json::Value;

use super::rendered::Rendered;

/// Mistakes that must be noticed: kind, name, JSON pointer, value.
pub const PLANTED: [(&str, &str, &str, &str); 29] = [
    ("Deployment", "cloakroom", "/spec/replicas", "2"),
    ("Deployment", "cloakroom", "/spec/strategy/rollingUpdate/maxSurge", "1"),
    ("Deployment", "cloakroom", "/spec/strategy/rollingUpdate/maxUnavailable", "0"),
    ("Deployment", "cloakroom", "/spec/template/metadata/labels", "{\"app\": \"other\"}"),
    ("Deployment", "cloakroom", "/spec/template/spec/enableServiceLinks", "true"),
    ("Deployment", "cloakroom", "/spec/template/spec/automountServiceAccountToken", "false"),
    ("Deployment", "cloakroom", "/spec/template/spec/serviceAccountName", "\"default\""),
    ("Deployment", "cloakroom", "/spec/template/spec/securityContext/runAsNonRoot", "false"),
    ("Deployment", "cloakroom", "/spec/template/spec/containers/0/args", "[\"fetch\"]"),
    ("Deployment", "cloakroom", "/spec/template/spec/containers/0/ports/0/containerPort", "10002"),
    (
        "Deployment",
        "cloakroom",
        "/spec/template/spec/containers/0/volumeMounts/0/mountPath",
        "\"/elsewhere\"",
    ),
    ("Deployment", "cloakroom", "/spec/template/spec/containers/0/volumeMounts/0/name", "\"other\""),
    ("Deployment", "cloakroom", "/spec/template/spec/containers/0/livenessProbe/httpGet/port", "\"staging\""),
    ("Deployment", "cloakroom", "/spec/template/spec/containers/0/resources/limits", "{}"),
    ("Deployment", "cloakroom", "/spec/template/spec/containers/0/securityContext/capabilities", "{}"),
    ("Deployment", "cloakroom", "/spec/template/spec/containers/0/terminationMessagePolicy", "\"File\""),
    ("Deployment", "cloakroom", "/spec/template/spec/containers/0/env", "[]"),
    ("Deployment", "cloakroom", "/spec/template/spec/containers/0/image", "\"registry.example.com/other\""),
    ("Service", "cloakroom", "/spec/selector", "{\"app\": \"other\"}"),
    ("Service", "cloakroom", "/spec/ports/0/targetPort", "\"operations\""),
    ("Service", "cloakroom-operations", "/spec/ports/0", "{\"port\": 10001, \"nodePort\": 31001}"),
    ("Ingress", "cloakroom", "/spec/rules/0/host", "\"other.example.com\""),
    ("Ingress", "cloakroom", "/spec/rules/0/http/paths/0/backend/service/port/number", "80"),
    ("HTTPRoute", "cloakroom", "/spec/rules/0/backendRefs/0/name", "\"cloakroom-operations\""),
    ("ServiceMonitor", "cloakroom", "/spec/selector/matchLabels", "{\"app\": \"other\"}"),
    ("ServiceMonitor", "cloakroom", "/spec/endpoints/0/port", "\"http\""),
    ("NetworkPolicy", "cloakroom", "/spec/ingress/1/ports/0/port", "\"metrics\""),
    ("ClusterRoleBinding", "cloakroom", "/subjects/0/namespace", "\"default\""),
    ("Role", "cloakroom-user", "/rules/0/resourceNames", "[\"http:other:10000\"]"),
];

/// Everything that refers to something that is not there, or is not as it must be.
pub fn complaints(rendered: &Rendered) -> Vec<String> {
    let mut complaints = Vec::new();
    for check in [
        deployment, hardening, files, ports, services, backends, monitors, policies, accounts, users, uploads,
    ] {
        check(rendered, &mut complaints);
    }
    complaints
}

type Complaints = Vec<String>;

fn expect(complaints: &mut Complaints, holds: bool, otherwise: impl FnOnce() -> String) {
    if !holds {
        complaints.push(otherwise());
    }
}

fn deployment(rendered: &Rendered, complaints: &mut Complaints) {
    let spec = &rendered.deployment()["spec"];
    let labels = &spec["template"]["metadata"]["labels"];
    for (what, holds) in [
        ("more than one process for one data directory", spec["replicas"] == 1),
        ("a new pod before the old one is told to stop", spec["strategy"]["rollingUpdate"]["maxSurge"] == 0),
        ("an update that waits for a second pod", spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 1),
        ("a selector that misses its pods", selects(&spec["selector"]["matchLabels"], labels)),
        ("another command than serve", rendered.container()["args"] == serde_json::json!(["serve"])),
        ("variables of services beside its own", rendered.pod()["enableServiceLinks"] == false),
        (
            "another image for init-containers than its own",
            rendered
                .variable("CLOAKROOM_FETCH_IMAGE")
                .is_some_and(|image| rendered.container()["image"] == image),
        ),
    ] {
        expect(complaints, holds, || format!("the Deployment has {what}"));
    }
}

fn hardening(rendered: &Rendered, complaints: &mut Complaints) {
    let (pod, container) = (rendered.pod(), rendered.container());
    let own = &container["securityContext"];
    let limits = &container["resources"]["limits"];
    for (what, holds) in [
        ("may run as root", pod["securityContext"]["runAsNonRoot"] == true),
        ("has no seccomp profile", pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"),
        ("may write to its image", own["readOnlyRootFilesystem"] == true),
        ("may gain privileges", own["allowPrivilegeEscalation"] == false),
        ("has capabilities", own["capabilities"]["drop"] == serde_json::json!(["ALL"])),
        ("has no bound on its memory", limits["memory"].is_string()),
        ("is throttled", limits["cpu"].is_null()),
        ("ends without a word", container["terminationMessagePolicy"] == "FallbackToLogsOnError"),
    ] {
        expect(complaints, holds, || format!("the container {what}"));
    }
}

/// Every path in the environment is mounted, and every mount has its volume.
fn files(rendered: &Rendered, complaints: &mut Complaints) {
    let mounts = list(&rendered.container()["volumeMounts"]);
    let volumes = list(&rendered.pod()["volumes"]);
    let data = ("the data directory".to_owned(), "/var/lib/cloakroom/".to_owned());
    let paths = rendered.environment().into_iter().filter(|(_, value)| value.starts_with('/'));
    for (name, path) in paths.chain([data]) {
        let is_mounted =
            mounts.iter().any(|mount| path.starts_with(&format!("{}/", text(&mount["mountPath"]))));
        expect(complaints, is_mounted, || format!("{name} is in no volume: {path}"));
    }
    for mount in mounts {
        let name = &mount["name"];
        expect(complaints, volumes.iter().any(|volume| volume["name"] == *name), || {
            format!("there is no volume {name}")
        });
    }
    let claims = volumes.iter().map(|volume| &volume["persistentVolumeClaim"]["claimName"]);
    for claim in claims.filter_map(Value::as_str) {
        let is_there = rendered.find("PersistentVolumeClaim", claim).is_some();
        expect(complaints, is_there, || format!("there is no PersistentVolumeClaim {claim}"));
    }
}

/// The container's port of a name, from the name's address in the environment.
fn ports(rendered: &Rendered, complaints: &mut Complaints) {
    for (port, variable) in [("staging", "CLOAKROOM_LISTEN"), ("operations", "CLOAKROOM_OPS_LISTEN")] {
        let address = rendered.variable(variable).unwrap_or_default();
        let listens = address.rsplit(':').next().and_then(|number| number.parse::<u64>().ok());
        let declared = container_port(rendered, &Value::from(port));
        expect(complaints, declared.is_some() && declared == listens, || {
            format!("{variable} is {address}, the port {port} of the container is {declared:?}")
        });
    }
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let asked = &rendered.container()[probe]["httpGet"]["port"];
        expect(complaints, asked == "operations", || format!("{probe} asks {asked}"));
    }
}

fn container_port(rendered: &Rendered, name: &Value) -> Option<u64> {
    let ports = list(&rendered.container()["ports"]);
    ports.iter().find(|port| port["name"] == *name).and_then(|port| port["containerPort"].as_u64())
}

fn services(rendered: &Rendered, complaints: &mut Complaints) {
    let labels = &rendered.deployment()["spec"]["template"]["metadata"]["labels"];
    for (name, target) in [("cloakroom", "staging"), ("cloakroom-operations", "operations")] {
        let spec = &rendered.one("Service", name)["spec"];
        expect(complaints, selects(&spec["selector"], labels), || format!("Service {name} misses the pods"));
        let ports = list(&spec["ports"]);
        let leads = ports.len() == 1 && ports[0]["targetPort"] == target;
        expect(complaints, leads, || format!("Service {name} leads elsewhere than to {target}"));
    }
    let operations = &rendered.one("Service", "cloakroom-operations")["spec"];
    let is_inside = operations["type"].is_null() && operations["ports"][0]["nodePort"].is_null();
    expect(complaints, is_inside, || "the operational port is open to the world".to_owned());
}

/// Where an Ingress or an HTTPRoute leads to, and under which name.
fn backends(rendered: &Rendered, complaints: &mut Complaints) {
    let mut found = Vec::new();
    for ingress in rendered.of_kind("Ingress") {
        for rule in list(&ingress["spec"]["rules"]) {
            for path in list(&rule["http"]["paths"]) {
                let service = &path["backend"]["service"];
                found.push((&rule["host"], &service["name"], &service["port"]["number"]));
            }
        }
    }
    for route in rendered.of_kind("HTTPRoute") {
        let host = &route["spec"]["hostnames"][0];
        for rule in list(&route["spec"]["rules"]) {
            found.extend(
                list(&rule["backendRefs"]).iter().map(|backend| (host, &backend["name"], &backend["port"])),
            );
        }
    }
    for (host, service, port) in found {
        let there = rendered.find("Service", text(service));
        let leads = there.is_some_and(|there| there["spec"]["ports"][0]["port"] == *port);
        expect(complaints, leads, || format!("{host} leads to {service}:{port}, which is not there"));
        let public = rendered.variable("CLOAKROOM_PUBLIC_URL").unwrap_or_default();
        let is_public = public == format!("https://{}", text(host));
        expect(complaints, is_public, || format!("tickets say {public}, the host is {host}"));
    }
}

fn monitors(rendered: &Rendered, complaints: &mut Complaints) {
    for monitor in rendered.of_kind("ServiceMonitor") {
        let selector = &monitor["spec"]["selector"]["matchLabels"];
        let port = &monitor["spec"]["endpoints"][0]["port"];
        let services =
            rendered.of_kind("Service").filter(|service| selects(selector, &service["metadata"]["labels"]));
        let names: Vec<_> = services.map(|service| &service["spec"]["ports"][0]["name"]).collect();
        expect(complaints, names == [port], || format!("the ServiceMonitor asks {port} of {names:?}"));
        let job = text(&monitor["spec"]["jobLabel"]);
        expect(complaints, selector[job] == "cloakroom", || format!("jobs are named by {job}"));
        let dashboard = rendered.find("ConfigMap", "cloakroom-dashboard");
        let is_found = dashboard.is_some_and(|map| map["metadata"]["labels"]["grafana_dashboard"] == "1");
        expect(complaints, is_found, || "Grafana does not find the dashboard".to_owned());
    }
}

fn policies(rendered: &Rendered, complaints: &mut Complaints) {
    let labels = &rendered.deployment()["spec"]["template"]["metadata"]["labels"];
    for policy in rendered.of_kind("NetworkPolicy") {
        let name = &policy["metadata"]["name"];
        let selector = &policy["spec"]["podSelector"]["matchLabels"];
        expect(complaints, selects(selector, labels), || format!("NetworkPolicy {name} misses the pods"));
        for rule in list(&policy["spec"]["ingress"]) {
            let port = &rule["ports"][0]["port"];
            let is_there = container_port(rendered, port).is_some();
            expect(complaints, is_there, || format!("NetworkPolicy {name} lets in to {port}"));
            let is_guarded = port == "staging" || !list(&rule["from"]).is_empty();
            expect(complaints, is_guarded, || format!("NetworkPolicy {name} opens {port} to all"));
        }
    }
}

/// The pod's account exists, has a token, and is whom the roles are for.
fn accounts(rendered: &Rendered, complaints: &mut Complaints) {
    let name = text(&rendered.pod()["serviceAccountName"]);
    let namespace = &rendered.deployment()["metadata"]["namespace"];
    expect(complaints, rendered.pod()["automountServiceAccountToken"] == true, || {
        "the pod has no token for the API server".to_owned()
    });
    expect(complaints, rendered.find("ServiceAccount", name).is_some(), || {
        format!("there is no ServiceAccount {name}")
    });
    let bindings = || rendered.of_kind("ClusterRoleBinding").chain(rendered.of_kind("RoleBinding"));
    expect(complaints, bindings().count() > 0, || "nothing is allowed".to_owned());
    for binding in bindings() {
        let subject = &binding["subjects"][0];
        let is_ours = subject["name"] == name && subject["namespace"] == *namespace;
        expect(complaints, is_ours, || format!("a role is for {subject}, the pod is another"));
        let role = &binding["roleRef"];
        let is_there = rendered.find(text(&role["kind"]), text(&role["name"])).is_some();
        expect(complaints, is_there, || format!("there is no {role}"));
    }
    let watched = rendered.of_kind("RoleBinding").map(|binding| text(&binding["metadata"]["namespace"]));
    let watched = watched.collect::<Vec<_>>().join(",");
    let named = rendered.variable("CLOAKROOM_NAMESPACES").unwrap_or_default();
    expect(complaints, watched == named, || format!("it watches “{named}”, and may see “{watched}”"));
}

/// The role of users names the Service with the scheme of its port.
fn users(rendered: &Rendered, complaints: &mut Complaints) {
    let ports = rendered.of_kind("Service").flat_map(|service| {
        let name = text(&service["metadata"]["name"]).to_owned();
        list(&service["spec"]["ports"]).iter().map(move |port| (name.clone(), port))
    });
    let mut of_clients = ports.filter(|(_, port)| port["port"] == 10_000);
    let expected = of_clients.next().map(|(name, port)| format!("{}:{name}:10000", text(&port["name"])));
    let role = rendered.of_kind("Role").find(|role| text(&role["metadata"]["name"]).ends_with("-user"));
    let named = role.map(|role| text(&role["rules"][0]["resourceNames"][0]).to_owned());
    expect(complaints, named.is_some() && named == expected, || {
        format!("users may reach {named:?}, and the Service is {expected:?}")
    });
}

/// Somebody decides who may upload: the holders of a token, or the API server, which it must be allowed to ask.
fn uploads(rendered: &Rendered, complaints: &mut Complaints) {
    let how = rendered.variable("CLOAKROOM_UPLOAD_AUTH").unwrap_or_default();
    let has_tokens = rendered.variable("CLOAKROOM_UPLOAD_TOKEN_FILE").is_some();
    let may_ask = rendered.find("ClusterRole", "cloakroom-reviews").is_some();
    let holds = match how.as_str() {
        "token" => has_tokens && !may_ask,
        "kubernetes" => !has_tokens && may_ask,
        _ => false,
    };
    expect(complaints, holds, || format!("upload auth is “{how}”, tokens: {has_tokens}, reviews: {may_ask}"));
}

/// Whether a selector by labels finds what has these labels; an empty one finds everything, which nothing here means.
pub fn selects(selector: &Value, labels: &Value) -> bool {
    let wanted = selector.as_object();
    wanted.is_some_and(|wanted| {
        !wanted.is_empty() && wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
    })
}
