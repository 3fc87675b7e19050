//! Finds known reasons in the end of a failed driver's log: the most frequent failures of Spark on Kubernetes.

use std::fmt;

use cloakroom_core::text::in_one_line;
use cloakroom_spark::keys;

/// The exit code of a driver after too many executors have failed (`SparkExitCode.EXCEED_MAX_EXECUTOR_FAILURES`).
const TOO_MANY_EXECUTORS_FAILED: u8 = 11;

/// The kinds that a driver itself needs in calls to the API server. The role `spark-driver` allows them.
const OF_A_DRIVER: [&str; 4] = ["pods", "configmaps", "services", "persistentvolumeclaims"];

/// A reason that the user can do something about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FailureReason {
    /// The driver's service account lacks a right that every driver needs.
    Forbidden { account: String, namespace: String, verb: String, resource: String },
    /// A quota has no room for executors.
    Quota { name: String, lacks: String, namespace: String },
    /// The namespace's pod security refuses the executors' pods.
    PodSecurity { level: String },
    /// Too many executors failed, and the log cannot be read.
    NoLog { namespace: String },
}

impl FailureReason {
    /// The reason of a driver in `namespace` that ended with `exit_code`. `log` is `None` if it cannot be read.
    pub(super) fn find(log: Option<&str>, exit_code: u8, namespace: &str) -> Option<Self> {
        let has_no_executors = exit_code == TOO_MANY_EXECUTORS_FAILED;
        let namespace = namespace.to_owned();
        let Some(log) = log else { return has_no_executors.then_some(Self::NoLog { namespace }) };
        // A log in JSON has its quotes escaped.
        let log = log.replace("\\\"", "\"");
        let mut lines = log.lines().rev();
        let forbidden = lines.find_map(|line| forbidden(line, &namespace));
        let over_quota = || log.lines().rev().find_map(|line| over_quota(line, &namespace));
        let insecure = || log.lines().rev().find_map(pod_security);
        forbidden.or_else(|| has_no_executors.then(|| over_quota().or_else(insecure)).flatten())
    }
}

/// Looks for `User "system:serviceaccount:NAMESPACE:ACCOUNT" cannot create resource "pods" in …`. This is the API
/// server's message, which Spark repeats. Only kinds that a driver itself needs count, because the application may make
/// calls too.
fn forbidden(line: &str, namespace: &str) -> Option<FailureReason> {
    let (_, rest) = line.split_once("User \"system:serviceaccount:")?;
    let (account, rest) = rest.split_once("\" cannot ")?;
    let account = account.strip_prefix(namespace)?.strip_prefix(':')?;
    let (verb, rest) = rest.split_once(" resource \"")?;
    let (resource, _) = rest.split_once('"')?;
    let [account, verb, resource] = [account, verb, resource].map(in_one_line);
    OF_A_DRIVER.contains(&resource.as_str()).then(|| {
        let namespace = namespace.to_owned();
        FailureReason::Forbidden { account, namespace, verb, resource }
    })
}

/// Looks for `exceeded quota: NAME, requested: …, used: …, limited: …`, which is the API server's message too.
fn over_quota(line: &str, namespace: &str) -> Option<FailureReason> {
    let (_, rest) = line.split_once("exceeded quota: ")?;
    let (name, rest) = rest.split_once(", ")?;
    // Spark's client adds a sentence of its own behind it.
    let lacks = rest.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let [name, lacks] = [name, lacks].map(in_one_line);
    lacks.starts_with("requested: ").then(|| FailureReason::Quota {
        name,
        lacks,
        namespace: namespace.to_owned(),
    })
}

/// Looks for `violates PodSecurity "LEVEL:VERSION": …`, the message of the API server's admission.
fn pod_security(line: &str) -> Option<FailureReason> {
    let (_, rest) = line.split_once("violates PodSecurity \"")?;
    let (level, _) = rest.split_once('"')?;
    Some(FailureReason::PodSecurity { level: in_one_line(level) })
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden { account, namespace, verb, resource } => write!(
                f,
                "Its log says that its service account {account} may not {verb} {resource} in namespace {namespace}: set \
                 {} to an account with the role spark-driver (kubectl apply -k manifests/submitter makes one, called spark)",
                keys::DRIVER_SERVICE_ACCOUNT
            ),
            Self::Quota { name, lacks, namespace } => write!(
                f,
                "Its log says that the quota {name} has no room for its executors ({lacks}): ask for less \
                 (spark.executor.memory, spark.executor.cores, spark.executor.instances), wait until something else has \
                 ended, or have the quota raised; “kubectl describe quota -n {namespace}” shows it"
            ),
            Self::PodSecurity { level } => write!(
                f,
                "Its log says that its executors violate the namespace's pod security ({level}): make them comply by a pod \
                 template ({})",
                keys::EXECUTOR_POD_TEMPLATE
            ),
            Self::NoLog { namespace } => write!(
                f,
                "Its log says why its executors failed, and it cannot be read from here; “kubectl describe quota -n \
                 {namespace}” shows whether a quota has room for them"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(log: &str, code: u8) -> Option<FailureReason> {
        FailureReason::find(Some(log), code, "spark")
    }

    fn refused(account: &str, verb: &str, resource: &str) -> String {
        format!(
            "pods \"x\" is forbidden: User \"{account}\" cannot {verb} resource \"{resource}\" in API group \"\" in the \
             namespace \"spark\"."
        )
    }

    #[test]
    fn an_account_without_the_rights_of_a_driver_is_named() {
        let line = refused("system:serviceaccount:spark:default", "get", "pods");
        let of = |verb: &str| {
            Some(FailureReason::Forbidden {
                account: "default".to_owned(),
                namespace: "spark".to_owned(),
                verb: verb.to_owned(),
                resource: "pods".to_owned(),
            })
        };
        assert_eq!(found(&format!("at x\n{line}\nat y\n"), 1), of("get"));
        // As Spark writes it in JSON.
        assert_eq!(found(&format!("{{\"msg\":\"{}\"}}", line.replace('"', "\\\"")), 1), of("get"));
        for (account, resource) in [
            ("system:serviceaccount:other:default", "pods"),
            ("system:serviceaccount:spark:default", "secrets"),
            ("admin", "pods"),
        ] {
            assert_eq!(found(&refused(account, "get", resource), 1), None);
        }
    }

    #[test]
    fn a_quota_counts_where_too_many_executors_failed() {
        let line = "pods \"x\" is forbidden: exceeded quota: team, requested: requests.memory=896Mi, used: \
                    requests.memory=1536Mi, limited: requests.memory=2Gi";
        let lacks =
            "requested: requests.memory=896Mi, used: requests.memory=1536Mi, limited: requests.memory=2Gi";
        let expected = FailureReason::Quota {
            name: "team".to_owned(),
            lacks: lacks.to_owned(),
            namespace: "spark".to_owned(),
        };
        for end in
            ["", ".", ". Received status: Status(apiVersion=v1, code=403, message=exceeded quota: x, y)."]
        {
            assert_eq!(found(&format!("{line}{end}\n"), 11), Some(expected.clone()), "{end}");
        }
        assert_eq!(found(line, 1), None);
        assert_eq!(found("exceeded quota: nothing more", 11), None);
    }

    #[test]
    fn pod_security_counts_where_too_many_executors_failed() {
        let line = "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false";
        let expected = FailureReason::PodSecurity { level: "restricted:latest".to_owned() };
        assert_eq!(found(line, 11), Some(expected));
        assert_eq!(found(line, 1), None);
    }

    #[test]
    fn without_a_log_it_is_said_where_the_reason_is_only_if_executors_failed() {
        assert_eq!(FailureReason::find(None, 1, "spark"), None);
        assert!(matches!(FailureReason::find(None, 11, "spark"), Some(FailureReason::NoLog { .. })));
    }
}
