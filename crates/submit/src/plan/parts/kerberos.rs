//! Kerberos: `krb5.conf`, the keytab, and delegation tokens in an existing secret.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::hadoop::HadoopConf;
use crate::plan::error::PlanError;
use crate::plan::folder::{read_file, text_by};
use crate::plan::machine::Machine;
use cloakroom_spark::keys::{
    HADOOP, KEYTAB, KRB5_CONFIG_MAP, KRB5_FILE, PRINCIPAL, TOKEN_SECRET, TOKEN_SECRET_ITEM,
};
use cloakroom_spark::version::SparkVersion;
use cloakroom_spark::{SettingError, SparkConf};

const AUTHENTICATION: &str = "hadoop.security.authentication";

/// The driver's parts for Kerberos; each may be missing.
#[derive(Default)]
pub(in crate::plan) struct Kerberos {
    pub krb5: Option<Krb5>,
    pub keytab: Option<Keytab>,
    pub token: Option<TokenSecret>,
}

pub(in crate::plan) enum Krb5 {
    File { name: String, text: String },
    ConfigMap(String),
}

pub(in crate::plan) struct Keytab {
    pub name: String,
    pub base64: String,
}

pub(in crate::plan) struct TokenSecret {
    pub name: String,
    pub item: String,
}

impl Kerberos {
    /// Reads the files that the settings name. Like Spark, it refuses half of a pair, and two sources of `krb5.conf`.
    pub fn read(conf: &SparkConf, machine: Machine, version: SparkVersion) -> Result<Self, SettingError> {
        both_or_neither(conf, &KEYTAB, &PRINCIPAL)?;
        both_or_neither(conf, &TOKEN_SECRET, &TOKEN_SECRET_ITEM)?;
        let krb5 = match (conf.get(&KRB5_FILE), conf.get(&KRB5_CONFIG_MAP)) {
            (Some(_), Some(_)) => {
                let problem = format!("`{KRB5_CONFIG_MAP}` is set as well; only one of them may be");
                return Err(conf.refuse(&KRB5_FILE, problem));
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
pub(in crate::plan) fn refuse_login(conf: &SparkConf, hadoop: Option<&HadoopConf>) -> Result<(), PlanError> {
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
