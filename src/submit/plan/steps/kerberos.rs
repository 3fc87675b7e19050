//! Kerberos: `krb5.conf`, keytab, delegation tokens that somebody else fetched (`KerberosConfDriverFeatureStep`).

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::hadoop::HadoopConf;
use crate::spark::keys::{
    HADOOP, KEYTAB, KRB5_CONFIG_MAP, KRB5_FILE, PRINCIPAL, TOKEN_SECRET, TOKEN_SECRET_ITEM,
};
use crate::spark::version::SparkVersion;
use crate::spark::{SettingError, SparkConf};
use crate::submit::plan::application::Application;
use crate::submit::plan::error::PlanError;
use crate::submit::plan::folder::{read_file, text_by};
use crate::submit::plan::spec::DriverSpec;
use crate::submit::plan::submitter::Submitter;
const AUTHENTICATION: &str = "hadoop.security.authentication";

const KRB5_VOLUME: &str = "krb5-file";
const KEYTAB_VOLUME: &str = "kerberos-keytab";
const KEYTAB_PATH: &str = "/mnt/secrets/kerberos-keytab";
const TOKEN_VOLUME: &str = "hadoop-secret";
const TOKEN_PATH: &str = "/mnt/secrets/hadoop-credentials";

/// What the driver needs for Kerberos.
#[derive(Default)]
pub(in crate::submit::plan) struct Kerberos {
    krb5: Option<Krb5>,
    keytab: Option<Keytab>,
    token: Option<TokenSecret>,
}

enum Krb5 {
    File { name: String, text: String },
    ConfigMap(String),
}

struct Keytab {
    name: String,
    base64: String,
}

struct TokenSecret {
    name: String,
    item: String,
}

impl Kerberos {
    /// Reads the files that the settings name.
    pub fn read(
        conf: &SparkConf,
        submitter: &Submitter,
        version: SparkVersion,
    ) -> Result<Self, SettingError> {
        both_or_neither(conf, &KEYTAB, &PRINCIPAL)?;
        both_or_neither(conf, &TOKEN_SECRET, &TOKEN_SECRET_ITEM)?;
        let krb5 = match (conf.get(&KRB5_FILE), conf.get(&KRB5_CONFIG_MAP)) {
            (Some(_), Some(_)) => {
                let problem = format!("`{KRB5_CONFIG_MAP}` is set as well; only one of them may be");
                return Err(conf.refuse(&KRB5_FILE, problem));
            }
            (Some(path), None) => {
                let bytes = read_file(conf, &KRB5_FILE, path, submitter)?;
                let text = text_by(version, bytes).map_err(|problem| conf.refuse(&KRB5_FILE, problem))?;
                Some(Krb5::File { name: file_name(path), text })
            }
            (None, name) => name.map(|name| Krb5::ConfigMap(name.to_owned())),
        };
        let token = conf.get(&TOKEN_SECRET).zip(conf.get(&TOKEN_SECRET_ITEM));
        let token = token.map(|(name, item)| TokenSecret { name: name.to_owned(), item: item.to_owned() });
        Ok(Self { krb5, keytab: keytab(conf, submitter)?, token })
    }
}

/// A keytab of this machine; one that is in the image stays there.
fn keytab(conf: &SparkConf, submitter: &Submitter) -> Result<Option<Keytab>, SettingError> {
    let Some(path) = conf.get(&KEYTAB).filter(|path| !path.starts_with("local:")) else { return Ok(None) };
    let base64 = STANDARD.encode(read_file(conf, &KEYTAB, path, submitter)?);
    Ok(Some(Keytab { name: file_name(path), base64 }))
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn both_or_neither(conf: &SparkConf, one: &str, other: &str) -> Result<(), SettingError> {
    for (one, other) in [(one, other), (other, one)] {
        if conf.contains(one) && !conf.contains(other) {
            return Err(conf.refuse(other, format!("it is needed, because `{one}` is set")));
        }
    }
    Ok(())
}

/// With Kerberos, and neither a keytab nor a secret with tokens, Spark would log in here and fetch tokens.
pub(in crate::submit::plan) fn refuse_login(
    conf: &SparkConf,
    hadoop: Option<&HadoopConf>,
) -> Result<(), PlanError> {
    let key = HADOOP.of(&[AUTHENTICATION]);
    if conf.contains(&KEYTAB) || conf.contains(&TOKEN_SECRET) {
        return Ok(());
    }
    let way_out = format!(
        "delegation tokens are not fetched here: give --principal and --keytab, or a secret that has tokens \
         (`{TOKEN_SECRET}`, `{TOKEN_SECRET_ITEM}`)"
    );
    let of_hadoop = hadoop.and_then(|hadoop| hadoop.text("core-site.xml"));
    match conf.get(&key) {
        Some(method) if method.trim().eq_ignore_ascii_case("kerberos") => {
            Err(conf.refuse(&key, way_out).into())
        }
        None if of_hadoop.is_some_and(asks_for_kerberos) => Err(PlanError::Kerberos { way_out }),
        _ => Ok(()),
    }
}

/// Whether a file of Hadoop's sets `hadoop.security.authentication` to `kerberos`.
fn asks_for_kerberos(xml: &str) -> bool {
    let mut xml = xml.to_owned();
    while let Some(begin) = xml.find("<!--") {
        let end = xml[begin..].find("-->").map_or(xml.len(), |end| begin + end + 3);
        xml.replace_range(begin..end, "");
    }
    let text = |property: &str, tag: &str| {
        let (_, rest) = property.split_once(&format!("<{tag}>"))?;
        Some(rest.split('<').next()?.trim().to_owned())
    };
    xml.split("<property>").any(|property| {
        text(property, "name").is_some_and(|name| name == AUTHENTICATION)
            && text(property, "value").is_some_and(|value| value.eq_ignore_ascii_case("kerberos"))
    })
}

#[expect(clippy::unnecessary_wraps, reason = "a step like all others")]
pub(super) fn step(application: &Application, mut spec: DriverSpec) -> Result<DriverSpec, PlanError> {
    let Kerberos { krb5, keytab, token } = &application.kerberos;
    if let Some(krb5) = krb5 {
        add_krb5(application, krb5, &mut spec);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kerberos_is_recognised_in_a_file_of_hadoops() {
        let property = |name: &str, value: &str| {
            format!(
                "<configuration><property><name>{name}</name>\n <value>{value}</value></property></configuration>"
            )
        };
        let kerberos = property(AUTHENTICATION, " Kerberos ");
        assert!(asks_for_kerberos(&kerberos));
        assert!(!asks_for_kerberos(&property(AUTHENTICATION, "simple")));
        assert!(!asks_for_kerberos(&property("a", "kerberos")));
        assert!(!asks_for_kerberos(&format!("<!-- {kerberos} -->")));
        assert!(!asks_for_kerberos("<!-- no end"));
    }
}
