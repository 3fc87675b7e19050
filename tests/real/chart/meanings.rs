//! What some values mean beyond the field that they fill.

use std::collections::BTreeSet;

use cloakroom_testing::known::{list, text};
use serde_json::{Value, json};

use super::helm::{Helm, chart};
use crate::manifests::rendered::Rendered;

fn base(helm: &Helm, values: &[&str]) -> Rendered {
    helm.render(&["ci/base-values.yaml".to_owned()], values)
}

/// Blocks and single values. Of these the file of the base sets none.
pub fn null(helm: &Helm) {
    let schema = std::fs::read_to_string(chart().join("values.schema.json")).unwrap();
    let (mut blocks, mut singles) = (Vec::new(), Vec::new());
    add_names(&serde_json::from_str(&schema).unwrap(), "", &mut blocks, &mut singles);
    // It has no default.
    blocks.retain(|block| block != "image");
    singles.retain(|single| single != "image.repository" && single != "image.tag");
    assert!(blocks.len() > 10 && singles.len() > 40, "the schema is read wrong");
    let expected = base(helm, &[]);
    let singles: Vec<_> = singles.iter().map(|name| format!("{name}=null")).collect();
    assert_eq!(
        base(helm, &singles.iter().map(String::as_str).collect::<Vec<_>>()).objects(),
        expected.objects()
    );
    for block in blocks {
        assert_eq!(base(helm, &[&format!("{block}=null")]).objects(), expected.objects(), "{block}");
    }
    for (file, value) in [("tls", "tls=null"), ("bucket", "store=null"), ("ingress", "ingress=null")] {
        let rendered = helm.render(&[format!("ci/{file}-values.yaml")], &[value]);
        assert_eq!(rendered.objects(), expected.objects(), "{value}");
    }
}

/// Maps that may have any entries are left out: null removes an entry of the default there.
fn add_names(schema: &Value, at: &str, blocks: &mut Vec<String>, singles: &mut Vec<String>) {
    for (key, inner) in schema["properties"].as_object().unwrap() {
        let name = format!("{at}{key}");
        if inner["properties"].is_object() {
            if !name.ends_with("Ref") {
                add_names(inner, &format!("{name}."), blocks, singles);
            }
            blocks.push(name);
        } else if inner["type"] != "object" {
            singles.push(name);
        }
    }
}

pub fn store_ports(helm: &Helm) {
    for (values, expected) in [
        (&["store.url=s3://team/a"][..], &[443][..]),
        (&["store.url=s3://team/a", "store.endpoint=https://s3.example.com/"], &[443]),
        (&["store.url=s3://team/a", "store.endpoint=https://s3.example.com:9000"], &[443, 9000]),
        (
            &["store.url=s3://team/a", "store.endpoint=http://[2001:db8::1]", "store.allowHttp=true"],
            &[443, 80],
        ),
        (
            &[
                "store.url=s3://team/a",
                "store.endpoint=https://[2001:db8::1]:9000/",
                "networkPolicy.storePorts={80}",
            ],
            &[80, 9000],
        ),
        (&["store.url=swebhdfs://one:1234\\,two/a", "store.user=a"], &[443, 1234, 9871]),
        (&["store.url=webhdfs://one", "store.user=a", "store.allowHttp=true"], &[443, 9870]),
    ] {
        let rendered = base(helm, values);
        let rules = list(&rendered.one("NetworkPolicy", "cloakroom")["spec"]["egress"]);
        let [_, _, store] = rules else { panic!("{values:?}: {rules:?}") };
        let expected: Vec<_> = expected.iter().map(|port| json!({"port": port, "protocol": "TCP"})).collect();
        assert_eq!(*store, json!({"ports": expected}), "{values:?}");
    }
}

/// The field is there and empty. Without it the cluster would choose its default class.
pub fn empty_class(helm: &Helm) {
    for value in ["persistence.storageClassName=-", "global.storageClass=-"] {
        let rendered = base(helm, &[value]);
        let claim = rendered.one("PersistentVolumeClaim", "cloakroom");
        assert_eq!(claim["spec"]["storageClassName"], "", "{value}");
    }
}

pub fn address_families(helm: &Helm) {
    for (values, address) in [
        ("service.ipFamilyPolicy=SingleStack", "0.0.0.0"),
        ("service.ipFamilies={IPv4}", "0.0.0.0"),
        ("service.ipFamilies={IPv6}", "[::]"),
        ("service.ipFamilyPolicy=PreferDualStack", "[::]"),
        ("service.ipFamilyPolicy=RequireDualStack", "[::]"),
    ] {
        let rendered = base(helm, &[values]);
        let container = &rendered.deployment()["spec"]["template"]["spec"]["containers"][0];
        let listens: Vec<_> = list(&container["env"])
            .iter()
            .filter(|variable| text(&variable["name"]).ends_with("LISTEN"))
            .map(|variable| text(&variable["value"]).to_owned())
            .collect();
        assert_eq!(listens, ["10000", "10001"].map(|port| format!("{address}:{port}")), "{values}");
    }
}

/// Whether the chart makes the account or not.
pub fn account(helm: &Helm) {
    for (values, account, is_made) in [
        (&["namespaces={spark}"][..], "cloakroom", true),
        (&["namespaces={spark}", "serviceAccount.name=other"], "other", true),
        (&["serviceAccount.name=other", "serviceAccount.create=false"], "other", false),
    ] {
        let rendered = base(helm, values);
        assert_eq!(rendered.deployment()["spec"]["template"]["spec"]["serviceAccountName"], account);
        assert_eq!(rendered.find("ServiceAccount", account).is_some(), is_made, "{values:?}");
        let bindings = rendered.objects().iter().filter(|object| text(&object["kind"]).ends_with("Binding"));
        let subjects: BTreeSet<_> = bindings
            .flat_map(|binding| list(&binding["subjects"]))
            .map(|subject| text(&subject["name"]))
            .collect();
        assert_eq!(subjects, [account].into(), "{values:?}");
    }
}
