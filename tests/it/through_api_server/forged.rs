//! A job plants, in the namespace of the applications, what looks like the server's. It gains nothing.

use std::net::TcpListener;

use cloakroom_testing::api_server::{Call, Verb};
use cloakroom_testing::cluster::{CONFIG_MAP, SERVICE};
use serde_json::json;

use super::Far;
use super::tokens::{UPLOADER, asking};

/// Gets what a submission sends to the wrong place.
struct Trap(TcpListener);

impl Trap {
    /// Behind a Service of the usual name in the namespace `default`, which has all that the server's has.
    fn beside(far: &Far) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        for name in ["cloakroom", "other"] {
            far.api_server.lead("default", &format!("http:{name}:10000"), to);
            far.api_server.create(SERVICE, "default", name, &[("app.kubernetes.io/name", "cloakroom")]);
        }
        let all = json!([{"apiGroups": [""], "resources": ["services", "services/proxy"], "verbs": ["*"]}]);
        far.api_server.grant_rules("ann", Some("default"), all);
        Self(listener)
    }

    #[track_caller]
    fn assert_got_nothing(&self) {
        self.0.set_nonblocking(true).unwrap();
        assert!(self.0.accept().is_err(), "something went to the namespace of the application");
    }
}

#[test]
fn a_service_in_the_applications_namespace_gets_nothing() {
    let far = asking();
    let trap = Trap::beside(&far);
    let (output, said) = far.submit(&[]);
    assert!(output.status.success(), "{said}");
    trap.assert_got_nothing();
}

#[test]
fn a_service_in_the_applications_namespace_is_not_found_by_its_labels() {
    let far = asking();
    let trap = Trap::beside(&far);
    let (output, said) = far.submit(&["--conf", "spark.kubernetes.cloakroom.namespace=elsewhere"]);
    assert!(!output.status.success() && said.contains("in the namespace elsewhere"), "{said}");
    trap.assert_got_nothing();
    let looked: Vec<Call> = far.api_server.calls();
    assert!(looked.iter().all(|call| !call.path.contains("/namespaces/default/services")), "{looked:?}");
}

#[test]
fn a_config_map_in_the_applications_namespace_is_neither_read_nor_used() {
    let far = asking();
    let trap = Trap::beside(&far);
    let url = format!("http://{}", trap.0.local_addr().unwrap());
    for name in ["cloakroom", "app-driver"] {
        let data = json!({"server": url, "download-submitted-files": url});
        far.api_server.add(CONFIG_MAP, "default", json!({"metadata": {"name": name}, "data": data}));
    }
    let (output, said) = far.submit(&[]);
    assert!(output.status.success(), "{said}");
    trap.assert_got_nothing();
    let reads = far.api_server.calls_to(Verb::Get).into_iter().chain(far.api_server.calls_to(Verb::List));
    assert!(!reads.map(|call| call.path).any(|path| path.contains("/configmaps")));
    assert!(!far.init_properties().contains(&url));
}

/// The job may make accounts, and gives its own the usual name and every right that it has.
#[test]
fn an_account_of_the_usual_name_stages_where_it_may_and_nowhere_else() {
    let far = asking();
    far.api_server.add_service_account("jobs", UPLOADER);
    let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    for user in [&format!("system:serviceaccount:jobs:{UPLOADER}"), "ann"] {
        far.api_server.grant_rules(user, Some("jobs"), everything.clone());
    }
    let (output, said) = far.stage_here(&["-n", "jobs"]);
    assert!(output.status.success(), "{said}");
    let token = far.api_server.requested_token("jobs", UPLOADER).unwrap();
    let file = far.user.write("token-of-the-job", token).display().to_string();
    let (output, said) =
        far.stage_here(&["-n", "default", "--server-namespace", "cloakroom", "--token-file", &file]);
    assert!(!output.status.success(), "{said}");
    let words = format!(
        "system:serviceaccount:jobs:{UPLOADER} may not create bundles.cloakroom.dev in the namespace default"
    );
    assert!(said.contains(&words), "{said}");
}
