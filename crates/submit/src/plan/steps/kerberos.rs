//! `krb5.conf`, the keytab and delegation tokens (`KerberosConfDriverFeatureStep`).

use serde_json::json;

use crate::plan::application::Application;
use crate::plan::error::PlanError;
use crate::plan::parts::kerberos::{Kerberos, Keytab, Krb5};
use crate::plan::spec::DriverSpec;
use cloakroom_spark::keys::KEYTAB;

const KRB5_VOLUME: &str = "krb5-file";
const KEYTAB_VOLUME: &str = "kerberos-keytab";
const KEYTAB_PATH: &str = "/mnt/secrets/kerberos-keytab";
const TOKEN_VOLUME: &str = "hadoop-secret";
const TOKEN_PATH: &str = "/mnt/secrets/hadoop-credentials";

#[expect(clippy::unnecessary_wraps, reason = "a step like all others")]
pub(super) fn step(application: &Application, mut spec: DriverSpec) -> Result<DriverSpec, PlanError> {
    let Kerberos { krb5, keytab, token } = &application.kerberos;
    if let Some(krb5) = krb5 {
        add_krb5(application, krb5, &mut spec);
    }
    // As in Spark, the secret of tokens is mounted only if no keytab travels.
    match (keytab, token) {
        (Some(keytab), _) => add_keytab(application, keytab, &mut spec),
        (None, Some(token)) => {
            spec.add_volume(json!({"name": TOKEN_VOLUME, "secret": {"secretName": token.name}}));
            spec.mount(TOKEN_VOLUME, TOKEN_PATH);
            spec.add_variable("HADOOP_TOKEN_FILE_LOCATION", &format!("{TOKEN_PATH}/{}", token.item));
        }
        (None, None) => {}
    }
    Ok(spec)
}

fn add_krb5(application: &Application, krb5: &Krb5, spec: &mut DriverSpec) {
    let source = match krb5 {
        Krb5::ConfigMap(name) => json!({"name": name}),
        Krb5::File { name: file, text } => {
            let name = application.names.of("krb5-file");
            spec.after_pod.push(json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name},
                "data": {file: text},
                "immutable": true,
            }));
            json!({"name": name, "items": [{"key": file, "path": file}]})
        }
    };
    spec.add_volume(json!({"name": KRB5_VOLUME, "configMap": source}));
    // `subPath` mounts the one file, so the rest of the image's /etc stays visible. Spark always sends this name,
    // whatever the file is called on the submitting machine.
    spec.add_mount(json!({"name": KRB5_VOLUME, "mountPath": "/etc/krb5.conf", "subPath": "krb5.conf"}));
}

fn add_keytab(application: &Application, keytab: &Keytab, spec: &mut DriverSpec) {
    let name = application.names.of("kerberos-keytab");
    let file = &keytab.name;
    spec.add_volume(json!({"name": KEYTAB_VOLUME, "secret": {"secretName": name}}));
    spec.mount(KEYTAB_VOLUME, KEYTAB_PATH);
    spec.set_property(&KEYTAB, format!("{KEYTAB_PATH}/{file}"));
    spec.after_pod.push(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "data": {file: keytab.base64},
        "immutable": true,
    }));
}
