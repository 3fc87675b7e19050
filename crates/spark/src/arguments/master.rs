//! `--master`, by the rules of Spark's `Utils.checkAndGetK8sMasterUrl`.

use crate::conf::{Origin, SettingError, SparkConf};
use crate::keys;
const FORMS: &str =
    "write k8s://https://HOST:PORT, k8s://HOST:PORT (which means https) or k8s://http://HOST:PORT";

/// The other way to name the API server.
const OF_KUBECONFIG: &str = "or choose a context in a kubeconfig (KUBECONFIG, ~/.kube/config, “kubectl config use-context”), \
     whose API server is then used";

/// The advice for everything other than Kubernetes in cluster mode.
pub const EXTERNAL_SUBMITTER_ADVICE: &str = "set CLOAKROOM_SPARK_SUBMIT to a real spark-submit, which then runs \
     everything except Kubernetes in cluster mode (an empty variable forbids this)";

/// Sets the master to the form in the driver's properties, `k8s://https://HOST:PORT`, and returns it.
pub fn normalise(conf: &mut SparkConf) -> Result<String, SettingError> {
    let master = normalised(conf)?;
    let origin = conf.origin(&keys::MASTER).cloned().unwrap_or(Origin::Derived);
    conf.set(&keys::MASTER, &master, origin);
    Ok(master)
}

fn normalised(conf: &SparkConf) -> Result<String, SettingError> {
    let Some(master) = conf.get(&keys::MASTER) else {
        return Err(conf.refuse(&keys::MASTER, format!("give --master; {FORMS}; {OF_KUBECONFIG}")));
    };
    normal_form(master).map_err(|problem| conf.refuse(&keys::MASTER, problem))
}

/// The same for a master of its own. The error says what is allowed.
pub fn normal_form(master: &str) -> Result<String, String> {
    let Some(url) = master.strip_prefix("k8s://") else {
        return Err(format!("only Kubernetes is supported here; {FORMS}; or {EXTERNAL_SUBMITTER_ADVICE}"));
    };
    if url.contains(char::is_whitespace) {
        return Err(format!("it must have no blanks; {FORMS}"));
    }
    // RFC 3986 section 2: no URL has these, and an example that was copied may.
    if let Some(strange) = url.chars().find(|letter| "#<>\"{}|\\^`".contains(*letter)) {
        return Err(format!("it must have no {strange}; {FORMS}"));
    }
    let authority =
        url.rsplit_once("://").map_or(url, |(_, rest)| rest).split('/').next().unwrap_or_default();
    if authority.matches(':').count() > 1 && !authority.contains('[') {
        return Err(format!("an IPv6 address needs brackets, as in k8s://https://[fd00::1]:6443; {FORMS}"));
    }
    match url.split_once("://") {
        None if url.is_empty() => Err(FORMS.to_owned()),
        None => Ok(format!("k8s://https://{url}")),
        Some((scheme, _)) if ["https", "http"].contains(&scheme.to_ascii_lowercase().as_str()) => {
            Ok(master.to_owned())
        }
        Some((scheme, _)) => Err(format!("`{scheme}` is not the scheme of an API server; {FORMS}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;

    fn master(text: &str) -> Result<String, String> {
        let mut conf = SparkConf::default();
        conf.set(&keys::MASTER, text, Origin::Option("--master"));
        normalised(&conf).map_err(|error| error.to_string())
    }

    #[test]
    fn the_three_forms_of_a_master_are_taken() {
        assert_eq!(master("k8s://https://h:6443/p/").unwrap(), "k8s://https://h:6443/p/");
        assert_eq!(master("k8s://h:6443").unwrap(), "k8s://https://h:6443");
        assert_eq!(master("k8s://https://[fd00::1]:6443").unwrap(), "k8s://https://[fd00::1]:6443");
        assert_eq!(master("k8s://http://127.0.0.1:8001").unwrap(), "k8s://http://127.0.0.1:8001");
    }

    #[test]
    fn a_missing_master_is_refused_with_both_ways_to_name_the_api_server() {
        let refusal = normalised(&SparkConf::default()).unwrap_err().to_string();
        for part in
            ["`spark.master` is not set: give --master; write k8s://", "or choose a context in a kubeconfig"]
        {
            assert!(refusal.contains(part), "{refusal}");
        }
    }

    #[test]
    fn other_masters_are_refused_with_what_is_supported() {
        for other in [
            "yarn",
            "local[*]",
            "k8s://https://h:1 ",
            "k8s://https://h\u{a0}:1",
            "spark://h:7077",
            "kubernetes://x",
            "k8s:",
            "k8s://",
            "k8s://ftp://h",
            "k8s://https://h:6443#x",
            "k8s://https://<host>:6443",
            "k8s://https://{{ host }}:6443",
            "k8s://https://fd00::1:6443",
            "k8s://fd00::1",
        ] {
            let message = master(other).unwrap_err();
            assert!(message.starts_with(&format!("--master (`spark.master`) is `{other}`")), "{message}");
            assert!(message.contains("write k8s://https://HOST:PORT"), "{message}");
        }
    }
}
