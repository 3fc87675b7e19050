//! Kerberos: `krb5.conf`, the keytab, and delegation tokens in an existing secret (`KerberosConfDriverFeatureStep`).

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::hadoop::HadoopConf;
use super::{Context, Feature, Reader};
use crate::plan::error::PlanError;
use crate::plan::folder::{read_file, text_by};
use crate::plan::needs::{FileKey, How};
use crate::plan::spec::DriverSpec;
use crate::plan::submitter::Machine;
use cloakroom_spark::keys::{
    HADOOP, KEYTAB, KRB5_CONFIG_MAP, KRB5_FILE, PRINCIPAL, TOKEN_SECRET, TOKEN_SECRET_ITEM,
};
use cloakroom_spark::{SettingError, SparkConf};

const KRB5_VOLUME: &str = "krb5-file";
const KEYTAB_VOLUME: &str = "kerberos-keytab";
const KEYTAB_PATH: &str = "/mnt/secrets/kerberos-keytab";
const TOKEN_VOLUME: &str = "hadoop-secret";
const TOKEN_PATH: &str = "/mnt/secrets/hadoop-credentials";

const AUTHENTICATION: &str = "hadoop.security.authentication";

/// The keys that name files. A `local:` keytab is in the image.
pub(in crate::plan) const KEYS: [FileKey; 2] = [
    FileKey::new(KRB5_FILE.name(), How::Path),
    FileKey::new(KEYTAB.name(), How::Path).only_if(|_, path| !path.starts_with("local:")),
];

/// The driver's parts for Kerberos; each may be missing.
pub(super) struct Kerberos {
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
    /// Reads the files that the settings name. Like Spark, it refuses half of a pair, and two sources of `krb5.conf`.
    pub fn read(from: &Reader) -> Result<Self, PlanError> {
        let Reader { conf, machine, version, .. } = *from;
        refuse_login(from)?;
        both_or_neither(conf, &KEYTAB, &PRINCIPAL)?;
        both_or_neither(conf, &TOKEN_SECRET, &TOKEN_SECRET_ITEM)?;
        let krb5 = match (conf.get(&KRB5_FILE), conf.get(&KRB5_CONFIG_MAP)) {
            (Some(_), Some(_)) => {
                let problem = format!("`{KRB5_CONFIG_MAP}` is set as well; only one of them may be");
                return Err(conf.refuse(&KRB5_FILE, problem).into());
            }
            (Some(path), None) => {
                let bytes = read_file(conf, &KRB5_FILE, path, machine)?;
                let text = text_by(version, bytes).map_err(|problem| conf.refuse(&KRB5_FILE, problem))?;
                Some(Krb5::File { name: file_name(path), text })
            }
            (None, name) => name.map(|name| Krb5::ConfigMap(name.to_owned())),
        };
        let token = conf.get(&TOKEN_SECRET).zip(conf.get(&TOKEN_SECRET_ITEM));
        let token = token.map(|(name, item)| TokenSecret { name: name.to_owned(), item: item.to_owned() });
        Ok(Self { krb5, keytab: keytab(conf, machine)?, token })
    }
}

impl Feature for Kerberos {
    fn add(self: Box<Self>, context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
        let Self { krb5, keytab, token } = *self;
        if let Some(krb5) = krb5 {
            add_krb5(context, &krb5, spec);
        }
        // As in Spark, the secret of tokens is mounted only if no keytab travels.
        match (keytab, token) {
            (Some(keytab), _) => add_keytab(context, &keytab, spec),
            (None, Some(token)) => {
                spec.add_volume(json!({"name": TOKEN_VOLUME, "secret": {"secretName": token.name}}));
                spec.mount(TOKEN_VOLUME, TOKEN_PATH);
                spec.add_variable("HADOOP_TOKEN_FILE_LOCATION", &format!("{TOKEN_PATH}/{}", token.item));
            }
            (None, None) => {}
        }
        Ok(())
    }
}

fn add_krb5(context: &Context, krb5: &Krb5, spec: &mut DriverSpec) {
    let source = match krb5 {
        Krb5::ConfigMap(name) => json!({"name": name}),
        Krb5::File { name: file, text } => {
            let name = context.names.of("krb5-file");
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

fn add_keytab(context: &Context, keytab: &Keytab, spec: &mut DriverSpec) {
    let name = context.names.of("kerberos-keytab");
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

/// A keytab of this machine. A `local:` one is in the image, so it does not travel.
fn keytab(conf: &SparkConf, machine: Machine) -> Result<Option<Keytab>, SettingError> {
    let Some(path) = conf.get(&KEYTAB).filter(|path| !path.starts_with("local:")) else { return Ok(None) };
    let base64 = STANDARD.encode(read_file(conf, &KEYTAB, path, machine)?);
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

/// Refuses Kerberos without a keytab and without a secret of tokens. Spark would then log in on this machine and fetch
/// delegation tokens, which needs Hadoop's libraries.
fn refuse_login(from: &Reader) -> Result<(), PlanError> {
    let conf = from.conf;
    let key = HADOOP.of(&[AUTHENTICATION]);
    if conf.contains(&KEYTAB) || conf.contains(&TOKEN_SECRET) {
        return Ok(());
    }
    let way_out = format!(
        "delegation tokens are not fetched here: give --principal and --keytab, or a secret that has tokens \
         (`{TOKEN_SECRET}`, `{TOKEN_SECRET_ITEM}`)"
    );
    let is_asked = |hadoop: HadoopConf| hadoop.text("core-site.xml").is_some_and(asks_for_kerberos);
    match conf.get(&key) {
        Some(method) if method.trim().eq_ignore_ascii_case("kerberos") => {
            Err(conf.refuse(&key, way_out).into())
        }
        None if HadoopConf::read(from)?.is_some_and(is_asked) => Err(PlanError::Kerberos { way_out }),
        _ => Ok(()),
    }
}

/// Whether a file of Hadoop's sets `hadoop.security.authentication` to `kerberos`. Comments do not count. The search is
/// simpler than an XML parser, because one property is enough here.
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
