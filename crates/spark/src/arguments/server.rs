//! Which of several sources says where the staging server is.

use std::collections::BTreeMap;

use crate::{Origin, SparkConf, keys};

/// The variables of the server's place, each with its key.
const ADDRESS: (&str, &str) = ("CLOAKROOM_SERVER", keys::SERVER_URI.name());
const NAMESPACE: (&str, &str) = ("CLOAKROOM_SERVER_NAMESPACE", keys::CLOAKROOM_SERVER_NAMESPACE.name());
const SERVICE: (&str, &str) = ("CLOAKROOM_SERVER_SERVICE", keys::CLOAKROOM_SERVER_SERVICE.name());

/// The server's place according to one source, such as the command line. Each value has its origin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SaidServer {
    pub address: Option<(String, Origin)>,
    pub namespace: Option<(String, Origin)>,
    pub service: Option<(String, Origin)>,
}

impl SaidServer {
    /// The place according to the environment. Empty variables count as not set.
    pub fn of_variables(variables: &BTreeMap<String, String>) -> Self {
        let of = |(name, _): (&'static str, &str)| {
            let value = variables.get(name).filter(|value| !value.is_empty())?;
            Some((value.clone(), Origin::Variable(name)))
        };
        Self { address: of(ADDRESS), namespace: of(NAMESPACE), service: of(SERVICE) }
    }

    /// Whether it names a Service.
    pub fn names_service(&self) -> bool {
        self.namespace.is_some() || self.service.is_some()
    }

    /// Sets the place in `conf`. Flags win over the settings in `conf`, and those over variables. The strongest source that has
    /// a value decides between an address and a Service; then each name of the Service is that of the strongest source.
    pub fn settle(conf: &mut SparkConf, flags: Self, variables: Self) {
        let is_by_address = match () {
            () if flags.address.is_some() => true,
            () if flags.names_service() => false,
            () if conf.contains(ADDRESS.1) => true,
            () if conf.contains(NAMESPACE.1) || conf.contains(SERVICE.1) => false,
            () => variables.address.is_some(),
        };
        let mut set = |key: &str, flag: Option<(String, Origin)>, variable: Option<(String, Origin)>| {
            if let Some((value, origin)) = flag {
                conf.set(key, value, origin);
            } else if let Some((value, origin)) = variable {
                conf.set_if_missing(key, value, origin);
            }
        };
        if is_by_address {
            set(ADDRESS.1, flags.address, variables.address);
            // Tokens are requested for the server's namespace.
            set(NAMESPACE.1, flags.namespace, variables.namespace);
        } else {
            set(NAMESPACE.1, flags.namespace, variables.namespace);
            set(SERVICE.1, flags.service, variables.service);
            conf.remove(ADDRESS.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &str, origin: &Origin) -> SaidServer {
        let of = |name: &str| {
            let value = words.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
            Some((value.to_owned(), origin.clone()))
        };
        SaidServer { address: of("address"), namespace: of("namespace"), service: of("service") }
    }

    #[test]
    fn the_strongest_source_decides_and_names_of_a_service_are_merged() {
        for (flags, settings, variables, expected) in [
            ("", "", "", ""),
            ("", "", "address=v namespace=v service=v", "address=v namespace=v"),
            ("", "", "namespace=v service=v", "namespace=v service=v"),
            ("", "service=s", "address=v namespace=v service=v", "namespace=v service=s"),
            ("", "address=s service=s", "namespace=v", "address=s namespace=v service=s"),
            ("service=f", "address=s", "address=v namespace=v", "namespace=v service=f"),
            ("service=f", "namespace=s service=s", "namespace=v", "namespace=s service=f"),
            ("namespace=f", "", "address=v namespace=v", "namespace=f"),
            ("address=f", "namespace=s", "service=v", "address=f namespace=s"),
        ] {
            let mut conf = SparkConf::default();
            let keys = [("address", ADDRESS.1), ("namespace", NAMESPACE.1), ("service", SERVICE.1)];
            let of_conf = said(settings, &Origin::Conf);
            for (key, value) in [ADDRESS.1, NAMESPACE.1, SERVICE.1].into_iter().zip([
                of_conf.address,
                of_conf.namespace,
                of_conf.service,
            ]) {
                if let Some((value, origin)) = value {
                    conf.set(key, value, origin);
                }
            }
            let flag = said(flags, &Origin::Option("--flag"));
            SaidServer::settle(&mut conf, flag, said(variables, &Origin::Variable("VARIABLE")));
            let found = keys.iter().filter_map(|(name, key)| Some(format!("{name}={}", conf.get(key)?)));
            assert_eq!(found.collect::<Vec<_>>().join(" "), expected, "{flags} | {settings} | {variables}");
        }
    }
}
