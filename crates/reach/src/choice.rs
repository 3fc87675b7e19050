//! What flags, settings and variables say of the place of the staging server.

use std::collections::BTreeMap;

use super::place::{BadName, ServerPlace, ServerService};
use cloakroom_spark::{Origin, SettingError, SparkConf, keys};
use cloakroom_transfer::client::ServerAddress;

const ADDRESS: &str = keys::SERVER_URI.name();
const NAMESPACE: &str = keys::CLOAKROOM_SERVER_NAMESPACE.name();
const SERVICE: &str = keys::CLOAKROOM_SERVER_SERVICE.name();

/// The keys, each with its variable.
const VARIABLES: [(&str, &str); 3] = [
    (ADDRESS, "CLOAKROOM_SERVER"),
    (NAMESPACE, "CLOAKROOM_SERVER_NAMESPACE"),
    (SERVICE, "CLOAKROOM_SERVER_SERVICE"),
];

/// A value, and who has given it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub value: String,
    pub origin: Origin,
}

/// The place of the server according to one source, such as the command line, or to all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerChoice {
    pub address: Option<Said>,
    /// The namespace of its Service. Beside an address, tokens are requested for it.
    pub namespace: Option<Said>,
    pub service: Option<Said>,
}

/// A value that names no server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadChoice {
    /// The key that the value stands for.
    pub key: &'static str,
    pub said: Said,
    /// What is wrong with it.
    pub problem: String,
}

impl ServerChoice {
    /// What the settings say.
    pub fn of_settings(conf: &SparkConf) -> Self {
        Self::read(|key, _| {
            let (value, origin) = conf.get(key).zip(conf.origin(key))?;
            Some(Said { value: value.to_owned(), origin: origin.clone() })
        })
    }

    /// What the environment says. Empty variables count as not set.
    pub fn of_variables(variables: &BTreeMap<String, String>) -> Self {
        Self::read(|_, name| {
            let value = variables.get(name).filter(|value| !value.is_empty())?;
            Some(Said { value: value.clone(), origin: Origin::Variable(name) })
        })
    }

    fn read(said: impl Fn(&'static str, &'static str) -> Option<Said>) -> Self {
        let [address, namespace, service] = VARIABLES.map(|(key, variable)| said(key, variable));
        Self { address, namespace, service }
    }

    /// Flags win over settings, and those over variables. The strongest source that has a value decides between an address and
    /// a Service; then each name of the Service is that of the strongest source.
    pub fn settle(flags: Self, settings: Self, variables: Self) -> Self {
        let sources = [&flags, &settings, &variables];
        let strongest = sources.into_iter().find(|said| said.is_named());
        let is_by_address = strongest.is_some_and(|said| said.address.is_some());
        let namespace = flags.namespace.or(settings.namespace).or(variables.namespace);
        if is_by_address {
            let address = flags.address.or(settings.address).or(variables.address);
            // A setting beside the address is kept, and its user is told that it is not used.
            Self { address, namespace, service: settings.service }
        } else {
            let service = flags.service.or(settings.service).or(variables.service);
            Self { address: None, namespace, service }
        }
    }

    /// Completes the settings of a submission by the environment.
    pub fn complete(conf: &mut SparkConf, variables: &BTreeMap<String, String>) {
        let (settings, variables) = (Self::of_settings(conf), Self::of_variables(variables));
        Self::settle(Self::default(), settings, variables).set_in(conf);
    }

    /// Sets the place in the settings, in place of what they say.
    pub fn set_in(self, conf: &mut SparkConf) {
        let Self { address, namespace, service } = self;
        for (key, said) in [(ADDRESS, address), (NAMESPACE, namespace), (SERVICE, service)] {
            conf.remove(key);
            if let Some(Said { value, origin }) = said {
                conf.set(key, value, origin);
            }
        }
    }

    /// Whether it names the server: its address, or its Service.
    pub fn is_named(&self) -> bool {
        self.address.is_some() || self.names_service()
    }

    /// Whether it names a Service.
    pub fn names_service(&self) -> bool {
        self.namespace.is_some() || self.service.is_some()
    }

    /// Whether it names the address or the namespace of the server. A token goes only to such a server.
    pub fn may_have_token(&self) -> bool {
        self.address.is_some() || self.namespace.is_some()
    }

    /// The key and the value that name the server.
    pub fn naming(&self) -> Option<(&'static str, &Said)> {
        let Self { address, namespace, service } = self;
        let all = [(ADDRESS, address), (NAMESPACE, namespace), (SERVICE, service)];
        all.into_iter().find_map(|(key, said)| Some((key, said.as_ref()?)))
    }

    /// The place; without any value, the usual Service.
    pub fn place(&self) -> Result<ServerPlace, BadChoice> {
        if let Some(said) = &self.address {
            let address = ServerAddress::parse(&said.value);
            return address
                .map(ServerPlace::Address)
                .map_err(|error| said.refused(ADDRESS, error.to_string()));
        }
        self.server_service().map(ServerPlace::Service)
    }

    fn server_service(&self) -> Result<ServerService, BadChoice> {
        let value = |said: &'_ Option<Said>| said.as_ref().map(|said| said.value.clone());
        let service =
            ServerService::named(value(&self.namespace).as_deref(), value(&self.service).as_deref());
        service.map_err(|bad| {
            let (key, said) = match bad {
                BadName::Namespace => (NAMESPACE, &self.namespace),
                BadName::Service => (SERVICE, &self.service),
            };
            let usual = Said { value: ServerService::DEFAULT.to_owned(), origin: Origin::Derived };
            said.as_ref().unwrap_or(&usual).refused(key, BadName::RULE.to_owned())
        })
    }

    /// The namespace of the server, for which tokens are requested. Beside an address only a value names it, because the
    /// server at an address may be anyone's.
    pub fn namespace_for_tokens(&self) -> Result<Option<String>, BadChoice> {
        if self.address.is_some() && self.namespace.is_none() {
            return Ok(None);
        }
        let service = Self { address: None, service: None, ..self.clone() }.server_service()?;
        Ok(Some(service.namespace))
    }
}

impl BadChoice {
    /// The refusal of a setting.
    pub fn in_settings(&self, conf: &SparkConf) -> SettingError {
        conf.refuse(self.key, &self.problem)
    }
}

impl Said {
    fn refused(&self, key: &'static str, problem: String) -> BadChoice {
        BadChoice { key, said: self.clone(), problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &str, origin: &Origin) -> ServerChoice {
        let of = |name: &str| {
            let value = words.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
            Some(Said { value: value.to_owned(), origin: origin.clone() })
        };
        ServerChoice { address: of("address"), namespace: of("namespace"), service: of("service") }
    }

    #[test]
    fn settings_are_completed_by_variables_unless_those_are_empty() {
        for (variable, expected) in [("http://h", Some("http://h")), ("", None)] {
            let variables = BTreeMap::from([("CLOAKROOM_SERVER".to_owned(), variable.to_owned())]);
            let mut conf = SparkConf::default();
            ServerChoice::complete(&mut conf, &variables);
            assert_eq!(conf.get(ADDRESS), expected);
        }
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
            said(settings, &Origin::Conf).set_in(&mut conf);
            let settled = ServerChoice::settle(
                said(flags, &Origin::Option("--flag")),
                ServerChoice::of_settings(&conf),
                said(variables, &Origin::Variable("VARIABLE")),
            );
            settled.clone().set_in(&mut conf);
            assert_eq!(ServerChoice::of_settings(&conf), settled);
            let ServerChoice { address, namespace, service } = settled;
            let shown = [("address", address), ("namespace", namespace), ("service", service)];
            let found = shown.into_iter().filter_map(|(name, said)| Some(format!("{name}={}", said?.value)));
            assert_eq!(found.collect::<Vec<_>>().join(" "), expected, "{flags} | {settings} | {variables}");
        }
    }
}
